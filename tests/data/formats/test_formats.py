"""The table of formats: what has to hold for every format in it."""

import subprocess
import sys
from pathlib import Path

import pytest

from labelwise.data import FORMATS, ReadOptions
from labelwise.data.detect import guess_format, open_source
from labelwise.data.formats import file_format, file_formats
from labelwise.errors import DataError
from tests.data.examples import write_text


@pytest.mark.parametrize("name", FORMATS)
def test_the_facts_of_a_format_fit_together(name):
    one = file_format(name)
    assert one.name == name
    assert one.needs in ("texts", "features")
    assert one.open_files or one.open_folder
    assert bool(one.open_files) == bool(one.suffixes)
    assert bool(one.layout) != one.records


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_has_a_test_file_of_its_own(name):
    assert Path(__file__).with_name(f"test_{name}.py").is_file()


def test_formats_that_share_a_suffix_can_be_told_apart():
    for suffix in {suffix for one in file_formats() for suffix in one.suffixes}:
        owners = [one.name for one in file_formats() if suffix in one.suffixes]
        by_suffix_alone = [name for name in owners if file_format(name).recognises is None]
        assert len(owners) == 1 or len(by_suffix_alone) <= 1, f".{suffix}: {owners}"


@pytest.mark.parametrize("name", [one.name for one in file_formats() if not one.records])
def test_the_error_for_an_empty_folder_names_every_format(tmp_path, name):
    with pytest.raises(DataError, match=rf"looked for .*\({name}\)") as caught:
        open_source(tmp_path, options=ReadOptions())
    assert "train/validation/test.{jsonl,csv,tsv,parquet} (also .gz .xz .zst .bz2)" in str(caught.value)


def test_the_error_for_an_unknown_file_names_suffixes_and_formats(tmp_path):
    path = write_text(tmp_path / "notes.md", "hello there\n")
    assert guess_format(path, ReadOptions()) is None
    with pytest.raises(DataError) as caught:
        open_source(path, options=ReadOptions())
    assert "name it .jsonl, .csv, .tsv, .parquet, .txt or .svm, or say it with --format (jsonl, csv" in str(
        caught.value
    )
    assert "pecos" not in str(caught.value)


def test_the_facts_of_all_formats_are_light_to_import():
    heavy = "pyarrow numba pandas torch"
    code = (
        "import sys\nfrom labelwise.data.formats import file_formats\nassert len(file_formats()) >= 8\n"
        "print(*(m for m in sys.argv[1].split() if m in sys.modules))"
    )
    command = [sys.executable, "-c", code, heavy]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []
