"""The contract of a model, kept by LinearTree under every configuration."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.config import IndexConfig, LinearTreeConfig, RankerConfig, TfidfConfig
from labelwise.data import Dataset
from labelwise.errors import DataError, StorageError, UsageError
from labelwise.models.linear_tree import LinearTree

LOGISTIC = RankerConfig(loss="logistic")
CONFIGS = {
    "default": LinearTreeConfig(),
    "one-level": LinearTreeConfig(index=IndexConfig(method="none"), score_transform="ranker-only"),
    "three-trees": LinearTreeConfig(index=IndexConfig(n_clusters=4), n_trees=3, beam=2),
    "both-negatives": LinearTreeConfig(
        index=IndexConfig(n_clusters=4), ranker=RankerConfig(negatives="tfn+man", max_weights=20), beam=2
    ),
    "matcher-negatives": LinearTreeConfig(index=IndexConfig(n_clusters=4), ranker=RankerConfig(negatives="man")),
    "logistic": LinearTreeConfig(matcher=LOGISTIC, ranker=LOGISTIC, score_transform="sigmoid"),
    "neighbours": LinearTreeConfig(matching="neighbours", neighbours=6, score_transform="sigmoid"),
    "kmeans": LinearTreeConfig(index=IndexConfig(method="kmeans", max_leaf=3, branching=3)),
    "hinge-32-bit": LinearTreeConfig(
        index=IndexConfig(n_clusters=4, branching=2), ranker=RankerConfig(loss="hinge", half_precision=False)
    ),
}
NAMES = ["apple", "banana", "cherry", "date", "elder", "fig", "guava", "hazel", "iris", "jasmine"]


def make_texts(n_docs, seed):
    """Documents that name their labels, among other words; every tenth has none."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for i in range(n_docs):
        own = [] if i % 10 == 9 else rng.choice(NAMES, rng.integers(1, 4), replace=False).tolist()
        noise = [f"word{n}" for n in rng.integers(0, 30, 4)]
        texts.append(" ".join([*own, *(f"{name}s" for name in own[:1]), *noise]))
        labels.append(own)
    return texts, labels


def label_matrix(labels):
    Y = np.zeros((len(labels), len(NAMES)), np.float32)
    for i, own in enumerate(labels):
        Y[i, [NAMES.index(name) for name in own]] = 1
    return sp.csr_array(Y)


TEXTS, LABELS = make_texts(80, 0)
TEST_TEXTS, TEST_LABELS = make_texts(20, 1)
FEATURES = sp.csr_array(np.random.default_rng(2).random((80, 30)).astype(np.float32))
FEATURES.data[FEATURES.data < 0.7] = 0
FEATURES.eliminate_zeros()


@pytest.fixture(params=CONFIGS, scope="module")
def config(request):
    return CONFIGS[request.param]


@pytest.fixture(scope="module")
def fitted(config):
    return LinearTree(config).fit(TEXTS, label_matrix(LABELS), label_names=NAMES)


def files(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def assert_same(one, other):
    assert one.labels == other.labels
    assert one.matrix.dtype == other.matrix.dtype
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one.matrix, name), getattr(other.matrix, name))


# ---------------------------------------------------------------------- the contract


def test_fit_returns_the_model(config):
    model = LinearTree(config)
    assert model.fit(TEXTS, LABELS) is model
    assert model.config is config


def test_predict_and_save_need_fit(config, tmp_path):
    for use in (lambda model: model.predict(TEXTS), lambda model: model.save(tmp_path / "model")):
        with pytest.raises(UsageError, match="this LinearTree is not fitted yet; call fit, or load a saved one"):
            use(LinearTree(config))
    assert not (tmp_path / "model").exists()


def test_it_learns(fitted):
    found = fitted.predict(TEST_TEXTS, top_k=1)
    right = [suggestions[0][0] in own for suggestions, own in zip(found, TEST_LABELS, strict=True) if own]
    assert np.mean(right) >= 0.8


def test_same_seed_same_bytes_whatever_the_threads(config, fitted, tmp_path):
    fitted.save(tmp_path / "one")
    settings = {**vars(config), "threads": 3}
    LinearTree(LinearTreeConfig(**settings)).fit(TEXTS, label_matrix(LABELS), label_names=NAMES).save(tmp_path / "two")
    one, two = files(tmp_path / "one"), files(tmp_path / "two")
    assert one.keys() == two.keys()
    weights = [name for name in one if name.endswith(".safetensors")]
    assert len(weights) >= 2
    assert all(one[name] == two[name] for name in weights)
    LinearTree(config).fit(TEXTS, label_matrix(LABELS), label_names=NAMES).save(tmp_path / "three")
    assert files(tmp_path / "three") == one


