"""A model folder in PECOS's format, written by hand, against a search over all paths in plain numpy."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import load_model
from labelwise.errors import DataError, StorageError
from labelwise.integrations.pecos import load_xr_linear
from tests.cli.conftest import labelwise  # noqa: F401  # a fixture

N_FEATURES = 12
PARENTS = ([0, 0, 0], [2, 0, 1, 0, 2], [4, 0, 1, 0, 2, 3, 3, 2, 1, 4, 0])
TRANSFORMS = {
    "l3-hinge": lambda s: np.exp(-(np.maximum(1 - s, 0) ** 3)),
    "l1-hinge": lambda s: np.exp(-np.maximum(1 - s, 0)),
    "sigmoid": lambda s: 1 / (1 + np.exp(-s)),
}


def write_level(folder, W, parents, n_above, *, bias=1.0, beam=3, post="l3-hinge"):
    folder.mkdir(parents=True)
    about = {
        "__meta__": {"class_fullname": "pecos.xmc.base###MLModel"},
        "model": "MLModel",
        "nr_labels": W.shape[1],
        "nr_features": N_FEATURES,
        "nr_codes": n_above,
        "bias": bias,
        "pred_kwargs": {"only_topk": beam, "post_processor": post},
    }
    (folder / "param.json").write_text(json.dumps(about))
    C = sp.csc_matrix((np.ones(len(parents), np.float32), (range(len(parents)), parents)), (len(parents), n_above))
    sp.save_npz(folder / "W.npz", sp.csc_matrix(W, dtype=np.float32), compressed=False)
    sp.save_npz(folder / "C.npz", C, compressed=False)


def write_model(folder, *, bias=1.0, parents=PARENTS, **options):
    """Returns the weights of each level, the bias's row last."""
    rng, levels, n_above = np.random.default_rng(5), [], 1
    for depth, above in enumerate(parents):
        W = rng.normal(0, 1, (N_FEATURES + (bias > 0), len(above))) * (rng.random((1, len(above))) < 0.9)
        W[rng.random(W.shape) < 0.5] = 0
        write_level(folder / "ranker" / f"{depth}.model", W, above, n_above, bias=bias, **options)
        levels.append(W)
        n_above = len(above)
    about = {"model": "HierarchicalMLModel", "depth": len(parents), "nr_features": N_FEATURES, "nr_labels": n_above}
    (folder / "ranker" / "param.json").write_text(json.dumps(about))
    (folder / "param.json").write_text(json.dumps({"__meta__": {"class_fullname": "…###XLinearModel"}}))
    return levels


def by_hand(X, levels, parents, transform, bias, beam):
    """(n_docs, n_labels) the product along each path; nan where the beam does not reach."""
    X = np.hstack((X, np.full((len(X), 1), bias))) if bias > 0 else X
    reached, scores = np.ones((len(X), 1), bool), np.ones((len(X), 1))
    for depth, (W, above) in enumerate(zip(levels, parents, strict=True)):
        scores = np.where(reached[:, above], scores[:, above] * transform(X @ W), np.nan)
        if depth < len(levels) - 1:
            best = np.argsort(np.where(np.isnan(scores), -1, scores), axis=1)[:, ::-1][:, :beam]
            keep = np.zeros(scores.shape, bool)
            np.put_along_axis(keep, best, True, axis=1)
            reached = keep & ~np.isnan(scores)
    return scores


@pytest.fixture
def X():
    return sp.random_array((40, N_FEATURES), density=0.4, dtype=np.float32, rng=np.random.default_rng(3), format="csr")


def close(model, X, expected):
    found = model.predict(X, top_k=20).matrix.toarray()
    np.testing.assert_allclose(found, np.nan_to_num(expected, nan=0.0), atol=1e-6)


@pytest.mark.parametrize("post", TRANSFORMS)
@pytest.mark.parametrize("bias", [1.0, 2.5, -1])
def test_scores_are_those_of_the_folder(tmp_path, X, post, bias):
    levels = write_model(tmp_path, bias=bias, beam=2, post=post)
    model = load_xr_linear(tmp_path)
    assert (model.config.beam, model.config.score_transform) == (2, post)
    close(model, X, by_hand(X.toarray(), levels, PARENTS, TRANSFORMS[post], bias, beam=2))


def test_a_flat_model_and_logarithms(tmp_path, X):
    parents = ([0] * 7,)
    levels = write_model(tmp_path / "flat", parents=parents, post="log-sigmoid")
    close(load_xr_linear(tmp_path / "flat"), X, by_hand(X.toarray(), levels, parents, TRANSFORMS["sigmoid"], 1, 9))
    levels = write_model(tmp_path / "raw", parents=parents, post="noop")
    close(load_xr_linear(tmp_path / "raw" / "ranker"), X, by_hand(X.toarray(), levels, parents, lambda s: s, 1, 9))


