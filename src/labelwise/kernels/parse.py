"""Lines like ``3,17 0:0.5 9:1e-3`` (labels, then feature:value) from bytes to flat arrays."""

from typing import Any

import numpy as np

from labelwise.engines.kernel_cache import njit
from labelwise.types import Ints

OK = 0
BAD_LABEL = 1
LABEL_RANGE = 2
BAD_FEATURE = 3
FEATURE_RANGE = 4
BAD_VALUE = 5

_NEWLINE, _RETURN, _SPACE, _TAB, _HASH = 10, 13, 32, 9, 35
_COMMA, _COLON, _DOT, _PLUS, _MINUS = 44, 58, 46, 43, 45
_ZERO, _NINE, _LOWER_E, _UPPER_E = 48, 57, 101, 69


@njit(cache=True, nogil=True)
def count_marks(data: Ints) -> tuple[int, int, int]:
    """Numbers of lines, commas and colons in `data`, which bound what `parse_lines` can find.

    A last line without a line end counts.
    """
    n_lines, n_commas, n_colons = 0, 0, 0
    for byte in data:
        if byte == _NEWLINE:
            n_lines += 1
        elif byte == _COMMA:
            n_commas += 1
        elif byte == _COLON:
            n_colons += 1
    if data.size > 0 and data[data.size - 1] != _NEWLINE:
        n_lines += 1
    return n_lines, n_commas, n_colons


@njit(cache=True, nogil=True)
def _whole_number(line: Ints, at: int) -> tuple[int, int]:
    """The digits of `line` from `at` on: (number, position after it); the number is -1 where there is no digit.

    Numbers past 2^40 stop growing: they are out of any range already.
    """
    number, start = 0, at
    while at < line.size and _ZERO <= line[at] <= _NINE:
        if number < 1 << 40:
            number = number * 10 + int(line[at] - _ZERO)
        at += 1
    return (number if at > start else -1), at


@njit(cache=True, nogil=True)
def _decimal(line: Ints, at: int) -> tuple[float, int]:
    """The decimal number at `at`: (value, position after it); the value is NaN where there is none.

    Nineteen digits fit an integer; later ones are below a float32's precision by far and only shift the point.
    """
    negative = at < line.size and line[at] == _MINUS
    if at < line.size and (line[at] == _MINUS or line[at] == _PLUS):
        at += 1
    digits, shift, n_digits, past_dot = np.uint64(0), 0, 0, False
    while at < line.size:
        byte = line[at]
        if byte == _DOT and not past_dot:
            past_dot = True
        elif _ZERO <= byte <= _NINE:
            n_digits += 1
            if digits < np.uint64(10**18 - 1):
                digits = digits * np.uint64(10) + np.uint64(byte - _ZERO)
                if past_dot:
                    shift -= 1
            elif not past_dot:
                shift += 1
        else:
            break
        at += 1
    if n_digits == 0:
        return np.nan, at
    if at < line.size and (line[at] == _LOWER_E or line[at] == _UPPER_E):
        at += 1
        down = at < line.size and line[at] == _MINUS
        if at < line.size and (line[at] == _MINUS or line[at] == _PLUS):
            at += 1
        exponent, at = _whole_number(line, at)
        if exponent < 0:
            return np.nan, at
        exponent = min(exponent, 100_000)
        shift += -exponent if down else exponent
    value = float(digits)
    while shift < -300:  # 10^-300 and below are not exact enough, or zero, in one step
        value /= 1e300
        shift += 300
        if value == 0.0:
            shift = 0
    if shift < 0:
        value /= 10.0**-shift
    elif digits > 0:
        value *= 10.0 ** min(shift, 308)
    return (-value if negative else value), at


@njit(cache=True, nogil=True)
def _blank(byte: int) -> bool:
    return byte in (_SPACE, _TAB, _RETURN)


