"""Explanations for people: as tables for a terminal, and as plain text."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from labelwise.explanations.result import Explanation, Path, Word

WIDTH = 110
_EXCERPT = 72


def plain(explanation: Explanation) -> str:
    """An explanation as text without colours."""
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None, highlight=False).print(render(explanation))
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().split("\n"))


def render(explanation: Explanation) -> RenderableType:
    """An explanation as tables."""
    parts: list[RenderableType] = [_head(explanation), Text(f"  {explanation.combine}", style="dim")]
    if explanation.members:
        parts.append(_members(explanation))
    parts += [_path(path) for path in explanation.paths]
    parts.append(_words(explanation))
    if explanation.neural is not None and explanation.neural.words:
        parts.append(_neural(explanation))
    if explanation.neighbours:
        table = _table("alike", "documents with this label")
        for found in explanation.neighbours:
            table.add_row(f"{found.similarity:.2f}", Text(_short(found.text)))
        parts.append(table)
    parts += [Text(f"  note: {note}") for note in explanation.notes]
    return Group(*parts)


def _head(explanation: Explanation) -> Text:
    known = explanation.probability
    chance = "" if known is None else f"probability {known:.3f}, "
    return Text.assemble((_short(explanation.label), "bold"), f"  {chance}score {explanation.score:.4f}")


def _words(explanation: Explanation) -> Table:
    """The sum that makes the own score."""
    table = _table("adds", "to the label's own score")
    for word in explanation.words:
        table.add_row(_number(word.contribution), _written(word))
    if explanation.others:
        table.add_row(_number(explanation.others), "all other words")
    if explanation.neural is not None:
        table.add_row(_number(explanation.neural.share), "the embedding")
    table.add_row(_number(explanation.bias), "before any word is read")
    table.add_row(_number(explanation.own_score), Text("together", style="bold"))
    return table


def _neural(explanation: Explanation) -> Table:
    neural = explanation.neural
    assert neural is not None
    table = _table("adds", f"to the embedding's share, by {neural.method}")
    for word in neural.words:
        table.add_row(_number(word.contribution), _written(word))
    if neural.others:
        table.add_row(_number(neural.others), "all other words")
    table.add_row(_number(neural.base), "with every word masked")
    table.add_row(_number(neural.share), Text("together", style="bold"))
    return table


def _path(path: Path) -> Table:
    table = _table("scored", "factor", "path" + ("" if path.listed else " (not reached by the search)"))
    for step in path.steps:
        among = f": {', '.join(_short(name, 30) for name in step.among)}, …" if step.among else ""
        what = step.kind if step.kind in ("label", "centroid") else f"{step.kind} {step.node}, {step.n_labels} labels"
        factor = "" if step.factor is None else f"{step.factor:.4f}"
        table.add_row(_number(step.score), factor, Text(what + among))
    table.add_row("", f"{path.score:.4f}", Text("together", style="bold"))
    return table


def _members(explanation: Explanation) -> Table:
    table = _table("weight", "counts", "adds", "member")
    for member in explanation.members:
        adds = "" if member.contribution is None else f"{member.contribution:.4f}"
        table.add_row(f"{member.weight:.3f}", f"{member.value:.4f}", adds, Text(member.name))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 2))
    for name in columns[:-1]:
        table.add_column(name, justify="right")
    table.add_column(columns[-1])
    return table


def _written(word: Word) -> Text:
    times = f"  ({len(word.spans)} times)" if len(word.spans) > 1 else ""
    return Text(f"{_short(word.term) or repr(word.term)}{times}")


def _number(value: float) -> str:
    return f"{value:+.4f}"


def _short(text: str, most: int = _EXCERPT) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
