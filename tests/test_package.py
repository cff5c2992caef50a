"""The package: light to import, honest about what is missing."""

import subprocess
import sys

import pytest

import labelwise
from labelwise.errors import MissingExtraError, need

HEAVY = ("torch", "transformers", "sklearn", "matplotlib", "pyarrow", "pandas", "numba", "scipy", "tyro", "rich")


def test_import_is_light():
    code = "import sys, labelwise; print(*(m for m in sys.argv[1].split() if m in sys.modules))"
    command = [sys.executable, "-c", code, " ".join(HEAVY)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []


@pytest.mark.parametrize(
    "module", ["labelwise.data", "labelwise.features.tfidf", "labelwise.metrics", "labelwise.storage.run_directory"]
)
def test_the_core_never_imports_an_extra(module):
    code = f"import sys, {module}; print(*(m for m in sys.argv[1].split() if m in sys.modules))"
    command = [sys.executable, "-c", code, "torch transformers sklearn matplotlib pyarrow pandas tyro"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []


@pytest.mark.parametrize("name", labelwise.__all__)
def test_every_public_name_is_there(name):
    assert getattr(labelwise, name) is not None
    assert name in dir(labelwise)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(AttributeError, match=r"has no attribute 'Tfid'; it has: .*Tfidf"):
        _ = labelwise.Tfid


def test_a_missing_extra_is_told():
    with pytest.raises(MissingExtraError, match=r"rare things need nowhere, .*pip install 'labelwise\[rare\]'"):
        need("nowhere.to.be.found", extra="rare", purpose="rare things")
    assert need("json", extra="x", purpose="y").loads("1") == 1
