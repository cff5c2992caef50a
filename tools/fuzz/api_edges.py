#!/usr/bin/env python3
"""Calls the public functions with edge cases: each gives an answer, or refuses with a LabelwiseError.

    python tools/fuzz/api_edges.py

The cases are no random ones: they are all combinations of the tables below. Matrices, labels, texts, ids and numbers of
all sorts go into fit and predict of seven linear presets, an ensemble, a frozen encoder beside tf-idf, and the
scikit-learn estimators; and into tf-idf, metrics, data sets, explanations, growth and the generated shop. `runner.py`
runs the cases in a pool of processes, so that a crash ends no other case. Without --cases all of them run once.
"""

from __future__ import annotations

import copy
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import scipy.sparse as sp
from runner import SEEDS_PER_RUN, Case, command

Edge = tuple[str, Callable[[], Any]]
"""The name of a case, and the call."""

PRESETS = ("default", "parabel", "bonsai", "dismec", "plt", "slice", "xr-linear")
WORDS = ("red", "blue", "green", "shoe", "mug", "lamp", "chair", "rose")
N_DOCS, N_FEATURES, N_LABELS = 24, 12, 6
RANDOM = np.random.default_rng(0)
TEXTS = [" ".join(RANDOM.choice(WORDS, 4)) for _ in range(N_DOCS)]
LABELS = [[f"label {(i * step) % N_LABELS}" for step in (1, 5)] for i in range(N_DOCS)]
X = sp.csr_array(np.round(RANDOM.random((N_DOCS, N_FEATURES)) * (RANDOM.random((N_DOCS, N_FEATURES)) < 0.4), 2))
Y = sp.csr_array(np.array([[float(f"label {j}" in own) for j in range(N_LABELS)] for own in LABELS]))


# ---------------------------------------------------------------------- what is given


def with_part(matrix: Any, part: str, at: Any, value: Any) -> Any:
    """A copy of a sparse matrix with other values in one of its arrays."""
    changed = matrix.copy()
    getattr(changed, part)[at] = value
    return changed


def with_array(matrix: Any, part: str, change: Callable[[Any], Any]) -> Any:
    """A copy of a sparse matrix with another array in place of one of its own."""
    changed = matrix.copy()
    setattr(changed, part, change(getattr(changed, part)))
    return changed


def with_key(matrix: Any, key: Any) -> Any:
    """A dictionary of keys with one more key, which scipy would not take."""
    matrix._dict[key] = 1.0
    return matrix


