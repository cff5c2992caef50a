"""Annif's TSV: a text, a tab, and the subjects' URIs in angle brackets; no header.

Labels need not be URIs: characters that would end a URI (spaces, brackets) are percent-encoded on writing and decoded
on reading. Other percent signs are kept, so that URIs with percent signs pass through unchanged.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labelwise.data.archive import WriteCompression
from labelwise.data.batch import DocumentBatch, FileSource, LabelVocabulary
from labelwise.data.builder import RecordBuilder
from labelwise.data.files import read_lines
from labelwise.data.formats.format import FileFormat, FileStart
from labelwise.data.formats.writer import NO_IDS, TextWriter, named_rows, one_line
from labelwise.data.label_names import label_list
from labelwise.data.options import BadRows, ReadOptions

_SPECIAL = re.compile(r"[ \t\n\r\v\f<>]|%(?=20|25|3C|3E|09|0A|0B|0C|0D)")
_ENCODED = re.compile(r"%(20|25|3C|3E|09|0A|0B|0C|0D)")
_SUBJECTS = re.compile(r"\s*(<[^<>]*>\s*)*")
_SUBJECT = re.compile(r"<([^<>]*)>")
_LINE = re.compile(r"\t\s*<[^<>\t]*>(\s*<[^<>\t]*>)*\s*$")
_LINE_WITH_ONE_SUBJECT = re.compile(r"\t<[^<>\t]*>\s*$")


def to_uri(label: str) -> str:
    """A label as the file has it: ``<name%20with%20spaces>``."""
    return f"<{_SPECIAL.sub(lambda found: f'%{ord(found[0]):02X}', label)}>"


def from_uri(uri: str) -> str:
    """The label that is written as `uri`, the brackets left out."""
    return _ENCODED.sub(lambda found: chr(int(found[1], 16)), uri)


@dataclass(kw_only=True)
class AnnifSource(FileSource):
    """Annif's TSV files."""

    path: Path
    files: Mapping[str, Path]
    options: ReadOptions
    beside: Path | None
    labels: LabelVocabulary = field(init=False)
    labels_known: bool = field(init=False)

    def __post_init__(self) -> None:
        how = {"max_unpacked": self.options.max_unpacked}
        names = None if self.beside is None else label_list(self.beside, **how)
        self.labels_known = names is not None
        self.labels = LabelVocabulary(names or ())

    def batches(self, split: str, bad: BadRows) -> Iterator[DocumentBatch]:
        """The documents of a split, in order."""
        path = self.files[split]
        builder = RecordBuilder(path=path, options=self.options, labels=self.labels, bad=bad)
        for first, lines in read_lines(path, bad=bad, **self.options.decoding):
            for line, row in enumerate(lines, first):
                if not row:
                    builder.n_rows += row is None  # it is no UTF-8, and was noted
                    continue
                text, tab, subjects = row.rpartition("\t")
                if not tab or not _SUBJECTS.fullmatch(subjects):
                    builder.add_bad("the line is not a text, a tab and subjects like <uri> <uri>", line)
                    continue
                builder.add(line, text, [from_uri(uri) for uri in _SUBJECT.findall(subjects)])
            yield builder.batch()
        builder.check_not_empty()


class AnnifWriter(TextWriter):
    """Writes a text, a tab and subjects in angle brackets."""

    file_name = "{}.tsv"

    def __init__(self, folder: Path, compression: WriteCompression | None) -> None:
        super().__init__(folder, compression)
        self._n_changed, self._with_ids = 0, False

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        self._with_ids |= batch.ids is not None
        lines = []
        for _, text, labels in named_rows(batch, names):
            line = one_line(text).replace("\t", " ")
            self._n_changed += line != text
            lines.append(f"{line}\t{' '.join(map(to_uri, labels))}\n")
        self.file(split).write("".join(lines))

    def finish(self, names: Sequence[str]) -> list[str]:
        """Line breaks, tabs and ids are what Annif's files cannot hold."""
        lost = [NO_IDS] if self._with_ids else []
        if self._n_changed:
            lost.append(f"line breaks and tabs in {self._n_changed} texts became spaces")
        return lost


def _recognises(start: FileStart) -> bool:
    """Whether lines end in subjects; in a .tsv file later lines count too, unless the first one names the columns."""
    if _LINE.search(start.lines[0]):
        return True
    if start.suffix != "tsv":
        return False
    header = {field.strip('"') for field in start.lines[0].strip().split("\t")}
    with_subjects = any(_LINE_WITH_ONE_SUBJECT.search(line) for line in start.lines[:100])
    return with_subjects and not header >= {start.options.labels_column, *start.options.text_columns}


FORMAT = FileFormat(
    name="annif",
    layout="train.tsv with <uri> subjects",
    suffixes=("tsv", "txt"),
    needs="texts",
    open_files=AnnifSource,
    recognises=_recognises,
    writer=AnnifWriter,
)