@pytest.mark.parametrize("top_k", [1, 3, 10, 50])
def test_top_k_is_obeyed_and_scores_descend(fitted, top_k):
    found = fitted.predict(TEST_TEXTS, top_k=top_k)
    assert len(found) == len(TEST_TEXTS)
    assert found.matrix.shape == (20, 10)
    for suggestions in found:
        assert 1 <= len(suggestions) <= min(top_k, 10)
        scores = [score for _, score in suggestions]
        assert scores == sorted(scores, reverse=True)
        assert np.isfinite(scores).all()
        if fitted.config.score_transform != "ranker-only":
            assert 0 <= scores[-1] <= scores[0] <= 1


def test_fewer_labels_are_the_first_of_more(fitted):
    if len(fitted.trees_) > 1:
        pytest.skip("an average over trees looks further down when more labels are asked for")
    few, many = fitted.predict(TEST_TEXTS, top_k=2), fitted.predict(TEST_TEXTS, top_k=4)
    assert [row[:2] for row in many] == list(few)


def test_the_best_of_several_trees_do_not_depend_on_how_many_are_asked_for():
    rng = np.random.default_rng(0)
    X = sp.csr_array((rng.random((300, 40)) * (rng.random((300, 40)) < 0.2)).astype(np.float32))
    Y = sp.csr_array((rng.random((300, 120)) < 0.03).astype(np.float32))
    model = LinearTree(LinearTreeConfig(index=IndexConfig(n_clusters=12), n_trees=3, beam=12)).fit(X, Y)
    more = [labels[:2] for labels in model.predict(X, top_k=20)]
    assert [list(labels) for labels in model.predict(X, top_k=2)] == more


def test_save_load_predict(fitted, tmp_path):
    wanted = fitted.predict(TEST_TEXTS, top_k=4)
    fitted.save(tmp_path / "model")
    fitted.save(tmp_path / "model")  # over an older one
    for verify in (True, False):
        loaded = LinearTree.load(tmp_path / "model", verify=verify)
        assert_same(loaded.predict(TEST_TEXTS, top_k=4), wanted)
        assert loaded.config == fitted.config
    loaded.save(tmp_path / "copy")
    assert files(tmp_path / "copy") == files(tmp_path / "model")


def test_one_document_or_many(fitted):
    together = fitted.predict(TEST_TEXTS, top_k=3)
    for i in range(0, 20, 6):
        assert fitted.predict([TEST_TEXTS[i]], top_k=3)[0] == together[i]
    assert len(fitted.predict([])) == 0


@pytest.mark.parametrize("text", ["", "   ", "unseen words only", "apple unseen"])
def test_odd_documents(fitted, text):
    (suggestions,) = fitted.predict([text], top_k=20)
    assert 1 <= len(suggestions) <= 10
    if "apple" in text:
        assert suggestions[0][0] == "apple"


def test_labels_without_documents_and_documents_without_labels(config):
    Y = label_matrix(LABELS)
    Y = sp.csr_array((Y.data, Y.indices, Y.indptr), shape=(80, 13))
    model = LinearTree(config).fit(TEXTS, Y, label_names=[*NAMES, "never", "ever", "seen"])
    found = model.predict(TEST_TEXTS, top_k=2)
    assert found.matrix.shape == (20, 13)
    assert not {"never", "ever", "seen"} & {suggestions[0][0] for suggestions in found}


def test_a_single_label_and_a_single_document(config):
    if config.index.n_clusters:
        config = LinearTreeConfig(**{**vars(config), "index": IndexConfig()})
    model = LinearTree(config).fit(["one text"], [["only"]])
    assert [label for label, _ in model.predict(["one text"])[0]] == ["only"]