@njit(cache=True, nogil=True)
def _read_labels(line: Ints, n_labels: int, labels_out: Ints) -> tuple[int, int, int, int]:
    """Labels at the start of a line: (code, detail, number of labels, position after them).

    `detail` is the offending number, or the 1-based position in the line of what is not one.
    """
    at, n = 0, 0
    if line.size == 0 or _blank(line[0]) or line[0] == _HASH:
        return OK, 0, n, at
    while True:
        start = at
        label, at = _whole_number(line, at)
        if n == 0 and label >= 0 and at < line.size and line[at] == _COLON:
            return OK, 0, 0, 0  # the line starts with a feature: it has no labels
        if label < 0 or (at < line.size and line[at] != _COMMA and not _blank(line[at]) and line[at] != _HASH):
            return BAD_LABEL, start + 1, n, at
        if label >= n_labels:
            return LABEL_RANGE, label, n, at
        labels_out[n] = label
        n += 1
        if at == line.size or line[at] != _COMMA:
            return OK, 0, n, at
        at += 1


@njit(cache=True, nogil=True)
def _read_features(line: Ints, at: int, n_features: int, columns_out: Ints, values_out: Any) -> tuple[int, int, int]:
    """Feature:value pairs from `at` to the end of a line: (code, detail, number of pairs)."""
    n = 0
    while True:
        while at < line.size and _blank(line[at]):
            at += 1
        if at == line.size or line[at] == _HASH:
            return OK, 0, n
        start = at
        column, at = _whole_number(line, at)
        if column < 0 or at == line.size or line[at] != _COLON:
            return BAD_FEATURE, start + 1, n
        if column >= n_features:
            return FEATURE_RANGE, column, n
        value, at = _decimal(line, at + 1)
        if not abs(value) < 3.4028236e38 or (at < line.size and not _blank(line[at]) and line[at] != _HASH):
            return BAD_VALUE, start + 1, n
        columns_out[n] = column
        values_out[n] = value
        n += 1


@njit(cache=True, nogil=True)
def parse_lines(data: Ints, with_labels: bool, n_labels: int, n_features: int) -> tuple[Any, ...]:
    """Rows of a sparse text file, one for every line of `data`.

    Parameters
    ----------
    data
        (n_bytes,) uint8, whole lines.
    with_labels
        Whether a line starts with labels; otherwise it holds feature:value pairs only.
    n_labels, n_features
        Numbers from these on are out of range.

    Returns
    -------
    codes, details
        (n_lines,) OK or what is wrong with the line, and the offending number or position. A line that is wrong
        has no labels and no features.
    label_indptr, label_indices
        The labels as flat arrays.
    indptr, indices, values
        The features as flat arrays, values in float32.
    """
    n_lines, n_commas, n_colons = count_marks(data)
    codes = np.zeros(n_lines, dtype=np.int8)
    details = np.zeros(n_lines, dtype=np.int64)
    label_indptr = np.zeros(n_lines + 1, dtype=np.int64)
    label_indices = np.empty(n_commas + n_lines, dtype=np.int32)
    indptr = np.zeros(n_lines + 1, dtype=np.int64)
    indices = np.empty(n_colons, dtype=np.int32)
    values = np.empty(n_colons, dtype=np.float32)
    start = np.int64(0)
    for i in range(n_lines):
        stop = start
        while stop < data.size and data[stop] != _NEWLINE:
            stop += 1
        line, label_at, at = data[start:stop], label_indptr[i], indptr[i]
        start = stop + 1
        label_end, end, after = label_at, at, 0
        code, detail = OK, 0
        if with_labels:
            code, detail, n, after = _read_labels(line, n_labels, label_indices[label_at:])
            label_end = label_at + n
        if code == OK:
            code, detail, n = _read_features(line, after, n_features, indices[at:], values[at:])
            end = at + n
        codes[i], details[i] = code, detail
        label_indptr[i + 1] = label_end if code == OK else label_at
        indptr[i + 1] = end if code == OK else at
    n_found, n_pairs = label_indptr[n_lines], indptr[n_lines]
    return codes, details, label_indptr, label_indices[:n_found], indptr, indices[:n_pairs], values[:n_pairs]
