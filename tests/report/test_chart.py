"""Scales and places of the charts."""

import pytest

from labelwise.report.chart import Chart, Scale


def test_scales():
    scale = Scale.around([3.0, 97.0], "x")
    assert (scale.low, scale.high) == (0, 100)
    assert scale.ticks() == [0, 20, 40, 60, 80, 100]
    log = Scale(1, 1000, "x", log=True)
    assert log.ticks() == [1, 10, 100, 1000]
    assert log.share(10) == pytest.approx(1 / 3)
    assert [log.tick_label(value) for value in (1, 1000)] == ["1", "1,000"]
    assert Scale(0, 1, "p", percent=True).tick_label(0.2) == "20 %"
    assert Scale.around([2e-5], "rate").tick_label(2e-5) == "2e-5"
    chart = Chart(Scale(0, 10, "x"), Scale(0, 10, "y"))
    left, bottom = chart.place((0, 0))
    right, top = chart.place((10, 10))
    assert chart.place((5, 5)) == ((left + right) / 2, (top + bottom) / 2)