def test_inputs_are_not_modified(config):
    texts, labels = list(TEXTS), [list(own) for own in LABELS]
    LinearTree(config).fit(texts, labels).predict(texts)
    assert texts == TEXTS
    assert labels == LABELS

    X, Y = FEATURES.astype(np.float64), label_matrix(LABELS).astype(np.int64)
    Y.data[:] = 3
    Y.data[0] = 0
    for matrix in (X, Y):  # columns in descending order
        for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
            matrix.indices[a:b], matrix.data[a:b] = matrix.indices[a:b][::-1].copy(), matrix.data[a:b][::-1].copy()
        matrix.has_sorted_indices = matrix.has_canonical_format = False
        for array in (matrix.indptr, matrix.indices, matrix.data):
            array.flags.writeable = False
    before = [array.copy() for matrix in (X, Y) for array in (matrix.indptr, matrix.indices, matrix.data)]
    LinearTree(config).fit(X, Y).predict(X)
    after = [array for matrix in (X, Y) for array in (matrix.indptr, matrix.indices, matrix.data)]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_label_lists_and_label_matrix_agree(config, fitted):
    by_name = LinearTree(config).fit(TEXTS, LABELS, label_names=NAMES)
    assert by_name.labels_ == NAMES
    assert_same(by_name.predict(TEST_TEXTS), fitted.predict(TEST_TEXTS))
    twice = LinearTree(config).fit(TEXTS, [[*own, *own] for own in LABELS], label_names=NAMES)
    assert_same(twice.predict(TEST_TEXTS), fitted.predict(TEST_TEXTS))


def test_texts_and_their_features_agree(config, fitted):
    X = fitted.tfidf_.transform(TEXTS)
    model = LinearTree(config).fit(X, label_matrix(LABELS), label_names=NAMES)
    assert model.tfidf_ is None
    assert_same(model.predict(fitted.tfidf_.transform(TEST_TEXTS)), fitted.predict(TEST_TEXTS))


def test_a_second_fit_forgets_the_first(config):
    model = LinearTree(config).fit(FEATURES, label_matrix(LABELS))
    model.fit(TEXTS, label_matrix(LABELS), label_names=NAMES)
    fresh = LinearTree(config).fit(TEXTS, label_matrix(LABELS), label_names=NAMES)
    assert_same(model.predict(TEST_TEXTS), fresh.predict(TEST_TEXTS))


def test_a_run_directory_keeps_the_stages(config, fitted, tmp_path):
    def fit(settings, texts=TEXTS):
        stages = []

        def listen(name, values):
            if name == "stage":
                stages.append((values["stage"], values["found"]))

        model = LinearTree(settings).fit(
            texts, label_matrix(LABELS), label_names=NAMES, run_dir=tmp_path / "run", on_event=listen
        )
        return model, stages

    first, stages = fit(config)
    assert stages == [("tfidf", False), *[("tree", False), ("levels", False)] * config.n_trees]
    again, stages = fit(config)
    assert stages == [("tfidf", True), *[("levels", True)] * config.n_trees]
    for model in (first, again):
        assert_same(model.predict(TEST_TEXTS), fitted.predict(TEST_TEXTS))
    _, stages = fit(LinearTreeConfig(**{**vars(config), "threads": 2}))
    assert all(found for _, found in stages)
    if config.score_transform == "ranker-only" or config.matching == "neighbours":  # of which there cannot be several
        with pytest.raises(
            UsageError, match=r"scores of different trees can only be averaged|n_trees is 4, but trees only differ"
        ):
            fit(LinearTreeConfig(**{**vars(config), "n_trees": 4}))
        return
    _, stages = fit(LinearTreeConfig(**{**vars(config), "n_trees": 4}))  # further trees beside those that are there
    assert [found for _, found in stages] == [True] * (1 + config.n_trees) + [False] * 2 * (4 - config.n_trees)
    _, stages = fit(LinearTreeConfig(**{**vars(config), "ranker": RankerConfig(cost=0.7)}))
    assert stages[:3] == [("tfidf", True), ("tree", True), ("levels", False)]  # the tree does not depend on the cost
    _, stages = fit(config, [*TEXTS[:-1], "another text"])
    assert stages[:2] == [("tfidf", False), ("tree", False)]


# ---------------------------------------------------------------------- probabilities


def validation(n_docs=150):
    texts, labels = make_texts(n_docs, 3)
    return Dataset(Y=label_matrix(labels), labels=NAMES, texts=texts)


