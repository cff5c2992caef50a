"""Tables of evaluations and comparisons."""

import subprocess
import sys
from io import StringIO

import scipy.sparse as sp
from rich.console import Console

from labelwise.metrics import compare, evaluate
from labelwise.metrics.intervals import Difference
from labelwise.metrics.paired import Comparison
from labelwise.metrics.table import SIGNIFICANT
from tests.metrics.examples import hand_evaluation


def show(table) -> str:
    console = Console(width=100, file=StringIO())
    console.print(table)
    return console.file.getvalue()


def test_tables_show_the_figures():
    evaluation = hand_evaluation(threshold=0.75)
    text = show(evaluation.table(title="by hand"))
    for piece in ("by hand", "@5", "≥ 0.75", "PSnDCG", "25.00 ±", "tail coverage", "6–100 training documents"):
        assert piece in text
    text = show(compare(evaluation, evaluation, names=("ours", "theirs")).table())
    for piece in ("ours", "theirs", "+0.00", "1.000"):
        assert piece in text


def cells_of(table):
    return [list(column.cells) for column in table.columns]


def test_the_table_of_an_evaluation(evaluations):
    found = evaluations[0]
    table = found.table()
    assert table.title is None
    assert [column.header for column in table.columns] == ["metric", "@1", "@3", "@5"]
    assert [column.justify for column in table.columns] == ["left", "right", "right", "right"]
    assert all(column.no_wrap for column in table.columns)
    names, first, *_ = cells_of(table)
    assert names[:9] == ["P", "R", "nDCG", "RP", "PSP", "PSnDCG", "micro-F1", "macro-F1", "coverage"]
    full = [name for name, bucket in found.buckets.items() if bucket.n_labels]  # the others have no rows
    shown = ("P", "R", "nDCG", "PSP", "macro-F1", "coverage")
    assert names[9:] == [f"{name} {metric}" for name in full for metric in shown]
    assert 0 < len(full) < 3
    sections = [number for number, row in enumerate(table.rows) if row.end_section]
    assert sections == [8 + 6 * number for number in range(len(full))]
    score = found.scores["P@1"]
    assert first[0] == f"{score.value:.2f} [dim]±{(score.high - score.low) / 2:.2f}[/]"
    assert first[7] == f"{found['macro-F1@1']:.2f}"  # has no interval
    assert table.caption.splitlines()[0] == "1,500 documents, 60 labels; percent, ± half the 95 % interval"
    assert len(table.caption.splitlines()) == 4
    bucket = found.buckets["torso"]
    assert f"torso: 6–100 training documents; {bucket.n_labels} labels in {bucket.n_docs:,} documents" in table.caption


def test_the_table_without_intervals_and_with_a_threshold():
    table = hand_evaluation(bootstrap=0, threshold=0.75).table(title="[all]")
    assert table.title == r"\[all]"
    assert table.caption.splitlines()[0] == "4 documents, 5 labels; percent"
    assert [column.header for column in table.columns][-1] == "≥ 0.75"
    names, first, *_, above = cells_of(table)
    assert (first[names.index("P")], above[names.index("P")]) == ("25.00", "")
    assert above[names.index("micro-F1")] == "20.00"
    nothing = sp.csr_array((2, 3))
    assert "–" in cells_of(evaluate(nothing, nothing, bootstrap=5).table())[1]


def test_the_table_of_a_comparison(evaluations):
    table = compare(*evaluations, metrics=["P@1", "R@5"], names=("a", "[b]"), resamples=2000).table(title="x")
    assert [column.header for column in table.columns] == ["metric", "a", r"\[b]", "difference", "95 % interval", "p"]
    assert [column.justify for column in table.columns] == ["left", *["right"] * 5]
    assert all(column.no_wrap for column in table.columns[1:])
    assert table.caption == "1,500 documents; percent; bold: p < 0.05, from 2,000 resamples"
    assert [row.style for row in table.rows] == ["bold", "bold"]
    assert cells_of(table)[0] == ["P@1", "R@5"]
    same = compare(evaluations[0], evaluations[0], metrics=["P@1"], resamples=10)
    assert same.table().title is None
    assert [row.style for row in same.table().rows] == [None]
    figure = f"{evaluations[0]['P@1']:.2f}"
    assert [cells[0] for cells in cells_of(same.table())] == [
        *("P@1", figure, figure, "+0.00", "+0.00 … +0.00", "1.000"),
    ]
    at_limit = Difference(1.0, 2.0, -1.0, -2.0, -0.5, SIGNIFICANT)
    edge = Comparison(names=("a", "b"), n_docs=1, resamples=19, differences={"P@1": at_limit})
    assert [row.style for row in edge.table().rows] == [None]


def test_rich_is_not_imported_before_a_table_is_wanted():
    code = "import labelwise.metrics, sys; print('rich' in sys.modules, 'sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