def test_nodes_without_labels_are_left_out(tmp_path, X):
    parents = ([0, 0, 0], [0, 2, 2], [0, 2, 2, 0])  # node 1 at either depth has nothing below
    levels = write_model(tmp_path, parents=parents)
    model = load_xr_linear(tmp_path)
    assert [len(level) for level in model.trees_[0].tree.parents] == [2, 2, 4]
    close(model, X, by_hand(X.toarray(), levels, parents, TRANSFORMS["l3-hinge"], 1, 9))


def test_saved_and_loaded_with_names(tmp_path, X):
    write_model(tmp_path / "pecos")
    names = [f"label {i}" for i in range(11)]
    model = load_xr_linear(tmp_path / "pecos", label_names=names)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert list(again.predict(X)) == list(model.predict(X))
    assert again.labels_ == names
    assert "PECOS" in (tmp_path / "model" / "README.md").read_text()


def test_what_is_no_such_model(tmp_path):
    with pytest.raises(StorageError, match="no readable param"):
        load_xr_linear(tmp_path)
    write_model(tmp_path / "m")
    with pytest.raises(DataError, match="11 labels but there are 2 label names"):
        load_xr_linear(tmp_path / "m", label_names=["a", "b"])
    folder = tmp_path / "m" / "ranker" / "2.model"
    sp.save_npz(folder / "C.npz", sp.csc_matrix(np.ones((11, 5), np.float32)))
    with pytest.raises(StorageError, match="node 0 lies in 5 clusters"):
        load_xr_linear(tmp_path / "m")
    sp.save_npz(folder / "C.npz", sp.csc_matrix(np.ones((11, 4), np.float32)))
    with pytest.raises(StorageError, match="does not fit the 5 nodes above"):
        load_xr_linear(tmp_path / "m")
    (folder / "W.npz").write_bytes(b"no zip")
    with pytest.raises(DataError, match="not a whole npz file"):
        load_xr_linear(tmp_path / "m")
    (folder / "W.npz").unlink()
    with pytest.raises(StorageError, match=r"W.npz is missing"):
        load_xr_linear(tmp_path / "m")
    (folder / "param.json").write_text('{"model": "MLModel", "is_mmap": true}')
    with pytest.raises(StorageError, match="compiled for memory mapping"):
        load_xr_linear(tmp_path / "m")


def test_an_unknown_post_processor(tmp_path):
    write_model(tmp_path, post="l9-hinge")
    with pytest.raises(StorageError, match="post-processor is 'l9-hinge'"):
        load_xr_linear(tmp_path)


def test_the_command(labelwise, tmp_path):  # noqa: F811
    write_model(tmp_path / "pecos")
    (tmp_path / "names.txt").write_text("".join(f"label {i}\n" for i in range(11)))
    result = labelwise("import-pecos", tmp_path / "pecos", tmp_path / "out", "--labels", tmp_path / "names.txt")
    assert result.code == 0
    assert "11 in 5 clusters" in result.out
    assert load_model(tmp_path / "out").labels_[3] == "label 3"
    again = labelwise("import-pecos", tmp_path / "pecos", tmp_path / "out")
    assert again.code == 2
    assert "exists already" in again.err
    assert labelwise("import-pecos", tmp_path / "nothing", tmp_path / "new").code == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"pred_kwargs": [0]}, "bias or pred_kwargs"),
        ({"pred_kwargs": "l3-hinge"}, "bias or pred_kwargs"),
        ({"bias": "1"}, "bias or pred_kwargs"),
        ({"bias": [1]}, "bias or pred_kwargs"),
        ({"bias": float("nan")}, "bias or pred_kwargs"),
        ({"bias": 1e300}, "bias or pred_kwargs"),
        ({"bias": 10**400}, "bias or pred_kwargs"),
        ({"pred_kwargs": {"only_topk": "many"}}, "only_topk is 'many'; it must be a number of nodes"),
        ({"pred_kwargs": {"only_topk": [1]}}, "it must be a number of nodes"),
        ({"pred_kwargs": {"only_topk": -1}}, "it must be a number of nodes"),
        ({"pred_kwargs": {"only_topk": 10**12}}, "it must be a number of nodes"),
        ({"pred_kwargs": {"post_processor": ["l3-hinge"]}}, "the post-processor is"),
    ],
)
def test_parameters_of_a_wrong_type(tmp_path, entries, message):
    write_model(tmp_path)
    file = tmp_path / "ranker" / "1.model" / "param.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))
    with pytest.raises(StorageError, match=message):
        load_xr_linear(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_weights_that_scores_cannot_be_made_of(tmp_path, value):
    write_model(tmp_path)
    file = tmp_path / "ranker" / "1.model" / "W.npz"
    W = sp.load_npz(file)
    W.data[0] = value
    sp.save_npz(file, W)
    with pytest.raises((StorageError, DataError), match=r"NaN or infinite|weights above"):
        load_xr_linear(tmp_path)
