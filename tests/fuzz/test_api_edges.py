"""A sample of the edge cases of the public functions; tools/fuzz/api_edges.py runs all of them."""

import warnings

from labelwise.errors import LabelwiseError
from tests.fuzz.targets import fuzz_target

EVERY = 29
"""One of so many cases is tested."""


def test_edge_cases_are_answered_or_refused():
    edges = fuzz_target("api_edges").edges(quick=True)
    assert len(edges) > 1500
    failed = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in edges[::EVERY]:
            try:
                call()
            except LabelwiseError as error:
                failed += [f"{name}: the sentence is too long"] if len(str(error)) > 1000 else []
            except Exception as error:  # what the test looks for
                failed.append(f"{name}: {type(error).__name__}: {error}")
    assert failed == []
