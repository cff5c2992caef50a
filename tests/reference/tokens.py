"""Plain twins of the tf-idf kernels: obvious, slow, on Python strings."""

import re
from collections import Counter

import numpy as np


def words(text: str, min_length: int = 1, n_min: int = 1, n_max: int = 1, lowercase: bool = True) -> list[str]:
    """The word n-grams of a text."""
    if lowercase:
        text = text.lower()
    found = [word for word in re.findall(r"\w+", text) if len(word) >= min_length]
    return [" ".join(found[i : i + n]) for n in range(n_min, n_max + 1) for i in range(len(found) - n + 1)]


def windows(text: str, n_min: int, n_max: int, bounded: bool, lowercase: bool = True) -> list[str]:
    """The character n-grams of a text, inside word boundaries if bounded."""
    if lowercase:
        text = text.lower()
    if not bounded:
        text = re.sub(r"\s\s+", " ", text)
        return [text[i : i + n] for n in range(n_min, n_max + 1) for i in range(len(text) - n + 1)]
    grams = []
    for word in text.split():
        padded = f" {word} "
        lengths = [n for n in range(n_min, n_max + 1) if n < len(padded)]
        grams += [padded[i : i + n] for n in lengths for i in range(len(padded) - n + 1)]
        if len(lengths) < n_max - n_min + 1:  # not longer than some n: once, as a whole
            grams.append(padded)
    return grams


def counts(terms_of_docs: list[list[str]]) -> list[dict[str, int]]:
    """How often each term occurs in each document."""
    return [dict(Counter(terms)) for terms in terms_of_docs]


def weigh(
    rows: list[list[tuple[int, int]]],
    idf: np.ndarray | None,
    sublinear: bool,
    norm: int,
    opening: np.ndarray | None = None,
    opening_weight: float = 1.0,
) -> list[list[float]]:
    """Tf-idf values of rows of (column, count)."""

    def size(values: np.ndarray) -> float:
        return float({0: 1.0, 1: values.sum(), 2: np.sqrt((values**2).sum())}[norm])

    weighted = []
    for row in rows:
        columns = [column for column, _ in row]
        values = np.array([count for _, count in row], float)
        if sublinear:
            values = 1 + np.log(values)
        if idf is not None:
            values = values * idf[columns]
        if opening is not None:
            first = opening[columns]
            for part, weight in ((~first, 1.0), (first, opening_weight)):
                if part.any():
                    values[part] *= weight / size(values[part])
        weighted.append((values / size(values) if len(values) else values).tolist())
    return weighted
