"""Prometheus' text format, by hand."""

from labelwise.serve.prometheus import Counter, Histogram, ServerMetrics, resident_bytes


def test_a_counter():
    counter = Counter("asked_total", "Asked.", ("who",))
    counter.add("anna")
    counter.add("anna", by=2)
    counter.add('b"\\\n')
    assert list(counter.lines()) == [
        "# HELP asked_total Asked.",
        "# TYPE asked_total counter",
        'asked_total{who="anna"} 3',
        'asked_total{who="b\\"\\\\\\n"} 1',
    ]


def test_a_histogram_is_cumulative_with_inclusive_bounds():
    histogram = Histogram("size", "Sizes.", "of", (1, 2.5))
    for value in (0.5, 1, 2, 7):
        histogram.observe("x", value)
    assert list(histogram.lines())[2:] == [
        'size_bucket{of="x",le="1"} 2',
        'size_bucket{of="x",le="2.5"} 3',
        'size_bucket{of="x",le="+Inf"} 4',
        'size_sum{of="x"} 10.5',
        'size_count{of="x"} 4',
    ]


def test_the_exposition_of_all_metrics():
    text = ServerMetrics().text()
    assert "process_cpu_seconds_total " in text
    assert ("process_resident_memory_bytes " in text) == (resident_bytes() is not None)
    assert text.endswith("\n")
