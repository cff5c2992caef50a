"""The queries of the generated shop: which word patterns people type, and the most popular ones as labels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelwise.datasets.shop.grammar import PRESENT, Column, Grammar, zipf
from labelwise.datasets.shop.streams import TYPES, stream
from labelwise.errors import UsageError
from labelwise.types import Floats, Ints

C = Column
PATTERNS: tuple[tuple[float, str, tuple[Column, ...]], ...] = (
    (26.0, "{0}", (C.TYPE,)),
    (4.0, "{0}", (C.BROADER,)),
    (1.0, "{0} {1}", (C.BRAND, C.BROADER)),
    (0.7, "{0} {1}", (C.AUDIENCE, C.BROADER)),
    (0.4, "{0} {1}", (C.TIER, C.BROADER)),
    (1.2, "{0} for {1}", (C.BROADER, C.USE)),
    (0.6, "{0} for {1}", (C.BROADER, C.FOR_AUDIENCE)),
    (9.0, "{0} {1}", (C.BRAND, C.TYPE)),
    (7.0, "{0} {1}", (C.COLOUR, C.TYPE)),
    (6.0, "{0} {1}", (C.FEATURE, C.TYPE)),
    (3.0, "{0} {1}", (C.SECOND, C.TYPE)),
    (5.0, "{0} {1}", (C.MATERIAL, C.TYPE)),
    (5.0, "{0} {1}", (C.AUDIENCE, C.TYPE)),
    (3.0, "{0} {1}", (C.PRINT, C.TYPE)),
    (3.0, "{0} {1}", (C.TIER, C.TYPE)),
    (8.0, "{0} {1}", (C.FITS, C.TYPE)),
    (4.0, "{0} {1}", (C.ALSO_FITS, C.TYPE)),
    (5.0, "{0} {1}", (C.TYPE, C.SIZE)),
    (4.0, "{0} for {1}", (C.TYPE, C.USE)),
    (3.0, "{0} for {1}", (C.TYPE, C.FOR_AUDIENCE)),
    (6.0, "{0}", (C.USE_ALONE,)),
    (2.0, "{0} essentials", (C.USE_ALONE,)),
    (3.0, "gift for {0}", (C.RECIPIENT,)),
    (1.5, "{0} gift", (C.RECIPIENT,)),
    (1.0, "present for {0}", (C.RECIPIENT,)),
    (3.0, "{0}", (C.BRAND,)),
    (3.0, "{0}", (C.LINE,)),
    (2.0, "{0} {1}", (C.LINE, C.TYPE)),
    (2.0, "{0}", (C.MODEL,)),
    (1.5, "{0} {1} {2}", (C.BRAND, C.COLOUR, C.TYPE)),
    (1.5, "{0} {1} {2}", (C.BRAND, C.AUDIENCE, C.TYPE)),
    (1.0, "{0} {1} {2}", (C.BRAND, C.FEATURE, C.TYPE)),
    (1.0, "{0} {1} {2}", (C.BRAND, C.TYPE, C.SIZE)),
    (2.0, "{0} {1} {2}", (C.AUDIENCE, C.COLOUR, C.TYPE)),
    (1.5, "{0} {1} {2}", (C.AUDIENCE, C.FEATURE, C.TYPE)),
    (1.5, "{0} {1} {2}", (C.COLOUR, C.MATERIAL, C.TYPE)),
    (1.5, "{0} {1} {2}", (C.COLOUR, C.TYPE, C.SIZE)),
    (1.0, "{0} {1} {2}", (C.FEATURE, C.MATERIAL, C.TYPE)),
    (1.0, "{0} {1} {2}", (C.FEATURE, C.TYPE, C.SIZE)),
    (1.0, "{0} {1} {2}", (C.TIER, C.MATERIAL, C.TYPE)),
    (1.0, "{0} {1} {2}", (C.COLOUR, C.PRINT, C.TYPE)),
    (1.5, "{0} {1} {2}", (C.COLOUR, C.FITS, C.TYPE)),
    (1.0, "{0} {1} for {2}", (C.FEATURE, C.TYPE, C.USE)),
    (1.0, "{0} {1} for {2}", (C.TIER, C.TYPE, C.USE)),
    (1.0, "{0} {1} for {2}", (C.COLOUR, C.TYPE, C.FOR_AUDIENCE)),
)
"""How often people search so, the words, and whose forms fill them. What a product lacks it is not searched by."""

TEMPLATES = list(dict.fromkeys(template for _, template, _ in PATTERNS))
SLOTS = 3
QUERIES_PER_TYPE = 25
"""A small shop sells fewer types of product, so that each still has this many queries."""
LEAST_INTEREST = 0.3
"""Some queries are typed this much less often than their words suggest."""
_FORM_BITS = 18


@dataclass(frozen=True)
class Queries:
    """The labels: query strings, and how to find one by its pattern and forms."""

    names: list[str]
    """(n_queries,) distinct, in alphabetical order."""
    keys: npt.NDArray[np.int64]
    """Sorted packed (template, forms); a name that two patterns make has two keys."""
    labels: Ints
    """(n_keys,) number of the key's name."""
    interest: Floats
    """(n_keys,) probability that somebody who could type the query does."""
    type_shares: Floats
    """(n_types,) how common the types of product are; 0 for those this shop does not sell."""
    plain: Ints
    """(n_types,) label of the type's own name; meaningless for types not sold."""


