"""The typing errors of people who search, made the same way each time."""

from zlib import crc32

_VOWELS = "aeiou"


def misspell(phrase: str, count: int) -> list[str]:
    """At most `count` distinct misspellings of a phrase, each with one error in its longest word.

    >>> misspell("running shoes", 3)
    ['runing shoes', 'runnign shoes', 'runningshoes']
    """
    words = phrase.split()
    longest = max(range(len(words)), key=lambda i: len(words[i]))
    word = words[longest]
    if len(word) < 5 or not word.isalpha():
        return []
    start = crc32(phrase.encode())
    found = []
    for slip in (_single, _swap, _glue, _lose_vowel, _double, _swap_inside):
        wrong = slip(words, longest, start)
        if wrong is not None and wrong != phrase and wrong not in found:
            found.append(wrong)
    return found[:count]


def _replace(words: list[str], i: int, word: str) -> str:
    return " ".join([*words[:i], word, *words[i + 1 :]])


def _single(words: list[str], i: int, start: int) -> str | None:
    """Write a doubled letter once: "runing"."""
    word = words[i]
    for at in range(1, len(word)):
        if word[at] == word[at - 1]:
            return _replace(words, i, word[:at] + word[at + 1 :])
    return None


def _swap(words: list[str], i: int, start: int) -> str | None:
    """Swap the two letters before the last: "runnign"."""
    word = words[i]
    return _replace(words, i, word[:-2] + word[-1] + word[-2])


def _glue(words: list[str], i: int, start: int) -> str | None:
    """Forget the space: "runningshoes"."""
    return "".join(words) if len(words) == 2 else None


def _lose_vowel(words: list[str], i: int, start: int) -> str | None:
    """Leave out a vowel inside the word: "trouers"."""
    word = words[i]
    places = [at for at in range(2, len(word) - 1) if word[at] in _VOWELS]
    if not places:
        return None
    at = places[start % len(places)]
    return _replace(words, i, word[:at] + word[at + 1 :])


def _double(words: list[str], i: int, start: int) -> str | None:
    """Double a consonant inside the word: "jackket"."""
    word = words[i]
    places = [
        at for at in range(2, len(word) - 1) if word[at] not in _VOWELS and word[at] not in word[at - 1 : at + 2 : 2]
    ]
    if not places:
        return None
    at = places[start // 7 % len(places)]
    return _replace(words, i, word[:at] + word[at] + word[at:])


def _swap_inside(words: list[str], i: int, start: int) -> str | None:
    """Swap two neighbours inside the word: "jakcet"."""
    word = words[i]
    at = 1 + start // 11 % (len(word) - 3)
    return _replace(words, i, word[:at] + word[at + 1] + word[at] + word[at + 2 :])
