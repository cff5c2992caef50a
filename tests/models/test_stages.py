"""The declared stages: a setting changes the keys of the stages that read it; no stage reads more than it declares."""

import dataclasses
import logging
from collections import defaultdict
from contextlib import contextmanager

import numpy as np
import pytest

from labelwise import generate_shop
from labelwise.config import EnsembleConfig, LinearTreeConfig, XTransformerConfig
from labelwise.config.presets import load_preset
from labelwise.config.settings import Settings
from labelwise.models import stages
from labelwise.models.ensemble.members import sharing_groups
from labelwise.models.linear_tree import LinearTree
from labelwise.models.pipeline import Pipeline
from labelwise.models.stages import Stage, StageCache, Storage
from labelwise.models.training_data import TrainingData
from labelwise.storage.fingerprint import fingerprint
from labelwise.storage.run_directory import RunDirectory
from tests.features.tiny import write_model

NEURAL = (
    stages.TFIDF,
    stages.FEATURES,
    stages.TOKENS,
    stages.EMBEDDINGS,
    stages.LABEL_EMBEDDING,
    stages.TREE,
    stages.FINE_TUNED_MATCHER,
    stages.CANDIDATES,
    stages.NEGATIVES,
    stages.RANKER,
)
LINEAR = (stages.TFIDF, stages.FEATURES, stages.LABEL_EMBEDDING, stages.TREE, stages.LEVELS)

# What the paper's figure says, written down apart from the declarations: which stages read a setting themselves …
READERS = {
    XTransformerConfig: {
        "tfidf": {"tfidf", "features"},
        "encoder": {"tokens", "embeddings", "matcher"},
        "index": {"tree"},
        "index.normalize_documents": {"label-embedding"},
        "label_embedding": {"label-embedding"},
        "fine_tune": set(),  # another matcher altogether: see below
        "matcher": {"matcher"},
        "matcher.negatives_from": {"ranker"},
        "matcher.folds": {"matcher", "negatives"},
        "matcher.device": set(),
        "matcher.compile": set(),
        "matcher.graph_steps": set(),
        "linear": {"matcher"},
        "ranker": {"ranker"},
        "features": {"ranker"},
        "dense_weight": {"ranker"},
        "label_weight": {"ranker"},
        "score_transform": {"ranker"},
        "matcher_weight": {"ranker"},
        "beam": {"candidates", "negatives", "ranker"},
        "holdout.share": set(),  # says which documents are held out: part of the data
        "holdout.learn_validation": set(),
        "holdout.calibrate": {"ranker"},
        "seed": {"tree", "matcher", "negatives", "ranker"},
        "threads": set(),
    },
    LinearTreeConfig: {
        "tfidf": {"tfidf", "features"},
        "index": {"tree"},
        "index.normalize_documents": {"label-embedding", "levels"},
        "matcher": {"levels"},
        "ranker": {"levels"},
        "matching": {"levels"},
        "neighbours": {"levels"},
        "beam": {"levels"},
        "score_transform": {"levels"},
        "n_trees": set(),  # further trees stand beside the first
        "holdout": set(),
        "seed": {"tree", "levels"},
        "threads": set(),
    },
}
# … and which stages read the results of a stage.
AFTER = {
    "tfidf": {"features"},
    "features": {"matcher", "ranker", "levels"},
    "tokens": {"embeddings", "matcher"},
    "embeddings": {"matcher"},
    "label-embedding": {"tree"},
    "tree": {"matcher", "ranker", "levels"},
    "matcher": {"candidates"},
    "candidates": {"negatives", "ranker"},
}


