"""A few mutated data files; tools/fuzz/data_files.py reads as many as one likes."""

import logging

import pytest

from tests.fuzz.targets import fuzz_target


@pytest.fixture
def target(tmp_path, monkeypatch):
    found = fuzz_target("data_files")
    monkeypatch.setattr(found, "scratch", lambda: tmp_path)
    monkeypatch.setattr(found, "FORMATS", found.valid_sets())
    logging.disable(logging.WARNING)
    yield found
    logging.disable(logging.NOTSET)


def test_valid_data_are_accepted(target, tmp_path):
    assert len(target.FORMATS) >= 14
    for name, files in target.FORMATS.items():
        target.write(tmp_path / name, files)
        assert target.check(target.Case(3, tmp_path / name)) == "accepted", name


def test_mutated_data_are_accepted_or_refused(target):
    for seed in range(150):
        case = target.make_case(seed)
        assert target.check(case) in ("accepted", "refused"), case
