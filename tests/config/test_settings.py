"""Every setting of every configuration: wrong values are refused in one sentence before any work, right ones are kept.

The tests go over the fields of all configurations, so that a new setting is tested as soon as it is written down.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import labelwise.config as package
from labelwise.cli import main
from labelwise.config import (
    EnsembleConfig,
    IncrementalConfig,
    IndexConfig,
    LinearTreeConfig,
    MatcherConfig,
    RankerConfig,
    TfidfConfig,
    XTransformerConfig,
)
from labelwise.config.flat import flat_names, with_settings
from labelwise.config.presets import load_preset
from labelwise.config.settings import LONGEST_SHOWN, Form, Range, Settings, choices, described, field_types, shown
from labelwise.errors import StorageError, UsageError
from labelwise.features.tfidf import Tfidf
from labelwise.incremental import add_labels, keep_documents
from labelwise.models.ensemble import Ensemble
from labelwise.models.linear_tree import LinearTree
from labelwise.models.xtransformer import XTransformer
from labelwise.storage import restore

CONFIGS = sorted(Settings.__subclasses__(), key=lambda config: config.__name__)
MODELS = {LinearTreeConfig: LinearTree, XTransformerConfig: XTransformer, EnsembleConfig: Ensemble}
LETTERS = st.characters(exclude_categories=("Cs", "Cc"))
TOO_LARGE = 10**309
"""More than a float can be."""
COMBINATIONS = (
    (RankerConfig(cost=1e-320), "cost is 1e-320; it must be from 1e-30 to 1e+30"),
    (RankerConfig(cost=1e20, positive_weight=1e20), "positive_weight is 1e+20 and cost is 1e+20; their product must"),
    (TfidfConfig(ngram_range=(2, 1)), "ngram_range is (2, 1); the shortest n-gram comes first"),
    (TfidfConfig(opening=5, analyzer="char"), "opening is 5, but analyzer is 'char'; only words have an opening"),
    (TfidfConfig(min_df=3, max_df=2), "min_df is 3 and max_df is 2; lower min_df or raise max_df"),
    (TfidfConfig(min_df=0.5, max_df=0.2), "min_df is 0.5 and max_df is 0.2"),
    (IndexConfig(method="kmeans", n_clusters=4), "n_clusters is 4, but method is 'kmeans'; set max_leaf instead"),
    (IndexConfig(method="none", n_clusters=4), "n_clusters is 4, but method is 'none'; there is a single cluster"),
    (LinearTreeConfig(n_trees=2, matching="neighbours"), "n_trees is 2, but trees only differ in how they find labels"),
    (
        LinearTreeConfig(n_trees=2, score_transform="ranker-only"),
        "score_transform is 'ranker-only', but n_trees is 2, and scores of different trees",
    ),
    (LinearTreeConfig(matcher=RankerConfig(bias=0)), "matcher.bias and ranker.bias differ"),
    (XTransformerConfig(fine_tune=False, matcher=MatcherConfig(learn_labels=True)), "matcher.learn_labels needs an"),
    (XTransformerConfig(label_weight=0.5), "label_weight is 0.5, but the matcher learns no labels"),
    (XTransformerConfig(tfidf=TfidfConfig(ngram_range=(2, 1))), "tfidf.ngram_range is (2, 1)"),
    (EnsembleConfig(members=(LinearTreeConfig(n_trees=2, matching="neighbours"),)), "members[0].n_trees is 2"),
)
"""Settings that are right one by one and wrong together, with the sentence that says so."""


# ---------------------------------------------------------------------- what a field takes, in plain words


def is_part(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)


def takes(kind: Any, value: Any) -> bool:
    """Whether a field of this type takes a value: the rules of `labelwise.config.settings`, written as plainly."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(takes(part, value) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin is Annotated:
        if not takes(parts[0], value):
            return False
        plain = float(value) if parts[0] is float else value
        return all(one.holds(plain) for one in parts[1:] if isinstance(one, Range | Form))
    if origin is tuple:
        return (
            isinstance(value, tuple | list)
            and len(value) == len(parts)
            and all(takes(part, one) for part, one in zip(parts, value, strict=True))
        )
    if kind is NoneType:
        return value is None
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if isinstance(value, bool | np.bool_):
        return False
    if kind is int:
        return isinstance(value, int | np.integer)
    if kind is float:
        if isinstance(value, int):
            return -TOO_LARGE < value < TOO_LARGE
        return isinstance(value, float | np.integer | np.floating) and bool(np.isfinite(value))
    return isinstance(value, kind)


