"""Fuzz target: TOML files with settings, read by `load_preset` and `preset_config`."""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from mutate import NUMBERS, STRINGS, change_bytes, change_text
from runner import ROOT, Case, command, scratch

PRESETS = sorted((ROOT / "src" / "labelwise" / "config" / "presets").glob("*.toml"))
VALUES = (
    *(
        "[]",
        "{}",
        "true",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "0x7fffffffffffffffff",
        "1979-05-27",
        "'a'",
        '""',
        "[[1],[2]]",
    ),
    *(
        "{ a = 1 }",
        "[1, 'a']",
        "9" * 5000,
        "9" * 400,
        "1.5",
        "-0.0",
        '"""x"""',
        "[" * 3000 + "]" * 3000,
        "1_000",
        "07:32:00",
    ),
)
OVERRIDES = ("n_trees", "cost", "ranker", "index", "tfidf", "encoder", "holdout", "seed", "threads", "beam", "model")


def make_case(seed: int) -> Case:
    """A changed preset, sometimes something that is no file."""
    draw = random.Random(seed)
    source = draw.choice(PRESETS)
    text, path = source.read_text(), scratch() / "x.toml"
    how = draw.random()
    if how < 0.03:
        path.mkdir()
        return Case(seed, path, "a folder")
    if how < 0.05:
        path.symlink_to(draw.choice(["/dev/null", "/nowhere", "/dev/full", "x.toml"]))
        return Case(seed, path, "a link")
    if how < 0.25:
        path.write_bytes(change_bytes(text.encode(), draw))
        return Case(seed, path, f"bytes of {source.name}")
    if how < 0.4:
        path.write_bytes(change_text(text, draw).encode("utf-8", "surrogatepass"))
        return Case(seed, path, f"letters of {source.name}")
    lines = text.split("\n")
    value = draw.choice([*VALUES, *(str(number) for number in NUMBERS), *(repr(one)[:100] for one in STRINGS)])
    at = draw.randrange(len(lines))
    name = lines[at].partition("=")[0].strip() if "=" in lines[at] else draw.choice([*OVERRIDES, "'a b'", "a.b.c.d"])
    lines[at] = f"{name} = {value}" if draw.random() < 0.9 else f"[{name}]"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    return Case(seed, path, f"{source.name}: {lines[at][:80]}")


def check(case: Case) -> str:
    """Read the settings; what is accepted must be valid and must be read again as the same."""
    from labelwise.config.presets import load_preset, preset_config

    assert case.path is not None
    config = load_preset(case.path)
    if config.validated() != config:
        return "wrong: an accepted preset changes when it is checked"
    preset_config(case.path, {})
    return "accepted"


def prepare() -> None:
    """Import."""
    import labelwise.config.presets  # noqa: F401


if __name__ == "__main__":
    sys.exit(command(make_case, check, about=__doc__ or "", cases=5000, memory_mb=1024, prepare=prepare))
