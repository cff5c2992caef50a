"""Python's definition of letters, white space and lower case, as one table that kernels can read."""

import re
import sys
from functools import cache

import numpy as np
import numpy.typing as npt

from labelwise.kernels.tokens import SPACE, WORD

# str.lower() turns the first into two characters, and the second depends on its place in the word.
# Texts that hold one of the two are lower-cased by Python before the kernel reads them.
AWKWARD = ("İ", "Σ")


@cache
def character_table(lowercase: bool) -> npt.NDArray[np.uint32]:
    """Lower case and character class of every code point.

    Returns
    -------
    table : (0x110000,) uint32
        The lower-cased code point (or the code point itself, if not `lowercase`), with the flag WORD where
        ``\\w`` matches and SPACE where ``\\s`` does.
    """
    characters = np.arange(sys.maxunicode + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    folded = characters
    if lowercase:
        for letter in AWKWARD:
            folded = folded.replace(letter, letter.lower()[0])
        folded = folded.lower()
    table = np.frombuffer(folded.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32)
    for pattern, flag in ((r"\w+", WORD), (r"\s+", SPACE)):
        for run in re.finditer(pattern, characters):
            table[run.start() : run.end()] |= flag
    table.flags.writeable = False
    return table


def to_bytes(text: str, lowercase: bool) -> bytes:
    """The text as UTF-8, for a kernel that lower-cases by the table."""
    if lowercase and not text.isascii() and any(letter in text for letter in AWKWARD):
        text = text.lower()
    return text.encode("utf-8", "surrogatepass")