def test_calibration(fitted, config, tmp_path):
    model = LinearTree(config).fit(TEXTS, label_matrix(LABELS), label_names=NAMES, validation=validation())
    found, scores = model.predict(TEST_TEXTS, top_k=5), fitted.predict(TEST_TEXTS, top_k=5)
    assert (found.matrix.data > 0).all()
    assert (found.matrix.data < 1).all()
    assert [[name for name, _ in row] for row in found] == [[name for name, _ in row] for row in scores]
    later = LinearTree(config).fit(TEXTS, label_matrix(LABELS), label_names=NAMES)
    assert later.calibrate(validation()) is later
    assert_same(later.predict(TEST_TEXTS, top_k=5), found)
    model.save(tmp_path / "model")
    assert_same(LinearTree.load(tmp_path / "model").predict(TEST_TEXTS, top_k=5), found)


def test_labels_below_a_probability_are_left_out(config):
    model = LinearTree(config).fit(TEXTS, label_matrix(LABELS), label_names=NAMES, validation=validation())
    everything = model.predict(TEST_TEXTS, top_k=10)
    some = model.predict(TEST_TEXTS, top_k=10, min_probability=0.5)
    for row, all_of_it in zip(some, everything, strict=True):
        assert row == [(name, score) for name, score in all_of_it if score >= 0.5]
    assert some.matrix.nnz < everything.matrix.nnz
    assert model.predict(["nothing known"], min_probability=0.9)[0] == []
    assert model.predict(TEST_TEXTS, min_probability=1.0).matrix.nnz == 0


def test_validation_may_have_other_labels_in_another_order():
    texts, labels = make_texts(150, 3)
    order = np.random.default_rng(0).permutation(11)
    Y = sp.csr_array(np.hstack((label_matrix(labels).toarray(), np.ones((150, 1), np.float32)))[:, order])
    mixed = Dataset(Y=Y, labels=[[*NAMES, "unknown"][i] for i in order], texts=texts)
    model = LinearTree().fit(TEXTS, label_matrix(LABELS), label_names=NAMES)
    wanted = model.calibrate(validation()).predict(TEST_TEXTS)
    assert_same(model.calibrate(mixed).predict(TEST_TEXTS), wanted)


def test_calibrating_twice_is_calibrating_once():
    model = LinearTree().fit(TEXTS, label_matrix(LABELS), label_names=NAMES, validation=validation())
    wanted = model.predict(TEST_TEXTS)
    assert_same(model.calibrate(validation()).predict(TEST_TEXTS), wanted)


def test_validation_that_the_model_cannot_read():
    features = Dataset(Y=label_matrix(LABELS), labels=NAMES, features=FEATURES)
    with pytest.raises(DataError, match="learns from texts, but the validation data have only features"):
        LinearTree().fit(TEXTS, label_matrix(LABELS), label_names=NAMES, validation=features)
    with pytest.raises(DataError, match="learns from features, but the validation data have only texts"):
        LinearTree().fit(FEATURES, label_matrix(LABELS), label_names=NAMES, validation=validation())


# ---------------------------------------------------------------------- a problem with a known answer


@pytest.mark.parametrize("name", CONFIGS)
def test_two_topics_four_labels_ten_documents(name):
    texts = [
        "lion savanna roar", "lion savanna mane", "shark ocean fin", "shark ocean teeth", "lion shark animal",
        "violin string bow", "violin string sonata", "drum stick beat", "drum stick rhythm", "violin drum music",
    ]  # fmt: skip
    labels = [["lion"], ["lion"], ["shark"], ["shark"], ["lion", "shark"]]
    labels += [["violin"], ["violin"], ["drum"], ["drum"], ["violin", "drum"]]
    config = CONFIGS[name]
    method = "none" if config.index.method == "none" else "balanced"
    config = LinearTreeConfig(
        **{**vars(config), "index": IndexConfig(method=method, n_clusters=2 if method == "balanced" else None)}
    )
    model = LinearTree(config).fit(texts, labels)
    assert model.labels_ == ["lion", "shark", "violin", "drum"]
    for suggestions, own in zip(model.predict(texts, top_k=4), labels, strict=True):
        assert {label for label, _ in suggestions[: len(own)]} == set(own)
    unseen = model.predict(["a shark in the ocean", "the rhythm of the drum", "savanna"], top_k=1)
    assert [suggestions[0][0] for suggestions in unseen] == ["shark", "drum", "lion"]
    if method == "balanced":
        for trained in model.trees_:
            first, second, third, fourth = trained.tree.clusters
            assert first == second != third == fourth  # the two topics


# ---------------------------------------------------------------------- what is refused


