"""A system that takes part in a comparison: settings to train with, or a model that is trained already."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from labelwise import storage
from labelwise.comparison.splits import Splits
from labelwise.config import EnsembleConfig
from labelwise.config.presets import AUTO, changed, load_preset, preset_names
from labelwise.errors import DataError, UsageError
from labelwise.models.base import Model, load_model
from labelwise.models.registry import new_model
from labelwise.types import OnEvent


@dataclass(frozen=True, kw_only=True)
class System:
    """What is trained, or loaded, under a name. It is plain data: another process can be told to train it."""

    name: str
    preset: str | None = None
    """Name of a preset, or path of a .toml file."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the preset, as `load_preset` takes them; of an ensemble, its own settings."""
    members: tuple[System, ...] = ()
    """The systems of an ensemble, instead of a preset."""
    model: str | None = None
    """Folder of a trained model, instead of a preset."""

    @property
    def config(self) -> Any:
        """The settings that it is trained with."""
        if self.members:
            return changed(EnsembleConfig(members=tuple(one.config for one in self.members)), self.settings, self.name)
        if self.preset is None:
            raise UsageError(f"{self.name} is a trained model; it has no settings to train with")
        return load_preset(self.preset, **self.settings)

    def with_seed(self, seed: int) -> Self:
        """This system with another random seed; a trained model stays as it is."""
        if self.model is not None:
            return self
        members = tuple(member.with_seed(seed) for member in self.members)
        return replace(self, members=members, settings={**self.settings, "seed": seed})

    def trained(self) -> tuple[System, ...]:
        """The single models that have to be trained for it."""
        return self.members or ((self,) if self.model is None else ())

    def identity(self, splits: Splits) -> dict[str, Any]:
        """All that its predictions depend on, for the run directory."""
        if self.model is not None:
            files = storage.files_below(Path(self.model))
            content = {file.relative_to(self.model).as_posix(): file for file in files}
            return {"model": content, "judged": splits.judged}
        return {"config": self.config, "learnt": splits.learnt, "judged": splits.judged}

    def model_for(self, splits: Splits, *, run_dir: Path | None, on_event: OnEvent | None = None) -> Model:
        """The fitted model."""
        if self.model is not None:
            return load_model(self.model)
        return fit_model(self.config, splits, run_dir=run_dir, on_event=on_event)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values, for `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """A system from the values that `to_dict` returns."""
        return cls(**{**values, "members": tuple(map(cls.from_dict, values["members"]))})


def fit_model(config: Any, splits: Splits, *, run_dir: Path | None, on_event: OnEvent | None = None) -> Model:
    """Train the kind of model that a configuration is of, on the training split, with its own hold-out policy."""
    if splits.train.texts is None and config.texts_only:
        raise DataError(f"this system reads texts, and {splits.name} has only features; use linear presets")
    model: Model = new_model(config)
    return model.fit_dataset(splits.train, splits.validation, run_dir=run_dir, on_event=on_event)


def parse_systems(given: str, *, neural: Mapping[str, Any] | None = None, **settings: Any) -> list[System]:
    """Systems that a string names: presets, .toml files, folders of trained models; ``a+b`` is an ensemble of both.

    Parameters
    ----------
    given
        As in ``"parabel,hybrid,parabel+hybrid,my-settings.toml,my-model"``.
    neural
        Changes for the systems that have an encoder; an error where no system has one.
    **settings
        Changes for all systems that are trained.
    """
    systems = [_parse(item.strip(), neural or {}, settings) for item in given.split(",") if item.strip()]
    if not systems:
        raise UsageError("no system is named; name systems, separated by commas, such as parabel,hybrid")
    check_names(system.name for system in systems)
    wanted = [name for name, value in (neural or {}).items() if value not in (None, {})]
    if wanted and not any(one.config.texts_only for system in systems for one in system.trained()):
        raise UsageError(f"{', '.join(wanted)}: none of the systems has an encoder; leave it out, or add hybrid")
    return systems


def _parse(item: str, neural: Mapping[str, Any], settings: Mapping[str, Any]) -> System:
    path = Path(item)
    if item not in preset_names() and (path / storage.CONFIG).is_file():
        return System(name=path.resolve().name, model=str(path))
    if "+" in item and not path.exists():
        members = tuple(_parse(part.strip(), neural, settings) for part in item.split("+"))
        if any(member.model is not None for member in members):
            raise UsageError(f"{item}: an ensemble trains its members; name presets or .toml files, not trained models")
        check_names(member.name for member in members)
        return System(name="+".join(member.name for member in members), members=members, settings=dict(settings))
    if item == AUTO:
        raise UsageError("auto chooses one of x-transformer, hybrid and default; name those that you want to compare")
    if item not in preset_names() and not item.endswith(".toml"):
        known = preset_names()
        close = difflib.get_close_matches(item, known, 1)
        hint = f"did you mean {close[0]!r}? Otherwise " if close else ""
        raise UsageError(
            f"there is no system {item!r}; {hint}give a .toml file, a model's folder, or one of: {', '.join(known)}"
        )
    system = System(name=path.stem if item.endswith(".toml") else item, preset=item, settings=dict(settings))
    if system.config.texts_only:
        system = replace(system, settings={**settings, **neural})
        _ = system.config  # checked now, before any work
    return system


def check_names(names: Iterable[str]) -> None:
    """Every system of a table needs a name of its own."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UsageError(f"two systems are called {name!r}; rename a file or a folder")
        seen.add(name)
