"""Fuzz target: model folders with right checksums, loaded by `load_model` and then asked for labels.

    python tools/fuzz/model_folders.py --cases 3000 --seed 1          linear models of many kinds
    python tools/fuzz/model_folders.py --kinds neural --cases 500     models with a small encoder
    python tools/fuzz/model_folders.py --bounds-check --cases 300     kernels that check every index

Changed are arrays (types, shapes, single numbers, order, other arrays in their place), JSON, label names, the bytes of
files, and which files there are. `runner.py` has the other options.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from mutate import NUMBERS, change_file, change_json, to_text
from runner import ROOT, Case, Watch, command, in_child, scratch

sys.path.insert(0, str(ROOT))

NAMES = ("config", "n_features", "n_labels", "report", "group", "groups", "term", "bias", "n_trees", "members", "kind")
TEXTS = ["w1 w2 w3 w4", "w50 w51 the law", "", "w7 " * 300, "unknown words alone"]
OLD = ROOT / "tests" / "model_formats" / "v1"
bases: dict[str, Path] = {}
"""The models that are changed, by name."""


# ---------------------------------------------------------------------- the models


def texts_and_labels(n: int = 240, n_labels: int = 40) -> tuple[list[str], list[list[str]]]:
    """Texts whose words tell their labels."""
    draw = random.Random(0)
    texts, labels = [], []
    for _ in range(n):
        own = draw.sample(range(n_labels), draw.randint(1, 3))
        words = [f"w{label * 5 + k}" for label in own for k in range(5)]
        texts.append(" ".join(words + [f"w{draw.randrange(200)}" for _ in range(8)]))
        labels.append([f"label {label}" for label in own])
    return texts, labels


def write_linear(place: Path) -> None:
    """Small linear models of every kind."""
    from labelwise import Dataset, Ensemble, LinearTree, NewLabel, Tfidf, add_labels, keep_documents, load_preset
    from labelwise.data.targets import targets
    from labelwise.integrations.quantized_export import pack_ranker, ranker_folders

    texts, labels = texts_and_labels()
    Y, names = targets(labels, None)
    deep = {"index": {"n_clusters": 8, "branching": 2}, "threads": 1}
    for name, preset, changes in (
        ("default", "default", deep),
        ("two", "parabel", {"n_trees": 2, **deep}),
        ("slice", "slice", {"threads": 1}),
        ("dismec", "dismec", {"threads": 1}),
        ("bonsai", "bonsai", {"threads": 1, "max_leaf": 8}),
        ("opening", "default", {"opening": 3, "ngram_range": (1, 2), **deep}),
        ("letters", "parabel", {"analyzer": "char_wb", "ngram_range": (2, 3), **deep}),
    ):
        model = LinearTree(load_preset(preset, **changes)).fit(texts, Y, label_names=names)
        model.save(place / name)
        if name == "two":
            kept = keep_documents(model, Dataset(Y=Y, labels=names, texts=texts))
            kept = add_labels(kept, [NewLabel("line\nbreak", None, [texts[2]]), NewLabel("added", None, [texts[3]])])
            kept.save(place / "grown")
    X = Tfidf().fit_transform(texts)
    LinearTree(load_preset("parabel", **deep)).fit(X, Y).save(place / "features")
    Ensemble(["parabel", "slice"], threads=1).fit(texts, Y, label_names=names).save(place / "ensemble")
    for bits in ("int8", "fp16"):
        shutil.copytree(place / "two", place / bits)
        for folder in ranker_folders(place / bits):
            pack_ranker(folder, bits)  # type: ignore[arg-type]


def write_neural(place: Path) -> None:
    """Small models with an encoder: those of format version 1, as they are and as this version saves them."""
    from labelwise import load_model

    for name in ("x-transformer", "frozen", "exported", "ensemble"):
        shutil.copytree(OLD / name, place / f"{name}-1")
        load_model(OLD / name).save(place / name)


# ---------------------------------------------------------------------- the changes


def with_checksum(folder: Path) -> None:
    """Write the present size and checksum of the arrays into config.json, where that can still be read."""
    file, config = folder / "arrays.safetensors", folder / "config.json"
    if any(path.is_symlink() or not path.is_file() for path in (file, config)):
        return
    try:
        about = json.loads(config.read_text())
        about["files"] = {
            file.name: {"bytes": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        }
        config.write_text(json.dumps(about))
    except (ValueError, TypeError, OSError, RecursionError):
        return


def change_arrays(folder: Path, draw: random.Random, donor: Path) -> str:
    """Change one array, or a few, of a saved folder."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file, save_file

    file = folder / "arrays.safetensors"
    try:
        arrays = load_file(file)
    except (SafetensorError, OSError):
        return "nothing: the arrays are damaged already"
    notes = []
    for _ in range(draw.choice([1, 1, 1, 2])):
        name = draw.choice(sorted(arrays))
        how = draw.choice(ARRAY_CHANGES)
        notes.append(f"{how.__name__} of {folder.name}/{name}")
        changed = how(arrays[name], draw)
        if changed is None:
            others = load_file(donor) if how is swapped else arrays
            changed = others[draw.choice(sorted(others))] if others else None
        if changed is None or how is removed:
            del arrays[name]
        else:
            arrays[name] = changed
        if not arrays:
            break
    import numpy as np

    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, file)
    with_checksum(folder)
    return ", ".join(notes)