def matrices(good: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Matrices of every form, and with every sort of damage."""
    for form in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        yield form, lambda form=form: good.asformat(form)
    for kind in (bool, "i1", "u8", "f4", "f8", np.longdouble, complex):
        yield f"values of {np.dtype(kind)}", lambda kind=kind: good.astype(kind)
    for form in ("csr", "csc", "bsr"):
        for value in (10**6, -1, -3, 2**31 - 1, -(2**31)):
            yield f"{form}, index {value}", lambda f=form, v=value: with_part(good.asformat(f), "indices", -1, v)
            yield f"{form}, indptr {value}", lambda f=form, v=value: with_part(good.asformat(f), "indptr", -1, v)
            yield f"{form}, inner indptr {value}", lambda f=form, v=value: with_part(good.asformat(f), "indptr", 1, v)
        for part in ("indices", "indptr", "data"):
            yield f"{form}, short {part}", lambda f=form, p=part: with_array(good.asformat(f), p, lambda a: a[:-1])
            yield f"{form}, float {part}", lambda f=form, p=part: with_array(good.asformat(f), p, lambda a: a * 1.5)
            yield (
                f"{form}, list as {part}",
                lambda f=form, p=part: with_array(good.asformat(f), p, lambda a: a.tolist()),
            )
    yield "coo, row out of range", lambda: with_part(good.tocoo(), "row", 0, 10**6)
    yield "coo, column out of range", lambda: with_part(good.tocoo(), "col", 0, -1)
    yield "lil, row out of range", lambda: with_part(good.tolil(), "rows", 0, [10**6] * 3)
    yield "lil, a row without its values", lambda: with_part(good.tolil(), "data", 0, [1.0])
    yield "lil, fractional columns", lambda: with_part(good.tolil(), "rows", 0, [0.7] * len(good.tolil().rows[0]))
    for key in ((0.5, 1.2), (-1, 1), (0, 10**6), (0, 1, 1), ("a", 1), 5):
        yield f"dok, the key {key}", lambda k=key: with_key(good.todok(), k)
    for what, change in (
        *(("few", lambda a: a[:-1]), ("many", lambda a: np.append(a, a[-1] + 1)), ("fractional", lambda a: a * 1.5)),
        *(("equal", np.zeros_like), ("far", lambda a: a + 10**6), ("a list of", lambda a: a.tolist())),
    ):
        yield f"dia, {what} offsets", lambda c=change: with_array(good.todia(), "offsets", c)
    yield "masked values", lambda: with_array(good, "data", lambda a: np.ma.masked_array(a, a > 0.5))
    yield "masked indices", lambda: with_array(good, "indices", lambda a: np.ma.masked_array(a, a > 2))
    yield "dense and masked", lambda: np.ma.masked_array(good.toarray(), good.toarray() > 0.5)
    for value in (np.nan, np.inf, -np.inf, -1.0, 2.0, 0.5, 0.0, 3.4e38, 1e300, 1e-320):
        yield f"the value {value}", lambda v=value: with_part(good, "data", 3, v)
        yield f"dense with the value {value}", lambda v=value: with_part(good, "data", 3, v).toarray()
    yield (
        "unsorted",
        lambda: with_array(with_array(good, "indices", lambda a: a[::-1].copy()), "data", lambda a: a[::-1]),
    )
    yield "twice the same", lambda: sp.coo_array((np.ones(4), ([0, 0, 1, 1], [1, 1, 2, 2])), shape=good.shape)
    yield "small indices", lambda: with_array(good, "indices", lambda a: a.astype("i2"))
    yield "unsigned indices", lambda: with_array(good, "indices", lambda a: a.astype("u8"))
    yield "read-only", lambda: with_array(good, "data", lambda a: np.frombuffer(a.tobytes(), a.dtype))
    for shape in ((0, good.shape[1]), (good.shape[0], 0), (0, 0), (1, good.shape[1]), good.shape[::-1]):
        yield f"empty {shape}", lambda s=shape: sp.csr_array(s)
    yield "very wide", lambda: sp.csr_array((good.data, good.indices, good.indptr), shape=(good.shape[0], 3000))
    yield "wider than 32 bits", lambda: sp.csr_array((good.shape[0], 2**40))
    yield "one dimension", lambda: sp.coo_array(np.ones(3))
    yield "dense", lambda: good.toarray()
    yield "matrix", lambda: np.asmatrix(good.toarray())
    yield "three dimensions", lambda: good.toarray()[None]
    yield "objects", lambda: good.toarray().astype(object)
    yield "strings", lambda: good.toarray().astype(str)
    yield "list of lists", lambda: good.toarray().tolist()
    for value in (
        None,
        5,
        1.5,
        "abc",
        b"abc",
        {},
        [],
        (),
        set(),
        True,
        object(),
        np.float32(1),
        np.array(3),
        [None],
        [[]],
    ):
        yield f"{type(value).__name__} {str(value)[:10]}", lambda v=value: v


def label_lists() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Label names of all sorts, for documents in number N_DOCS."""
    names = ("\ud800", "a\udfff", "", " ", "\x00", "a\nb", "\u2028", "x" * 10_000, "\ufeff", "é", "\U0001f34e", "a\tb")
    for name in names:
        yield f"the name {name[:5]!a}", lambda n=name: [[n], *LABELS[1:]]
    others = (None, 1, 1.5, True, b"a", [], ["a"], {}, object(), np.str_("a"), np.int64(3), float("nan"), 10**5000)
    for value in others:
        yield f"a label of {type(value).__name__}", lambda v=value: [[v], *LABELS[1:]]
        yield f"labels of a document: {type(value).__name__}", lambda v=value: [v, *LABELS[1:]]
    yield "sets", lambda: [set(own) for own in LABELS]
    yield "tuples", lambda: [tuple(own) for own in LABELS]
    yield "generators", lambda: ((name for name in own) for own in LABELS)
    yield "arrays", lambda: [np.array(own) for own in LABELS]
    yield "too few", lambda: LABELS[:-1]
    yield "none at all", lambda: [[] for _ in LABELS]
    yield "one string", lambda: "abc" * 8
    yield "a dictionary", lambda: dict(enumerate(LABELS))
    yield "the same for all", lambda: [["a"]] * N_DOCS
    yield "all different", lambda: [[str(i)] for i in range(N_DOCS)]


def text_lists() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Texts of all sorts."""
    for text in ("", " ", "\x00", "\ud800", "a\udfffb", "x" * 100_000, "a " * 50_000, "İΣ", "\u200b", "漢字", "\n"):
        yield f"the text {text[:5]!a}", lambda t=text: [t, *TEXTS[1:]]
    for value in (None, 1, 1.5, True, b"a", [], {}, object(), np.str_("a"), float("nan"), 10**5000):
        yield f"a text of {type(value).__name__}", lambda v=value: [v, *TEXTS[1:]]
    yield "a generator", lambda: (text for text in TEXTS)
    yield "an array", lambda: np.array(TEXTS)
    yield "an array of objects", lambda: np.array(TEXTS, dtype=object)
    yield "bytes", lambda: [text.encode() for text in TEXTS]
    yield "only blanks", lambda: [" "] * N_DOCS
    yield "a table", lambda: {"text": TEXTS}
    for value in (None, 5, "abc", b"abc", [], (), {}, np.array(TEXTS).reshape(2, -1), np.zeros((N_DOCS, 3))):
        yield f"{type(value).__name__} {str(value)[:8]}", lambda v=value: v


NUMBERS = (
    *(-1, 0, 1, 2, 3, 10**3, 2**31, 2**63 - 1, 2**63, 2**70, -(2**70), 10**5000),
    *(0.0, -0.0, 0.5, 1.0, 1.5, 2.5, -1.5, 1e-320, 1e308, float("nan"), float("inf"), -float("inf")),
    *(True, False, None, "1", "abc", "", b"1", [], [1], (1, 2), {}, object(), 1j),
    *(np.int8(2), np.int64(2), np.uint64(2), np.float32(0.5), np.bool_(True), np.array(2), np.array([1, 2])),
)


def numbers() -> Iterator[tuple[str, Any]]:
    """Numbers of all sorts, and what is no number, with names."""
    for at, value in enumerate(NUMBERS):
        shown = "10**5000" if isinstance(value, int) and abs(value) > 1 << 80 else repr(value)
        yield f"{at}: {type(value).__name__} {shown if '0x' not in shown else ''}", value


PATHS = (None, b"place", 5, 1.5, True, [], ["a"], "a\0b", "a\ud800", "x" * 300, "x/" * 5000, object())
MASKS = ([True], [True] * N_DOCS, [0.7], [[0]], np.ma.masked_array([0, 1], [True, False]), slice(2), {0}, "01", [-1])


# ---------------------------------------------------------------------- what is called


@cache
def new_model(kind: str) -> Any:
    """A model that is not fitted."""
    from labelwise import Ensemble, LinearTree

    if kind == "hybrid":
        from labelwise import XTransformer

        return XTransformer("hybrid", encoder=str(tiny_encoder()), max_length=16, threads=1)
    if kind == "ensemble":
        return Ensemble(["parabel", "default"])
    return LinearTree(kind, threads=1)


@cache
def fitted(kind: str, on: str = "texts") -> Any:
    """A fitted model; nothing may change it."""
    model = copy.copy(new_model(kind))
    return model.fit(TEXTS, LABELS) if on == "texts" else model.fit(X, Y)


@cache
def tiny_encoder() -> Path:
    """The folder of a small random encoder; `prepare` makes it."""
    from tests.features.tiny import write_model

    return write_model(Path(tempfile.mkdtemp(prefix="fuzz-encoder-")), "bert")


@cache
def classifier(kind: str, on: str = "") -> Any:
    """A scikit-learn estimator, fitted on texts, features, or nothing."""
    from labelwise.sklearn import EnsembleClassifier, LinearTreeClassifier, XTransformerClassifier

    if kind == "XTransformerClassifier":
        made: Any = XTransformerClassifier("hybrid", encoder=str(tiny_encoder()), max_length=16)
    else:
        made = {"LinearTreeClassifier": LinearTreeClassifier, "EnsembleClassifier": EnsembleClassifier}[kind]()
    return made if not on else made.fit(TEXTS if on == "texts" else X, Y)


def edges(*, quick: bool = False) -> list[Edge]:
    """All cases; the quick ones leave out encoders and most presets."""
    kinds = ("parabel", "slice") if quick else (*PRESETS, "ensemble")
    found: list[Edge] = []
    for kind in kinds:
        found += fitting(kind)
        found += predicting(kind)
    if not quick:
        found += fitting_texts("hybrid")
        found += predicting("hybrid", on=("texts",))
        for name in ("LinearTreeClassifier", "EnsembleClassifier", "XTransformerClassifier"):
            found += estimators(name)
    found += measuring()
    found += data_sets()
    found += other_functions()
    return found


def fitting(kind: str) -> Iterator[Edge]:
    """Matrices, labels and names into `fit`."""
    for name, make in matrices(X):
        yield f"{kind}: fit on X, {name}", lambda make=make: copy.copy(new_model(kind)).fit(make(), Y)
    for name, make in matrices(Y):
        yield f"{kind}: fit on Y, {name}", lambda make=make: copy.copy(new_model(kind)).fit(X, make())
    yield from fitting_texts(kind)


def fitting_texts(kind: str) -> Iterator[Edge]:
    """Texts, label lists and names into `fit`; what was fitted can be saved and read."""

    def kept(model: Any) -> None:
        from labelwise import load_model

        with tempfile.TemporaryDirectory() as place:
            model.save(Path(place) / "model")
            assert load_model(Path(place) / "model").labels_ == model.labels_

    for name, make in label_lists():
        yield f"{kind}: fit on labels, {name}", lambda make=make: kept(copy.copy(new_model(kind)).fit(TEXTS, make()))
    for name, make in text_lists():
        yield f"{kind}: fit on texts, {name}", lambda make=make: copy.copy(new_model(kind)).fit(make(), LABELS)
    for names in (
        "abc",
        5,
        [],
        ["a"] * N_LABELS,
        [1] * N_LABELS,
        [None] * N_LABELS,
        ["\ud800", *"abcde"],
        [[]] * N_LABELS,
    ):
        yield (
            f"{kind}: label_names {str(names)[:12]!a}",
            lambda n=names: copy.copy(new_model(kind)).fit(TEXTS, Y, label_names=n),
        )
    for value in (5, "abc", [], {}):
        yield f"{kind}: validation {value!r}", lambda v=value: copy.copy(new_model(kind)).fit(TEXTS, Y, validation=v)


def predicting(kind: str, on: tuple[str, ...] = ("texts", "features")) -> Iterator[Edge]:
    """Documents, ids and numbers into `predict` of fitted models."""
    for source in on:
        documents = TEXTS if source == "texts" else X
        for name, value in numbers():
            for argument in ("top_k", "min_probability", "threads", "ids"):
                yield (
                    f"{kind}: predict {source}, {argument}={name}",
                    lambda a=argument, v=value, s=source, d=documents: list(fitted(kind, s).predict(d, **{a: v})),
                )
        for name, make in matrices(X):
            yield f"{kind}: predict {source}, X {name}", lambda m=make, s=source: list(fitted(kind, s).predict(m()))
        for name, make in text_lists():
            yield f"{kind}: predict {source}, {name}", lambda m=make, s=source: list(fitted(kind, s).predict(m()))
        for ids in (
            ["a"] * N_DOCS,
            list(range(N_DOCS)),
            [None] * N_DOCS,
            ["\ud800"] * N_DOCS,
            ["a"],
            np.arange(N_DOCS),
        ):
            yield (
                f"{kind}: predict {source}, ids {str(ids[0])[:5]!a} × {len(ids)}",
                lambda i=ids, s=source, d=documents: fitted(kind, s).predict(d, ids=i),
            )


def estimators(name: str) -> Iterator[Edge]:
    """Matrices, texts and parameters into the scikit-learn estimators."""
    from sklearn.base import clone

    texts_only = name == "XTransformerClassifier"
    if not texts_only:
        for what, make in matrices(X):
            yield f"{name}: fit on X, {what}", lambda m=make: clone(classifier(name)).fit(m(), Y)
            yield f"{name}: predict X, {what}", lambda m=make: classifier(name, "features").predict(m())
        for what, make in matrices(Y):
            yield f"{name}: fit on y, {what}", lambda m=make: clone(classifier(name)).fit(X, m())
    for what, make in (*label_lists(), *text_lists()):
        yield f"{name}: y, {what}", lambda m=make: clone(classifier(name)).fit(TEXTS, m())
    for what, make in text_lists():
        yield f"{name}: fit on texts, {what}", lambda m=make: clone(classifier(name)).fit(m(), Y)
        yield f"{name}: predict texts, {what}", lambda m=make: classifier(name, "texts").predict_proba(m())
    for what, value in numbers():
        for parameter in ("top_k", "threshold", "candidates", "random_state", "n_jobs", "hold_out", "sparse_output"):
            yield (
                f"{name}: {parameter}={what}",
                lambda p=parameter, v=value: clone(classifier(name)).set_params(**{p: v}).fit(TEXTS, Y).predict(TEXTS),
            )


def measuring() -> Iterator[Edge]:
    """Matrices and numbers into the metrics."""
    import labelwise
    from labelwise import metrics

    for name, make in matrices(Y):
        yield f"evaluate: Y, {name}", lambda m=make: labelwise.evaluate(m(), Y, Y_train=Y, bootstrap=5)
        yield f"evaluate: Y_pred, {name}", lambda m=make: labelwise.evaluate(Y, m(), Y_train=Y, bootstrap=5)
        yield f"evaluate: Y_train, {name}", lambda m=make: labelwise.evaluate(Y, Y, Y_train=m(), bootstrap=5)
        yield f"inverse_propensity: {name}", lambda m=make: metrics.inverse_propensity(m(), n_docs=5)
        yield f"calibration_error: {name}", lambda m=make: metrics.calibration_error(Y, m())
    small = {"bootstrap": 5}
    for name, value in numbers():
        for argument in ("ks", "threshold", "bootstrap", "seed", "n_train_docs", "train_counts", "family", "buckets"):
            if argument == "bootstrap" and isinstance(value, int) and value > 10**4:
                continue  # it would be computed
            yield (
                f"evaluate: {argument}={name}",
                lambda a=argument, v=value: labelwise.evaluate(Y, Y, **{**small, a: v}),
            )
        for metric in ("precision_at_k", "ndcg_at_k", "micro_f1", "coverage_at_k"):
            yield f"{metric}: k={name}", lambda m=metric, v=value: getattr(metrics, m)(Y, Y, k=v)
        yield f"psp_at_k: weights={name}", lambda v=value: metrics.psp_at_k(Y, Y, v)
        yield f"calibration_error: bins={name}", lambda v=value: metrics.calibration_error(Y, Y, bins=v)
        yield f"inverse_propensity: a={name}", lambda v=value: metrics.inverse_propensity(Y, v)
        yield f"inverse_propensity: b={name}", lambda v=value: metrics.inverse_propensity(Y, b=v)
        yield f"compare: second={name}", lambda v=value: labelwise.compare(labelwise.evaluate(Y, Y, **small), v)
        for argument in ("metrics", "bucket", "seed", "resamples"):
            if argument == "resamples" and isinstance(value, int) and value > 10**4:
                continue
            yield (
                f"compare: {argument}={name}",
                lambda a=argument, v=value: labelwise.compare(*[labelwise.evaluate(Y, Y, **small)] * 2, **{a: v}),
            )


def data_sets() -> Iterator[Edge]:
    """Parts of data sets, tables and reading options."""
    from labelwise import Dataset, describe, load_dataset, load_splits
    from labelwise.data import split_validation

    labels = [f"label {j}" for j in range(N_LABELS)]
    for name, make in matrices(Y):
        yield f"Dataset: Y, {name}", lambda m=make: Dataset(Y=m(), labels=labels, texts=TEXTS).with_labels(labels[:3])
    for name, make in matrices(X):
        yield f"Dataset: features, {name}", lambda m=make: Dataset(Y=Y, labels=labels, features=m()).take([0, 1])
    for name, make in text_lists():
        yield f"Dataset: texts, {name}", lambda m=make: describe({"train": Dataset(Y=Y, labels=labels, texts=m())})
        yield f"from_frame: texts, {name}", lambda m=make: Dataset.from_frame({"text": m(), "labels": LABELS})
    for name, make in label_lists():
        yield f"from_frame: labels, {name}", lambda m=make: Dataset.from_frame({"text": TEXTS, "labels": m()})
        yield (
            f"from_frame: ids, {name}",
            lambda m=make: Dataset.from_frame({"text": TEXTS, "labels": LABELS, "id": m()}, ids="id"),
        )
    for name, value in numbers():
        yield f"from_frame: {name}", lambda v=value: Dataset.from_frame(v)
        yield f"describe: {name}", lambda v=value: describe(v)
        yield f"load_dataset: {name}", lambda v=value: load_dataset(v)
        yield f"load_splits: format={name}", lambda v=value: load_splits(".", format=v)
        yield f"with_labels: {name}", lambda v=value: Dataset(Y=Y, labels=labels, texts=TEXTS).with_labels(v)
        for part in ("labels", "texts", "ids", "features", "label_texts"):
            yield (
                f"Dataset: {part}={name}",
                lambda p=part, v=value: Dataset(**{"Y": Y, "labels": labels, "texts": TEXTS, p: v}),
            )
        for argument in ("fraction", "seed"):
            yield (
                f"split_validation: {argument}={name}",
                lambda a=argument, v=value: split_validation(Dataset(Y=Y, labels=labels, texts=TEXTS), **{a: v}),
            )
        for option in ("text_column", "label_separator", "encoding", "skip_bad_rows", "max_text_chars", "max_unpacked"):
            yield (
                f"from_frame: {option}={name}",
                lambda o=option, v=value: Dataset.from_frame({"text": TEXTS, "labels": LABELS}, **{o: v}),
            )
    for encoding in ("hex", "base64", "rot13", "zip", "undefined", "a\0b", "punycode", "idna", "utf-32"):
        yield (
            f"encoding {encoding!r}",
            lambda e=encoding: Dataset.from_frame({"text": TEXTS, "labels": LABELS}, encoding=e),
        )


def other_functions() -> Iterator[Edge]:
    """Tf-idf, explanations, growth, presets and the generated shop."""
    import labelwise
    from labelwise import Dataset, Tfidf

    def data() -> Any:
        return Dataset(Y=Y, labels=[f"label {j}" for j in range(N_LABELS)], texts=TEXTS)

    for at, place in enumerate(PATHS):
        called = {
            "save": lambda p=place: fitted("parabel").save(p),
            "load_model": lambda p=place: labelwise.load_model(p),
            "load_dataset": lambda p=place: labelwise.load_dataset(p),
            "convert from": lambda p=place: labelwise.convert(p, "x" * 300, to="csv"),
            "convert to": lambda p=place: labelwise.convert(str(tiny_encoder()), p, to="csv"),
            "read_predictions": lambda p=place: labelwise.read_predictions(p),
            "write": lambda p=place: fitted("parabel").predict(TEXTS).write(p),
        }
        yield from ((f"{name}: path {at}", call) for name, call in called.items())
    for at, rows in enumerate((*MASKS, *NUMBERS)):
        yield f"Dataset.take: {at}", lambda r=rows: data().take(r)
    for name, make in text_lists():
        yield f"Tfidf: fit_transform, {name}", lambda m=make: Tfidf(threads=1).fit_transform(m())
        yield f"Tfidf: transform, {name}", lambda m=make: Tfidf(threads=1).fit(TEXTS).transform(m())
    for name, value in numbers():
        yield f"Tfidf: threads={name}", lambda v=value: Tfidf(threads=v).fit_transform(TEXTS)
        yield (
            f"Tfidf: transform threads={name}",
            lambda v=value: Tfidf(threads=1).fit(TEXTS).transform(TEXTS, threads=v),
        )
        for argument in ("text", "label", "top_k", "words", "neighbours", "threads"):
            yield (
                f"explain: {argument}={name}",
                lambda a=argument, v=value: labelwise.explain(fitted("parabel"), **{"text": TEXTS[0], a: v}),
            )
        for argument in ("labels", "data", "config"):
            yield (
                f"add_labels: {argument}={name}",
                lambda a=argument, v=value: labelwise.add_labels(
                    fitted("parabel"), **{"labels": ["new"], "data": data(), a: v}
                ),
            )
        yield f"remove_labels: {name}", lambda v=value: labelwise.remove_labels(fitted("parabel"), v)
        yield f"update: {name}", lambda v=value: labelwise.update(fitted("parabel"), v)
        yield f"keep_documents: {name}", lambda v=value: labelwise.keep_documents(fitted("parabel"), v)
        yield f"load_preset: {name}", lambda v=value: labelwise.load_preset(v)
        yield f"LinearTree: preset={name}", lambda v=value: labelwise.LinearTree(v)
        yield f"Ensemble: {name}", lambda v=value: labelwise.Ensemble(v)
        yield f"train: {name}", lambda v=value: labelwise.train(v, LABELS, preset="parabel")
        for setting in ("cost", "n_trees", "beam", "seed", "threads", "max_leaf", "min_df", "hold_out", "ngram_range"):
            if setting in ("n_trees",) and isinstance(value, int) and value > 100:
                continue  # it would be computed
            yield (
                f"LinearTree: {setting}={name}",
                lambda s=setting, v=value: labelwise.LinearTree(**{s: v}).fit(TEXTS, Y),
            )
        for argument in ("n_products", "n_queries", "seed", "test_fraction"):
            if argument == "n_products" and isinstance(value, int) and value > 1000:
                continue  # it would be computed
            yield (
                f"generate_shop: {argument}={name}",
                lambda a=argument, v=value: labelwise.generate_shop(**{"n_products": 100, "n_queries": 100, a: v}),
            )
        yield f"Predictions: top_k({name})", lambda v=value: fitted("parabel").predict(TEXTS).top_k(v)
        yield f"Predictions: with_labels({name})", lambda v=value: fitted("parabel").predict(TEXTS).with_labels(v)
        for part in ("matrix", "labels", "ids"):
            yield (
                f"Predictions: {part}={name}",
                lambda p=part, v=value: labelwise.Predictions(
                    **{"matrix": Y, "labels": [str(j) for j in range(N_LABELS)], p: v}
                ),
            )
    for label in (
        "\ud800",
        "",
        " ",
        {"label": 3},
        {"label": "a", "examples": 3},
        {"a": 1, 2: 3},
        {"label": []},
        b"a",
        None,
    ):
        yield (
            f"add_labels: {str(label)[:20]!a}",
            lambda one=label: labelwise.add_labels(fitted("parabel"), [one], data=data()),
        )


EDGES: list[Edge] = []


def prepare() -> None:
    """Make all cases, and compile what they call."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if not EDGES:
        EDGES.extend(edges())


def make_case(seed: int) -> Case:
    """The case of a number."""
    return Case(seed, None, EDGES[seed % SEEDS_PER_RUN % len(EDGES)][0])


def check(case: Case) -> str:
    """Call the function."""
    from labelwise.errors import LabelwiseError

    try:
        EDGES[case.seed % SEEDS_PER_RUN % len(EDGES)][1]()
    except LabelwiseError as error:
        return "refused" if len(str(error)) < MOST_CHARACTERS else "wrong: the sentence is too long"
    return "accepted"


MOST_CHARACTERS = 1000
"""A sentence is shorter than this."""


if __name__ == "__main__":
    prepare()
    raise SystemExit(command(make_case, check, about=__doc__ or "", cases=len(EDGES), limit_s=60, prepare=prepare))
