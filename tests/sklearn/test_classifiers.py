"""The estimators as scikit-learn uses them."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelwise import Ensemble, LinearTree, generate_shop, load_model
from labelwise.config import EnsembleConfig, HoldoutConfig, LinearTreeConfig
from labelwise.config.presets import load_preset
from labelwise.errors import DataError, UsageError
from labelwise.sklearn import EnsembleClassifier, LinearTreeClassifier, XTransformerClassifier
from tests.features.tiny import write_model

EXPECTED = {
    "check_classifiers_multilabel_output_format_predict_proba": (
        "a probability must lie strictly below 1 there; a hinge that is satisfied at every level gives exactly 1"
    ),
}


@parametrize_with_checks(
    [LinearTreeClassifier(n_jobs=1), EnsembleClassifier(n_jobs=1)], expected_failed_checks=lambda _: EXPECTED
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_estimator_repr",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
    ],
)
def test_checks_that_need_no_features(check):
    """An estimator that reads texts alone cannot be given the matrices of the others."""
    getattr(estimator_checks, check)("XTransformerClassifier", XTransformerClassifier())


TEXTS = ["a cat", "a dog", "cat and dog", "an oak", "an elm", "oak and elm", "my cat", "that dog"] * 3
WORDS = {"cat": ["animal", "cat"], "dog": ["animal", "dog"], "oak": ["plant"], "elm": ["plant"]}
NAMES = [sorted({name for word in text.split() for name in WORDS.get(word, ())}) for text in TEXTS]
CLASSES = ["animal", "cat", "dog", "plant"]
Y = np.array([[name in names for name in CLASSES] for names in NAMES], dtype=np.int64)


def test_lists_dense_and_sparse_say_the_same():
    lists = LinearTreeClassifier().fit(TEXTS, NAMES)
    dense = LinearTreeClassifier().fit(np.array(TEXTS), Y)
    sparse = LinearTreeClassifier().fit(tuple(TEXTS), sp.csr_matrix(Y))
    assert lists.classes_.tolist() == CLASSES
    assert dense.classes_.tolist() == [0, 1, 2, 3]
    assert sp.issparse(lists.predict(TEXTS))
    assert sp.issparse(sparse.predict_proba(TEXTS))
    np.testing.assert_array_equal(dense.predict(TEXTS), Y)
    np.testing.assert_array_equal(lists.predict(TEXTS).toarray(), Y)
    np.testing.assert_array_equal(sparse.predict(TEXTS).toarray(), Y)
    np.testing.assert_array_equal(sparse.predict_proba(TEXTS).toarray(), dense.predict_proba(TEXTS))
    assert lists.score(TEXTS, NAMES) == dense.score(TEXTS, Y) == sparse.score(TEXTS, sp.csr_matrix(Y)) == 1.0
    assert lists.score(TEXTS, [["plant"]] * len(TEXTS)) == np.mean([names == ["plant"] for names in NAMES])


def test_scores_are_those_of_the_model():
    estimator = LinearTreeClassifier(preset="parabel", n_trees=2, cost=2.0, sparse_output=False, random_state=3)
    estimator.fit(TEXTS, sp.csr_array(Y), label_names=CLASSES)
    config = load_preset("parabel", n_trees=2, seed=3, matcher={"cost": 2.0}, ranker={"cost": 2.0})
    model = LinearTree(config).fit(TEXTS, sp.csr_array(Y.astype(np.float32)), label_names=CLASSES)
    assert estimator.model_.config == config
    expected = model.predict(TEXTS, top_k=4).matrix.toarray()
    np.testing.assert_array_equal(estimator.decision_function(TEXTS), expected)
    np.testing.assert_array_equal(estimator.predict_proba(TEXTS), expected)
    np.testing.assert_array_equal(estimator.predict(TEXTS), expected >= 0.5)


def test_top_k_and_threshold():
    estimator = LinearTreeClassifier(top_k=2, threshold=None).fit(TEXTS, Y)
    assert (estimator.predict(TEXTS).sum(axis=1) == 2).all()
    scores = estimator.predict_proba(TEXTS)
    for row, chosen in zip(scores, estimator.predict(TEXTS), strict=True):
        assert row[chosen == 1].min() >= row[chosen == 0].max()
    both = estimator.set_params(threshold=0.9).predict(TEXTS)
    np.testing.assert_array_equal(both, (estimator.set_params(threshold=None).predict(TEXTS) == 1) & (scores >= 0.9))
    assert (estimator.set_params(candidates=1, top_k=1).predict_proba(TEXTS) > 0).sum(axis=1).max() == 1


def test_one_class_for_each_document():
    y = np.array([names[-1] for names in NAMES])
    estimator = LinearTreeClassifier().fit(TEXTS, y)
    assert estimator.classes_.tolist() == sorted(set(y))
    assert estimator.predict(TEXTS[3:5]).tolist() == ["plant", "plant"]
    np.testing.assert_allclose(estimator.predict_proba(TEXTS).sum(axis=1), 1)


def test_raw_scores_below_zero():
    estimator = LinearTreeClassifier("dismec", sparse_output=False).fit(TEXTS, Y)
    scores = estimator.decision_function(TEXTS)
    assert scores.min() < 0
    np.testing.assert_allclose(estimator.predict_proba(TEXTS), 1 / (1 + np.exp(-scores.astype(np.float64))), rtol=1e-6)


def test_pipelines_and_searches():
    shop = generate_shop(400, 100)["train"]
    labels = sp.csr_matrix(shop.Y)
    pipe = make_pipeline(TfidfVectorizer(), LinearTreeClassifier(top_k=3, threshold=None))
    search = GridSearchCV(pipe, {"lineartreeclassifier__cost": np.array([0.01, 1.0])}, cv=2, scoring="f1_samples")
    search.fit(shop.texts, labels)
    assert search.best_params_ == {"lineartreeclassifier__cost": 1.0}
    assert search.best_estimator_[-1].n_features_in_ == len(search.best_estimator_[0].vocabulary_)
    raw = cross_val_score(
        LinearTreeClassifier(top_k=3, threshold=None), shop.texts, labels.toarray(), cv=2, scoring="f1_samples"
    )
    assert raw.mean() == pytest.approx(search.best_score_, abs=0.1)
    names = [[shop.labels[j] for j in shop.Y[[i]].indices] for i in range(len(shop))]
    by_lists = cross_val_score(LinearTreeClassifier(), shop.texts, names, cv=KFold(2))
    assert ((by_lists >= 0) & (by_lists <= 1)).all()


def test_hold_out_calibrates():
    shop = generate_shop(500, 100)["train"]
    estimator = LinearTreeClassifier(hold_out=0.2).fit(shop.texts, shop.Y, label_names=shop.labels)
    assert estimator.model_.calibrator_ is not None
    assert estimator.model_.report_.documents == len(shop)
    found = estimator.model_.predict(shop.texts, top_k=100).matrix
    np.testing.assert_allclose(estimator.predict_proba(shop.texts).toarray(), found.toarray())
    assert estimator.classes_.tolist() == shop.labels


@pytest.mark.parametrize("kind", ["linear", "ensemble"])
def test_pickles_clones_and_folders(kind, tmp_path):
    made = (
        LinearTreeClassifier(beam=4) if kind == "linear" else EnsembleClassifier(("default", "parabel"), hold_out=0.0)
    )
    estimator = made.fit(TEXTS, Y)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(estimator))))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), estimator.predict_proba(TEXTS))
    assert again.get_params() == estimator.get_params()
    copied = clone(estimator)
    assert copied.get_params() == estimator.get_params()
    assert not hasattr(copied, "model_")
    estimator.model_.save(tmp_path / "model")
    assert list(load_model(tmp_path / "model").predict(TEXTS)) == list(estimator.model_.predict(TEXTS))


def test_an_ensemble_is_that_of_labelwise():
    estimator = EnsembleClassifier(["default", LinearTreeConfig(beam=2)], rule="average", hold_out=0.0).fit(TEXTS, Y)
    config = EnsembleConfig(
        members=(LinearTreeConfig(), LinearTreeConfig(beam=2)), rule="average", holdout=HoldoutConfig(share=0.0)
    )
    model = Ensemble(config).fit(TEXTS, sp.csr_array(Y.astype(np.float32)))
    np.testing.assert_array_equal(estimator.predict_proba(TEXTS), model.predict(TEXTS, top_k=4).matrix.toarray())


def test_an_encoder(tmp_path):
    pytest.importorskip("transformers", reason="needs the extra neural")
    encoder = str(write_model(tmp_path / "tiny", "bert"))
    settings = {"encoder": encoder, "max_length": 8, "device": "cpu", "n_jobs": 1, "hold_out": 0.0}
    estimator = clone(XTransformerClassifier("hybrid", **settings)).fit(TEXTS, Y)
    assert estimator.model_.config.encoder.name == encoder
    assert estimator.score(TEXTS, Y) > 0.5
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), estimator.predict_proba(TEXTS))
    with pytest.raises(UsageError, match="XTransformerClassifier reads texts"):
        estimator.fit(np.eye(24), Y)


def test_frames_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(Y, columns=CLASSES)
    estimator = LinearTreeClassifier().fit(pandas.Series(TEXTS), frame)
    assert estimator.classes_.tolist() == CLASSES
    np.testing.assert_array_equal(estimator.predict(pandas.Series(TEXTS)), Y)
    lists = LinearTreeClassifier().fit(TEXTS, pandas.Series(NAMES))
    assert lists.classes_.tolist() == CLASSES


def test_stages_are_found_again(tmp_path):
    first = LinearTreeClassifier(run_dir=tmp_path / "run").fit(TEXTS, Y)
    heard = []
    again = LinearTreeClassifier(run_dir=tmp_path / "run", on_event=lambda name, _: heard.append(name)).fit(TEXTS, Y)
    np.testing.assert_array_equal(first.predict_proba(TEXTS), again.predict_proba(TEXTS))
    assert heard


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"preset": "nothing"}, "there is no preset 'nothing'"),
        ({"preset": "x-transformer"}, "not one of LinearTreeClassifier"),
        ({"cost": "much"}, "cost is 'much'; it must be a number"),
        ({"score_transform": "sum"}, "score_transform is 'sum'; it must be one of"),
        ({"top_k": 0}, "top_k is 0; it must be a whole number of at least 1"),
        ({"threshold": None}, "both None"),
        ({"sparse_output": "maybe"}, "True, False or 'auto'"),
        ({"hold_out": 1.5}, "hold_out is 1.5"),
    ],
)
def test_settings_that_make_no_sense(params, message):
    with pytest.raises(UsageError, match=message):
        LinearTreeClassifier(**params).fit(TEXTS, Y)


def test_documents_that_do_not_fit():
    on_texts = LinearTreeClassifier().fit(TEXTS, Y)
    on_features = LinearTreeClassifier().fit(np.eye(24), Y)
    with pytest.raises(UsageError, match="was fitted on texts"):
        on_texts.predict(np.eye(24))
    with pytest.raises(UsageError, match="was fitted on features"):
        on_features.predict(TEXTS)
    with pytest.raises(UsageError, match="got one string"):
        on_texts.predict("a cat")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        on_texts.fit(TEXTS, Y[:5])
    with pytest.raises(DataError, match="4 columns but there are 1 label names"):
        on_texts.fit(TEXTS, Y, label_names=["one"])
    with pytest.raises(DataError, match="'cat' is not among the label names"):
        on_texts.fit(TEXTS, NAMES, label_names=["animal", "dog", "plant"])


def test_scikit_learn_is_imported_only_there():
    modules = (
        "labelwise.models.linear_tree, labelwise.models.ensemble, labelwise.data.frames, labelwise.integrations.hub"
    )
    code = f"import sys, {modules}; print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_without_scikit_learn():
    code = "import sys; sys.modules['sklearn'] = None\nimport labelwise.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "estimators of labelwise.sklearn need sklearn" in done.stderr
    assert "pip install 'labelwise[sklearn]'" in done.stderr
