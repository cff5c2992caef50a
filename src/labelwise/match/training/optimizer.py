"""AdamW on 32-bit master weights; in 16-bit precision the network computes with a 16-bit copy of them.

The paper could not train its encoders in mixed precision. Three things make it stable here: updates are added to
32-bit masters, because a 16-bit weight would round small updates away; the loss is computed in 32 bits; and a step
whose gradients are not finite is skipped as a whole, on the device, without waiting for it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from labelwise.config import ComputePrecision, MatcherConfig, Precision
from labelwise.match.network import Network
from labelwise.match.training.distributed import Processes

DTYPES: dict[ComputePrecision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

FIRST_SCALE, STEPS_TO_DOUBLE = 2.0**13, 500
"""In fp16 the loss is multiplied by a scale, because gradients below 6e-8 would be zero. The scale is halved when a
gradient overflows, and doubled after this number of good steps in a row."""


def choose_precision(wanted: Precision, device: torch.device) -> ComputePrecision:
    """The wanted precision. For auto: fp32 on a CPU, and on a GPU bf16, or fp16 if the GPU cannot compute in bf16."""
    if wanted != "auto":
        return wanted
    if device.type != "cuda":
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"


class _ParameterGroup:
    """Weights with one learning rate and one weight decay, as one flat vector."""

    def __init__(self, params: list[nn.Parameter], *, rate: float, decay: float, shared: bool) -> None:
        self.params, self.rate = params, rate
        self.master = torch.cat([p.detach().float().reshape(-1) for p in params])
        self.grad = self.master.grad = torch.zeros_like(self.master)
        self.lr = torch.zeros((), device=self.master.device)
        self.options = {"params": [self.master], "lr": self.lr, "weight_decay": decay}
        self.masters, self.master_grads = self._views(self.master), self._views(self.grad)
        # In full precision the network works on the masters themselves.
        self.param_grads = self.master_grads if shared else [torch.zeros_like(p) for p in params]
        for p, master, grad in zip(params, self.masters, self.param_grads, strict=True):
            p.grad = grad
            if shared:
                p.data = master

    def _views(self, flat: Tensor) -> list[Tensor]:
        sizes = [p.numel() for p in self.params]
        return [part.view_as(p) for part, p in zip(flat.split(sizes), self.params, strict=True)]


class MixedPrecisionOptimizer:
    """AdamW with gradient clipping, all of it on the device."""

    def __init__(
        self, network: Network, config: MatcherConfig, precision: ComputePrecision, processes: Processes
    ) -> None:
        self.config, self.precision, self.processes = config, precision, processes
        head = set(network.head.parameters())
        trained = [p for p in network.parameters() if p.requires_grad]
        kinds: dict[tuple[bool, bool], list[nn.Parameter]] = {}
        for p in trained:  # biases and norms are not decayed
            kinds.setdefault((p in head, p.ndim > 1), []).append(p)
        self.device = trained[0].device
        shared = precision == "fp32"
        full = {kind: [p.detach().float() for p in params] for kind, params in kinds.items()}
        network.cast(DTYPES[precision])
        self.groups = []
        for (is_head, decayed), params in kinds.items():
            rate = config.head_learning_rate if is_head else config.learning_rate
            group = _ParameterGroup(params, rate=rate, decay=config.weight_decay if decayed else 0.0, shared=shared)
            torch._foreach_copy_(group.masters, full[is_head, decayed])  # not the rounded weights
            self.groups.append(group)
        on_gpu = self.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            [group.options for group in self.groups], betas=(0.9, 0.999), eps=1e-8, fused=True, capturable=on_gpu
        )
        self.scale = torch.full((), FIRST_SCALE if precision == "fp16" else 1.0, device=self.device)
        self.good_steps = torch.zeros((), device=self.device)
        self.skipped = torch.zeros((), device=self.device)
        """Number of steps without finite gradients since the last `TrainStep.collect`."""

    def set_rates(self, factor: float) -> None:
        """Set the learning rates of the next update to a share of the configured ones."""
        for group in self.groups:
            group.lr.fill_(group.rate * factor)

    @torch.no_grad()
    def update(self) -> None:
        """One step of AdamW with the gradients of the backward pass; they are zero afterwards."""
        if self.precision != "fp32":
            for group in self.groups:
                torch._foreach_copy_(group.master_grads, group.param_grads)
        grads = [group.grad for group in self.groups]
        for grad in grads:
            self.processes.average(grad)
        norm = torch.stack([torch.linalg.vector_norm(grad) for grad in grads]).square().sum().sqrt() / self.scale
        broken = (~torch.isfinite(norm)).float()
        factor = torch.clamp(self.config.max_grad_norm / (norm + 1e-6), max=1.0) / self.scale
        torch._foreach_mul_(grads, factor)
        self.optimizer.found_inf = broken  # type: ignore[attr-defined]  # the fused kernel then changes nothing
        self.optimizer.step()
        self._adapt_scale(broken)
        if self.precision != "fp32":
            for group in self.groups:
                torch._foreach_copy_([p.data for p in group.params], group.masters)
        self.zero_gradients()

    def zero_gradients(self) -> None:
        """Set all gradients to zero, in place, because captured steps write to these tensors."""
        torch._foreach_zero_([grad for group in self.groups for grad in group.param_grads])

    def _adapt_scale(self, broken: Tensor) -> None:
        self.skipped += broken
        if self.precision == "fp16":
            self.good_steps.copy_((self.good_steps + 1) * (1 - broken))
            doubled = (self.good_steps >= STEPS_TO_DOUBLE).float()
            self.scale.mul_(1 - broken / 2).mul_(1 + doubled)
            self.good_steps.mul_(1 - doubled)

    @torch.no_grad()
    def release(self, network: Network) -> None:
        """Give the network weights of its own in full precision, with the values of the masters."""
        network.cast(torch.float32)
        for group in self.groups:
            for p, master in zip(group.params, group.masters, strict=True):
                p.data, p.grad = master.clone(), None

    # ------------------------------------------------------------------ state

    def values(self) -> list[Tensor]:
        """A copy of the weights."""
        return [group.master.detach().clone() for group in self.groups]

    @torch.no_grad()
    def restore(self, values: list[Tensor]) -> None:
        """Set the weights to a copy that `values` returned."""
        for group, value in zip(self.groups, values, strict=True):
            group.master.copy_(value)
            if self.precision != "fp32":
                torch._foreach_copy_([p.data for p in group.params], group.masters)
        self.zero_gradients()

    def state(self) -> dict[str, Tensor]:
        """A copy of everything that the next update depends on."""
        state = {"scale": self.scale, "good_steps": self.good_steps}
        for number, group in enumerate(self.groups):
            state[f"{number}.weights"] = group.master
            for name, value in self.optimizer.state.get(group.master, {}).items():
                state[f"{number}.{name}"] = value
        return {name: value.detach().clone() for name, value in state.items()}

    @torch.no_grad()
    def load_state(self, state: dict[str, Any]) -> None:
        """Set the state to a copy that `state` returned."""
        self.scale.copy_(state["scale"])
        self.good_steps.copy_(state["good_steps"])
        self.skipped.zero_()
        for number, group in enumerate(self.groups):
            kept = {
                name.partition(".")[2]: value
                for name, value in state.items()
                if name.startswith(f"{number}.") and not name.endswith(".weights")
            }
            mine = self.optimizer.state[group.master]
            for name, value in kept.items():
                if name in mine:
                    mine[name].copy_(value)  # in place, because captured steps read this tensor
                else:
                    mine[name] = (
                        value.detach().clone().to("cpu" if value.ndim == 0 and not self._on_gpu else self.device)
                    )
            if not kept:
                for value in mine.values():
                    value.zero_()
        self.restore([state[f"{number}.weights"] for number in range(len(self.groups))])

    @property
    def _on_gpu(self) -> bool:
        return self.device.type == "cuda"
