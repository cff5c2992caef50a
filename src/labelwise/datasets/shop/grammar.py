"""The generated shop's words as numbers: values that products have, and the forms people search them by.

A product is a row of *values* (its type, brand, colour, …), one per `Column`. A value has a listing text ("Crimson")
and weighted *forms*, the words of queries ("red", "crimson"). A query is a template filled with forms. Values and
forms are numbered once here, so that products and clicks can be drawn with array operations only.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np

from labelwise.datasets.shop.brands import (
    LINES_PER_BRAND,
    MODELS_PER_LINE,
    N_BRANDS,
    brand_names,
    line_names,
    model_names,
)
from labelwise.datasets.shop.catalog import ProductType, read_catalog, split
from labelwise.datasets.shop.ragged import NOTHING, Ragged
from labelwise.datasets.shop.spelling import misspell
from labelwise.datasets.shop.words import FOR_AUDIENCE, SAID_DIFFERENTLY, TIERS
from labelwise.types import Floats, Ints


class Column(IntEnum):
    """What a product has, one value each."""

    TYPE = 0
    NAME = 1
    """What this listing calls its type: mostly the type's name, sometimes a synonym."""
    PATH = 2
    BRAND = 3
    LINE = 4
    MODEL = 5
    TIER = 6
    FEATURE = 7
    SECOND = 8
    """A second feature."""
    COLOUR = 9
    PRINT = 10
    MATERIAL = 11
    SIZE = 12
    AUDIENCE = 13
    FOR_AUDIENCE = 14
    USE = 15
    USE_ALONE = 16
    RECIPIENT = 17
    FITS = 18
    ALSO_FITS = 19
    BROADER = 20
    """Words for its category or department; never in the listing by itself."""


PRESENT = {
    Column.LINE: 0.8,
    Column.TIER: 0.35,
    Column.FEATURE: 0.9,
    Column.SECOND: 0.6,
    Column.COLOUR: 0.9,
    Column.PRINT: 0.45,
    Column.MATERIAL: 0.85,
    Column.SIZE: 0.8,
    Column.AUDIENCE: 0.85,
    Column.ALSO_FITS: 0.5,
}
"""How often a product has the attribute, where its type allows it; always, if not listed."""

BRANDS_PER_DEPARTMENT = 90
_ZIPF_BRAND, _ZIPF_VALUE, _ZIPF_FORM, _ZIPF_LINE = 0.9, 0.7, 1.2, 1.0
_SMALL = {"a", "and", "for", "in", "of", "on", "the", "to", "while", "with"}
_UPPER = {"usb", "led", "tv", "hdmi", "bbq", "rc", "ssd", "pc", "gps", "gpu", "wc", "dvb", "cctv", "mtb", "sup", "sd"}


@dataclass(frozen=True)
class Grammar:
    """All values, forms and their probabilities. It is the same for every seed."""

    types: list[ProductType]
    departments: Ints
    """(n_types,) number of the type's department."""
    texts: list[str]
    """(n_values,) what listings say."""
    forms: list[str]
    """(n_forms,) what queries say."""
    forms_of: Ragged
    """Value to forms."""
    choices: dict[Column, Ragged]
    """Per column: type to values. Lines are chosen by brand and models by line instead."""
    for_audience: Ints
    """(n_values,) the value of an audience after "for"; NOTHING elsewhere."""
    use_alone: Ints
    """(n_values,) the value of a use that is searched by itself; NOTHING elsewhere."""
    first_brand: int
    first_line: int
    first_model: int
    """Where the values of brands, their lines and their models start; types start at 0."""
    line_shares: Floats
    model_shares: Floats
    """How common the first, second, … line of a brand and model of a line are."""

    def line_of(self, brand: Ints, rank: Ints) -> Ints:
        """The value of a brand's line."""
        return self.first_line + (brand - self.first_brand) * LINES_PER_BRAND + rank

    def model_of(self, line: Ints, rank: Ints) -> Ints:
        """The value of a line's model."""
        return self.first_model + (line - self.first_line) * MODELS_PER_LINE + rank


