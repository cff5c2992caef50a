"""A model folder is data: whatever is wrong with it is told in one sentence, and nothing else is opened or started.

Every array of every kind of linear model is damaged in four ways, with a right checksum: it must be refused, or the
model must still answer with finite scores of its own labels.
"""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load_file, save_file

from labelwise import (
    Dataset,
    Ensemble,
    LabelwiseError,
    LinearTree,
    NewLabel,
    Tfidf,
    add_labels,
    keep_documents,
    load_model,
    load_preset,
    storage,
)
from labelwise.errors import StorageError
from labelwise.integrations.quantized_export import pack_ranker, ranker_folders
from labelwise.models.calibrator import Calibrator
from tests.storage.opened import heard

UP = "../.."

N_LABELS = 12
NAMES = [f"label {label}" for label in range(N_LABELS)]
KINDS = ("tree", "two", "grown", "slice", "features", "opening", "int8", "ensemble")


def documents():
    """Texts with the words of their labels."""
    rng = np.random.default_rng(0)
    Y = sp.csr_array(rng.random((90, N_LABELS)) < 0.15, dtype=np.float32)
    Y = sp.csr_array(Y + sp.eye_array(90, N_LABELS, format="csr") > 0, dtype=np.float32)
    rows = [Y.indices[Y.indptr[i] : Y.indptr[i + 1]] for i in range(90)]
    return [" ".join(f"word{label} also{label}" for label in row) + " end" for row in rows], Y


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A small model of every kind, saved; the kinds that others are made of are trained once."""
    place = tmp_path_factory.mktemp("models")
    texts, Y = documents()
    deep = {"n_clusters": 4, "branching": 2, "threads": 1}
    configs = {
        "tree": load_preset("default", **deep),
        "two": load_preset("parabel", n_trees=2, **deep),
        "slice": load_preset("slice", threads=1),
        "opening": load_preset("parabel", opening=2, threads=1),
    }
    models = {name: LinearTree(config).fit(texts, Y, label_names=NAMES) for name, config in configs.items()}
    X = Tfidf().fit_transform(texts)
    models["features"] = LinearTree(configs["two"]).fit(X, Y, label_names=NAMES)
    kept = keep_documents(models["two"], Dataset(Y=Y, labels=NAMES, texts=texts))
    models["grown"] = add_labels(kept, [NewLabel("line\nbreak", None, ["word1 new"])])
    curve = {"scores": np.array([0.0, 1.0]), "probabilities": np.array([0.1, 0.9])}
    models["tree"].calibrator_ = Calibrator(**curve, n_docs=90, n_pairs=900, n_hits=90)
    models["ensemble"] = Ensemble.of([models["tree"], models["slice"]])
    for name, model in models.items():
        model.save(place / name)
    shutil.copytree(place / "two", place / "int8")
    for folder in ranker_folders(place / "int8"):
        pack_ranker(folder, "int8")
    return place


@pytest.fixture
def copy_of(folders, tmp_path):
    """Makes copies that a test may change."""

    def make(kind):
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        return shutil.copytree(folders / kind, tmp_path / "model")

    return make


def rewrite(folder: Path, arrays):
    """Other arrays for a saved part, with a right checksum."""
    file = folder / storage.ARRAYS
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, file)
    about = json.loads((folder / storage.CONFIG).read_text())
    about["files"][storage.ARRAYS] = {
        "bytes": file.stat().st_size,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }
    (folder / storage.CONFIG).write_text(json.dumps(about))


def edit(file: Path, change):
    """Change the JSON of a file."""
    value = json.loads(file.read_text())
    change(value)
    file.write_text(json.dumps(value))


def ask(folder: Path):
    """Load and predict; what comes back must be finite and of the model's labels."""
    model = load_model(folder)
    asked = ["word1 also2 end", "", "nothing known"]
    if not model.reads_texts:
        asked = sp.csr_array(np.eye(3, model.n_features_, dtype=np.float32))
    found = model.predict(asked, top_k=3)
    assert np.isfinite(found.matrix.data).all()
    assert all(label in model.labels_ for suggestions in found for label, _ in suggestions)
    assert list(model.facts())
    return found


def was_refused(folder: Path):
    """Whether loading or predicting ends with an error of ours, in one sentence."""
    try:
        ask(folder)
    except LabelwiseError as err:
        return len(str(err)) < 600
    return False


def largest(array):
    """All numbers as large as the type allows."""
    return np.full_like(array, np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).max)


def longer(array):
    """One more entry."""
    return np.concatenate((array, array[:1])) if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)


def other_type(array):
    """Numbers of another type."""
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int16)


