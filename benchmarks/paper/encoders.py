"""The encoders of the tables: which there are, what they are, and whether they are here."""

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
    """What the table calls it."""
    folder: str
    """What `EncoderConfig.name` takes."""
    about: str
    place: str
    missing: str | None = None
    """Why it cannot be run here."""
    pooling: str = "auto"
    """What `EncoderConfig.pooling` takes."""
    learning_rate: float | None = None
    """The most that its fine-tuning takes, where that is known."""

    @property
    def settings(self) -> dict[str, str]:
        """Fields of `EncoderConfig`."""
        return {"name": self.folder, "pooling": self.pooling}


def known_encoders() -> dict[str, dict[str, Any]]:
    """What encoders.toml holds."""
    return tomllib.loads((HERE / "encoders.toml").read_text(encoding="utf-8"))


def choose_encoders(given: str) -> list[EncoderChoice]:
    """Encoders by commas, each looked for; one that is not there says why."""
    known, chosen = known_encoders(), []
    for part in given.split(","):
        name, _, folder = part.strip().partition("=")
        about = known.get(name, {"about": f"{name}, of your own choice", "place": "", "name": name})
        folder = folder or about["name"]
        missing = None
        try:
            find_encoder(folder)
        except UsageError as error:
            missing = re.split("[:;]", str(error))[0]  # the rest is advice
        more = {key: about[key] for key in ("pooling", "learning_rate") if key in about}
        chosen.append(EncoderChoice(name, folder, about["about"], about["place"], missing, **more))
    return chosen
