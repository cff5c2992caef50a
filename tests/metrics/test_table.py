"""Tables of evaluations and comparisons."""

import subprocess
import sys
from io import StringIO

from rich.console import Console

from labelwise.metrics import compare
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


def test_rich_is_not_imported_before_a_table_is_wanted():
    code = "import labelwise.metrics, sys; print('rich' in sys.modules, 'sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
