"""tsv files with a header row: csv files with tabs for commas."""

from dataclasses import dataclass

from labelwise.data.formats.csv import CsvSource, CsvWriter
from labelwise.data.formats.format import FileFormat


@dataclass(kw_only=True)
class TsvSource(CsvSource):
    """tsv files whose first row names the columns."""

    delimiter = "\t"


class TsvWriter(CsvWriter):
    """Writes a header row and a row for each document, with tabs between the cells."""

    file_name = "{}.tsv"
    delimiter = "\t"


FORMAT = FileFormat(
    name="tsv",
    records=True,
    streamed=True,
    suffixes=("tsv",),
    needs="texts",
    open_files=TsvSource,
    writer=TsvWriter,
)
