"""A model fused by torch.compile, with a dropout that costs next to nothing in it.

torch.compile computes every random number of a dropout where it is used, forward and backward, by ten rounds of
Philox: a sixth of the time of a step of a small encoder. Here the numbers of a pass are drawn once, 16 bits each, and
every dropout reads them from an offset of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labelwise.errors import need

if TYPE_CHECKING:
    import torch
else:
    torch = need("torch", extra="neural", purpose="encoders")

STRIDE = 40_976
"""Distance between the offsets of two dropouts: no token gets the same numbers from both."""


class DrawnDropout(torch.nn.Module):
    """A dropout that reads numbers drawn beforehand when compiled, and equals `torch.nn.Dropout` otherwise."""

    drawn: torch.Tensor

    def __init__(self, p: float, drawn: torch.Tensor, number: int) -> None:
        super().__init__()
        self.p, self.begin = p, number * STRIDE
        self.register_buffer("drawn", drawn, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Set a share p of the elements to zero and scale the others by 1 / (1 - p)."""
        enough = self.begin + x.numel() <= len(self.drawn)
        if self.training and self.p > 0 and enough and torch.compiler.is_compiling():
            return self.from_drawn(x)
        return torch.nn.functional.dropout(x, self.p, self.training)

    def from_drawn(self, x: torch.Tensor) -> torch.Tensor:
        """The computation of a compiled pass."""
        own = self.drawn[self.begin : self.begin + x.numel()].view(x.shape)
        kept = own >= round(self.p * 65536) - 32768
        return torch.where(kept, x * (1 / (1 - self.p)), 0.0)


class FusedModel:
    """A model compiled by torch.compile; the first batch of each shape takes long."""

    def __init__(self, model: torch.nn.Module, hidden_size: int) -> None:
        self.model, self.hidden_size = model, hidden_size
        self.drawn: torch.Tensor | None = None
        """The random numbers of all dropouts of a pass, enough for the states of the first batch."""
        self._compiled = torch.compile(model, dynamic=False)

    def __call__(self, **inputs: Any) -> Any:
        """The output of the model."""
        if self.model.training:
            if self.drawn is None:
                self.drawn = replace_dropouts(self.model, inputs["input_ids"].numel() * self.hidden_size)
            redraw(self.drawn)
        return self._compiled(**inputs)


def replace_dropouts(model: torch.nn.Module, size: int) -> torch.Tensor:
    """Replace every dropout of a model by a `DrawnDropout`, with enough numbers for `size` elements.

    Returns the numbers, int16; `redraw` replaces them before every pass.
    """
    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, torch.nn.Dropout | DrawnDropout)
    ]
    n_numbers = -(-(size + len(found) * STRIDE) // 4) * 4
    drawn = torch.zeros(n_numbers, dtype=torch.int16, device=next(model.parameters()).device)
    for number, (parent, name, child) in enumerate(found):
        setattr(parent, name, DrawnDropout(child.p, drawn, number).train(child.training))
    return drawn


def redraw(numbers: torch.Tensor) -> None:
    """Draw new numbers in place, by torch's own generator, without waiting for the device."""
    numbers.view(torch.int64).random_(-(1 << 63), None)
