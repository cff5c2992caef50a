"""Fingerprints tell contents apart and nothing else."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.config import LinearTreeConfig, TfidfConfig
from labelwise.storage.fingerprint import fingerprint

DIFFERENT = [
    None, 0, 1, 1.0, True, "1", b"1", "", "ab", ["a", "b"], ["ab"], ["ab", ""], [["a"], "b"], {"a": 1}, {"a": "1"},
    {"a": {"b": 1}}, {"a": 1, "b": 1}, np.arange(3), np.arange(3.0), np.arange(3).reshape(1, 3), np.empty(0),
    sp.eye_array(3, format="csr"), sp.eye_array(4, format="csr"), TfidfConfig(), TfidfConfig(min_df=2),
    float("nan"), np.float32(1), "\ud800",
]  # fmt: skip


def test_different_values_differ():
    assert len({fingerprint(value) for value in DIFFERENT}) == len(DIFFERENT)


def test_equal_contents_agree(tmp_path):
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint(LinearTreeConfig()) == fingerprint(replace(LinearTreeConfig(), threads=7))
    assert fingerprint(np.asfortranarray(np.ones((3, 2)))) == fingerprint(np.ones((3, 2)))
    unsorted = sp.csr_array((np.ones(2), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    assert fingerprint(unsorted) == fingerprint(sp.csr_array(np.array([[1.0, 0, 1]])))
    assert unsorted.indices.tolist() == [2, 0]  # the input is left as it was
    for name in ("one", "two"):
        (tmp_path / name).write_text("same")
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two")


def test_the_same_in_another_process():
    code = "from labelwise.storage.fingerprint import fingerprint as f; print(f({'a': ['x', 1], 'b': 2.5}))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == fingerprint({"b": 2.5, "a": ["x", 1]})


def test_what_has_no_content_is_refused():
    with pytest.raises(TypeError, match="cannot depend on a function"):
        fingerprint({"f": lambda: 0})
