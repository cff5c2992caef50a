"""Invented brand names, their product lines and model numbers: composed of syllables, always the same ones."""

from labelwise.datasets.shop.words import LINES

_FIRST = (
    "Bel Bren Cal Cor Dar Del Dor Fal Fen Gal Gor Hal Hes Jor Kal Kel Lor Lum Mar Mel Mor Nar Nor Ol Or Pel Pol Quil"
)
_FIRST += " Ral Ren Sal Sel Tal Tor Ul Val Vel Vin Wen Yor Zan Zel"
_MIDDLE = "ad am an av eb ed em ev ib id im iv ob om ov ud um uv"
_LAST = "ara aro ella ento era esk ett ia ika ina ola ono ora orn osa oth ula uno wick"
_TAKEN = {"Belavia", "Melania", "Moravia", "Ralivia", "Toradora"}
"""Compositions that are the name of something real."""

N_BRANDS = 1500
LINES_PER_BRAND = 4
MODELS_PER_LINE = 6


def _mix(number: int) -> int:
    """A fixed scramble of small integers (Knuth's multiplicative hash), so that names follow no visible order."""
    return (number * 2654435761 + 40503) % (1 << 32) >> 7


def brand_names() -> list[str]:
    """`N_BRANDS` distinct invented names; none belongs to a real company to our knowledge.

    >>> len(set(brand_names())) == N_BRANDS
    True
    """
    names = [a + b + c for a in _FIRST.split() for b in _MIDDLE.split() for c in _LAST.split()]
    readable = sorted((_mix(i), name) for i, name in enumerate(names) if name not in _TAKEN and "vw" not in name)
    return [name for _, name in readable[:N_BRANDS]]


def line_names() -> list[str]:
    """Line `brand * LINES_PER_BRAND + i` is that brand's i-th product line."""
    lines = LINES.split()
    stride = len(lines) // LINES_PER_BRAND
    return [
        lines[(_mix(brand) + i * stride + _mix(brand * 7 + i) % stride) % len(lines)]
        for brand in range(N_BRANDS)
        for i in range(LINES_PER_BRAND)
    ]


def model_names() -> list[str]:
    """Model `line * MODELS_PER_LINE + i` is that line's i-th model number."""
    shapes = ("{n}00", "{c}{n}", "{n}{m}0", "{c}{n}{m}", "{n} Plus", "Mk {n}", "{c}{n}00", "{n}{m}{n}")
    models = []
    for line in range(N_BRANDS * LINES_PER_BRAND):
        shape = shapes[_mix(line) % len(shapes)]
        letter = "ACDEGKLMPRSTVXZ"[_mix(line + 5) % 15]
        models += [shape.format(c=letter, n=i + 1, m=_mix(line) % 10) for i in range(MODELS_PER_LINE)]
    return models
