"""What was typed is checked against the options of the command: each mistake is one sentence."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args, get_origin

from labelwise.cli.command import Command
from labelwise.cli.options import METAVARS, Option, options_of
from labelwise.cli.settings import parsed
from labelwise.config.settings import described
from labelwise.errors import UsageError

_NO_OPTION = re.compile(r"-$|-\.?[0-9]|-+\s")


def check_usage(name: str, command: type[Command], arguments: Sequence[str]) -> None:
    """Raise a UsageError about the first argument that the command does not take, or about those that lack."""
    options = {one.flag: one for one in options_of(command)}
    places = [one for one in options.values() if one.is_positional]
    seen: set[str] = set()
    values = 0
    rest = iter(_tokens(arguments))
    pending: Option | None = None  # of several values, one at least has been given
    for token, is_option in rest:
        if not is_option:
            if pending is not None:
                _check(pending, token)
            else:
                place = places[min(values, len(places) - 1)] if places else None
                if place is None or (values >= len(places) and not place.several):
                    words = " and ".join(one.flag for one in places) or "options only"
                    raise UsageError(f"labelwise {name} takes {words}; {token!r} is one argument too many")
                _check(place, token)
                seen.add(place.flag)
                values += 1
            continue
        flag, equals, value = token.partition("=")
        flag = flag.replace("_", "-")
        if flag not in options:
            raise UsageError(_unknown(name, flag, options))
        option, pending = options[flag], None
        seen.add(flag)
        if not option.takes_value:
            if equals:
                raise UsageError(f"{token}: {flag} takes no value; write {flag} alone, or leave it out")
            continue
        if not equals:
            value, is_next_option = next(rest, ("", True))
            if is_next_option:
                is_known = value.partition("=")[0] in ("", *options)
                hint = "" if is_known else f"; one that begins with a dash is written {flag}='{value}'"
                raise UsageError(f"{flag} needs a value: {option.usage}{hint}")
        _check(option, value)
        pending = option if option.several else None
    missing = [one.usage for one in options.values() if one.required and one.flag not in seen]
    if missing:
        raise UsageError(f"labelwise {name} needs {' and '.join(missing)}; see labelwise {name} --help")


def _tokens(arguments: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each argument, and whether it is an option; a dash alone, negative numbers and "- some words" are values."""
    for argument in arguments:
        yield argument, argument.startswith("-") and not _NO_OPTION.match(argument)


def _unknown(name: str, flag: str, options: dict[str, Option]) -> str:
    flags = [one for one in options if one.startswith("-")]
    inside = [one for one in flags if len(flag) > 3 and one.startswith(flag)]
    close = difflib.get_close_matches(flag, flags, 1, 0.7) or inside[:1]
    hint = f"did you mean {close[0]}?" if close else f"see labelwise {name} --help"
    return f"{flag}: labelwise {name} has no such option; {hint}"


def _check(option: Option, value: str) -> None:
    if not all(kind in METAVARS or get_origin(kind) is Literal for kind in option.kinds):
        return  # tyro knows how to parse it
    try:
        parsed(option.kinds, value)
    except ValueError:
        choices = [str(one) for kind in option.kinds if get_origin(kind) is Literal for one in get_args(kind)]
        close = difflib.get_close_matches(value, choices, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        what = " or ".join(map(_what, option.kinds))
        raise UsageError(f"{option.flag} {value}: give {what}{hint}") from None


def _what(kind: Any) -> str:
    return f"one of {', '.join(map(str, get_args(kind)))}" if get_origin(kind) is Literal else described(kind)
