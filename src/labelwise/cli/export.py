"""labelwise export"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show
from labelwise.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Write a copy of a model that is smaller, faster on CPUs, and works without torch. All commands accept it.

    Try it: labelwise export my-model my-model-int8 --to onnx --int8
    """

    not_settings = ("ranker",)

    source: Annotated[Path, Positional, arg(metavar="MODEL")]
    """Folder of a model. Of a linear model only the ranker can be made smaller (--ranker)."""
    destination: Annotated[Path, Positional, arg(metavar="OUT")]
    """The folder to write."""
    to: Literal["onnx"] = "onnx"
    """Format of the encoder: an ONNX file for onnxruntime."""
    int8: bool = False
    """Round the encoder's weights to 8 bits: a quarter of the size, and about three times as fast."""
    ranker: Literal["fp16", "int8"] | None = None
    """Round the weights of the ranker: to 16-bit floats, or to 8 bits with a scale for each label. This saves space on
    disk; the speed is the same."""
    overwrite: bool = False
    """Replace a model at the destination."""

    def run(self, out: Console, show: Show) -> None:
        """Export the model and print the sizes."""
        from labelwise.integrations.onnx_export import export_model

        if self.destination.exists() and not self.overwrite:
            raise UsageError(f"{self.destination} exists already; choose another place, or pass --overwrite")
        export_model(
            self.source,
            self.destination,
            int8=self.int8,
            ranker=self.ranker,
            overwrite=self.overwrite,
            on_event=show.on_event,
        )
        before, after = (_megabytes(folder) for folder in (self.source, self.destination))
        out.print(f"{self.destination}: {after:.1f} MB, {self.source} has {before:.1f} MB", markup=False)


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
