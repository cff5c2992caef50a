"""The encoders of the tables, with descriptions, and whether they are on this machine."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelwise.errors import UsageError
from labelwise.features.pretrained import find_encoder

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class EncoderChoice:
    """An encoder of a table."""

    name: str
    """The name in the table."""
    folder: str
    """The value of `EncoderConfig.name`."""
    about: str
    place: str
    missing: str | None = None
    """The reason why the encoder cannot be run here."""
    pooling: str = "auto"
    """The value of `EncoderConfig.pooling`."""
    learning_rate: float | None = None
    """The largest learning rate with which fine-tuning is stable, if it is known."""

    @property
    def settings(self) -> dict[str, str]:
        """Fields of `EncoderConfig`."""
        return {"name": self.folder, "pooling": self.pooling}


def known_encoders() -> dict[str, dict[str, Any]]:
    """The contents of encoders.toml."""
    return tomllib.loads((HERE / "encoders.toml").read_text(encoding="utf-8"))


def choose_encoders(given: str) -> list[EncoderChoice]:
    """Encoders from a list with commas; `missing` has the reason if one is not on this machine."""
    known, chosen = known_encoders(), []
    for part in given.split(","):
        name, _, folder = part.strip().partition("=")
        about = known.get(name, {"about": f"{name}, given on the command line", "place": "", "name": name})
        folder = folder or about["name"]
        missing = None
        try:
            find_encoder(folder)
        except UsageError as error:
            missing = re.split("[:;]", str(error))[0]  # the rest is advice
        more = {key: about[key] for key in ("pooling", "learning_rate") if key in about}
        chosen.append(EncoderChoice(name, folder, about["about"], about["place"], missing, **more))
    return chosen
