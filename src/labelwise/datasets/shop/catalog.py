"""Reads the hand-written catalogue of the generated shop, ``catalog/*.txt``, into product types.

::

    [Department / Category]
    broader: words for the category ; words for the whole department
    sizes: shoe                           a list in words.py; also colours, audience, fits
    prints: yes                           where patterned products make sense; also models
    materials: Mesh, Knit                 what its products are made of; also features
    name | other names | uses | who gets it as a gift | sizes=none, or any setting, for this type only

A use with ``~`` only follows "for" ("sofa for small apartments"); the others are searched by themselves too.
"""

from dataclasses import dataclass
from importlib.resources import files

from labelwise.datasets.shop.words import AUDIENCES, COLOURS, FITS, PRINTS, SIZES


@dataclass(frozen=True, kw_only=True)
class ProductType:
    """A kind of product: what it is called and which attributes it can have."""

    name: str
    department: str
    category: str
    synonyms: tuple[str, ...]
    uses: tuple[str, ...]
    recipients: tuple[str, ...]
    narrow: tuple[str, ...]
    """Words for the whole category."""
    broad: tuple[str, ...]
    """Words for the whole department."""
    sizes: tuple[str, ...]
    colours: tuple[str, ...]
    audiences: tuple[str, ...]
    prints: tuple[str, ...]
    fits: tuple[str, ...]
    materials: tuple[str, ...]
    features: tuple[str, ...]
    has_models: bool


def read_catalog() -> list[ProductType]:
    """All product types, in the order of the files."""
    types = []
    for file in sorted(files(__package__).joinpath("catalog").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".txt"):
            types.extend(_parse(file.read_text(encoding="utf-8")))
    return types


def split(text: str, separator: str = ",") -> tuple[str, ...]:
    """The parts of a written list; "none" is an empty one."""
    return () if text.strip() in ("", "none") else tuple(part.strip() for part in text.split(separator))


def _parse(text: str) -> list[ProductType]:
    types: list[ProductType] = []
    department = category = ""
    settings: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            department, category = (part.strip() for part in line.strip("[]").split("/"))
            settings = {}
        elif " | " in line:
            name, synonyms, uses, recipients, *own = (part.strip() for part in line.split(" | "))
            words = {"synonyms": split(synonyms), "uses": split(uses), "recipients": split(recipients)}
            types.append(
                _product_type(name, department, category, words, settings | dict(pair.split("=", 1) for pair in own))
            )
        elif line:
            key, _, value = line.partition(":")
            settings[key] = value.strip()
    return types


def _product_type(
    name: str, department: str, category: str, words: dict[str, tuple[str, ...]], settings: dict[str, str]
) -> ProductType:
    narrow, _, broad = settings["broader"].partition(";")

    def listed(key: str, lists: dict[str, str]) -> tuple[str, ...]:
        choice = settings.get(key, "none")
        return () if choice == "none" else split(lists[choice])

    def fitting(key: str) -> tuple[str, ...]:
        """What the name does not say already: no "Leather Leather Jacket"."""
        said = set(name.lower().split())
        return tuple(word for word in split(settings[key]) if not said & set(word.lower().split()))

    return ProductType(
        name=name,
        department=department,
        category=category,
        narrow=split(narrow),
        broad=split(broad),
        sizes=listed("sizes", SIZES),
        colours=listed("colours", COLOURS),
        audiences=listed("audience", AUDIENCES),
        fits=listed("fits", FITS),
        prints=split(PRINTS) if settings.get("prints") == "yes" else (),
        materials=fitting("materials"),
        features=fitting("features"),
        has_models=settings.get("models") == "yes",
        **words,
    )