def pack(template: Ints, forms: list[Ints]) -> npt.NDArray[np.int64]:
    """One integer for a template number and three form numbers; a slot without form is 0, form f is f + 1."""
    key = np.asarray(template, dtype=np.int64)
    for form in forms:
        key = key << _FORM_BITS | (np.asarray(form, dtype=np.int64) + 1)
    return key


def choose_queries(grammar: Grammar, n_queries: int, seed: int) -> Queries:
    """The `n_queries` most popular queries of the shop with this seed.

    A query's popularity is the share of product-pattern pairs that make it, times the interest in it.
    """
    shares = _type_shares(grammar, n_queries, seed)
    pool = _Pool(2 * n_queries)
    for kind in np.flatnonzero(shares):
        forms = _forms_of_type(grammar, int(kind))
        for weight, template, columns in PATTERNS:
            number = TEMPLATES.index(template)
            if all(column in forms for column in columns):
                pool.add(number, float(shares[kind]) * weight, [forms[column] for column in columns], seed)
    keys, scores = pool.most_popular()
    plain = _plain_keys(grammar)
    sold = np.flatnonzero(shares)
    scores[np.isin(keys, plain[sold])] += 1.0  # every type sold can be found by its own name
    names: dict[str, int] = {}
    chosen = []
    for key in keys[np.lexsort((keys, -scores))].tolist():
        name = _spell(grammar, key)
        words = name.split()
        if len(set(words)) == len(words):  # no "leather leather belt"
            chosen.append((key, names.setdefault(name, len(names))))
        if len(names) == n_queries:
            break
    if len(names) < n_queries:
        raise UsageError(f"the shop's grammar makes {len(names)} queries with this seed; ask for at most that many")
    in_order = sorted(names)
    place = np.empty(n_queries, dtype=np.int32)
    place[[names[name] for name in in_order]] = np.arange(n_queries)
    table = np.array(sorted(chosen), dtype=np.int64)
    labels = place[table[:, 1]]
    return Queries(
        names=in_order,
        keys=table[:, 0],
        labels=labels,
        interest=_interest(table[:, 0], seed),
        type_shares=shares,
        plain=labels[np.searchsorted(table[:, 0], plain).clip(max=labels.size - 1)],
    )


def _type_shares(grammar: Grammar, n_queries: int, seed: int) -> Floats:
    """Zipfian popularity over the departments and their types, in an order that the seed decides."""
    rng = stream(seed, 0, TYPES)
    n_departments = int(grammar.departments.max()) + 1
    shares = np.zeros(len(grammar.types))
    sold = 0
    for rank, department in enumerate(rng.permutation(n_departments)):
        if rank >= 2 and sold >= n_queries / QUERIES_PER_TYPE:
            break
        kinds = rng.permutation(np.flatnonzero(grammar.departments == department))
        shares[kinds] = zipf(kinds.size, 0.9) / (rank + 4) ** 0.8
        sold += kinds.size
    return np.asarray(shares / shares.sum())


