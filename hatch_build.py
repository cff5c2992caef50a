"""The README as a package index shows it: an index has no files beside it, so links and images get addresses.

hatchling runs this when it builds; pyproject.toml asks for it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)(\[[^]]*\])\((?!https?:|mailto:|#)([^)\s]+)\)")
VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)


def for_index(text: str, source: str, tag: str) -> str:
    """Markdown whose relative links lead to the files of a tag at `source`, the address of the repository."""
    raw = source.replace("https://github.com/", "https://raw.githubusercontent.com/")

    def absolute(found: re.Match[str]) -> str:
        is_image, shown, target = found.groups()
        address = f"{raw}/{tag}/{target}?sanitize=true" if is_image else f"{source}/blob/{tag}/{target}"
        return f"{is_image}{shown}({address})"

    return LINK.sub(absolute, text)


class CustomMetadataHook(MetadataHookInterface):  # type: ignore[misc]  # not installed where mypy runs
    """Puts the README into the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the entry that is called dynamic in pyproject.toml."""
        root = Path(self.root)
        (version,) = VERSION.findall((root / "src/labelwise/__init__.py").read_text(encoding="utf-8"))
        text = (root / "README.md").read_text(encoding="utf-8")
        text = for_index(text, metadata["urls"]["Source"], f"v{version}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
