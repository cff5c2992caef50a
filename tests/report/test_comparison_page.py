from itertools import combinations

import pytest

from labelwise.errors import UsageError
from labelwise.report import comparison_page as comparison
from labelwise.report.comparison_page import PlotPoint, plot_frequency, plot_time

pytest.importorskip("matplotlib")

TIMES = {
    "parabel": (2.0, PlotPoint(70, 69, 71)),
    "x-transformer": (120.0, PlotPoint(75, 74, 76)),
    "theirs": (None, PlotPoint(72)),
}
CLOSE = [("parabel", 25.4, 82.29), ("bonsai", 23.9, 82.24), ("third", 24.5, 82.26), ("far", 300.0, 80.0)]
ROWS = {"parabel": [PlotPoint(90, 88, 92), PlotPoint(20)], "theirs": [PlotPoint(80), PlotPoint(30, 25, 35)]}


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_pictures_are_written_and_always_the_same(tmp_path, suffix):
    for draw in (
        lambda path: plot_time(TIMES, path, metric="P@5", title="toy"),
        lambda path: plot_frequency(ROWS, ["head", "tail"], path, metric="R@5", title="toy"),
    ):
        first, second = (draw(tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
        assert first == second
        assert first[:4] in (b"\x89PNG", b"<?xm")


def test_every_system_is_drawn_where_it_belongs(tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    dots, lines, bars = [], [], []

    def listen(name, note):
        draw = getattr(Axes, name)
        monkeypatch.setattr(Axes, name, lambda self, *a, **k: note(*a, k) or draw(self, *a, **k))

    listen("errorbar", lambda x, y, more: dots.append((x, y, more["yerr"])))
    listen("axhline", lambda y, more: lines.append(y))
    listen("bar", lambda x, y, width, more: bars.append(y))
    plot_time(TIMES, tmp_path / "a.svg", metric="P@5", title="toy")
    assert dots == [([2.0], [70], [[1], [1]]), ([120.0], [75], [[1], [1]])]
    assert lines == [72]  # nobody knows how long it took
    plot_frequency(ROWS, ["head", "tail"], tmp_path / "b.svg", metric="R@5", title="toy")
    assert bars == [[90, 20], [80, 30]]


def test_names_of_close_points_do_not_overlap(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(comparison, "_finish", lambda figure, axes, path, title: drawn.append((figure, axes)) or path)
    points = {name: (seconds, comparison.PlotPoint(value)) for name, seconds, value in CLOSE}
    comparison.plot_time(points, tmp_path / "time.svg", metric="P@5", title="close")
    figure, axes = drawn[0]
    figure.canvas.draw()
    texts = [child for child in axes.texts if child.get_text() in points]
    assert sorted(text.get_text() for text in texts) == sorted(points)
    boxes = [text.get_window_extent() for text in texts]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_wrong_arguments(tmp_path):
    with pytest.raises(UsageError, match=r"cannot draw a \.gif"):
        plot_time(TIMES, tmp_path / "a.gif", metric="P@5", title="toy")
    with pytest.raises(UsageError, match="nothing to draw"):
        plot_time({}, tmp_path / "a.svg", metric="P@5", title="toy")