def test_features_or_texts_but_not_both():
    by_features = LinearTree().fit(FEATURES, label_matrix(LABELS))
    with pytest.raises(UsageError, match="fitted on features, not on texts; pass a sparse matrix"):
        by_features.predict(TEXTS)
    with pytest.raises(DataError, match="X has 29 columns but the model was fitted on 30 features"):
        by_features.predict(FEATURES[:, :29])
    by_texts = LinearTree().fit(TEXTS, LABELS)
    with pytest.raises(
        DataError, match=f"X has 30 columns but the model was fitted on {by_texts.n_features_} features"
    ):
        by_texts.predict(FEATURES)
    with pytest.raises(UsageError, match="got one string"):
        by_texts.predict("one text")


@pytest.mark.parametrize("form", [sp.coo_array, sp.csc_array, sp.csr_matrix])
def test_any_sparse_format_will_do(form):
    wanted = LinearTree().fit(FEATURES, label_matrix(LABELS)).predict(FEATURES)
    found = LinearTree().fit(form(FEATURES), form(label_matrix(LABELS))).predict(form(FEATURES))
    assert_same(found, wanted)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_numbers(value):
    X = FEATURES.copy()
    X.data[3] = value
    with pytest.raises(DataError, match="X holds NaN or infinity"):
        LinearTree().fit(X, label_matrix(LABELS))
    with pytest.raises(DataError, match="X holds NaN or infinity in row 0"):
        LinearTree().fit(FEATURES, label_matrix(LABELS)).predict(X)


def test_rows_that_do_not_match():
    with pytest.raises(DataError, match="there are 80 documents but 79 rows of labels"):
        LinearTree().fit(FEATURES, label_matrix(LABELS[:-1]))
    with pytest.raises(DataError, match="there are 3 documents but 2 rows of labels"):
        LinearTree().fit(["one", "two", "three"], [["a"], ["b"]])


def test_labels_that_are_none():
    for nothing in ([[]] * 80, sp.csr_array((80, 5), dtype=np.float32), sp.csr_array((80, 0), dtype=np.float32)):
        with pytest.raises(DataError, match="no document has a label"):
            LinearTree().fit(TEXTS, nothing)
    explicit = label_matrix(LABELS)
    explicit.data[:] = 0
    with pytest.raises(DataError, match="no document has a label"):
        LinearTree().fit(TEXTS, explicit)
    with pytest.raises(DataError, match="the labels of document 1 are one string"):
        LinearTree().fit(["one", "two"], [["a"], "b"])
    with pytest.raises(DataError, match="Y has 10 columns but there are 2 label names"):
        LinearTree().fit(TEXTS, label_matrix(LABELS), label_names=["a", "b"])


