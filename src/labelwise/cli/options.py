"""The options of a command, read from its class: for its help, for the check of what was typed, for the reference."""

from __future__ import annotations

import ast
import inspect
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tyro.conf import Positional, Suppress, UseAppendAction

from labelwise.cli.command import Command

METAVARS: dict[Any, str] = {int: "INT", float: "FLOAT", str: "STR", Path: "PATH"}
GROUPS = {"read": "reading data", "tfidf": "tf-idf", "limits": "limits", "growing": "kept documents"}
"""Groups of options that are fields of one class, by the name of the command's field."""
OTHERS = "options"


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option or a positional argument of a command."""

    flag: str
    """What is typed: --top-k; of a positional argument, the word in the usage line."""
    group: str
    """The heading in the help; empty for a positional argument."""
    kinds: tuple[Any, ...]
    """The types of its value: one of them must fit. None for a flag without value."""
    metavar: str
    about: str
    """Its description, on one line."""
    note: str
    """Its default, in brackets; empty where there is none to tell."""
    required: bool
    several: bool
    """Whether more than one value may follow it."""

    @property
    def is_positional(self) -> bool:
        """Whether it is known by its place."""
        return not self.flag.startswith("-")

    @property
    def takes_value(self) -> bool:
        """Whether something must follow it."""
        return bool(self.kinds)

    @property
    def usage(self) -> str:
        """Option and value: ``--top-k INT``."""
        return f"{self.flag} {self.metavar}" if self.takes_value and not self.is_positional else self.flag


@cache
def options_of(command: type[Command]) -> tuple[Option, ...]:
    """All options of a command: positional arguments first, then the groups in their order."""
    found = list(_of(command, command, ""))
    order = list(dict.fromkeys(["", *command.groups, OTHERS, *GROUPS.values(), *(one.group for one in found)]))
    return tuple(sorted(found, key=lambda one: order.index(one.group)))


def _of(kind: Any, command: type[Command], nested: str) -> list[Option]:
    hints, about = get_type_hints(kind, include_extras=True), _descriptions(kind)
    found: list[Option] = []
    for field in fields(kind):
        hint, marks = _unwrapped(hints[field.name])
        if Suppress in marks or not field.init:
            continue
        if is_dataclass(hint):
            found += _of(hint, command, GROUPS.get(field.name, field.name.replace("_", " ")))
        else:
            group = nested or next((name for name, names in command.groups.items() if field.name in names), OTHERS)
            group = GROUPS["read"] if field.name == "format" else group
            found.append(_option(field, hint, marks, group, about.get(field.name, "")))
    return found


def _option(field: Field[Any], hint: Any, marks: tuple[Any, ...], group: str, about: str) -> Option:
    given = next((mark for mark in marks if hasattr(mark, "help_behavior_hint")), None)
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    name = (getattr(given, "name", None) or field.name).replace("_", "-")
    if hint is bool:
        flag = f"--no-{name}" if default else f"--{name}"
        return Option(flag=flag, group=group, kinds=(), metavar="", about=about, note="", required=False, several=False)
    several = get_origin(hint) is tuple or any(get_origin(part) is tuple for part in get_args(hint))
    several = several and UseAppendAction not in marks  # which takes one value each time
    kinds = _kinds(hint)
    metavar = (given.metavar if given else None) or "|".join(map(_metavar, kinds))
    is_positional = Positional in marks
    if several and not is_positional:
        metavar = f"{metavar} …"
    note = given.help_behavior_hint if given else None
    if note is None:
        silent = default is MISSING or default is None or default == ()
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
        note = "" if silent else f"(default: {shown})"
    return Option(
        flag=metavar if is_positional else f"--{name}",
        group="" if is_positional else group,
        kinds=kinds,
        metavar=metavar,
        about=about,
        note=str(note),
        required=default is MISSING,
        several=several,
    )


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without its annotations, and these."""
    marks: tuple[Any, ...] = ()
    while get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        marks += tuple(more)
    return hint, marks


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types that one value may have, without None."""
    hint, _ = _unwrapped(hint)
    if get_origin(hint) in (Union, UnionType):
        return tuple(dict.fromkeys(kind for part in get_args(hint) for kind in _kinds(part)))
    if get_origin(hint) is tuple:
        return tuple(dict.fromkeys(kind for part in get_args(hint) if part is not ... for kind in _kinds(part)))
    return () if hint is type(None) else (hint,)


def _metavar(kind: Any) -> str:
    return "|".join(map(str, get_args(kind))) if get_origin(kind) is Literal else METAVARS.get(kind, "VALUE")


def _descriptions(kind: type[Any]) -> dict[str, str]:
    """The string below each field of a class and its bases, on one line."""
    found: dict[str, str] = {}
    bases: list[type[Any]] = [base for base in reversed(kind.__mro__) if is_dataclass(base)]
    for base in bases:
        body = ast.parse(dedent(inspect.getsource(base))).body[0]
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for field, below in pairwise(statements):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                found[field.target.id] = " ".join(str(below.value.value).split())
    return found
