"""Presets: every one loads and trains; a user's file works; what is wrong is told."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import labelwise.config.presets as package
from labelwise import Ensemble, generate_shop, load_model, precision_at_k
from labelwise.config import LinearTreeConfig, XTransformerConfig
from labelwise.config.presets import load_linear_preset, load_preset, preset_names
from labelwise.errors import UsageError
from labelwise.models.linear_tree import LinearTree
from labelwise.models.xtransformer import XTransformer
from tests.features.tiny import write_model

FILES = sorted(Path(package.__file__).parent.glob("*.toml"))
LINEAR = ["default", "bonsai", "dismec", "parabel", "plt", "slice", "xr-linear"]
PAPER = ["amazoncat-13k", "eurlex-4k", "wiki-500k", "wiki10-31k"]
NEURAL = ["hybrid", *PAPER, "x-transformer"]


@pytest.fixture(scope="module")
def shop():
    return generate_shop(600, 200)


def test_the_names():
    assert preset_names() == ["default", *sorted([*LINEAR[1:], *NEURAL])]
    assert load_preset("default") == LinearTreeConfig()
    for names, kind in ((LINEAR, LinearTreeConfig), (NEURAL, XTransformerConfig)):
        assert {type(load_preset(name)) for name in names} == {kind}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_preset_is_a_small_file_that_says_whose_settings_it_holds(file):
    text = file.read_text(encoding="utf-8")
    assert 8 <= len(text.splitlines()) <= 30
    assert text.startswith("# ")
    if file.stem != "hybrid":  # which is nobody's but ours
        assert re.match(r"# .*\b(19|20)\d\d\b", "".join(text.splitlines()[:5]))
    assert load_preset(file) == load_preset(file.stem) != LinearTreeConfig()
    assert tomllib.loads(text)


@pytest.mark.parametrize("name", LINEAR)
def test_every_linear_preset_trains_and_is_kept(name, shop, tmp_path):
    train, test = shop["train"], shop["test"]
    model = LinearTree(load_linear_preset(name, n_trees=1)).fit(train.texts, train.Y, label_names=train.labels)
    found = model.predict(test.texts, top_k=3)
    assert precision_at_k(test.Y, found, k=1) > 40
    model.save(tmp_path / "model")
    again = LinearTree.load(tmp_path / "model")
    assert again.config == model.config
    assert (again.predict(test.texts, top_k=3).matrix != found.matrix).nnz == 0


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("encoder") / "tiny", "bert")


@pytest.mark.parametrize("name", NEURAL)
def test_every_neural_preset_trains_and_is_kept(name, shop, encoder, tmp_path):
    train, test = shop["train"], shop["test"]
    short = {"steps": 3, "batch_size": 16, "device": "cpu"}
    # Clusters as for a small shop; the settings of the stages are the preset's own.
    config = load_preset(
        name,
        encoder={"name": str(encoder), "max_length": 16},
        index={"n_clusters": 4},
        matcher=short,
        hold_out=0.1,
        dense_weight=1.0,
    )
    model = XTransformer(config).fit(train.texts, train.Y, label_names=train.labels)
    found = model.predict(test.texts, top_k=3)
    assert precision_at_k(test.Y, found, k=1) > 40
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.config == model.config
    assert (again.predict(test.texts, top_k=3).matrix != found.matrix).nnz == 0


@pytest.mark.parametrize(
    ("name", "n_clusters", "steps", "warmup_steps", "rate"),
    [
        ("eurlex-4k", 64, 1_000, 100, 5e-5),
        ("wiki10-31k", 512, 1_400, 100, 5e-5),
        ("amazoncat-13k", 256, 20_000, 2_000, 8e-5),
        ("wiki-500k", 8192, 50_000, 1_000, 6e-5),
    ],
)
def test_the_papers_settings(name, n_clusters, steps, warmup_steps, rate):
    """K of its Table 2, steps of its section 4.2; warm-up, rate and batch of its code."""
    config = load_preset(name)
    matcher = config.matcher
    assert (config.index.n_clusters, config.encoder.max_length) == (n_clusters, 128)
    assert (matcher.steps, matcher.batch_size, matcher.learning_rate) == (steps, 256, rate)
    assert matcher.head_learning_rate == rate
    assert round(matcher.warmup * steps) == pytest.approx(warmup_steps, abs=2)
    assert (matcher.loss, matcher.mean_loss, matcher.weight_decay, matcher.dropout) == ("squared-hinge", True, 0.0, 0.1)
    assert matcher.patience == steps  # all steps are trained
    assert (matcher.init, matcher.linear_term, config.fine_tune) == ("zero", False, True)
    assert (config.label_embedding, config.features, config.ranker.negatives) == ("pifa-tfidf", "both", "tfn+man")


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_presets_name_no_encoder(name):
    texts, labels = ["a shoe", "a mug"], [["shoe"], ["mug"]]
    sentence = "the presets of the paper name no encoder; give one .*roberta-large and xlnet-large-cased"
    for model in (XTransformer(name), Ensemble(["default", name])):
        with pytest.raises(UsageError, match=sentence):
            model.fit(texts, labels)
    assert XTransformer(name, encoder="minilm").config.encoder.name == "minilm"


def test_the_two_kinds_are_not_mixed_up():
    assert not load_preset("hybrid").fine_tune
    assert load_preset("x-transformer").fine_tune
    with pytest.raises(UsageError, match="LinearTree: the settings are of XTransformer; give 'hybrid' to"):
        load_linear_preset("hybrid")
    with pytest.raises(UsageError, match="'n_trees' is a setting of LinearTree"):
        load_preset("hybrid", n_trees=2)


def test_what_the_names_promise():
    assert load_preset("xr-linear").index.branching == 16
    parabel = load_preset("parabel")
    assert (parabel.n_trees, parabel.index.method, parabel.index.branching) == (3, "balanced", 2)
    assert load_preset("bonsai").index.method == "kmeans"
    dismec = load_preset("dismec")
    assert (dismec.index.method, dismec.score_transform) == ("none", "ranker-only")
    by_neighbours = load_preset("slice")
    assert (by_neighbours.matching, by_neighbours.neighbours, by_neighbours.score_transform) == (
        "neighbours",
        300,
        "sigmoid",
    )
    plt = load_preset("plt")
    assert (plt.matcher.loss, plt.ranker.loss, plt.score_transform) == ("logistic", "logistic", "sigmoid")


def test_changes_on_top():
    base = load_preset("parabel")
    assert load_preset("parabel", n_trees=1, beam=None) == replace(base, n_trees=1)
    changed = load_preset("parabel", ranker={"cost": 2, "negatives": None}, threads=1)
    assert changed.ranker == replace(base.ranker, cost=2.0)
    assert type(changed.ranker.cost) is float
    assert changed.threads == 1


def test_a_file_of_ones_own(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('beam = 5\n[tfidf]\nngram_range = [1, 2]\nmin_df = 2\n[index]\nmethod = "random"\n', "utf-8")
    config = load_preset(file)
    assert (config.beam, config.tfidf.ngram_range, config.tfidf.min_df) == (5, (1, 2), 2)
    assert load_preset(str(file)) == config


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("bean = 5", r"mine.toml: there is no setting 'bean'; did you mean 'beam'\? there are: tfidf, "),
        ("[ranker]\nC = 1", r"mine.toml: ranker: there is no setting 'C'; there are: loss, cost"),
        ("[ranker]\ncost = 'much'", r"mine.toml: ranker.cost is 'much'; it must be a number above 0"),
        ("n_trees = 1.5", r"n_trees is 1.5; it must be a whole number"),
        ("n_trees = true", r"n_trees is True; it must be a whole number"),
        ("score_transform = 'sum'", r"score_transform is 'sum'; it must be one of 'l1-hinge', "),
        ("ranker = 3", r"ranker is 3; it must be a table of settings"),
        ("[tfidf]\nngram_range = [1]", r"ngram_range is \[1\]; it must be a list of 2 values, each a whole number"),
        ("[tfidf]\nnorm = 'l3'", r"norm is 'l3'; it must be one of 'l1', 'l2'"),
        (
            "[tfidf]\nmin_df = 'a'",
            r"tfidf.min_df is 'a'; it must be a whole number of at least 0 or a number from 0 to 1",
        ),
        ("[tfidf]\nlowercase = 1", r"lowercase is 1; it must be true or false"),
        ("model = 'x-former'", r"model is 'x-former'; it must be one of 'linear-tree', 'x-transformer'"),
        (
            "model = 'x-transformer'\nn_trees = 2",
            r"'n_trees' is a setting of LinearTree, not of XTransformer; .* set model = \"linear-tree\" at the top",
        ),
        ("beam = = 2\n", r"mine.toml is not valid TOML: .*line 1"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(tmp_path, text, complaint):
    file = tmp_path / "mine.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=complaint):
        load_preset(file)


def test_unknown_names():
    with pytest.raises(
        UsageError,
        match=r"no preset 'parable'; did you mean 'parabel'. there are: default, amazoncat-13k, .*ends in .toml",
    ):
        load_preset("parable")
    with pytest.raises(UsageError, match=r"none.toml does not exist; give a .toml file, or one of: default"):
        load_preset("none.toml")
    with pytest.raises(UsageError, match="there is no setting 'costs'; did you mean 'cost'"):
        load_preset("default", costs=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = []", r"model is \[\]; it must be one of"),
        ("[model]", r"model is \{\}; it must be one of"),
        (f"beam = {'9' * 5000}", "is not valid TOML"),
        (f"beam = {'9' * 400}", "it must be a whole number"),
        ("cost = 1e400", "cost is inf; it must be a number"),
        (f"beam = {'[' * 5000}{']' * 5000}", "is nested too deeply"),
        ("# " + "x" * (1 << 20), "is no file with settings"),
    ],
)
def test_files_that_hold_no_settings(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        load_preset(path)


def test_what_is_no_file_of_settings(tmp_path):
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    (tmp_path / "round.toml").symlink_to("round.toml")
    for name in ("folder", "endless"):
        with pytest.raises(UsageError, match="is no file with settings"):
            load_preset(tmp_path / f"{name}.toml")
    with pytest.raises(UsageError, match="cannot be read"):
        load_preset(tmp_path / "round.toml")