@pytest.mark.parametrize(
    ("labels", "names", "message"),
    [
        ([[1], [2]], None, "the label 1 is int, not a string"),
        ([[1.0], [0.0]], None, r"is float, not a string; give names, or a sparse 0/1 matrix"),
        ([["a"], [" "]], None, "a label name is empty"),
        ([["a"], ["b"]], ["a", "a"], "the label name 'a' is given twice"),
        (sp.csr_array(np.eye(2)), ["a", "a"], "the label name 'a' is given twice"),
        (sp.csr_array(np.eye(2)), ["", "a"], "a label name is empty"),
    ],
)
def test_names_that_a_saved_model_could_not_keep(labels, names, message):
    with pytest.raises(DataError, match=message):
        LinearTree().fit(["one", "two"], labels, label_names=names)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_trees": 0}, "n_trees is 0"),
        ({"beam": 0}, "beam is 0"),
        ({"matching": "neighbours", "neighbours": 0}, "neighbours is 0; it must be a whole number of at least 1"),
        ({"matching": "nearest"}, "matching is 'nearest'; it must be one of 'tree', 'neighbours'"),
        ({"matching": "neighbours", "n_trees": 3}, "n_trees is 3, but trees only differ in how they find labels"),
        ({"matcher": RankerConfig(bias=0.5)}, "matcher.bias and ranker.bias differ"),
        ({"ranker": RankerConfig(cost=-1)}, "cost is -1"),
        ({"index": IndexConfig(n_clusters=99)}, "n_clusters is 99"),
        ({"tfidf": TfidfConfig(min_token_length=0)}, "min_token_length is 0"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(UsageError, match=message):
        LinearTree(LinearTreeConfig(**settings)).fit(TEXTS, LABELS)


def test_no_bias_and_empty_documents():
    config = LinearTreeConfig(
        matcher=RankerConfig(bias=0, loss="hinge"),
        ranker=RankerConfig(bias=0, loss="hinge"),
        index=IndexConfig(n_clusters=2),
    )
    model = LinearTree(config).fit(["", *TEXTS], [["apple"], *LABELS])
    assert len(model.predict([""])[0]) == 10


def test_names_with_line_breaks_are_kept(tmp_path):
    names = ["two\nlines", "carriage\rreturn", "plain"]
    assert_names_are_kept(names, tmp_path)


def test_names_with_other_separators_and_blanks_are_kept(tmp_path):
    assert_names_are_kept(["plain", "a\x85b", "c\u2028d", " e ", "f\x0bg", "h\ti", "\ufeffj"], tmp_path)


def assert_names_are_kept(names, tmp_path):
    model = LinearTree().fit([f"word{i} two" for i in range(len(names))], [[name] for name in names])
    model.save(tmp_path / "model")
    loaded = LinearTree.load(tmp_path / "model")
    assert loaded.labels_ == names
    assert_same(loaded.predict(["two"]), model.predict(["two"]))


def test_a_folder_that_lacks_something(tmp_path):
    LinearTree().fit(TEXTS, LABELS).save(tmp_path / "model")
    (tmp_path / "model" / "labels.txt").write_text("only one\n")
    with pytest.raises(StorageError, match="lacks its 10 label names"):
        LinearTree.load(tmp_path / "model")
    with pytest.raises(StorageError):
        LinearTree.load(tmp_path / "nothing")


def test_ids_are_passed_on():
    model = LinearTree().fit(TEXTS, LABELS)
    assert model.predict(["one", "two"], ids=["a", "b"]).ids == ["a", "b"]


def test_progress_is_told():
    events = []
    LinearTree(CONFIGS["three-trees"]).fit(TEXTS, LABELS, on_event=lambda name, values: events.append(values)).predict(
        TEXTS, on_event=lambda name, values: events.append(values)
    )
    finished = [values["task"] for values in events if values.get("finished")]
    assert finished.count("training the labels") == 3
    assert finished.count("predicting") == 3


@pytest.mark.parametrize("index", [10**6, -3])
def test_matrices_with_an_index_out_of_range(index):
    X, Y = FEATURES.copy(), label_matrix(LABELS)
    model = LinearTree().fit(X, Y)
    X.indices[-1] = index
    for use in (lambda: LinearTree().fit(X, Y), lambda: model.predict(X)):
        with pytest.raises(DataError, match="X is damaged: an index lies outside its shape"):
            use()
    Y.indices[-1] = index
    with pytest.raises(DataError, match="Y is damaged: an index lies outside its shape"):
        LinearTree().fit(FEATURES, Y)


@pytest.mark.parametrize("name", ["\ud800", "a\udfffb"])
def test_a_name_that_cannot_be_saved_is_refused_before_training(name):
    with pytest.raises(DataError, match="half of a surrogate pair, which cannot be saved"):
        LinearTree().fit(["a b"] * 9, [[name]] * 9)


def test_sets_of_labels_have_an_order():
    names = [{f"name {i}" for i in range(20)}]
    assert LinearTree().fit(["a text"], names).labels_ == sorted(names[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": -1}, "top_k is -1; it must be a whole number of at least 1"),
        ({"top_k": 2.5}, "top_k is 2.5"),
        ({"top_k": "5"}, "top_k is '5'"),
        ({"top_k": True}, "top_k is True"),
        ({"top_k": None}, "top_k is None"),
        ({"min_probability": float("nan")}, "min_probability is nan; it must be a number from 0 to 1"),
        ({"min_probability": -1}, "min_probability is -1"),
        ({"min_probability": "x"}, "min_probability is 'x'"),
        ({"threads": 0}, "threads is 0; it must be a whole number of at least 1 or None"),
        ({"ids": "ab"}, "ids is str"),
        ({"ids": [None, "a"]}, "an id is None"),
        ({"ids": ["a"]}, "there are 1 ids but 2 documents"),
    ],
)
@pytest.mark.parametrize("n_trees", [1, 3])
def test_arguments_of_predict_that_make_no_sense(options, message, n_trees):
    model = LinearTree(n_trees=n_trees).fit(["one", "two"], [["a"], ["b"]])
    with pytest.raises((UsageError, DataError), match=message):
        model.predict(["one", "two"], **options)
    assert len(model.predict(["one", "two"], top_k=np.int64(1), ids=np.arange(2))) == 2