def backwards(array):
    """The last entry first."""
    return array[::-1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_array_is_checked(copy_of, folders, kind):
    ask(folders / kind)
    folder, n_arrays = copy_of(kind), 0
    for part in sorted(file.parent for file in folder.rglob(storage.ARRAYS)):
        arrays = load_file(part / storage.ARRAYS)
        for name, array in arrays.items():
            n_arrays += 1
            for damage in (largest, longer, other_type, backwards):
                damaged = damage(array)
                same = damaged.dtype == array.dtype and np.array_equal(damaged, array)
                rewrite(part, arrays | {name: damaged})
                harmless = damage is backwards or same or not array.size or array.dtype == np.int8
                harmless |= damage is other_type and name.endswith(".data")  # of a matrix, in any type of number
                assert was_refused(folder) or harmless, f"{damage.__name__} of {part.name}/{name}"
        rewrite(part, arrays)
    ask(folder)
    assert n_arrays > 10


def test_what_an_array_may_not_be_is_told(copy_of):
    folder = copy_of("tree")
    part = folder / "tree-0" / "ranker"
    arrays = load_file(part / storage.ARRAYS)
    rewrite(part, arrays | {"0.entry_child": np.full(len(arrays["0.entry_child"]), 255, np.uint8)})
    with pytest.raises(StorageError, match=r"block 0 of the arrays '0\.…' is wrong: it has weights of a child that"):
        load_model(folder, verify=False)
    rewrite(part, arrays)
    words = load_file(folder / "tfidf" / storage.ARRAYS)
    for keys in (np.full_like(words["keys"], 12345), np.arange(1, 1 + len(words["keys"]), dtype=np.uint64)):
        rewrite(folder / "tfidf", words | {"keys": keys})
        with pytest.raises(StorageError, match=r"the array '(keys|values)'"):
            load_model(folder)
    rewrite(folder / "tfidf", words | {"idf": words["idf"][:3]})
    with pytest.raises(StorageError, match="the array 'idf' is float32 of shape"):
        load_model(folder)


def set_config(**values):
    return lambda about: about["config"].update(values)


def set_settings(**values):
    return lambda about: about["config"]["config"].update(values)


@pytest.mark.parametrize(
    ("kind", "file", "change"),
    [
        ("tree", "config.json", lambda about: about.pop("config")),
        ("tree", "config.json", lambda about: about["config"].pop("config")),
        ("tree", "config.json", lambda about: about.update(kind="x-transformer")),
        ("tree", "config.json", lambda about: about.update(kind=["linear-tree"])),
        ("tree", "config.json", lambda about: about.update(version="2")),
        ("tree", "config.json", set_config(n_labels="12")),
        ("tree", "config.json", set_config(n_labels=11)),
        ("tree", "config.json", set_config(n_features=10**12)),
        ("tree", "config.json", set_config(n_features=5)),
        ("features", "config.json", set_config(n_features=3)),
        ("tree", "config.json", set_config(report=[])),
        ("tree", "config.json", set_config(report={"documents": "many"})),
        ("tree", "config.json", set_config(report={"validation": {"documents": 3, "scores": {"P@1": "x"}}})),
        ("tree", "config.json", set_settings(n_trees=0)),
        ("tree", "config.json", set_settings(n_trees=10**9)),
        ("tree", "config.json", set_settings(beam="10")),
        ("tree", "config.json", set_settings(tfidf={"ngram_range": [1, 10**18]})),
        ("tree", "config.json", set_settings(ranker={"bias": 1e300}, matcher={"bias": 1e300})),
        ("tree", "calibration.json", lambda about: about.update(scores=["a"])),
        ("tree", "calibration.json", lambda about: about.update(n_docs=1e999)),
        ("tree", "calibration.json", lambda about: about.update(version=[2])),
        ("tree", "tree-0/ranker/config.json", set_config(n_levels="2")),
        ("tree", "tree-0/ranker/config.json", set_config(n_levels=1)),
        ("tree", "tree-0/ranker/config.json", lambda about: about.update(files=[])),
        ("tree", "tree-0/ranker/config.json", lambda about: about.update(matrices={"x": 1})),
        ("slice", "tree-0/ranker/config.json", set_config(n_features=10**12)),
        ("slice", "tree-0/ranker/config.json", set_config(n_features=20)),
        ("tree", "tfidf/config.json", lambda about: about.update(config=[1])),
        ("tree", "tfidf/config.json", set_config(use_idf=False)),
        ("grown", "memory/config.json", set_config(n_trees=10**9)),
        ("grown", "memory/config.json", set_config(n_features=3)),
        ("ensemble", "config.json", lambda about: about["config"].pop("chosen")),
        ("ensemble", "config.json", lambda about: about["config"]["chosen"].update(weights=[0.0, 0.0])),
        ("ensemble", "config.json", lambda about: about["config"]["chosen"].update(weights=[-1.0, 2.0])),
        ("ensemble", "config.json", lambda about: about["config"]["chosen"].update(weights=[1.0])),
        ("ensemble", "config.json", lambda about: about["config"]["chosen"].update(weights=["1", 1])),
        ("ensemble", "config.json", lambda about: about["config"]["chosen"].update(rule="sum")),
        ("ensemble", "config.json", lambda about: about["config"]["chosen"].update(over=["scores"])),
        ("ensemble", "config.json", set_settings(members=2)),
        ("ensemble", "config.json", set_settings(members=[])),
        ("ensemble", "config.json", set_settings(candidates_per_model=2**62)),
    ],
)
def test_json_that_does_not_fit_is_refused(copy_of, kind, file, change):
    folder = copy_of(kind)
    edit(folder / file, change)
    with pytest.raises(StorageError):
        load_model(folder)


@pytest.mark.parametrize(
    ("part", "of"),
    [("tfidf", "opening"), ("tree-0", "grown"), ("tree-0/index", "grown")],
)
def test_parts_of_other_models_are_refused(copy_of, folders, part, of):
    folder = copy_of("tree")
    shutil.rmtree(folder / part)
    shutil.copytree(folders / of / part, folder / part)
    with pytest.raises(StorageError):
        load_model(folder)


def test_an_ensemble_inside_of_an_ensemble_is_refused(copy_of, folders):
    folder = copy_of("ensemble")
    shutil.rmtree(folder / "members" / "02")
    shutil.copytree(folders / "ensemble", folder / "members" / "02")
    with pytest.raises(StorageError, match="a member is an ensemble itself"):
        load_model(folder)


@pytest.mark.parametrize(
    "target",
    [
        *("../shared/tfidf-1", "../../../shared/tfidf-1", UP + "/shared/tfidf-9", UP + "/shared/index-1"),
        *("shared/tfidf-1", "/shared/tfidf-1", UP + "/shared/./tfidf-1", UP + "/shared/tfidf-1/", 5, None, []),
    ],
)
def test_links_to_other_places_than_the_shared_parts_are_refused(copy_of, target):
    folder = copy_of("ensemble")
    link = folder / "members" / "01" / "tfidf.link.json"
    assert link.is_file()
    shutil.copytree(folder / "shared", folder.parent / "shared", dirs_exist_ok=True)
    link.write_text(json.dumps({"folder": target}))
    with pytest.raises(StorageError):
        load_model(folder)


def test_shared_parts_outside_of_the_ensemble_are_refused(copy_of):
    folder = copy_of("ensemble")
    outside = folder.parent / "outside"
    shutil.rmtree(outside, ignore_errors=True)
    shutil.move(folder / "shared", outside)
    (folder / "shared").symlink_to(outside)
    for place in (folder, folder / "members" / "01"):
        with pytest.raises(StorageError, match="link"):
            load_model(place)


def test_a_member_alone_is_loaded(folders):
    ask(folders / "ensemble" / "members" / "01")


@pytest.mark.parametrize("kind", ["tree", "slice", "ensemble"])
def test_nothing_outside_of_the_folder_is_opened_and_nothing_started(folders, tmp_path, kind):
    # Without compiled kernels in its cache, numba writes them, and tempfile tries its folder. A model of the same kind
    # is therefore asked before the hooks are set; the one that is listened to lies somewhere else.
    shutil.copytree(folders / kind, tmp_path / "model")
    ask = (
        "import sys, tempfile, labelwise\n"
        "tempfile.gettempdir()\n"
        "model = labelwise.load_model(sys.argv[{}])\n"
        "assert len(model.predict(['word1 end'], top_k=2)[0]) == 2"
    )
    found = heard(ask.format(2), first=ask.format(1), arguments=[str(folders / kind), str(tmp_path / "model")])
    assert found.outside(tmp_path / "model", Path(__file__).parents[2] / "src") == []
    # Numba reads its own cache by pickle; of the model's folder no such file is opened, see below.
    assert [event for event in found.events if not event.startswith("pickle.")] == []
    assert [
        path for path in found.written if path.suffix not in (".nbi", ".nbc", ".pyc") and "__pycache__" not in str(path)
    ] == []
    read = [path for path in found.opened if path.is_relative_to((tmp_path / "model").resolve()) and path.is_file()]
    assert read
    assert {path.suffix for path in read} <= {".json", ".safetensors", ".txt"}


def test_trees_that_the_settings_do_not_name_are_refused(folders, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(folders / "two", folder)
    about = json.loads((folder / "config.json").read_text())
    about["config"]["config"]["n_trees"] = 1
    (folder / "config.json").write_text(json.dumps(about))
    with pytest.raises(StorageError, match=r"it has more trees than the 1 of its config\.json"):
        load_model(folder)


def test_a_file_is_no_model(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="file is a file; give a folder that labelwise saved"):
        load_model(tmp_path / "file")
