"""A model fused by torch.compile, with a dropout that costs next to nothing in it.

torch.compile computes every random number of a dropout where it is used, forward and backward, by ten rounds of
Philox: a sixth of a step of a small encoder. Here the numbers of a pass are drawn once, 16 bits each, and every dropout
reads them from a place of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labelwise.errors import need

if TYPE_CHECKING:
    import torch
else:
    torch = need("torch", extra="neural", purpose="encoders")

STRIDE = 40_976
"""Numbers between the places where two dropouts begin to read: no token meets the same ones at both."""


class DrawnDropout(torch.nn.Module):
    """Like `torch.nn.Dropout`, from numbers drawn beforehand where it is compiled; the same where it is not."""

    drawn: torch.Tensor

    def __init__(self, p: float, drawn: torch.Tensor, number: int) -> None:
        super().__init__()
        self.p, self.begin = p, number * STRIDE
        self.register_buffer("drawn", drawn, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Zero for a share p of the elements, the others larger by as much."""
        enough = self.begin + x.numel() <= len(self.drawn)
        if self.training and self.p > 0 and enough and torch.compiler.is_compiling():
            return self.from_drawn(x)
        return torch.nn.functional.dropout(x, self.p, self.training)

    def from_drawn(self, x: torch.Tensor) -> torch.Tensor:
        """What the compiled pass computes."""
        own = self.drawn[self.begin : self.begin + x.numel()].view(x.shape)
        kept = own >= round(self.p * 65536) - 32768
        return torch.where(kept, x * (1 / (1 - self.p)), 0.0)


class Fused:
    """A model as torch.compile makes it; the first batch of a shape takes long."""

    def __init__(self, model: torch.nn.Module, hidden_size: int) -> None:
        self.model, self.hidden_size = model, hidden_size
        self.drawn: torch.Tensor | None = None
        """What the dropouts of a pass depend on; as many as the states of the first batch need."""
        self._compiled = torch.compile(model, dynamic=False)

    def __call__(self, **inputs: Any) -> Any:
        """What the model returns."""
        if self.model.training:
            if self.drawn is None:
                self.drawn = draw_dropouts(self.model, inputs["input_ids"].numel() * self.hidden_size)
            draw(self.drawn)
        return self._compiled(**inputs)


def draw_dropouts(model: torch.nn.Module, size: int) -> torch.Tensor:
    """Replace every dropout of a model by one from drawn numbers, enough of them for so many elements.

    Returns the numbers, int16, to be drawn anew before every pass.
    """
    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, torch.nn.Dropout | DrawnDropout)
    ]
    many = -(-(size + len(found) * STRIDE) // 4) * 4
    drawn = torch.zeros(many, dtype=torch.int16, device=next(model.parameters()).device)
    for number, (parent, name, child) in enumerate(found):
        setattr(parent, name, DrawnDropout(child.p, drawn, number).train(child.training))
    return drawn


def draw(numbers: torch.Tensor) -> None:
    """New numbers, from torch's own generator, without waiting for the device."""
    numbers.view(torch.int64).random_(-(1 << 63), None)
