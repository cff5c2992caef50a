"""Flat names for the settings that people change most: what each stands for in the configuration of a model.

``XTransformer("hybrid", encoder="minilm", max_length=32)``, ``load_preset("parabel", cost=2.0)``, the estimators for
scikit-learn and the options of the command line all read these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from labelwise.config.models import EnsembleConfig, LinearTreeConfig, XTransformerConfig
from labelwise.config.settings import unknown, with_changes
from labelwise.errors import UsageError

Place: TypeAlias = tuple[str, ...]
"""Where a setting lies in a configuration: ("ranker", "cost")."""


def _within(part: str, *names: str) -> dict[str, tuple[Place, ...]]:
    return {name: ((part, name),) for name in names}


_ALL: dict[str, tuple[Place, ...]] = {
    "hold_out": (("holdout", "share"),),
    **_within("holdout", "calibrate", "learn_validation"),
}
_SINGLE: dict[str, tuple[Place, ...]] = {
    **_ALL,
    **_within("tfidf", "analyzer", "ngram_range", "min_df", "max_df", "max_features", "opening"),
    **_within("index", "n_clusters", "branching", "max_leaf"),
    **_within("ranker", "negatives", "positive_weight"),
    "weight_threshold": (("ranker", "threshold"),),
}
PLACES: dict[type[Any], dict[str, tuple[Place, ...]]] = {
    LinearTreeConfig: {
        **_SINGLE,
        "cost": (("matcher", "cost"), ("ranker", "cost")),
        "loss": (("matcher", "loss"), ("ranker", "loss")),
    },
    XTransformerConfig: {
        **_SINGLE,
        "encoder": (("encoder", "name"),),
        **_within("encoder", "max_length", "pooling"),
        "cost": (("linear", "cost"), ("ranker", "cost")),
        **_within("matcher", "loss", "epochs", "steps", "batch_size", "micro_batch", "learning_rate"),
        **_within("matcher", "head_learning_rate", "precision", "device", "learn_labels"),
    },
    EnsembleConfig: _ALL,
}
"""For each configuration, its flat names and the places that they set."""


def flat_names(config: type[Any]) -> list[str]:
    """All names that `with_settings` takes for a configuration: its fields and the flat names."""
    return list(dict.fromkeys([*(field.name for field in fields(config)), *PLACES[config]]))


def with_settings(config: Any, values: Mapping[str, Any], where: str) -> Any:
    """A configuration with changes by flat names or by fields (a mapping for those of a part), checked.

    None leaves a setting as it is.
    """
    places, nested, names = PLACES[type(config)], dict[str, Any](), dict[str, str]()
    known = {field.name for field in fields(config)}
    for name, value in values.items():
        if value is None:
            continue
        whole = name in known and (name not in places or not isinstance(value, str))
        if not whole and name not in places:
            raise UsageError(f"{where}: {unknown(type(config), name, flat_names(type(config)))}")
        for place in ((name,),) if whole else places[name]:
            _put(nested, place, value)
            names[".".join(place)] = name
    return with_changes(config, nested, where).validated(where, names=names)


def _put(nested: dict[str, Any], place: Place, value: Any) -> None:
    """Set a value at a place of nested mappings; fields of a part that is given whole stay beside those of others."""
    *above, last = place
    for part in above:
        nested = nested.setdefault(part, {})
    if isinstance(value, Mapping) and isinstance(nested.get(last), dict):
        nested[last].update(value)
    else:
        nested[last] = dict(value) if isinstance(value, Mapping) else value
