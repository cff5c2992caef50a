"""The package: light to import, honest about what is missing."""

import ast
import subprocess
import sys
from pathlib import Path

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


WITHOUT_TORCH = """
import sys
from pathlib import Path
for name in ("torch", "transformers", "accelerate"):
    sys.modules[name] = None
import labelwise
from labelwise import *
assert "Encoder" not in labelwise.__all__ and "Encoder" not in dir(labelwise)
texts, labels = ["red shoe", "blue mug"] * 30, [["shoe"], ["mug"]] * 30
assert XTransformer is labelwise.XTransformer and LinearTree().fit(texts, labels).predict(["a shoe"], top_k=1)[0]
def fails(use):
    try:
        use()
    except labelwise.LabelwiseError as error:
        print(type(error).__name__, error)
fails(lambda: labelwise.Encoder.load("minilm"))
fails(lambda: labelwise.Encoder())
fails(lambda: XTransformer("hybrid").fit(texts, labels))
fails(lambda: Ensemble(["default", "hybrid"]).fit(texts, labels))
fails(lambda: train(texts, labels, preset="hybrid"))
"""


def test_without_torch_all_but_encoders_work_and_they_name_the_extra():
    found = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True).stdout
    lines = found.splitlines()
    assert len(lines) == 5, found
    for line in lines:
        assert line.startswith("MissingExtraError "), line
        assert "need torch, which is not installed; run: pip install 'labelwise[neural]'" in line


LOOKING_AROUND = """
import inspect, sys
sys.modules["torch"] = None
import labelwise
from labelwise import *
assert "LinearTree" in globals() and "Encoder" not in globals()
assert hasattr(labelwise, "Encoder") and not hasattr(labelwise, "Decoder")
names = [name for name, _ in inspect.getmembers(labelwise)]
assert "XTransformer" in names and "Encoder" not in dir(labelwise)
from labelwise import Encoder
assert "pip install 'labelwise[neural]'" in repr(Encoder) and not isinstance(1, Encoder)
inspect.getdoc(Encoder), inspect.unwrap(Encoder), callable(Encoder)
"""


def test_without_torch_looking_around_raises_nothing():
    subprocess.run([sys.executable, "-c", LOOKING_AROUND], check=True)


def test_names_for_type_checkers_are_those_that_are_imported_later():
    tree = ast.parse(Path(labelwise.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {alias.asname: node.module for node in block.body for alias in node.names if alias.asname == alias.name}
    assert len(typed) == sum(len(node.names) for node in block.body)
    assert typed == labelwise._HOMES