def zipf(n: int, exponent: float) -> Floats:
    """Shares of the ranks 1 to n."""
    weights = 1.0 / np.arange(1, n + 1) ** exponent
    return np.asarray(weights / weights.sum())


def title(text: str) -> str:
    """As listings write it: "usb hub" becomes "USB Hub"."""
    *words, last = text.split(" ")
    written = [word if word in _SMALL else _capital(word) for word in words]
    return " ".join([*written, _capital(last)])


def _capital(word: str) -> str:
    return word.upper() if word in _UPPER else word[:1].upper() + word[1:]


class _Values:
    """Numbers values and forms as they come."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.forms: dict[str, int] = {}
        self.forms_of: list[list[tuple[int, float]]] = []
        self._known: dict[tuple[str, tuple[str, ...]], int] = {}

    def add(self, text: str, forms: dict[str, float]) -> int:
        self.texts.append(text)
        self.forms_of.append([(self.forms.setdefault(form, len(self.forms)), weight) for form, weight in forms.items()])
        return len(self.texts) - 1

    def word(self, entry: str) -> int:
        """The value of an entry of words.py, "Crimson=red/crimson"; the same entry is the same value."""
        text, _, queries = entry.partition("=")
        forms = split(queries, "/") or (text.lower(),)
        if (text, forms) not in self._known:
            self._known[text, forms] = self.add(
                text, dict(zip(forms, zipf(len(forms), _ZIPF_FORM).tolist(), strict=True))
            )
        return self._known[text, forms]


@cache
def build_grammar() -> Grammar:
    """Number the catalogue; it takes half a second, once per process."""
    types = read_catalog()
    values = _Values()
    for kind in types:
        values.add(title(kind.name), _shared((((kind.name,), 0.62), (kind.synonyms, 0.38))))
    brands, lines = brand_names(), line_names()
    first_brand = len(values.texts)
    for brand in brands:
        values.add(brand, _with_typos({brand.lower(): 1.0}, share=0.07, count=1))
    first_line = len(values.texts)
    full = [f"{brands[i // LINES_PER_BRAND]} {line}".lower() for i, line in enumerate(lines)]
    for line, form in zip(lines, full, strict=True):
        values.add(line, {form: 1.0})
    first_model = len(values.texts)
    for i, model in enumerate(model_names()):
        values.add(model, {f"{full[i // MODELS_PER_LINE]} {model.lower()}": 1.0})
    names = sorted({kind.department for kind in types})
    departments = np.array([names.index(kind.department) for kind in types], dtype=np.int32)
    choices = _choices(types, departments, first_brand, values)
    for_audience, use_alone = _derived(types, values)
    return Grammar(
        types=types,
        departments=departments,
        texts=values.texts,
        forms=list(values.forms),
        forms_of=Ragged.of(values.forms_of),
        choices=choices,
        for_audience=for_audience,
        use_alone=use_alone,
        first_brand=first_brand,
        first_line=first_line,
        first_model=first_model,
        line_shares=zipf(LINES_PER_BRAND, _ZIPF_LINE),
        model_shares=zipf(MODELS_PER_LINE, _ZIPF_LINE),
    )


def _shared(groups: tuple[tuple[tuple[str, ...], float], ...]) -> dict[str, float]:
    """Query forms of groups of words with the groups' shares, and all that sometimes misspelt."""
    forms: dict[str, float] = {}
    for words, share in groups:
        for word, part in zip(words, zipf(len(words), 0.8), strict=True):
            forms[word] = forms.get(word, 0.0) + share * float(part)
    return _with_typos(forms, share=0.08, count=3)


def _with_typos(forms: dict[str, float], *, share: float, count: int) -> dict[str, float]:
    """Move `share` of every form's weight to its misspellings."""
    spelt = dict(forms)
    for form, weight in forms.items():
        wrong = [typo for typo in misspell(form, count) if typo not in forms]
        for typo, part in zip(wrong, zipf(len(wrong), 1.0), strict=True):
            spelt[typo] = spelt.get(typo, 0.0) + weight * share * float(part)
            spelt[form] -= weight * share * float(part)
    return spelt