def one_number(array: Any, draw: random.Random) -> Any:
    """One to three numbers become others."""
    import numpy as np

    array = array.copy()
    flat = array.reshape(-1)
    for _ in range(draw.choice([1, 1, 3])):
        if flat.size:
            at = draw.choice([0, flat.size - 1, draw.randrange(flat.size)])
            flat[at] = _number(array.dtype, flat[at], draw)
    return np.ascontiguousarray(array)


def every_number(array: Any, draw: random.Random) -> Any:
    """All numbers become one."""
    return array * 0 + _number(array.dtype, 0, draw) if array.dtype != bool else ~array


def _number(dtype: Any, old: Any, draw: random.Random) -> Any:
    import numpy as np

    if dtype.kind == "f":
        values = [0, -1, float("nan"), float("inf"), float("-inf"), np.finfo(dtype).max, np.finfo(dtype).tiny, 1e-8]
        return dtype.type(draw.choice(values))
    info = np.iinfo(dtype) if dtype.kind in "iu" else None
    if info is None:
        return draw.choice([True, False])
    wanted = draw.choice([0, 1, 2, -1, info.max, info.min, info.max - 1, int(old) + 1, int(old) - 1, *NUMBERS[:20]])
    return dtype.type(wanted % (int(info.max) + 1) if wanted > info.max or (wanted < 0 and not info.min) else wanted)


def shuffled(array: Any, draw: random.Random) -> Any:
    """The numbers in another order."""
    import numpy as np

    return array[np.random.default_rng(draw.randrange(1 << 30)).permutation(len(array))] if array.ndim else array


def swapped_pair(array: Any, draw: random.Random) -> Any:
    """Two neighbouring numbers change places."""
    array = array.copy()
    if len(array) > 1:
        at = draw.randrange(len(array) - 1)
        array[[at, at + 1]] = array[[at + 1, at]]
    return array


