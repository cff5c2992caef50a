"""Standard output and standard error of the commands: what others wrote is shown, and never obeyed by a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.control import Control
from rich.measure import Measurement
from rich.segment import Segment
from rich.text import Text

from labelwise.errors import UsageError, printable


class SafeConsole(Console):
    """A console that escapes control characters of label names, texts and file names.

    A string is printed as it is, without markup and emoji codes: `:apple:` may be a label. Strings in tables may have
    markup, so names in them are escaped where the table is made.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(soft_wrap=True, highlight=False, emoji=False, **options)
        self.push_render_hook(_EscapingHook())

    def print(self, *objects: Any, **options: Any) -> None:
        """Print a string, or what rich can render."""
        try:
            if len(objects) != 1 or not isinstance(objects[0], str):
                super().print(*objects, **options)
            elif self.is_terminal:  # rich moves progress bars out of the way
                super().print(Text(printable(objects[0])), **options)
            elif not self.quiet:
                self.file.write(f"{printable(objects[0])}\n")
                self.file.flush()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"the output is written as {error.encoding}, which has no {error.object[error.start]!a}; "
                "set PYTHONIOENCODING=utf-8"
            ) from error


class _EscapingHook(RenderHook):
    """Escapes what rich makes of tables and other renderables, just before it is written."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [one if isinstance(one, Control) else _Escaped(one) for one in renderables]


class _Escaped:
    """A renderable whose text has no control characters; colours and the movements of progress bars stay."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        segments: Iterable[Segment] = console.render(self._renderable, options)
        for segment in segments:
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._renderable)