def _choices(types: list[ProductType], departments: Ints, first_brand: int, values: _Values) -> dict[Column, Ragged]:
    said = {entry.partition("=")[0]: entry for entry in split(SAID_DIFFERENTLY)}

    def ranked(entries: tuple[str, ...], exponent: float = _ZIPF_VALUE) -> list[tuple[int, float]]:
        numbers = [values.word(said.get(entry, entry)) for entry in entries]
        return list(zip(numbers, zipf(len(numbers), exponent).tolist(), strict=True))

    def name(kind: ProductType) -> list[tuple[int, float]]:
        other = kind.synonyms[:2]
        weights = [0.8, *([0.2 / len(other)] * len(other))] if other else [1.0]
        return [(values.word(title(text)), weight) for text, weight in zip((kind.name, *other), weights, strict=True)]

    def brands(kind: int) -> list[tuple[int, float]]:
        # Departments share some brands, as neighbours in the row of all brands overlap.
        start = int(departments[kind]) * (N_BRANDS // (int(departments.max()) + 1))
        shares = zipf(BRANDS_PER_DEPARTMENT, _ZIPF_BRAND).tolist()
        return [(first_brand + (start + i) % N_BRANDS, share) for i, share in enumerate(shares)]

    def used(kind: ProductType) -> list[tuple[int, float]]:
        return ranked(tuple(f"{title(use.lstrip('~'))}={use.lstrip('~')}" for use in kind.uses))

    broader: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    for kind in types:
        if (words := (kind.narrow, kind.broad)) not in broader:
            broader[words] = values.add(kind.category, _shared(((kind.narrow, 0.6), (kind.broad, 0.4))))
    features = Ragged.of([ranked(kind.features) for kind in types])
    fits = Ragged.of([ranked(kind.fits) for kind in types])
    return {
        Column.NAME: Ragged.of([name(kind) for kind in types]),
        Column.PATH: Ragged.of([[(values.word(f"{kind.department} > {kind.category}"), 1.0)] for kind in types]),
        Column.BROADER: Ragged.of([[(broader[kind.narrow, kind.broad], 1.0)] for kind in types]),
        Column.BRAND: Ragged.of([brands(i) for i in range(len(types))]),
        Column.TIER: Ragged.of([ranked(split(TIERS), 0.3) for _ in types]),
        Column.FEATURE: features,
        Column.SECOND: features,
        Column.COLOUR: Ragged.of([ranked(kind.colours) for kind in types]),
        Column.PRINT: Ragged.of([ranked(kind.prints) for kind in types]),
        Column.MATERIAL: Ragged.of([ranked(kind.materials) for kind in types]),
        Column.SIZE: Ragged.of([ranked(kind.sizes, 0.5) for kind in types]),
        Column.AUDIENCE: Ragged.of([ranked(kind.audiences) for kind in types]),
        Column.USE: Ragged.of([used(kind) for kind in types]),
        Column.RECIPIENT: Ragged.of([ranked(kind.recipients) for kind in types]),
        Column.FITS: fits,
        Column.ALSO_FITS: fits,
    }


def _derived(types: list[ProductType], values: _Values) -> tuple[Ints, Ints]:
    """Values that follow from another value of the product: of its audience, and of its use."""
    audiences = {
        values.word(entry): values.word(f"{text}={FOR_AUDIENCE[text]}")
        for kind in types
        for entry in kind.audiences
        for text in [entry.partition("=")[0]]
    }
    alone = [use for kind in types for use in kind.uses if not use.startswith("~")]
    uses = {number: number for number in (values.word(f"{title(use)}={use}") for use in alone)}
    tables = []
    for pairs in (audiences, uses):
        table = np.full(len(values.texts), NOTHING, dtype=np.int32)
        table[list(pairs)] = list(pairs.values())
        tables.append(table)
    return tables[0], tables[1]
