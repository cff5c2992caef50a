"""Whatever is sent, the answer is 200 or 4xx with one sentence; never 5xx."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FIELDS = ["text", "texts", "top_k", "min_probability", "explain", "model", "x", ""]
NUMBERS = st.integers() | st.floats() | st.integers(min_value=10**300, max_value=10**400)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5)
NEARLY = st.fixed_dictionaries(
    {"text": st.text(max_size=50)},
    optional={"top_k": VALUES, "min_probability": VALUES, "explain": st.none() | NUMBERS, "model": VALUES},
)
WRITTEN = (OBJECTS | NEARLY | VALUES).map(lambda value: json.dumps(value).encode())
"""JSON as Python writes it: with NaN, Infinity and lone surrogates."""


@st.composite
def damaged(draw):
    """JSON with some bytes changed, cut off or put in."""
    body = bytearray(draw(WRITTEN))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(body) - 1, 0)))
        body[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(body)


NESTED = st.tuples(st.sampled_from([b"[", b'{"texts":', b'{"text":[']), st.integers(1, 5000)).map(
    lambda parts: parts[0] * parts[1]
)
BODIES = WRITTEN | damaged() | st.binary(max_size=200) | NESTED
SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def check(client, body):
    answer = client("POST", "/v1/suggest", body)
    assert answer.status < 500, body
    if answer.status == 200:
        assert answer.json()["results"]
    else:
        assert answer.status in (400, 404, 413, 422)
        assert answer.error[1][-1] == "."
        answer.error[1].encode()  # no lone surrogates


@pytest.mark.slow
def test_ten_thousand_bodies(client):
    check_all = settings(max_examples=10_000, **SETTINGS)(given(BODIES)(lambda body: check(client, body)))
    check_all()


def test_malformed_bodies(client):
    settings(max_examples=300, **SETTINGS)(given(BODIES)(lambda body: check(client, body)))()


@given(st.sampled_from(["/v1/labels", "/v1/model", "/v1/reload", "/%00", "//"]), st.text(max_size=40))
@settings(max_examples=150, **SETTINGS)
def test_strange_queries(client, path, query):
    for method in ("GET", "POST"):
        answer = client(method, f"{path}?q={query}&{query}")
        assert answer.status < 500
        if answer.status != 200:
            assert answer.error
