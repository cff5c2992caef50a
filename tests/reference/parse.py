"""`kernels.parse` with str.split and float."""

import re

import numpy as np

from labelwise.kernels.parse import BAD_FEATURE, BAD_LABEL, BAD_VALUE, FEATURE_RANGE, LABEL_RANGE, OK

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def parse_lines(data, with_labels, n_labels, n_features):
    text = bytes(data).decode("latin-1")
    lines = text.removesuffix("\n").split("\n") if text else []
    rows = [_parse_line(line, with_labels, n_labels, n_features) for line in lines]
    codes = np.array([row[0] for row in rows], dtype=np.int8)
    labels = [row[1] if row[0] == OK else [] for row in rows]
    pairs = [row[2] if row[0] == OK else [] for row in rows]
    flat = [pair for row in pairs for pair in row]
    return (
        codes,
        _indptr(labels),
        np.array([label for row in labels for label in row], dtype=np.int32),
        _indptr(pairs),
        np.array([column for column, _ in flat], dtype=np.int32),
        np.array([value for _, value in flat], dtype=np.float32),
    )


def _indptr(rows):
    return np.cumsum([0, *map(len, rows)], dtype=np.int64)


def _parse_line(line, with_labels, n_labels, n_features):
    line = line.partition("#")[0]
    labels = []
    if with_labels and line and line[0] not in " \t\r":
        first, rest = re.match(r"([^ \t\r]*)(.*)", line, re.DOTALL).groups()
        if not re.match(r"\d+:", first):
            line = rest
            for part in first.split(","):
                if not re.fullmatch(r"\d+", part, re.ASCII):
                    return BAD_LABEL, labels, []
                if int(part) >= n_labels:
                    return LABEL_RANGE, labels, []
                labels.append(int(part))
    pairs = []
    for token in re.split(r"[ \t\r]+", line):
        if not token:
            continue
        column, colon, value = token.partition(":")
        if not colon or not re.fullmatch(r"\d+", column, re.ASCII):
            return BAD_FEATURE, labels, pairs
        if int(column) >= n_features:
            return FEATURE_RANGE, labels, pairs
        if not _DECIMAL.fullmatch(value) or not abs(float(value)) < 3.4028236e38:
            return BAD_VALUE, labels, pairs
        pairs.append((int(column), float(value)))
    return OK, labels, pairs
