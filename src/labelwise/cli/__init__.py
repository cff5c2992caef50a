"""The command line: one file per command, imported only when that command runs."""

from __future__ import annotations

import difflib
import errno
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from labelwise import __version__
from labelwise.errors import LabelwiseError, printable

if TYPE_CHECKING:
    from labelwise.cli.command import Command

# Every command: the place of its class, and one line about it.
COMMANDS = {
    "stats": ("labelwise.cli.stats:Stats", "Describe a data set: sizes, label tail, duplicates; draw the tail."),
    "convert": ("labelwise.cli.convert:Convert", "Convert a data set to another of the field's formats."),
    "split": ("labelwise.cli.parts:Split", "Split a data set into training, test and validation documents."),
    "get": ("labelwise.cli.get:Get", "Fetch a data set of the paper, check it and convert it."),
    "shop": ("labelwise.cli.shop:GenerateShop", "Generate the built-in data set: products and their search queries."),
    "train": ("labelwise.cli.train:Train", "Train a model on a data set, calibrated, with a card; tune it if asked."),
    "predict": ("labelwise.cli.predict:Predict", "Labels with probabilities for texts, by a trained model."),
    "explain": ("labelwise.cli.explain:Explain", "Explain labels of a text: words, path through the tree, documents."),
    "evaluate": ("labelwise.cli.evaluate:Evaluate", "Evaluate a model or a file of predictions, or compare two."),
    "compare": ("labelwise.cli.compare:Compare", "Train several systems and compare accuracy, time, memory and size."),
    "report": ("labelwise.cli.report:Report", "Write an HTML page about a run: tree, curves, metrics, examples."),
    "serve": ("labelwise.cli.serve:Serve", "Serve models over HTTP, with a page to try them."),
    "add-labels": ("labelwise.cli.labels:AddLabels", "Add new labels to a model, by examples or by their text."),
    "remove-labels": ("labelwise.cli.labels:RemoveLabels", "Remove labels from a model, or list those added."),
    "update": ("labelwise.cli.labels:Update", "Train a model on further documents, without starting from scratch."),
    "warm-up": ("labelwise.cli.warm_up:WarmUp", "Compile all kernels now: in an image, or before the first training."),
    "doctor": ("labelwise.cli.doctor:Doctor", "Say what is installed, what is missing, and what to do about it."),
    "export": ("labelwise.cli.export:Export", "Write a copy of a model that is smaller and faster on CPUs."),
    "runs": ("labelwise.cli.runs:Runs", "List a run directory's results with sizes and times, or prune it."),
    "clean": ("labelwise.cli.clean:Clean", "Remove temporary files that killed processes left in a folder."),
    "import-pecos": ("labelwise.cli.import_pecos:ImportPecos", "Convert a PECOS XR-Linear model to a labelwise model."),
    "demo": ("labelwise.cli.demo:Demo", "Run everything, end to end, on generated data."),
}

USAGE = """labelwise: the right few labels for a text, out of thousands or millions.

usage: labelwise COMMAND [OPTIONS]

commands:
{commands}

  labelwise COMMAND --help     options and an example of a command
  labelwise --version          the version

example:
  labelwise shop my-shop --products 20000 --queries 5000
  labelwise train my-shop my-model --preset parabel
  labelwise evaluate my-model my-shop

exit codes: 0 success, 1 an error in the data, 2 an error in the command line
"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    _open_closed_streams()
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except LabelwiseError as error:
        _print_error(str(error))
        code = error.exit_code
    except KeyboardInterrupt:
        resumable = any(argument.split("=")[0] in ("--run-dir", "--run_dir") for argument in arguments)
        again = "; run the same command again to go on from the last finished stage or checkpoint" if resumable else ""
        _print_error(f"interrupted; no half-written files are left{again}")
        code = 130
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        sys.stderr.close()
        code = 141
    except OSError as error:  # no space, no permission, no such file: the system's own message
        # What goes wrong with files that labelwise writes has a sentence with their name.
        where = error.filename or ("standard output" if error.errno == errno.ENOSPC else None)
        _print_error(f"{where}: {error.strerror}" if where else error.strerror or str(error))
        code = 1
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    name = arguments[0] if arguments else "--help"
    if name in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        lines = [f"  {command:<{width}}  {about}" for command, (_, about) in COMMANDS.items()]
        sys.stdout.write(USAGE.format(commands="\n".join(lines)))
        return 0 if arguments else 2
    if name in ("-V", "--version"):
        sys.stdout.write(f"labelwise {__version__}\n")
        return 0
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(COMMANDS)}"
        _print_error(f"there is no command {name!r}; {hint}")
        return 2
    if {"-h", "--help"} & set(arguments[1:]):
        from labelwise.cli.help import help_of

        sys.stdout.write(help_of(name, command_class(name)))
        return 0
    parse(name, arguments[1:]).start()
    return 0


def command_class(name: str) -> type[Command]:
    """The class of a command."""
    module, _, cls = COMMANDS[name][0].partition(":")
    kind: type[Command] = getattr(import_module(module), cls)
    return kind


def parse(name: str, arguments: Sequence[str]) -> Command:
    """The command with its parsed options."""
    import tyro

    from labelwise.cli.settings import registry
    from labelwise.cli.usage import check_usage

    kind = command_class(name)
    check_usage(name, kind, arguments)
    return tyro.cli(
        kind,
        prog=f"labelwise {name}",
        args=arguments,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff),
        registry=registry(),
    )


def _open_closed_streams() -> None:
    """Put the null device in the place of standard streams that are closed: the next file would get their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  # until the process ends


def _print_error(sentence: str) -> None:
    sys.stderr.write(f"labelwise: {printable(sentence)}\n")


def _terminate(number: int, frame: FrameType | None) -> None:
    """Exit through every `finally`, so that no half-written files are left."""
    sys.exit(128 + number)
