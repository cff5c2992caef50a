"""Annif's TSV: a text, a tab, and the subjects' URIs in angle brackets; no header.

A label that is no URI is written as one: what would end it (spaces, brackets) is percent-encoded, and decoded
again on reading. Other percent signs stay as they are, so that URIs which have them pass through unchanged.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from labelwise.data.batch import DocumentBatch, FileSource, LabelVocabulary
from labelwise.data.builder import RecordBuilder
from labelwise.data.files import read_lines
from labelwise.data.label_names import label_list
from labelwise.data.options import BadRows, ReadOptions

_SPECIAL = re.compile(r"[ \t\n\r\v\f<>]|%(?=20|25|3C|3E|09|0A|0B|0C|0D)")
_ENCODED = re.compile(r"%(20|25|3C|3E|09|0A|0B|0C|0D)")
_SUBJECTS = re.compile(r"\s*(<[^<>]*>\s*)*")
_SUBJECT = re.compile(r"<([^<>]*)>")


def to_uri(label: str) -> str:
    """A label as it stands in the file: ``<name%20with%20spaces>``."""
    return f"<{_SPECIAL.sub(lambda found: f'%{ord(found[0]):02X}', label)}>"


def from_uri(uri: str) -> str:
    """The label of what stands between the brackets."""
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
        names = None if self.beside is None else label_list(self.beside)
        self.labels_known = names is not None
        self.labels = LabelVocabulary(names or ())

    def batches(self, split: str, bad: BadRows) -> Iterator[DocumentBatch]:
        """The documents of a split, in order."""
        path = self.files[split]
        builder = RecordBuilder(path=path, options=self.options, labels=self.labels, bad=bad)
        for first, lines in read_lines(path, encoding=self.options.encoding, bad=bad):
            for line, row in enumerate(lines, first):
                if not row:
                    continue
                text, tab, subjects = row.rpartition("\t")
                if not tab or not _SUBJECTS.fullmatch(subjects):
                    builder.n_rows += 1
                    message = "the line is not a text, a tab and subjects like <uri> <uri>"
                    bad.add(message, path=path, line=line)
                    continue
                builder.add(line, text, [from_uri(uri) for uri in _SUBJECT.findall(subjects)])
            yield builder.batch()
        builder.check_not_empty()
