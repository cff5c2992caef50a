"""Products of the generated shop: their attributes, drawn in blocks, and the listing texts made of them."""

import numpy as np
import numpy.typing as npt

from labelwise.datasets.shop.grammar import PRESENT, Column, Grammar
from labelwise.datasets.shop.queries import Queries
from labelwise.datasets.shop.ragged import NOTHING
from labelwise.datasets.shop.streams import PRODUCTS, TEXTS, stream
from labelwise.types import Ints

BLOCK = 8192
"""Products are drawn in blocks of this size, each from its own random stream: a part of the definition of the data."""

LAYOUTS = (
    "BRAND LINE MODEL AUDIENCE TIER FEATURE COLOUR PRINT MATERIAL NAME ,SIZE ,SECOND .USE -FITS ,ALSO_FITS |PATH",
    "BRAND LINE NAME MODEL ,FEATURE ,COLOUR ,PRINT ,MATERIAL ,SECOND ,SIZE (AUDIENCE .USE -FITS ,ALSO_FITS |PATH",
    "TIER FEATURE MATERIAL NAME .USE -BRAND LINE MODEL -COLOUR ,PRINT ,SIZE ,AUDIENCE ,SECOND -FITS ,ALSO_FITS |PATH",
    "AUDIENCE NAME -FITS ,ALSO_FITS ,BRAND LINE MODEL ,SIZE ,COLOUR PRINT MATERIAL ,FEATURE ,SECOND .USE ,TIER |PATH",
    "PATH :BRAND LINE MODEL TIER NAME -FITS ,ALSO_FITS ;COLOUR PRINT ;MATERIAL ;SIZE ;AUDIENCE ;FEATURE ;SECOND .USE",
)
"""The order of a listing's words; a mark before a word is what separates it from those before."""

_MARKS = {"": " ", ",": ", ", ".": " for ", "-": " - ", "|": " | ", ":": ": ", ";": "; ", "(": " / "}
_FITS_MARK = " for "

SHOWN = {
    Column.LINE: 0.65,
    Column.MODEL: 0.75,
    Column.TIER: 0.6,
    Column.FEATURE: 0.95,
    Column.SECOND: 0.8,
    Column.COLOUR: 0.92,
    Column.PRINT: 0.85,
    Column.MATERIAL: 0.9,
    Column.SIZE: 0.9,
    Column.AUDIENCE: 0.92,
    Column.USE: 0.2,
    Column.PATH: 0.95,
}
"""How often a listing mentions what the product has; always, if not listed."""

_CODE_SHARE = 0.3
_FEWEST_WORDS = 6
_LETTERS = "ABCDEFGHKLMNPRSTVWXZ"


def draw_products(grammar: Grammar, queries: Queries, seed: int, block: int) -> npt.NDArray[np.int32]:
    """(BLOCK, n_columns) values of the products of a block; NOTHING where a product lacks the attribute."""
    rng = stream(seed, block, PRODUCTS)
    cells = np.full((BLOCK, len(Column)), NOTHING, dtype=np.int32)
    ends = np.cumsum(queries.type_shares)
    kind = np.searchsorted(ends / ends[-1], rng.random(BLOCK), side="right").astype(np.int32)
    cells[:, Column.TYPE] = kind
    for column, choice in grammar.choices.items():
        drawn = choice.draw(kind, rng.random(BLOCK))
        cells[:, column] = np.where(rng.random(BLOCK) < PRESENT.get(column, 1.0), drawn, NOTHING)
    cells[cells[:, Column.SECOND] == cells[:, Column.FEATURE], Column.SECOND] = NOTHING
    cells[cells[:, Column.ALSO_FITS] == cells[:, Column.FITS], Column.ALSO_FITS] = NOTHING
    rank = np.searchsorted(np.cumsum(grammar.line_shares)[:-1], rng.random(BLOCK), side="right")
    has_line = rng.random(BLOCK) < PRESENT[Column.LINE]
    line = np.where(has_line, grammar.line_of(cells[:, Column.BRAND], rank), NOTHING)
    rank = np.searchsorted(np.cumsum(grammar.model_shares)[:-1], rng.random(BLOCK), side="right")
    has_models = np.array([kind.has_models for kind in grammar.types])[kind]
    cells[:, Column.LINE] = line
    cells[:, Column.MODEL] = np.where(has_line & has_models, grammar.model_of(line, rank), NOTHING)
    for column, source, table in (
        (Column.FOR_AUDIENCE, Column.AUDIENCE, grammar.for_audience),
        (Column.USE_ALONE, Column.USE, grammar.use_alone),
    ):
        cells[:, column] = np.where(cells[:, source] < 0, NOTHING, table[cells[:, source]])
    return cells


