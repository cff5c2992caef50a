import sys

import numpy as np
import pytest

from labelwise.errors import UsageError
from labelwise.report.tail import plot_tail

pytest.importorskip("matplotlib")

COUNTS = np.concatenate([[5000, 300, 101, 100], np.repeat([9, 3, 1, 0], [20, 50, 100, 10])])


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_is_written_and_always_the_same(tmp_path, suffix):
    first = plot_tail(COUNTS, tmp_path / f"a{suffix}", title="toy")
    second = plot_tail(COUNTS[::-1], tmp_path / f"b{suffix}", title="toy")
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[:4] in (b"\x89PNG", b"<?xm")


def texts_of(monkeypatch, tmp_path, counts, **options):
    from matplotlib.axes import Axes

    seen = []
    write, title = Axes.text, Axes.set_title
    monkeypatch.setattr(Axes, "text", lambda self, x, y, s, *a, **k: seen.append(s) or write(self, x, y, s, *a, **k))
    monkeypatch.setattr(Axes, "set_title", lambda self, s, *a, **k: seen.append(s) or title(self, s, *a, **k))
    plot_tail(np.array(counts), tmp_path / "a.svg", **options)
    return seen


def test_the_words_on_it(monkeypatch, tmp_path):
    seen = texts_of(monkeypatch, tmp_path, COUNTS, title="toy", generated=True)
    assert "toy (generated data)" in seen
    assert "1.6 % of the labels have more than 100 documents" in seen
    assert "of 184 labels, 150 have 5 or fewer and 10 none" in seen


@pytest.mark.parametrize("counts", [[1], [500], [500, 200], [3, 2, 1], [0, 101]])
def test_small_data_can_be_drawn(tmp_path, counts):
    assert plot_tail(np.array(counts), tmp_path / "a.png", title="small").stat().st_size > 1000


def test_what_cannot_be_drawn(tmp_path):
    with pytest.raises(UsageError, match=r"cannot draw a \.pdf; name it \.png or \.svg"):
        plot_tail(COUNTS, tmp_path / "a.pdf", title="toy")
    with pytest.raises(UsageError, match="no label has a training document"):
        plot_tail(np.zeros(3, dtype=int), tmp_path / "a.png", title="toy")


def test_no_state_is_left_behind(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    plot_tail(COUNTS, tmp_path / "a.png", title="toy")
    assert ("matplotlib.pyplot" in sys.modules) == before
