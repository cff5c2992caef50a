"""Annif's TSV: a text, a tab, and the subjects' URIs in angle brackets; no header. subjects.tsv names the URIs.

Labels need not be URIs. On writing, a label that is no absolute IRI becomes one: a prefix, ``urn:labelwise:`` if no
other is given, and the label, percent-encoded. On reading it is the label again: by the usual prefix, or by another one
where labels.txt has the label and subjects.tsv its IRI. Absolute IRIs are kept to the letter.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from labelwise.data.archive import WriteCompression, open_writer
from labelwise.data.batch import DocumentBatch, FileSource, LabelVocabulary
from labelwise.data.builder import RecordBuilder
from labelwise.data.files import read_lines
from labelwise.data.formats.format import FileFormat, FileStart
from labelwise.data.formats.writer import NO_IDS, TextWriter, named_rows, one_line
from labelwise.data.label_names import find_beside, label_list
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError, UsageError

log = logging.getLogger(__name__)

PREFIX = "urn:labelwise:"
"""Begins the IRIs of labels that are no IRIs, if no other prefix is given."""
VOCABULARY = "subjects.tsv"
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|\\^`\x7f-\xa0]+")
_RESERVED = re.compile(r"[^A-Za-z0-9_.~%-]")
"""What is not in an encoded label, so that a prefix usually ends with it."""
_ENCODED = re.compile(r"%(20|25|3C|3E|09|0A|0B|0C|0D)")
_SUBJECTS = re.compile(r"\s*(<[^<>]*>\s*)*")
_SUBJECT = re.compile(r"<([^<>]*)>")
_LINE = re.compile(r"\t\s*<[^<>\t]*>(\s*<[^<>\t]*>)*\s*$")
_LINE_WITH_ONE_SUBJECT = re.compile(r"\t<[^<>\t]*>\s*$")


def is_iri(text: str) -> bool:
    """Whether a text is an absolute IRI: a scheme, a colon, and no character that an IRI cannot have."""
    return _IRI.fullmatch(text) is not None


def to_uri(label: str, prefix: str = PREFIX) -> str:
    """A label as the file has it: ``<urn:labelwise:a%20name>``, or the IRI that it is."""
    if is_iri(label) and not label.startswith((prefix, PREFIX)):
        return f"<{label}>"
    return f"<{prefix}{quote(label, safe='', errors='surrogatepass')}>"


def from_uri(uri: str) -> str:
    """The label that is written as `uri`, the brackets left out."""
    if uri.startswith(PREFIX):
        return unquote(uri.removeprefix(PREFIX), errors="surrogatepass")
    if is_iri(uri):
        return uri
    return _ENCODED.sub(lambda found: chr(int(found[1], 16)), uri)


def check_prefix(prefix: str) -> None:
    """Refuse a prefix whose labels would be no IRIs."""
    if not is_iri(f"{prefix}x"):
        raise UsageError(
            f"the prefix {prefix!r} begins no IRI; give one such as {PREFIX} or http://example.org/subjects/"
        )


def read_vocabulary(path: Path, *, max_unpacked: int | None = None) -> dict[str, str]:
    """The names of subjects by their URIs, from a vocabulary in Annif's TSV; a subject without a name is left out."""
    names: dict[str, str] = {}
    for first, lines in read_lines(path, max_unpacked=max_unpacked):
        for line, row in enumerate(lines, first):
            if not row or row.isspace():
                continue
            uri, _, rest = row.strip().partition("\t")
            if not re.fullmatch(r"<[^<>]+>", uri.strip()):
                raise DataError("every line is <uri>, a tab and a name", path=path, line=line)
            if name := rest.partition("\t")[0].strip():
                names[uri.strip()[1:-1]] = name
    return names


def subject_names(folder: Path, labels: Sequence[str]) -> dict[str, str] | None:
    """The names of those labels that are URIs, from subjects.tsv in a folder of data; None if it names none of them."""
    path = find_beside(folder, VOCABULARY) if folder.is_dir() else None
    if path is None:
        return None
    try:
        vocabulary = read_vocabulary(path)
    except DataError as error:  # a file of somebody else's that has this name
        log.warning("names of subjects are not read: %s", error)
        return None
    return {label: vocabulary[label] for label in labels if vocabulary.get(label, label) != label} or None


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
        self._own = self._own_labels(set(names or ()))

    def _own_labels(self, names: set[str]) -> dict[str, str]:
        """Labels by the IRIs that another prefix than the usual one has made of them."""
        path = None if self.beside is None or not names else find_beside(self.beside, VOCABULARY)
        if path is None:
            return {}
        encoded = {quote(name, safe="", errors="surrogatepass"): name for name in names}
        own = {}
        for uri, name in read_vocabulary(path, max_unpacked=self.options.max_unpacked).items():
            end = quote(name, safe="", errors="surrogatepass")
            label = name if name in names and uri.endswith(end) else encoded.get(_RESERVED.split(uri)[-1])
            if label is not None and uri not in names:
                own[uri] = label
        return own

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
                builder.add(line, text, [self._label(uri) for uri in _SUBJECT.findall(subjects)])
            yield builder.batch()
        builder.check_not_empty()

    def _label(self, uri: str) -> str:
        return self._own.get(uri) or from_uri(uri)


class AnnifWriter(TextWriter):
    """Writes a text, a tab and subjects in angle brackets, and the vocabulary that `annif load-vocab` reads."""

    file_name = "{}.tsv"

    def __init__(self, folder: Path, compression: WriteCompression | None, prefix: str = PREFIX) -> None:
        super().__init__(folder, compression)
        check_prefix(prefix)
        self.prefix = prefix
        self._n_changed, self._with_ids = 0, False

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        self._with_ids |= batch.ids is not None
        lines = []
        for _, text, labels in named_rows(batch, names):
            line = one_line(text).replace("\t", " ")
            self._n_changed += line != text
            lines.append(f"{line}\t{' '.join(to_uri(label, self.prefix) for label in labels)}\n")
        self.file(split).write("".join(lines))

    def finish(self, names: Sequence[str]) -> list[str]:
        """Write the vocabulary. Line breaks, tabs and ids are what Annif's files cannot hold."""
        with open_writer(self.folder / VOCABULARY, None) as stream:
            stream.writelines(f"{to_uri(name, self.prefix)}\t{_plain(name)}\n" for name in names)
        lost = [NO_IDS] if self._with_ids else []
        if self._n_changed:
            lost.append(f"line breaks and tabs in {self._n_changed} texts became spaces")
        return lost


def _plain(name: str) -> str:
    """A name on one line and in one column."""
    return re.sub(r"[\t\n\r\v\f]", " ", name)


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
