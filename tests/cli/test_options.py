"""The options of a command: those that tyro parses, each with a description and a group."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
import tyro
from tyro.conf import arg

from labelwise.cli import COMMANDS, command_class
from labelwise.cli.command import Command
from labelwise.cli.options import options_of
from labelwise.cli.settings import registry
from labelwise.cli.usage import check_usage
from labelwise.errors import UsageError


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_are_those_that_tyro_parses(command, capsys):
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    with pytest.raises(SystemExit):
        tyro.cli(command_class(command), args=["--help"], config=config, registry=registry())
    parsed = set(re.findall(r"(?m)^[^\w-]{0,3}(?:-h, )?(--[a-z][\w-]+)", capsys.readouterr().out)) - {"--help"}
    assert {one.flag for one in options_of(command_class(command)) if not one.is_positional} == parsed


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_described(command):
    for one in options_of(command_class(command)):
        assert one.about.endswith((".", '"', ")")), one.flag
        assert "\n" not in one.about
        assert "None" not in one.metavar


def test_train_has_groups():
    groups = {one.flag: one.group for one in options_of(command_class("train"))}
    assert groups["--cost"] == "linear models"
    assert groups["--encoder"] == "encoder"
    assert groups["--format"] == groups["--text-column"] == "reading data"
    assert groups["DATA"] == ""
    assert list(dict.fromkeys(groups.values()))[:3] == ["", "model", "linear models"]


def test_groups_name_options_that_exist():
    for command in map(command_class, COMMANDS):
        for names in command.groups.values():
            assert set(names) <= set(command.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class Odd(Command):
    """A command with options of all kinds."""

    only: Annotated[tuple[Literal["a", "b"], ...], arg(metavar="a|b")] = ()
    """Several choices."""
    shown: Annotated[bool, arg(name="list")] = False
    """A flag of another name."""
    pairs: complex = 0j
    """A value that only tyro knows."""

    def run(self, out, show):
        """Nothing."""


def test_options_of_any_kind():
    options = {one.flag: one for one in options_of(Odd)}
    assert list(options) == ["--quiet", "--only", "--list", "--pairs"]
    assert options["--only"].usage == "--only a|b …"
    assert options["--pairs"].metavar == "VALUE"
    check_usage("odd", Odd, ["--only", "a", "b", "--pairs", "1j", "--list"])
    with pytest.raises(UsageError, match="--only c: give one of a, b"):
        check_usage("odd", Odd, ["--only", "a", "c"])
    with pytest.raises(UsageError, match="labelwise odd takes options only; 'more' is one argument too many"):
        check_usage("odd", Odd, ["more"])


def test_flags_and_defaults():
    options = {one.flag: one for one in options_of(command_class("predict"))}
    assert (options["--json"].takes_value, options["--json"].note) == (False, "")
    assert options["--top-k"].note == "(default: 5)"
    assert options["--threads"].note == ""
    assert options["--threads"].metavar == "INT"
    (to,) = (one for one in options_of(command_class("convert")) if one.flag == "--to")
    assert (to.required, to.usage[:16]) == (True, "--to jsonl|csv|t")