def cut(array: Any, draw: random.Random) -> Any:
    """The beginning, or nothing at all."""
    return array[: draw.choice([0, 1, len(array) - 1, len(array) // 2])]


def longer(array: Any, draw: random.Random) -> Any:
    """The array, and a part of it again."""
    import numpy as np

    return np.concatenate((array, array[-draw.choice([1, len(array) or 1]) :]))


def other_shape(array: Any, draw: random.Random) -> Any:
    """The same numbers in other dimensions."""
    return draw.choice(
        [array.reshape(-1), array.reshape(-1, 1), array.reshape(1, -1), array[None], array.reshape(-1)[:1].reshape(())]
        if array.size
        else [array.reshape(-1), array[None]]
    )


def other_type(array: Any, draw: random.Random) -> Any:
    """The same numbers in another type."""
    import warnings

    wanted = draw.choice(["i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8", "?"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return array.astype(wanted)


def other_view(array: Any, draw: random.Random) -> Any:
    """The same bytes in another type of as many bits."""
    return array.view(
        {1: "i1", 2: "u2", 4: draw.choice(["u4", "f4", "i4"]), 8: draw.choice(["u8", "f8"])}[array.itemsize]
    )


def removed(array: Any, draw: random.Random) -> Any:
    """No array."""


def swapped(array: Any, draw: random.Random) -> Any:
    """An array of another model, or another one of this."""


def random_bytes(array: Any, draw: random.Random) -> Any:
    """Bytes by chance."""
    import numpy as np

    return np.frombuffer(draw.randbytes(array.nbytes), array.dtype).reshape(array.shape)


ARRAY_CHANGES: tuple[Callable[[Any, random.Random], Any], ...] = (
    *(one_number, one_number, one_number, every_number, shuffled, swapped_pair, swapped_pair, cut, longer),
    *(other_shape, other_type, other_view, removed, swapped, random_bytes),
)


def change_entries(file: Path, draw: random.Random) -> str:
    """Change a JSON file, some places of it."""
    try:
        value = json.loads(file.read_text())
    except (ValueError, RecursionError):
        return "nothing"
    notes = [change_json(value, draw, NAMES) for _ in range(draw.choice([1, 1, 2]))]
    file.write_text(to_text(value), errors="surrogatepass")
    return f"{file.parent.name}/{file.name}: {', '.join(notes)}"


def change_files(folder: Path, draw: random.Random, donor: Path) -> str:
    """Remove, replace, link or rename files."""
    file = draw.choice(sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()))
    how = draw.choice(["removed", "swapped", "link", "outside", "pipe", "folder", "empty", "cut"])
    others = sorted(path for path in donor.rglob(file.name) if path.is_file()) or [file]
    other = draw.choice(others)
    content = file.read_bytes()
    if how == "swapped" and other != file:
        shutil.copy(other, file)
    elif how in ("empty", "cut"):
        file.write_bytes(content[: 0 if how == "empty" else draw.randrange(len(content) + 1)])
    elif how != "swapped":
        file.unlink()
        if how == "link":
            file.symlink_to(draw.choice([other, Path("/dev/zero"), Path("/etc/hostname"), Path("config.json"), file]))
        elif how == "outside":
            (folder.parent / "outside").write_bytes(content)
            file.symlink_to(folder.parent / "outside")
        elif how == "pipe":
            os.mkfifo(file)
        elif how == "folder":
            file.mkdir()
    if file.name == "arrays.safetensors" and draw.random() < 0.8:
        with_checksum(file.parent)
    return f"{how}: {file.relative_to(folder)}"


def make_case(seed: int) -> Case:
    """A model in which one to three things are changed."""
    draw = random.Random(seed)
    name = draw.choice(sorted(bases))
    donor = bases[draw.choice(sorted(bases))]
    folder = scratch() / "model"
    shutil.copytree(bases[name], folder)
    notes = [name]
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        how = draw.random()
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        saved = [path.parent for path in files if path.name == "arrays.safetensors"]
        if how < 0.6 and saved:
            place = draw.choice(saved)
            others = sorted(donor.rglob("arrays.safetensors"))
            try:
                notes.append(change_arrays(place, draw, draw.choice(others)))
            except (ValueError, OverflowError, IndexError, TypeError, ZeroDivisionError) as err:
                notes.append(f"nothing ({err})")
        elif how < 0.85:
            texts = [path for path in files if path.suffix == ".json"]
            notes.append(change_entries(draw.choice(texts), draw) if texts else "nothing")
        elif how < 0.93:
            notes.append(change_files(folder, draw, donor))
        else:
            file = draw.choice([path for path in files if path.name != "README.md"])
            notes.append(change_file(file, draw))
            if file.name == "arrays.safetensors":
                with_checksum(file.parent)
    return Case(seed, folder, "; ".join(notes), draw.random() < 0.5)


# ---------------------------------------------------------------------- the check


def check(case: Case) -> str:
    """Load and predict; what is accepted must answer with finite scores and labels of the model."""
    import numpy as np
    import scipy.sparse as sp

    from labelwise import load_model

    assert case.path is not None
    with Watch(case.path) as watch:
        model = load_model(case.path, verify=bool(case.data))
        documents: Any = TEXTS
        if not model.reads_texts:
            width = min(model.n_features_, 200)  # type: ignore[attr-defined]
            X = sp.random_array((5, width), density=0.2, format="csr", dtype=np.float32, rng=0)
            documents = sp.csr_array((X.data, X.indices, X.indptr), shape=(5, model.n_features_))  # type: ignore[attr-defined]
        found = model.predict(documents, top_k=5)
        one = model.predict(documents[:1], top_k=3)
        list(model.facts()), model.title()
    if watch.found:
        return f"escape: {watch.found[0]}"
    for matrix in (found.matrix, one.matrix):
        if not np.isfinite(matrix.data).all() or matrix.shape[1] != len(model.labels_):
            return "wrong: scores that are not finite, or of other labels"
    if any(label not in model.labels_ for suggestions in found for label, _ in suggestions):
        return "wrong: a label that the model has not"
    return "accepted"


def prepare() -> None:
    """Compile every kernel, also for the types of arrays that larger models, or those in fewer bits, have."""
    from dataclasses import replace

    import numpy as np

    from labelwise.rank.features import Features
    from labelwise.rank.search import BeamSearch
    from labelwise.rank.sparse_weights import LevelWeights

    features = Features(
        np.array([0, 0]), np.empty(0, np.uint32), np.empty(0, np.float32), 1, np.ones((1, 1), np.float32)
    )
    offsets, nothing = np.array([0, 1]), np.array([0, 0])
    rows: Any = (nothing, np.empty(0, np.uint32), np.empty(0, np.uint32), nothing, np.empty(0, np.uint8))
    floats: Any = (np.empty(0, np.float16), np.zeros((1, 1), np.float32))
    level = LevelWeights(offsets, np.zeros(1, np.int32), *rows, *floats)
    for number in (np.uint8, np.uint16, np.uint32):
        for value, dense in ((np.float16, np.float32), (np.float32, np.float32), (np.float16, np.float16)):
            types = {"entry_child": level.entry_child.astype(number), "entry_value": level.entry_value.astype(value)}
            one = replace(level, **types, dense=level.dense.astype(dense))
            for array in vars(one).values():
                array.flags.writeable = False
            BeamSearch([one], n_features=1).top(features, beam=1, top_k=1)
    for seed in range(len(bases)):
        name = sorted(bases)[seed]
        check(Case(0, bases[name], name, True))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--kinds", choices=("linear", "neural", "all"), default="linear")
    parser.add_argument("--bounds-check", action="store_true")
    parser.add_argument("--bases", type=Path, help="folder for the models that are changed, made if it is empty")
    options, others = parser.parse_known_args()
    os.environ.update(NUMBA_NUM_THREADS="1", OMP_NUM_THREADS="1")
    if options.bounds_check:
        os.environ["NUMBA_BOUNDSCHECK"] = "1"
        os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / "numba-bounds-check"))
    with tempfile.TemporaryDirectory(prefix="fuzz-bases-") as folder:
        for kinds, write in (("linear", write_linear), ("neural", write_neural)):
            place = Path(options.bases or folder) / kinds
            if options.kinds in (kinds, "all") and not place.is_dir():
                in_child(partial(write, place))
            if options.kinds in (kinds, "all"):
                bases.update({path.name: path for path in sorted(place.iterdir()) if path.is_dir()})
        return command(make_case, check, about=__doc__ or "", cases=3000, prepare=prepare, arguments=others)


if __name__ == "__main__":
    sys.exit(main())
