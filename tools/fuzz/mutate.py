"""Changes of valid input that fuzz targets share: of bytes, of JSON and of arrays."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 1000, 65535, 65536, 10**6, 10**9, 2**31 - 1, 2**31, 2**32),
    *(2**53, 2**63 - 1, 2**63, -(2**31), -(2**63), 10**20, 10**400),
)
FLOATS = (0.0, -0.0, 0.5, -1.5, 1e-300, 1e300, 1e38, 3.4e38, float("inf"), float("-inf"), float("nan"))
STRINGS = (
    *("", " ", "a", "0", "-1", "nan", "None", "true", "../", "../../etc/passwd", "/etc/passwd", "/dev/zero", "\x00"),
    *("\ud800", "é", "𝔘", "\u202e", "[PAD]", "x" * 5000, "code.C", "someone/repo--code.C", "{0}", "%s", "=1+1"),
)


def any_value(draw: random.Random) -> Any:
    """A value of JSON that is likely to surprise."""
    return draw.choice(
        [
            lambda: draw.choice(NUMBERS),
            lambda: draw.choice(FLOATS),
            lambda: draw.choice(STRINGS),
            lambda: draw.choice([None, True, False]),
            lambda: draw.choice([[], {}, [[]], {"": {}}, [None], [0], ["a"], {"a": 1}, [1, [2, [3]]]]),
            lambda: nested(draw.choice([3, 70, 900, 5000])),
            lambda: [0] * draw.choice([1, 10, 1000]),
        ]
    )()


class Nested:
    """Lists in lists, so many that only their text can be written."""

    def __init__(self, depth: int) -> None:
        self.depth = depth


def nested(depth: int) -> Any:
    """Lists in lists."""
    return Nested(depth)


def places(value: Any) -> list[tuple[Any, Any]]:
    """All (container, key) of a JSON value."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            found.append((one, key))
            waiting.append(one[key])
    return found


def change_json(value: Any, draw: random.Random, names: tuple[str, ...] = ()) -> str:
    """Change one place of a JSON value; gives what was changed. `names` are entries that may be added."""
    found = places(value)
    if not found or draw.random() < 0.12:
        name = draw.choice([*names, *STRINGS])
        tables = [one for one in (value, *(box[key] for box, key in found)) if isinstance(one, dict)]
        if tables:
            table = draw.choice(tables)
            table[name] = any_value(draw)
            return f"added {name!r} = {short(table[name])}"
        return "nothing"
    box, key = draw.choice(found)
    how, old = draw.random(), box[key]
    if how < 0.1:
        del box[key]
        return f"removed {key!r}"
    if how < 0.2 and len(found) > 1:
        other, at = draw.choice(found)
        box[key] = other[at] if not isinstance(other[at], dict | list) else any_value(draw)
    elif isinstance(old, int) and not isinstance(old, bool) and how < 0.6:
        box[key] = draw.choice([old + 1, old - 1, -old, old * 2, old * 1000, old**5, float(old), str(old), old + 0.5])
    elif isinstance(old, str) and how < 0.4:
        box[key] = draw.choice([old + "x", old[:-1], old.upper(), old * 100, [old], {old: old}, "../" + old])
    elif isinstance(old, list) and how < 0.4 and old:
        box[key] = draw.choice([old * 2, old[:-1], old[::-1], [old], old * 1000 if len(old) < 100 else old])
    else:
        box[key] = any_value(draw)
    return f"{key!r}: {short(old)} became {short(box[key])}"


def short(value: Any) -> str:
    """A value in few letters."""
    if isinstance(value, Nested):
        return f"{value.depth} lists in lists"
    if isinstance(value, int) and abs(value) > 10**40:
        return "a huge number"
    return repr(value)[:60]


def to_text(value: Any) -> str:
    """JSON, with what `nested` stands for."""
    plain = json.dumps(value, default=lambda one: f"@nested{one.depth}@")
    for depth in (3, 70, 900, 5000):
        plain = plain.replace(f'"@nested{depth}@"', "[" * depth + "]" * depth)
    return plain


def change_text(text: str, draw: random.Random) -> str:
    """Change a few letters of a text."""
    letters = list(text)
    for _ in range(draw.choice([1, 1, 2, 5, 20])):
        at = draw.randrange(len(letters) + 1)
        how = draw.random()
        if how < 0.3 and letters:
            del letters[at : at + draw.choice([1, 1, 5, 50])]
        elif how < 0.6:
            letters[at:at] = draw.choice(
                ['"', "{", "}", "[", "]", ",", ":", "\n", "\x00", "\\", "é", "9" * 400, "-", "e9"]
            )
        elif how < 0.8:
            letters[at:at] = str(draw.choice(NUMBERS))
        else:
            letters[at : at + 1] = chr(
                draw.choice([0, 9, 10, 13, 34, 0x2028, 0xFFFF, 0x1F600, draw.randrange(32, 127)])
            )
    return "".join(letters)


def change_bytes(content: bytes, draw: random.Random) -> bytes:
    """Change a few bytes, cut, repeat or extend."""
    data = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 3, 10])):
        at, how = draw.randrange(len(data) + 1), draw.random()
        if how < 0.4 and at < len(data):
            data[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256), data[at] ^ (1 << draw.randrange(8))])
        elif how < 0.55:
            del data[at : at + draw.choice([1, 2, 4, 8, 100])]
        elif how < 0.7:
            data[at:at] = draw.choice([b"\0", b"\xff" * 4, b"\0" * 8, draw.randbytes(8), data[:64]])
        elif how < 0.85:
            number = draw.choice(NUMBERS[:-2])
            data[at : at + 8] = (number % (1 << 64)).to_bytes(8, draw.choice(["little", "big"]))
        elif how < 0.93:
            del data[at:]
    return bytes(data)


def change_file(file: Path, draw: random.Random) -> str:
    """Replace the bytes of a file."""
    file.write_bytes(change_bytes(file.read_bytes(), draw))
    return f"bytes of {file.name}"