def _forms_of_type(grammar: Grammar, kind: int) -> dict[Column, tuple[Ints, Floats]]:
    """Per column that a type has: the forms its products are searched by, and how probable each is."""
    found = {Column.TYPE: grammar.forms_of.row(kind)}
    for column, choice in grammar.choices.items():
        items, shares = choice.row(kind)
        shares = shares * PRESENT.get(column, 1.0)
        if column == Column.AUDIENCE:
            _collect(grammar, found, Column.FOR_AUDIENCE, grammar.for_audience[items], shares)
        if column == Column.USE:
            _collect(grammar, found, Column.USE_ALONE, grammar.use_alone[items], shares)
        if column == Column.BRAND:
            lines = grammar.line_of(items[:, None], np.arange(grammar.line_shares.size)).ravel()
            line_shares = np.outer(shares, grammar.line_shares * PRESENT[Column.LINE]).ravel()
            _collect(grammar, found, Column.LINE, lines, line_shares)
            if grammar.types[kind].has_models:
                models = grammar.model_of(lines[:, None], np.arange(grammar.model_shares.size)).ravel()
                _collect(grammar, found, Column.MODEL, models, np.outer(line_shares, grammar.model_shares).ravel())
        _collect(grammar, found, column, items, shares)
    return found


def _collect(
    grammar: Grammar, found: dict[Column, tuple[Ints, Floats]], column: Column, values: Ints, shares: Floats
) -> None:
    there = values >= 0
    if there.any():
        forms, weights = grammar.forms_of.spread(values[there], shares[there])
        distinct, where = np.unique(forms, return_inverse=True)
        found[column] = distinct, np.bincount(where, weights=weights).astype(np.float64)


def _interest(keys: npt.NDArray[np.int64], seed: int) -> Floats:
    """A fixed number in [LEAST_INTEREST, 1] per query and seed (the splitmix64 hash)."""
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % (1 << 64))
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return np.asarray(LEAST_INTEREST ** ((x >> np.uint64(11)) / 2.0**53))


def _plain_keys(grammar: Grammar) -> npt.NDArray[np.int64]:
    numbers = {form: i for i, form in enumerate(grammar.forms)}
    own = np.array([numbers[kind.name] for kind in grammar.types])
    nothing = np.full(own.size, -1)
    return pack(np.full(own.size, TEMPLATES.index("{0}")), [own, nothing, nothing])


def _spell(grammar: Grammar, key: int) -> str:
    mask = (1 << _FORM_BITS) - 1
    numbers = [key >> _FORM_BITS * (SLOTS - 1 - slot) & mask for slot in range(SLOTS)]
    forms = [grammar.forms[number - 1] for number in numbers if number]
    template = TEMPLATES[key >> _FORM_BITS * SLOTS]
    last = [form for form in forms if form.startswith(("with ", "for "))]
    if last and len(forms) > 1:  # not "with drawer desk" but "desk with drawer"
        first = [form for form in forms if form not in last]
        forms = [first[0], *last, *first[1:]] if " for " in template else first + last
    return template.format(*forms)


class _Pool:
    """Candidates with the highest scores, in memory that does not grow with the number of combinations."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._keys: list[npt.NDArray[np.int64]] = []
        self._scores: list[Floats] = []
        self._held = 0
        self._bar = 0.0

    def add(self, template: int, weight: float, slots: list[tuple[Ints, Floats]], seed: int) -> None:
        """All combinations of the slots' forms; what cannot reach the pool is dropped before it has a key."""
        score = np.full((), weight)
        for _, shares in slots:
            score = score[..., None] * shares
        keep = np.nonzero(score > self._bar)
        if keep[0].size == 0:
            return
        forms = [items[at] for (items, _), at in zip(slots, keep, strict=True)]
        forms += [np.full(keep[0].size, -1)] * (SLOTS - len(forms))
        keys = pack(np.full(keep[0].size, template), forms)
        self._keys.append(keys)
        self._scores.append(score[keep] * _interest(keys, seed))
        self._held += keys.size
        if self._held > 4 * self.size + 500_000:
            self.most_popular()

    def most_popular(self) -> tuple[npt.NDArray[np.int64], Floats]:
        """The best `size` candidates; scores of the same query from several types add up."""
        keys, where = np.unique(np.concatenate(self._keys), return_inverse=True)
        scores: Floats = np.bincount(where, weights=np.concatenate(self._scores)).astype(np.float64)
        if keys.size > self.size:
            best = np.argpartition(-scores, self.size)[: self.size]
            keys, scores = keys[best], scores[best]
            self._bar = float(scores.min())
        self._keys, self._scores, self._held = [keys], [scores], keys.size
        return keys, scores
