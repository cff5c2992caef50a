import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.kernels import parse
from tests.reference.parse import parse_lines as reference


def parse_bytes(data: bytes, with_labels=True, n_labels=100, n_features=1000):
    return parse.parse_lines(np.frombuffer(data, dtype=np.uint8), with_labels, n_labels, n_features)


def test_a_line_by_eye():
    codes, _, label_indptr, labels, indptr, columns, values = parse_bytes(b"3,17 0:0.5 9:1e-3\n\n 4:2\n5\n")
    assert codes.tolist() == [parse.OK] * 4
    assert (label_indptr.tolist(), labels.tolist()) == ([0, 2, 2, 2, 3], [3, 17, 5])
    assert (indptr.tolist(), columns.tolist()) == ([0, 2, 2, 3, 3], [0, 9, 4])
    assert values.tolist() == [0.5, np.float32(1e-3), 2]


@pytest.mark.parametrize(
    ("line", "code", "detail"),
    [
        (b"x 1:2", parse.BAD_LABEL, 1),
        (b"1,,2 1:2", parse.BAD_LABEL, 3),
        (b"1,-2 1:2", parse.BAD_LABEL, 3),
        (b"1.5 1:2", parse.BAD_LABEL, 1),
        (b"100 1:2", parse.LABEL_RANGE, 100),
        (b"99999999999999999999999 1:2", parse.LABEL_RANGE, None),
        (b"1 2", parse.BAD_FEATURE, 3),
        (b"1 a:2", parse.BAD_FEATURE, 3),
        (b"1 1000:2", parse.FEATURE_RANGE, 1000),
        (b"1 1:", parse.BAD_VALUE, 3),
        (b"1 1:x", parse.BAD_VALUE, 3),
        (b"1 1:nan", parse.BAD_VALUE, 3),
        (b"1 1:inf", parse.BAD_VALUE, 3),
        (b"1 1:1e99", parse.BAD_VALUE, 3),
        (b"1 1:2:3", parse.BAD_VALUE, 3),
    ],
)
def test_what_is_wrong_is_told(line, code, detail):
    codes, details, label_indptr, _, indptr, _, _ = parse_bytes(b"1 1:1\n" + line + b"\n2 2:2")
    assert codes.tolist() == [0, code, 0]
    assert detail is None or details[1] == detail
    assert label_indptr.tolist() == [0, 1, 1, 2]  # nothing of the bad line is kept
    assert indptr.tolist() == [0, 1, 1, 2]


def test_comments_carriage_returns_and_tabs():
    codes, _, _, labels, _, columns, _ = parse_bytes(b"1,2\t3:4 # remark 5:6\r\n#\r\n7:1 \r\n")
    assert codes.tolist() == [0, 0, 0]
    assert (labels.tolist(), columns.tolist()) == ([1, 2], [3, 7])


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_nine_digits_give_every_float32_back(values):
    line = " " + " ".join(f"{i}:{value:.9g}" for i, value in enumerate(values))
    found = parse_bytes(line.encode())[-1]
    np.testing.assert_array_equal(found, np.array(values, dtype=np.float32))


NUMBERS = st.sampled_from(["0", "7", "12", "99", "100", "007", "1000", "x", ""])
VALUES = st.sampled_from(
    ["1", "-0.25", "+3.", ".5", "1e-3", "2E2", "1e", "e1", "0.1.2", ".", "", "12345678901234567890"]
)
PAIRS = st.builds("{}:{}".format, NUMBERS, VALUES)
LINES = st.builds(
    lambda labels, gap, pairs: ",".join(labels) + gap + gap.join(pairs),
    st.lists(NUMBERS, max_size=3),
    st.sampled_from([" ", "  ", "\t"]),
    st.lists(PAIRS, max_size=4),
)


def assert_agrees(data: bytes, with_labels: bool):
    codes, _, *arrays = parse_bytes(data, with_labels)
    expected_codes, *expected = reference(data, with_labels, 100, 1000)
    np.testing.assert_array_equal(codes, expected_codes)
    for found, wanted in zip(arrays[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(arrays[4], expected[4], rtol=1e-6)


@given(st.lists(LINES, max_size=6), st.booleans(), st.booleans())
def test_agrees_with_the_reference(lines, with_labels, ended):
    assert_agrees(("\n".join(lines) + "\n" * ended).encode(), with_labels)


@given(st.text(alphabet="019,.: \t\r\n#+-eE", max_size=40), st.booleans())
def test_agrees_with_the_reference_on_anything(text, with_labels):
    assert_agrees(text.encode(), with_labels)


@given(st.binary(max_size=60))
def test_counts_bound_what_is_found(data):
    n_lines, n_commas, n_colons = parse.count_marks(np.frombuffer(data, dtype=np.uint8))
    assert (n_commas, n_colons) == (data.count(b","), data.count(b":"))
    assert n_lines == len(data.removesuffix(b"\n").split(b"\n")) if data else n_lines == 0