class Listings:
    """Writes listing texts by looking pieces up: words, the marks between them, and item codes."""

    def __init__(self, grammar: Grammar) -> None:
        marks = ["", *_MARKS.values()]
        codes = [f" {a}{b}" for a in _LETTERS for b in _LETTERS]
        self._numbers = [f"-{n:04d}" for n in range(10_000)]
        self._pieces = [*grammar.texts, *marks, *codes, *self._numbers]
        self._first_mark = len(grammar.texts)
        self._first_code = self._first_mark + len(marks)
        self._first_number = self._first_code + len(codes)
        # The last one answers for NOTHING, which is -1.
        self._follows = np.array([text.startswith("With ") for text in grammar.texts] + [False])
        self._visible = [column for _, column in map(self._parse, LAYOUTS[0].split())]
        self._layouts = [[self._parse(word) for word in layout.split()] for layout in LAYOUTS]

    def _parse(self, word: str) -> tuple[int, Column]:
        mark = word[0] if word[0] in _MARKS else ""
        column = Column[word[len(mark) :]]
        text = _FITS_MARK if column == Column.FITS else _MARKS[mark]
        return self._first_mark + 1 + list(_MARKS.values()).index(text), column

    def _arrange(self, shown: Ints, cells: Ints) -> Ints:
        """Put "With Straw" behind the name instead of before it, and give a listing of few words its path.

        Returns how many words each listing had without that.
        """
        feature, second = shown[:, Column.FEATURE], shown[:, Column.SECOND]
        swap = self._follows[feature]
        feature[swap], second[swap] = second[swap], feature[swap]
        feature[self._follows[feature]] = NOTHING
        n_words = (shown[:, self._visible] >= 0).sum(axis=1)
        short = n_words < _FEWEST_WORDS
        shown[short, Column.PATH] = cells[short, Column.PATH]
        return np.asarray(n_words)

    def write(self, cells: Ints, seed: int, block: int) -> list[str]:
        """One text for every row of `cells`, the products of a block."""
        rng = stream(seed, block, TEXTS)
        layout = rng.integers(len(LAYOUTS), size=len(cells))
        shown = cells.copy()
        for column, share in SHOWN.items():
            shown[rng.random(len(cells)) >= share, column] = NOTHING
        n_words = self._arrange(shown, cells)
        # Without a code, listings of few words would often be equal.
        has_code = (rng.random(len(cells)) < _CODE_SHARE) | (n_words <= _FEWEST_WORDS)
        code = self._first_code + rng.integers(len(_LETTERS) ** 2, size=len(cells))
        number = self._first_number + rng.integers(len(self._numbers), size=len(cells))
        nothing = self._first_mark  # the empty piece
        pieces = np.full((len(cells), 2 * len(self._layouts[0]) + 2), nothing)
        for i, words in enumerate(self._layouts):
            rows = np.flatnonzero(layout == i)
            for j, (mark, column) in enumerate(words):
                value = shown[rows, column]
                at = 2 * j if j < len(words) - 1 else pieces.shape[1] - 2  # the code stands before the last word
                pieces[rows, at] = np.where(value < 0, nothing, mark)
                pieces[rows, at + 1] = np.where(value < 0, nothing, value)
        pieces[:, -4] = np.where(has_code, code, nothing)
        pieces[:, -3] = np.where(has_code, number, nothing)
        table = self._pieces
        return ["".join([table[piece] for piece in row]).lstrip(" -,;:/|") for row in pieces.tolist()]
