"""What tools/structure.py counts stays within its limits."""

import ast
from pathlib import Path

import pytest

from tests.programs import loaded

FILE = Path(__file__).parents[1] / "tools" / "structure.py"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="the tools are not beside the tests")


@pytest.fixture(scope="module")
def structure():
    with loaded(FILE) as module:
        yield module


def test_all_limits_are_kept(structure):
    figures = [count() for count in structure.FIGURES]
    exceeded = [figure for figure in figures if not figure.good]
    assert not exceeded, "\n".join(f"{one.name}: {one.value}, limit {one.most}: {one.places}" for one in exceeded)


def test_a_share_is_compared_with_its_total(structure):
    assert structure.Figure("few", ["a"], total=100, most=0.01).good
    assert not structure.Figure("more", ["a", "b"], total=100, most=0.01).good
    assert structure.Figure("as many as allowed", ["a", "b"], most=2).good
    assert structure.Figure("without a limit", ["a"] * 100).good


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(model, LinearTree)",
        "isinstance(model.config, (EnsembleConfig, XTransformerConfig))",
        'kind == "linear-tree"',
        'hasattr(model, "labels_")',
        'getattr(self, "matcher_", None)',
        'model.kind in ("x-transformer", "ensemble")',
        "isinstance(matchers[0].source, (str, match.FrozenMatcher | None))",
        "type(config) is XTransformerConfig",
        "type(self).config_class == LinearTreeConfig",
        "config.kind == LinearTreeConfig.kind",
        "match model:\n    case Ensemble():\n        pass",
        'match model.kind:\n    case "ensemble":\n        pass',
        "type(config) is not kind",
        "type(member.config) in known",
        "linear = not config.encoders()",
        "found = [one for one in members if one.encoders()]",
        "any(one.config.encoders() for one in systems)",
        "texts is None and config.encoders()",
        "read = texts if model.encoder is not None else words",
    ],
)
def test_questions_for_a_kind_are_found(structure, code):
    assert list(structure.kind_questions(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(value, str)",
        'kind == "csv"',
        'hasattr(model, "predict")',
        "model = LinearTree(config)",
        'KINDS = {"ensemble": Ensemble}',
        "type(value) is int",
        "type(self.min_df) is type(self.max_df)",
        "known = flat_names(type(config))",
        "names = [one.name for one in config.encoders()]",
        "self.encoder = encoder",
    ],
)
def test_other_questions_are_not(structure, code):
    assert not list(structure.kind_questions(ast.parse(code)))
