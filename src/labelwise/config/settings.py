"""What every configuration can do: check itself, and say in one sentence what is wrong with it.

A configuration is a frozen dataclass that inherits from `Settings`. The type of a field says which values it takes: a
`Literal` its choices, `Annotated` with a `Range` its bounds. A configuration stores what it is given; `validated`
checks it, for Python, TOML files and the command line alike, and every `fit` calls it before any work.
"""

from __future__ import annotations

import difflib
import math
import numbers
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from labelwise.errors import UsageError

T = TypeVar("T")

Place: TypeAlias = tuple[str, ...]
"""Where a setting lies in a configuration: ("ranker", "cost")."""
LONGEST_SHOWN = 200
"""Characters of a wrong value that an error shows."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """The bounds of a number."""

    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a number keeps all bounds; NaN, infinity and integers of more than 64 bits keep none."""
        return (
            (abs(value) < 1 << 63 if isinstance(value, int) else math.isfinite(value))
            and (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"from {self.at_least} to {self.at_most}"
        if self.at_least is not None and self.below is not None:
            return f"from {self.at_least} to below {self.below}"
        words = {"above": self.above, "of at least": self.at_least, "of at most": self.at_most, "below": self.below}
        return " and ".join(f"{word} {bound}" for word, bound in words.items() if bound is not None)


@dataclass(frozen=True, kw_only=True)
class Form:
    """The form of a string."""

    pattern: str
    """A regular expression that the whole string matches."""
    words: str
    """The form in words, for a sentence that begins with "it must be"."""

    def holds(self, value: str) -> bool:
        """Whether a string has this form."""
        return re.fullmatch(self.pattern, value) is not None

    def __str__(self) -> str:
        return self.words


Count = Annotated[int, Range(at_least=1)]
"""A number of things of which there is at least one."""
Device = Annotated[
    str, Form(pattern=r"auto|(cpu|cuda|mps|xpu)(:\d+)?", words="auto, cpu, cuda, mps or a device like cuda:1")
]
"""Where an encoder computes."""
Positive = Annotated[float, Range(above=0)]
NonNegative = Annotated[float, Range(at_least=0)]
Share = Annotated[float, Range(at_least=0, at_most=1)]
"""A part of a whole."""
ShareBelowOne = Annotated[float, Range(at_least=0, below=1)]
Seed = Annotated[int, Range(at_least=0, at_most=(1 << 63) - 1)]
"""A random seed."""
Threads = Annotated[int, Range(at_least=1)] | None
"""A number of threads; None for all cores."""


@dataclass(frozen=True)
class _Sentence:
    """How a sentence on a wrong setting begins, and what it calls the setting."""

    where: str
    names: Mapping[str, str]

    def error(self, path: str, value: Any, wanted: str) -> UsageError:
        """The error that a value is not what a setting takes."""
        name = self.names.get(path, path)
        if name.startswith("--"):  # the command line has no None: an option is left out
            wanted = wanted.removesuffix(" or None")
        return UsageError(f"{self.where}{name} is {shown(value)}; it must be {wanted}")

    def problem(self, path: str, sentence: str) -> UsageError:
        """The error that settings do not go together; the sentence may begin with the name of one below the path."""
        name, _, rest = sentence.partition(" ")
        called = self.names.get(f"{path}{name}")
        return UsageError(f"{self.where}{path}{sentence}" if called is None else f"{self.where}{called} {rest}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A configuration that checks itself."""

    ALIASES: ClassVar[Mapping[str, Mapping[Any, Any]]] = {}
    """For each field, other words for its choices: what `validated` puts in their place."""
    FLAT_NAMES: ClassVar[Mapping[str, tuple[Place, ...]]] = {}
    """Short names for settings of parts, with the places that each of them sets: see `labelwise.config.flat`."""
    INSTEAD: ClassVar[Mapping[Place, Place]] = {}
    """Settings that count only where another setting is None: giving the first sets the second to None."""
    RENAMED: ClassVar[Mapping[str, str | None]] = {}
    """Fields of format version 1: what they are called now (``part.field`` for one of a part), None if gone."""

    def validated(self, where: str = "", *, names: Mapping[str, str] | None = None) -> Self:
        """The same settings in their plain types, or a `UsageError` with one sentence on the first that is wrong.

        Parameters
        ----------
        where
            What to put before the name of a setting in that sentence: a file, say.
        names
            What the user calls a setting (``{"holdout.share": "hold_out"}``), where that is not its path.
        """
        return self._validated(_Sentence(prefix(where), names or {}), "")

    def _validated(self, sentence: _Sentence, path: str) -> Self:
        plain: dict[str, Any] = {}
        kinds = field_types(type(self))
        for field in fields(self):
            name, value = f"{path}{field.name}", getattr(self, field.name)
            plain[field.name] = _plain(kinds[field.name], self.ALIASES.get(field.name, {}), value, sentence, name)
        checked = replace(self, **plain)
        for problem in checked.problems():
            raise sentence.problem(path, problem)
        return checked

    def problems(self) -> Iterator[str]:
        """A sentence for each combination of settings that cannot be; a class with such combinations overrides it."""
        yield from ()


def checked_value(kind: Any, value: Any, name: str) -> Any:
    """An argument of a function in the plain type of `kind`, or a `UsageError` as for a setting of that type.

    >>> checked_value(Count, np.int64(5), "top_k")
    5
    """
    return _plain(kind, {}, value, _Sentence("", {}), name)


def field_types(config: type[Any]) -> dict[str, Any]:
    """The types of all fields, with their ranges."""
    return get_type_hints(config, include_extras=True)


def choices(config: type[Any], name: str) -> tuple[Any, ...]:
    """The choices of a field, as its `Literal` lists them."""
    return _choices(field_types(config)[name])


def _choices(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) in (UnionType, Union):
        return tuple(choice for part in get_args(kind) for choice in _choices(part))
    return ()


def _plain(kind: Any, aliases: Mapping[Any, Any], value: Any, sentence: _Sentence, path: str) -> Any:
    """A value in the plain type of its field, or an error that says what the field takes."""
    if is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, kind):
            raise sentence.error(path, value, f"of class {kind.__name__}")
        return value._validated(sentence, f"{path}.") if isinstance(value, Settings) else value
    if get_origin(kind) is tuple and get_args(kind)[1:] == (Ellipsis,):
        return _plain_members(get_args(kind)[0], value, sentence, path)
    if isinstance(value, str) and value in aliases:
        value = aliases[value]
    fitting = _fitting(kind, value)
    if fitting is _UNFIT:
        raise sentence.error(path, value, f"{described(kind)}{_hint(kind, value)}")
    return fitting


def _plain_members(kind: Any, value: Any, sentence: _Sentence, path: str) -> Any:
    """A tuple of configurations, each checked under its own name."""
    kinds = get_args(kind) or (kind,)
    names = f"of class {' or '.join(one.__name__ for one in kinds)}"
    if not isinstance(value, tuple | list):
        raise sentence.error(path, value, f"a list, each item {names}")
    for number, one in enumerate(value):
        if not isinstance(one, kinds):
            raise sentence.error(f"{path}[{number}]", one, names)
    return tuple(one._validated(sentence, f"{path}[{number}].") for number, one in enumerate(value))


_UNFIT = object()


def fitting(kind: Any, value: Any) -> tuple[Any, bool]:
    """A value in the plain type of a field, and whether it is of that type at all."""
    found = _fitting(kind, value)
    return found, found is not _UNFIT


def _fitting(kind: Any, value: Any) -> Any:
    """The value in the type of a field, `_UNFIT` if it is not of that type."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return next((part for part in parts if isinstance(value, type(part)) and value == part), _UNFIT)
    if origin is Annotated:
        fitting = _fitting(parts[0], value)
        bounds = [part for part in parts[1:] if isinstance(part, Range | Form)]
        return fitting if fitting is not _UNFIT and all(bound.holds(fitting) for bound in bounds) else _UNFIT
    if origin in (UnionType, Union):
        return next((found for part in parts if (found := _fitting(part, value)) is not _UNFIT), _UNFIT)
    if origin is tuple:
        if not isinstance(value, list | tuple) or len(value) != len(parts):
            return _UNFIT
        items = [_fitting(part, item) for part, item in zip(parts, value, strict=True)]
        return _UNFIT if any(item is _UNFIT for item in items) else tuple(items)
    if kind is type(None):
        return value if value is None else _UNFIT
    if kind is bool:
        return bool(value) if type(value).__name__ in ("bool", "bool_") else _UNFIT
    if kind is str:
        return str(value) if isinstance(value, str) else _UNFIT
    return _number(kind, value)


def _number(kind: type[int] | type[float], value: Any) -> Any:
    """A Python number of a number of any library; whole numbers are not made of others."""
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return _UNFIT
    if kind is int:
        return int(value) if isinstance(value, numbers.Integral) else _UNFIT
    if not isinstance(value, numbers.Real):
        return _UNFIT
    try:
        number = float(value)
    except OverflowError:
        return _UNFIT
    return number if math.isfinite(number) else _UNFIT


def described(kind: Any) -> str:
    """What a field takes, for a sentence that begins with "it must be"."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin is Annotated:
        if any(isinstance(part, Form) for part in parts[1:]):
            return " and ".join(str(part) for part in parts[1:] if isinstance(part, Form))
        return f"{described(parts[0])} {' and '.join(str(part) for part in parts[1:] if isinstance(part, Range))}"
    if origin is tuple:
        return f"a list of {len(parts)} values, each {described(parts[0])}"
    if parts:
        words = [described(part) for part in parts if part is not type(None)]
        return " or ".join([*words, "None"] if type(None) in parts else words)
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "a string")


def one_line(value: object) -> str | None:
    """A value as Python writes it, on one line; None where it cannot: an integer of thousands of digits, say."""
    try:
        return " ".join(repr(value).split())
    except Exception:  # the value may be of any class, and so may be what its `__repr__` raises
        return None


def shown(value: Any) -> str:
    """A value as Python writes it, on one line and not too long."""
    text = one_line(value) or f"of class {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _hint(kind: Any, value: Any) -> str:
    """A guess at what was meant, where a choice is misspelt."""
    words = [choice for choice in _choices(kind) if isinstance(choice, str)]
    short = isinstance(value, str) and len(value) <= LONGEST_SHOWN  # the search is quadratic
    close = difflib.get_close_matches(value, words, 1) if short else []
    return f" (did you mean {close[0]!r}?)" if close else ""


def prefix(where: str) -> str:
    """What stands before the name of a setting in an error."""
    return f"{where}: " if where else ""


def with_changes(config: T, values: Mapping[str, Any], where: str) -> T:
    """A configuration with other values for some fields, not checked yet; those of a part are a mapping.

    None leaves a field as it is, as TOML has no None and an option that is not given is None.
    """
    known = [field.name for field in fields(config)]  # type: ignore[arg-type]  # T is a dataclass
    changes = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"{prefix(where)}{unknown(type(config), name, known)}")
        if value is None:
            continue
        old = getattr(config, name)
        if is_dataclass(old) and isinstance(value, Mapping):
            value = with_changes(old, value, f"{prefix(where)}{name}")
        elif is_dataclass(old) and not is_dataclass(value):
            raise UsageError(
                f"{prefix(where)}{name} is {shown(value)}; it must be a table of settings (in Python a dict, or an "
                f"object of class {type(old).__name__})"
            )
        changes[name] = value
    return replace(config, **changes)  # type: ignore[type-var]  # as above


def unknown(config: type[Any], name: str, known: list[str]) -> str:
    """A sentence about a setting that does not exist."""
    renamed = getattr(config, "RENAMED", {}).get(name)
    if renamed is not None:
        return f"the setting {name!r} is called {renamed} now"
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"there is no setting {name!r}; {hint}there are: {', '.join(known)}"