def bounds(kind: Any) -> list[float]:
    """The bounds in a type, at any depth."""
    if isinstance(kind, Range):
        return [one for one in (kind.above, kind.at_least, kind.at_most, kind.below) if one is not None]
    return [bound for part in get_args(kind) for bound in bounds(part)]


def leaves(config: type[Settings]) -> Iterator[tuple[str, Any]]:
    """The fields of a configuration that hold values, not parts, with their types."""
    for name, kind in field_types(config).items():
        if not is_part(kind) and name in {field.name for field in fields(config)} and name != "members":
            yield name, kind


def paths(config: type[Settings], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All settings of a configuration and of its parts, by their paths, with their types."""
    for name in (field.name for field in fields(config)):
        kind = field_types(config)[name]
        if is_part(kind):
            yield from paths(kind, (*above, name))
        elif name != "members":
            yield (*above, name), kind


def put(config: Any, path: tuple[str, ...], value: Any) -> Any:
    """A configuration with another value at a path."""
    name, *rest = path
    return replace(config, **{name: put(getattr(config, name), tuple(rest), value) if rest else value})


def values_for(kind: Any, with_none: bool = True) -> st.SearchStrategy[Any]:
    """Values of every type, many of them near the ones that a field takes."""
    words = choices_in(kind)
    near = [one for bound in bounds(kind) for one in (bound, bound - 1, bound + 1, bound - 1e-9, bound + 1e-9)]
    plain = st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(LETTERS, max_size=5),
        st.sampled_from([*words, *(word + "x" for word in words), *(word.upper() for word in words), "cpu", "auto"]),
        st.sampled_from([*near, *(int(one) for one in near), 0, 1, math.nan, math.inf, -math.inf, 10**400]),
    )
    lists = st.lists(st.one_of(st.integers(-1, 4), st.floats(), st.text(LETTERS, max_size=1)), max_size=3)
    others = [plain, lists]
    if with_none:
        numbers = st.sampled_from([np.int64(3), np.float32(0.5), np.bool_(True), np.str_("cls"), np.array([1, 2])])
        others += [st.none(), lists.map(tuple), numbers, st.just({"a": 1}), st.just(object())]
    return st.one_of(*others)


def choices_in(kind: Any) -> list[str]:
    return (
        [*get_args(kind)]
        if get_origin(kind) is Literal
        else [one for part in get_args(kind) for one in choices_in(part)]
    )


def wrong_value(kind: Any) -> Any:
    """One value that a type does not take."""
    return next(value for value in (math.nan, "nonsense", -1, "") if not takes(kind, value))


def all_leaves() -> list[Any]:
    return [
        pytest.param(config, name, kind, id=f"{config.__name__}.{name}")
        for config in CONFIGS
        for name, kind in leaves(config)
    ]


def refusal(act: Callable[[], Any]) -> str | None:
    """What an act is refused with, None if it is not."""
    try:
        act()
    except UsageError as error:
        return str(error)
    return None


def says(sentence: str, name: str, value: Any) -> bool:
    """Whether a sentence names a setting and shows its value, on one line."""
    return sentence.startswith(f"{name} is {shown(value)}; it must be ") and "\n" not in sentence


# ---------------------------------------------------------------------- Python


def test_the_configurations_are_all_there_are():
    assert {config.__name__ for config in CONFIGS} == {name for name in package.__all__ if name.endswith("Config")} - {
        "ModelConfig"
    }
    for config in CONFIGS:
        assert config().validated() == config()


@pytest.mark.parametrize(("config", "name", "kind"), all_leaves())
@settings(max_examples=60)
@given(data=st.data())
def test_a_value_is_taken_or_refused_by_name(config, name, kind, data):
    value = data.draw(values_for(kind))
    made = config(**{name: value})  # the constructor stores
    given = config.ALIASES.get(name, {}).get(value, value) if isinstance(value, str) else value
    if not takes(kind, given):
        with pytest.raises(UsageError) as caught:
            made.validated()
        assert says(str(caught.value), name, value)
        assert described(kind) in str(caught.value)
        return
    refused = refusal(made.validated)
    if refused is not None:  # the value is right, but not with the defaults of other settings
        assert any(name in sentence for _, sentence in COMBINATIONS)
        assert name in refused
        return
    checked = made.validated()
    assert type(getattr(checked, name)) in (int, float, bool, str, tuple, NoneType)
    assert checked.validated() == checked
    assert restore(config, json.loads(json.dumps(asdict(checked))), "config.json") == checked


@pytest.mark.parametrize(("config", "name", "kind"), all_leaves())
def test_every_choice_is_taken(config, name, kind):
    for choice in choices_in(kind):
        assert getattr(replace(config(), **{name: choice}).validated(), name) == choice
    assert list(choices(config, name)) == choices_in(kind)


@pytest.mark.parametrize(("config", "sentence"), COMBINATIONS, ids=lambda one: one if isinstance(one, str) else "")
def test_settings_that_are_wrong_together(config, sentence):
    with pytest.raises(UsageError) as caught:
        config.validated()
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("config", MODELS, ids=lambda config: config.__name__)
def test_fit_refuses_a_wrong_value_before_it_looks_at_the_data(config):
    for path, kind in paths(config):
        wrong, events = wrong_value(kind), list[Any]()
        base = EnsembleConfig(members=(LinearTreeConfig(),)) if config is EnsembleConfig else config()
        model = MODELS[config](put(base, path, wrong))
        with pytest.raises(UsageError) as caught:
            model.fit(object(), object(), on_event=lambda *event, heard=events: heard.append(event))
        assert says(str(caught.value), ".".join(path), wrong)
        assert not events


def test_parts_and_members_must_be_of_their_class():
    for wrong in (
        LinearTreeConfig(ranker={"cost": 1}),
        LinearTreeConfig(tfidf=None),
        XTransformerConfig(matcher=RankerConfig()),
    ):
        with pytest.raises(UsageError, match=r"^(ranker|tfidf|matcher) is .*; it must be of class \w+Config$"):
            wrong.validated()
    with pytest.raises(UsageError, match=r"^members is 3; it must be a list, each item of class LinearTreeConfig or"):
        EnsembleConfig(members=3).validated()
    with pytest.raises(UsageError, match=r"^members\[1\].ranker.cost is -1; it must be a number above 0$"):
        EnsembleConfig(members=(LinearTreeConfig(), XTransformerConfig(ranker=RankerConfig(cost=-1)))).validated()


def test_stages_that_are_used_alone_check_their_settings(tmp_path):
    with pytest.raises(UsageError, match=r"^min_token_length is 0; it must be a whole number of at least 1$"):
        Tfidf(TfidfConfig(min_token_length=0)).fit(["a text"])
    model = LinearTree().fit(["a cat", "a dog"], [["cat"], ["dog"]])
    for use in (
        lambda config: add_labels(model, ["bird"], config=config),
        lambda config: keep_documents(model, None, config=config),
    ):
        with pytest.raises(UsageError, match=r"^per_cluster is 0; it must be a whole number of at least 1$"):
            use(IncrementalConfig(per_cluster=0))


def test_settings_of_a_saved_model_are_checked(tmp_path):
    values = asdict(LinearTreeConfig())
    values["ranker"]["cost"] = -1
    with pytest.raises(StorageError, match=r"config.json has settings that are wrong: ranker.cost is -1; .*; copy or"):
        restore(LinearTreeConfig, values, "config.json")


def test_a_long_value_is_cut():
    assert shown(list(range(1000))) == f"{str(list(range(1000)))[:LONGEST_SHOWN]}…"
    assert shown(np.ones((2, 2))) == "array([[1., 1.], [1., 1.]])"
    assert shown(10**5000) == "of class int"


# ---------------------------------------------------------------------- flat names


def flat_settings() -> list[Any]:
    return [
        pytest.param(config, name, id=f"{config.__name__}-{name}") for config in MODELS for name in config.FLAT_NAMES
    ]


def kind_at(config: type[Settings], place: tuple[str, ...]) -> Any:
    return dict(paths(config))[place]


@pytest.mark.parametrize(("config", "name"), flat_settings())
def test_a_flat_name_stands_for_settings_that_there_are(config, name):
    wrong = wrong_value(kind_at(config, config.FLAT_NAMES[name][0]))
    with pytest.raises(UsageError) as caught:
        MODELS[config](**{name: wrong})
    assert str(caught.value).startswith(f"{MODELS[config].__name__}: {name} is {wrong!r}; it must be ")
    for place in config.FLAT_NAMES[name]:
        assert kind_at(config, place)


@pytest.mark.parametrize("config", MODELS, ids=lambda config: config.__name__)
@given(data=st.data())
def test_flat_names_and_fields_mean_the_same(config, data):
    name = data.draw(st.sampled_from(sorted(config.FLAT_NAMES)))
    value = data.draw(values_for(kind_at(config, config.FLAT_NAMES[name][0]), with_none=False))
    assume(not (name == "encoder" and not isinstance(value, str)))
    wanted = config()
    for place in config.FLAT_NAMES[name]:
        wanted = put(wanted, place, value)
    refused = refusal(lambda: with_settings(config(), {name: value}, ""))
    if refusal(wanted.validated) is None:
        assert with_settings(config(), {name: value}, "") == wanted.validated()
    else:
        assert name in str(refused)


# ---------------------------------------------------------------------- TOML


def as_toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)  # repr has inf and nan


def toml_settings() -> list[Any]:
    models = (("linear-tree", LinearTreeConfig), ("x-transformer", XTransformerConfig))
    return [
        pytest.param(model, path, kind, id=f"{model}-{'.'.join(path)}")
        for model, config in models
        for path, kind in paths(config)
    ]


@pytest.mark.parametrize(("model", "path", "kind"), toml_settings())
def test_a_value_in_a_file_is_taken_or_refused_by_its_path(model, path, kind, tmp_path):
    *above, name = path
    file, config = tmp_path / "mine.toml", LinearTreeConfig if model == "linear-tree" else XTransformerConfig
    table = f"[{'.'.join(above)}]\n" if above else ""

    @settings(max_examples=25)
    @given(values_for(kind, with_none=False).filter(lambda value: not isinstance(value, int) or abs(value) < 1 << 63))
    @example(math.nan)
    @example(True)
    @example("nonsense")
    def check(value):
        file.write_text(f'model = "{model}"\n{table}{name} = {as_toml(value)}\n', encoding="utf-8")
        wanted = put(config(), path, value)
        refused = refusal(wanted.validated)
        if refused is None:
            assert load_preset(file) == wanted.validated()
        else:
            assert refusal(lambda: load_preset(file)) == f"{file}: {refused}"

    check()


def test_a_table_in_the_place_of_a_value_and_a_value_in_that_of_a_table(tmp_path):
    file = tmp_path / "mine.toml"
    for text, sentence in (
        ("ranker = 3", "ranker is 3; it must be a table of settings"),
        ("[beam]\na = 1", "beam is {'a': 1}; it must be a"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError) as caught:
            load_preset(file)
        assert str(caught.value).startswith(f"{file}: {sentence}")


# ---------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("name", ["LinearTreeClassifier", "XTransformerClassifier", "EnsembleClassifier"])
def test_an_estimator_refuses_a_wrong_parameter_by_its_name(name):
    pytest.importorskip("sklearn")
    import labelwise.sklearn as estimators

    kind = getattr(estimators, name)
    config = kind._config_class
    known = {
        **{flat: places[0] for flat, places in config.FLAT_NAMES.items()},
        **{one.name: (one.name,) for one in fields(config)},
    }
    known |= {"random_state": ("seed",), "n_jobs": ("threads",)}
    tried = [name for name in kind().get_params() if name in known and name != "members"]
    assert len(tried) > 6
    for parameter in tried:
        place = config.FLAT_NAMES.get(parameter, [known[parameter]])[0]
        wrong = {"random_state": -1, "n_jobs": 0}.get(parameter, wrong_value(kind_at(config, place)))
        with pytest.raises(UsageError) as caught:
            kind(**{parameter: wrong}).fit(["a cat", "a dog"], [["cat"], ["dog"]])
        assert str(caught.value).startswith(f"{name}: {parameter} is {wrong!r}; it must be ")


# ---------------------------------------------------------------------- the command line

WRONG_OPTIONS = (
    *(
        ("train", option, value)
        for option, value in (
            ("--encoder", " "),
            ("--max-length", "3"),
            ("--max-length", "many"),
            ("--label-embedding", "pifa"),
            ("--rule", "mean"),
            ("--prune", "-1"),
            ("--prune", "nan"),
            ("--epochs", "0"),
            ("--hold-out", "1"),
            ("--hold-out", "-0.1"),
            ("--device", "gpu"),
            ("--analyzer", "letters"),
            ("--opening", "-1"),
            ("--cost", "0"),
            ("--cost", "nan"),
            ("--cost", "inf"),
            ("--cost", "much"),
            ("--n-trees", "0"),
            ("--n-trees", "1.5"),
            ("--beam", "0"),
            ("--negatives", "hard"),
            ("--seed", "-1"),
            ("--seed", "9223372036854775808"),
            ("--threads", "0"),
        )
    ),
    *(
        ("compare", option, value)
        for option, value in (("--device", "gpu"), ("--epochs", "-1"), ("--max-length", "1"), ("--threads", "x"))
    ),
    *(
        ("convert", option, value)
        for option, value in (("--min-df", "-1"), ("--min-df", "some"), ("--norm", "l3"), ("--max-features", "0"))
    ),
    ("add-labels", "--per-cluster", "0"),
    ("add-labels", "--text-scale", "nan"),
    ("predict", "--threads", "0"),
)
ARGUMENTS = {
    "train": ("{data}", "{out}", "--preset", "auto"),
    "compare": ("{data}", "--systems", "parabel,hybrid"),
    "convert": ("{data}", "{out}", "--to", "xc"),
    "add-labels": ("{data}", "{out}"),
    "predict": ("{data}", "{out}"),
}


@pytest.mark.parametrize(("command", "option", "value"), WRONG_OPTIONS)
def test_a_wrong_option_is_refused_by_its_name_before_anything_is_read(command, option, value, tmp_path, capsys):
    places = {"data": tmp_path / "there-is-none", "out": tmp_path / "out"}
    with pytest.raises(SystemExit) as left:
        main([command, *(one.format(**places) for one in ARGUMENTS[command]), option, value])
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert left.value.code == 2
    assert option in said
    assert "it must be" in said or ": give " in said  # a setting out of its range, or a value of the wrong kind
    assert "there-is-none" not in said
    assert not places["out"].exists()


def test_every_option_that_is_a_setting_is_tried_with_a_wrong_value():
    from labelwise.cli.train import Train

    tried = {option.removeprefix("--").replace("-", "_") for command, option, _ in WRONG_OPTIONS if command == "train"}
    known = {name for config in MODELS for name in flat_names(config)}
    options = {field.name for field in fields(Train) if field.name in known}
    assert options - tried == {"learn_labels", "learn_validation", "calibrate"}  # which have no values


def test_values_that_cannot_be_written_out():
    class Value:
        def __repr__(self):
            raise RuntimeError

    assert shown(Value()) == "of class Value"
