"""Texts in scripts that put no spaces between words: Chinese, Japanese, Thai and others.

A word of such a text is a whole sentence for tf-idf of words, which then learns nothing. Characters in a row, one to
three of them, serve as words there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SAMPLE = 1000
"""Texts that are looked at, at most."""
LETTERS = 500
"""Characters of a text that are looked at, from its beginning."""
MOST = 0.5
"""With this share of letters in such scripts, texts count as written without spaces."""
SOME = 0.1
"""With this share the user is told of it."""
PIECES = 4
"""Texts of so many pieces between spaces, on average, may have been cut into words by some tool."""
WORD, LONG_WORD = 3.0, 8.0
"""Letters of a piece, on average, up to which it is a word: of Chinese or Japanese, and of alphabets such as Thai."""

# Kana, Han ideographs and their extensions.
_IDEOGRAPHS = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U000323af"
)
# Thai, Lao, Tibetan, Myanmar, Khmer, Tai Le to New Tai Lue, Tai Tham, Myanmar extensions; vowel signs included.
_ALPHABETS = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0ece\u0f00-\u0fbc\u1000-\u109f\u1780-\u17d3\u1950-\u19df\u1a20-\u1a7c"
_ALPHABETS += "\ua9e0-\ua9fe\uaa60-\uaadf"
_OF_IDEOGRAPHS, _OF_ALPHABETS = re.compile(f"[{_IDEOGRAPHS}]"), re.compile(f"[{_ALPHABETS}]")
_UNSPACED = re.compile(f"[{_IDEOGRAPHS}{_ALPHABETS}]")
_OTHER_LETTERS = re.compile(rf"[^\W\d_{_IDEOGRAPHS}{_ALPHABETS}]+")


def unspaced_share(texts: Sequence[str]) -> float:
    """The share of letters that belong to scripts without spaces between words, in a sample of the texts.

    It is 0 where such texts have been cut into words.
    """
    n_ideographs = n_alphabets = n_others = n_pieces = 0
    sample = _sample(texts)
    for text in sample:
        n_others += sum(map(len, _OTHER_LETTERS.findall(text)))
        if not text.isascii() and _UNSPACED.search(text):
            n_ideographs += len(_OF_IDEOGRAPHS.findall(text))
            n_alphabets += len(_OF_ALPHABETS.findall(text))
            n_pieces += sum(_UNSPACED.search(piece) is not None for piece in text.split())
    found = n_ideographs + n_alphabets
    word = WORD if n_ideographs >= n_alphabets else LONG_WORD
    if not found or (n_pieces >= PIECES * len(sample) and found <= word * n_pieces):
        return 0.0
    return found / (found + n_others)


def lacks_spaces(texts: Sequence[str]) -> bool:
    """Whether texts are mostly written without spaces between words."""
    return unspaced_share(texts) >= MOST


def _sample(texts: Sequence[str]) -> list[str]:
    """The beginnings of some texts, spread over all of them; what is no string is left out."""
    step = -(-len(texts) // SAMPLE) or 1
    return [text[:LETTERS] for text in texts[::step] if isinstance(text, str)]
