"""Fuzz target: folders of PECOS XR-Linear models, read by `load_xr_linear` and then asked for labels."""

from __future__ import annotations

import io
import json
import random
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from mutate import NUMBERS, change_bytes, change_file, change_json, to_text
from runner import Case, Watch, command, scratch

N_FEATURES, N_NODES = 12, (2, 4, 9)
NAMES = ("bias", "pred_kwargs", "only_topk", "post_processor", "depth", "model", "is_mmap", "nr_features")


def write_base(folder: Path, seed: int) -> None:
    """A small model of three levels, as PECOS writes it."""
    import numpy as np
    import scipy.sparse as sp

    rng, above = np.random.default_rng(seed), 1
    about = {"model": "HierarchicalMLModel", "depth": len(N_NODES), "nr_features": N_FEATURES, "is_mmap": False}
    (folder / "ranker").mkdir(parents=True)
    (folder / "param.json").write_text(json.dumps({"model": "XLinearModel"}))
    (folder / "ranker" / "param.json").write_text(json.dumps(about))
    for number, n_nodes in enumerate(N_NODES):
        place = folder / "ranker" / f"{number}.model"
        place.mkdir()
        options = {"only_topk": 3, "post_processor": "l3-hinge"}
        param = {"model": "MLModel", "bias": 1.0, "pred_kwargs": options, "is_mmap": False}
        (place / "param.json").write_text(json.dumps(param))
        W = sp.random(
            N_FEATURES + 1, n_nodes, 0.5, format="csc", dtype=np.float32, random_state=int(rng.integers(1 << 30))
        )
        parents = np.arange(n_nodes) * above // n_nodes
        C = sp.csc_matrix((np.ones(n_nodes, np.float32), (np.arange(n_nodes), parents)), shape=(n_nodes, above))
        sp.save_npz(place / "W.npz", W, compressed=False)
        sp.save_npz(place / "C.npz", C, compressed=bool(seed % 2))
        above = n_nodes


def make_case(seed: int) -> Case:
    """A model in which one to three things are changed."""
    draw = random.Random(seed)
    folder = scratch() / "model"
    write_base(folder, seed % 4)
    notes = []
    for _ in range(draw.choice([1, 1, 2, 3])):
        files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
        file, how = draw.choice(files), draw.random()
        if how < 0.06:
            file.unlink()
            notes.append(f"no {file.relative_to(folder)}")
        elif how < 0.1:
            other = draw.choice(files)
            shutil.copy(other, file) if other != file else None
            notes.append(f"{other.relative_to(folder)} as {file.relative_to(folder)}")
        elif how < 0.13:
            file.unlink()
            file.symlink_to(draw.choice(["/dev/zero", "/etc/passwd", "/nowhere", "."]))
            notes.append(f"{file.relative_to(folder)} is a link")
        elif how < 0.25:
            notes.append(change_file(file, draw))
        elif file.suffix == ".json":
            try:
                value = json.loads(file.read_text())
            except (ValueError, RecursionError):
                continue
            notes.append(f"{file.relative_to(folder)}: {change_json(value, draw, NAMES)}")
            file.write_text(to_text(value))
        else:
            notes.append(f"{file.relative_to(folder)}: {change_npz(file, draw)}")
    return Case(seed, folder, "; ".join(notes))


def change_npz(file: Path, draw: random.Random) -> str:
    """Change one array of an npz file."""
    import numpy as np

    try:
        with np.load(file) as stored:
            arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
    except Exception as err:  # it was damaged by an earlier change
        return type(err).__name__
    arrays = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    if not arrays:
        return "nothing"
    name = draw.choice(list(arrays))
    old = arrays[name]
    small = [number for number in NUMBERS if -(2**31) <= number < 2**31]
    new, how = old.copy(), draw.random()
    if how < 0.4 and new.size and new.dtype.kind in "iuf":
        value = draw.choice(small)
        if new.dtype.kind == "f":
            value = draw.choice([float("nan"), float("inf"), 1e38, -1e38, 0.0, 1e-45])
        new.reshape(-1)[draw.randrange(new.size)] = value
    elif how < 0.5:
        new = new[:-1] if new.ndim else new[None]
    elif how < 0.6:
        new = np.concatenate([new, new]) if new.ndim else new
    elif how < 0.7:
        new = new[::-1].copy() if new.ndim else new
    elif how < 0.85:
        kind = draw.choice(["f8", "f2", "i8", "u1", "c8", "?", "S3", ">i4", ">f4"])
        try:
            with np.errstate(all="ignore"):
                new = new.astype(kind)
        except (ValueError, TypeError):
            new = np.zeros(new.shape, kind)
    elif how < 0.95:
        new = np.array([draw.choice(small) for _ in range(draw.choice([0, 1, 2, 3]))])
    else:
        del arrays[name]
    if name in arrays:
        arrays[name] = new
    with zipfile.ZipFile(file, "w") as archive:
        for key, array in arrays.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.asanyarray(array))
            content = part.getvalue()
            archive.writestr(f"{key}.npy", change_bytes(content, draw) if draw.random() < 0.03 else content)
    return f"{name} {old.dtype}{old.shape} became {new.dtype}{new.shape}"


def check(case: Case) -> str:
    """Read the model and predict; what is accepted must give finite scores of its labels."""
    import numpy as np
    import scipy.sparse as sp

    from labelwise.integrations.pecos import load_xr_linear

    assert case.path is not None
    with Watch(case.path, scratch()) as watch:
        model = load_xr_linear(case.path)
        X = sp.random(5, model.n_features_, min(1.0, 20 / max(model.n_features_, 1)), format="csr", dtype=np.float32)
        predictions = model.predict(X, top_k=3)
        if not np.isfinite(predictions.matrix.data).all():
            return "wrong: scores that are not finite"
    return f"escape: {watch.found[0]}" if watch.found else "accepted"


def prepare() -> None:
    """Import and compile."""
    write_base(scratch() / "first", 0)
    check(Case(0, scratch() / "first"))


if __name__ == "__main__":
    sys.exit(command(make_case, check, about=__doc__ or "", cases=2000, memory_mb=2048, prepare=prepare))