def leaves(config, above=""):
    """The names of all settings, those of nested configurations after a dot."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            yield from leaves(value, f"{above}{field.name}.")
        else:
            yield f"{above}{field.name}"


def with_other(config, name):
    """The configuration with another value of one setting."""
    first, _, rest = name.partition(".")
    value = getattr(config, first)
    if rest:
        other = with_other(value, rest)
    elif first == "label_embedding":
        other = "text-emb"
    elif isinstance(value, bool):
        other = not value
    elif isinstance(value, str):
        other = value + "-other"
    elif isinstance(value, tuple):
        other = (*value[:-1], value[-1] + 1)
    else:
        other = 7 if value is None else value + 1
    return dataclasses.replace(config, **{first: other})


def keys(config, some):
    return {stage.name: fingerprint(stages.inputs(stage, config, str)) for stage in some}


def expected(config, name, some):
    """The stages whose results depend on a setting, by the tables above."""
    table = READERS[type(config)]
    longest = max((one for one in table if name == one or name.startswith(f"{one}.")), key=len)
    after = defaultdict(set, {stage: set(more) for stage, more in AFTER.items()})
    if config.label_embedding == "pifa-tfidf":
        after["features"].add("label-embedding")
    else:
        after["embeddings"].add("label-embedding")
    if config.encoders() and config.matcher.negatives_from == "out-of-fold":
        after["negatives"].add("ranker")
    found, new = set(), set(table[longest])
    while new:
        found |= new
        new = {more for stage in new for more in after[stage]} - found
    return found & {stage.name for stage in some}


OUT_OF_FOLD = dataclasses.replace(XTransformerConfig().matcher, negatives_from="out-of-fold")
CASES = [
    pytest.param(config, some, name, id=f"{config.kind}, {config.label_embedding}, {name}")
    for config, some in (
        (XTransformerConfig(matcher=OUT_OF_FOLD), NEURAL),
        (XTransformerConfig(label_embedding="pifa-tfidf"), NEURAL),
        (LinearTreeConfig(), LINEAR),
    )
    for name in leaves(config)
    if name != "fine_tune"
]


@pytest.mark.parametrize(("config", "some", "name"), CASES)
def test_a_setting_changes_the_keys_of_the_stages_that_depend_on_it_and_no_other(config, some, name):
    before, after = keys(config, some), keys(with_other(config, name), some)
    assert {stage for stage in before if before[stage] != after[stage]} == expected(config, name, some)


def test_a_higher_version_of_a_stage_changes_the_keys_of_all_stages_after_it():
    config = XTransformerConfig(matcher=OUT_OF_FOLD)
    before = keys(config, NEURAL)
    later = {"tfidf": {stage.name for stage in NEURAL} - {"tokens", "embeddings", "label-embedding"}}
    later |= {"candidates": {"candidates", "negatives", "ranker"}, "ranker": {"ranker"}}
    later["tfidf"] -= {"tree"}  # by embeddings, which do not depend on tf-idf
    for stage in (stages.TFIDF, stages.CANDIDATES, stages.RANKER):
        object.__setattr__(stage, "version", stage.version + 1)
        try:
            after = keys(config, NEURAL)
        finally:
            object.__setattr__(stage, "version", stage.version - 1)
        assert {name for name in before if before[name] != after[name]} == later[stage.name]


def test_without_out_of_fold_negatives_the_number_of_folds_changes_no_frozen_ranker():
    frozen = XTransformerConfig(fine_tune=False)
    assert keys(with_other(frozen, "matcher.folds"), (stages.RANKER,)) == keys(frozen, (stages.RANKER,))
    folds = dataclasses.replace(frozen, matcher=OUT_OF_FOLD)
    assert keys(with_other(folds, "matcher.folds"), (stages.RANKER,)) != keys(folds, (stages.RANKER,))


def test_without_fine_tuning_there_is_another_matcher():
    frozen = XTransformerConfig(fine_tune=False)
    assert stages.matcher_stage(frozen) is stages.FROZEN_MATCHER
    assert stages.matcher_stage(XTransformerConfig()) is stages.FINE_TUNED_MATCHER
    of = (stages.FROZEN_MATCHER,)
    before = keys(frozen, of)
    for name, changes in (
        ("matcher.dense_weight", True),
        ("matcher.epochs", False),
        ("linear.cost", True),
        ("beam", False),
    ):
        assert (keys(with_other(frozen, name), of) != before) == changes


@pytest.mark.parametrize(
    "part", ["training documents", "labels", "label texts", "held-out rows", "validation documents"]
)
def test_other_data_change_the_keys_of_the_stages_that_depend_on_them(part):
    def of(config, change):
        every = (*NEURAL, stages.VALIDATION_FEATURES) if config.encoders() else LINEAR
        return {
            stage.name: fingerprint(stages.inputs(stage, config, lambda name: "other" if name == change else name))
            for stage in every
        }

    neural = XTransformerConfig(label_embedding="text-emb")
    changed = {stage for stage, key in of(neural, part).items() if key != of(neural, None)[stage]}
    last = {"matcher", "candidates", "negatives", "ranker"}
    assert (
        changed
        == {
            "training documents": {"tfidf", "features", "validation-features", "tokens", "embeddings"} | last,
            "labels": {"label-embedding", "tree"} | last,
            "label texts": {"label-embedding", "tree"} | last,
            "held-out rows": last,
            "validation documents": {"validation-features"} | last,
        }[part]
    )


def test_members_share_a_matcher_where_only_tree_and_ranker_differ():
    def groups(*changes, **options):
        members = tuple(dataclasses.replace(XTransformerConfig(), **change) for change in changes)
        return sharing_groups(EnsembleConfig(members=(*members, LinearTreeConfig()), **options))

    alike = [
        {"label_embedding": "pifa-tfidf"},
        {"label_embedding": "text-emb"},
        {"beam": 7, "features": "tfidf", "dense_weight": 2.0, "score_transform": "sigmoid"},
        {"index": dataclasses.replace(XTransformerConfig().index, max_leaf=7)},
        {"ranker": dataclasses.replace(XTransformerConfig().ranker, cost=7.0)},
    ]
    assert groups({}, *alike) == [[0, 1, 2, 3, 4, 5]]
    assert groups({}, *alike, share_encoder=False) == [[0], [1], [2], [3], [4], [5]]
    other = [{"seed": 1}, {"tfidf": dataclasses.replace(XTransformerConfig().tfidf, min_df=2)}, {"fine_tune": False}]
    assert groups({}, *other, {"fine_tune": False}, {"label_embedding": "text-emb"}) == [[0, 5], [1], [2], [3], [4]]


# ---------------------------------------------------------------------- what stages read in fact


@contextmanager
def recorded(config, monkeypatch):
    """The settings that each stage reads while it computes, by stage; settings that change no result are left out."""
    names, found, computing = {}, defaultdict(set), []

    def place(part, above):
        names[id(part)] = above
        for field in dataclasses.fields(part):
            value = object.__getattribute__(part, field.name)
            if dataclasses.is_dataclass(value):
                place(value, f"{above}{field.name}.")

    place(config, "")

    def read(self, name):
        value = object.__getattribute__(self, name)
        if computing and computing[-1] is not None and id(self) in names and not name.startswith("_"):
            fields = {field.name: field for field in dataclasses.fields(self)}
            if name in fields and fields[name].compare and not dataclasses.is_dataclass(value):
                found[computing[-1]].add(names[id(self)] + name)
        return value

    def get(self, stage, inputs, compute, storage=None):
        def noted():
            computing.append(stage.name)
            try:
                return compute()
            finally:
                computing.pop()

        return original_get(self, stage, inputs, noted, storage)

    def key(*args, **options):
        computing.append(None)
        try:
            return original_key(*args, **options)
        finally:
            computing.pop()

    original_get, original_key = StageCache.get, stages.inputs
    with monkeypatch.context() as patch:
        patch.setattr(StageCache, "get", get)
        patch.setattr(stages, "inputs", key)
        patch.setattr(Settings, "__getattribute__", read)
        patch.setattr(Settings, "validated", lambda self, *_, **__: self)  # reads all, and was called before
        yield found


def declared():
    return {stage.name: stage for stage in vars(stages).values() if isinstance(stage, Stage)}


def check(found, config):
    assert found
    every = declared()
    for name, settings in found.items():
        stage = every[name]
        # Which stages stand before a stage is part of its key.
        allowed = set(stage.settings(config)) | {"fine_tune", "label_embedding"}
        if stage is stages.TREE:  # the label embedding is computed inside, since nothing keeps it
            allowed |= set(stages.LABEL_EMBEDDING.settings(config))
        if stage in (stages.CANDIDATES, stages.NEGATIVES):  # a matcher keeps the settings that it was trained with
            allowed |= set(stages.matcher_stage(config).settings(config))
        assert settings <= allowed, f"{name} reads {sorted(settings - allowed)} and does not declare it"


@pytest.fixture(scope="module")
def shop():
    return generate_shop(700, 150)


@pytest.mark.parametrize("preset", ["default", "parabel", "bonsai", "plt", "slice", "dismec"])
def test_linear_stages_read_what_they_declare(preset, shop, monkeypatch):
    config = load_preset(preset, threads=1, ranker={"negatives": "tfn+man"}) if preset == "plt" else load_preset(preset)
    train = shop["train"]
    data = TrainingData.of(train.texts, train.Y, config.holdout, seed=0)
    with recorded(config, monkeypatch) as found:
        Pipeline(config, StageCache(data)).levels()
    check(found, config)
    assert "ranker.cost" in found["levels"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"fine_tune": False, "label_embedding": "pifa-tfidf"},
        {"matcher": {"negatives_from": "out-of-fold", "folds": 2, "learn_labels": True}, "label_embedding": "text-emb"},
    ],
    ids=["default", "frozen", "out-of-fold"],
)
def test_neural_stages_read_what_they_declare(changes, shop, tmp_path, monkeypatch):
    matcher = {"steps": 2, "batch_size": 16, "device": "cpu", **changes.pop("matcher", {})}
    encoder = {"name": str(write_model(tmp_path / "tiny", "bert")), "max_length": 16}
    config = load_preset("x-transformer", encoder=encoder, matcher=matcher, threads=1, **changes)
    train = shop["train"].take(range(300))
    data = TrainingData.of(train.texts, train.Y, config.holdout, seed=0, texts_only=True)
    with recorded(config, monkeypatch) as found:
        Pipeline(config, StageCache(data)).ranker()
    check(found, config)
    assert "ranker.cost" in found["ranker"]
    assert "matcher.dense_weight" in found[stages.matcher_stage(config).name]


# ---------------------------------------------------------------------- the cache


def test_a_result_is_computed_once_and_found_again(tmp_path, shop):
    stage, computed = Stage("numbers", data=("labels",)), []
    storage = Storage(lambda array, path: np.save(path, array), lambda path: np.load(f"{path}.npy"))
    data = TrainingData.of(shop["train"].texts, shop["train"].Y, load_preset("default").holdout, seed=0)

    def compute():
        computed.append(1)
        return np.arange(3)

    for _ in range(2):
        with RunDirectory(tmp_path / "run") as run:
            cache = StageCache(data, run)
            for _ in range(2):
                inputs = stages.inputs(stage, None, cache.identity)
                np.testing.assert_array_equal(cache.get(stage, inputs, compute, storage), [0, 1, 2])
    assert len(computed) == 1


def test_results_are_removed_from_memory(shop):
    stage, other = Stage("one"), Stage("two")
    cache = StageCache(TrainingData.of(["a", "b"], [["x"], ["y"]], load_preset("default").holdout, seed=0))
    cache.put(stage, {"number": 1}, "first")
    cache.put(stage, {"number": 2}, "second")
    cache.put(other, {"number": 1}, "third")
    cache.forget(stage, but={"number": 2})
    assert not cache.has(stage, {"number": 1})
    assert cache.get(stage, {"number": 2}, lambda: "new") == "second"
    assert cache.get(other, {"number": 1}, lambda: "new") == "third"


def test_trees_beside_the_first_leave_it_as_it_is(shop, tmp_path):
    """A run directory with one tree serves a model of three."""
    train, heard = shop["train"], []
    LinearTree("parabel", n_trees=1).fit_dataset(train, run_dir=tmp_path / "run")

    def listen(name, values):
        if name == "stage":
            heard.append((values["stage"], values["found"]))

    LinearTree("parabel", n_trees=3).fit_dataset(train, run_dir=tmp_path / "run", on_event=listen)
    assert heard.count(("levels", True)) == 1
    assert heard.count(("levels", False)) == 2


def test_a_remark_is_an_event_and_a_line_of_the_log(caplog):
    events = []
    cache = StageCache(None, on_event=lambda *event: events.append(event))
    with caplog.at_level(logging.INFO, "labelwise"):
        cache.say("")
        cache.say("60 documents are held out")
        StageCache(None).say("not calibrated", logging.WARNING)
    assert events == [("remark", {"text": "60 documents are held out"})]
    assert [(one.levelname, one.getMessage(), one.is_remark) for one in caplog.records] == [
        ("INFO", "60 documents are held out", True),
        ("WARNING", "not calibrated", True),
    ]
