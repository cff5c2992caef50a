"""A fused model and its dropout: the share, what depends on what, and nothing changed where it is not compiled."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from labelwise.features.fused import STRIDE, DrawnDropout, FusedModel, redraw, replace_dropouts  # noqa: E402


@pytest.fixture(autouse=True)
def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled needs a GPU, or a compiler."""
    monkeypatch.setattr(torch, "compile", lambda model, dynamic: model)


def _drawn(size: int) -> torch.Tensor:
    torch.manual_seed(0)
    drawn = torch.zeros(size, dtype=torch.int16)
    redraw(drawn)
    return drawn


def test_drawn_numbers_are_uniform() -> None:
    drawn = _drawn(1 << 20).numpy()
    assert (drawn.min(), drawn.max()) == (-32768, 32767)
    for lane in range(4):  # four of them are drawn at once
        bits = np.unpackbits(np.ascontiguousarray(drawn[lane::4]).view(np.uint8)).reshape(-1, 16)
        assert np.abs(bits.mean(0) - 0.5).max() < 6 * 0.5 / len(bits) ** 0.5


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_drops_a_share_p_and_keeps_the_mean(p: float) -> None:
    out = DrawnDropout(p, _drawn(400_000 + 4 * STRIDE), 3).from_drawn(torch.ones(1000, 400))
    deviation = (p * (1 - p) / out.numel()) ** 0.5
    assert abs(float((out == 0).float().mean()) - p) < 5 * deviation
    assert float(out.max()) == pytest.approx(1 / (1 - p))
    for axis in (0, 1):  # rows and columns have their share too
        share = (out == 0).float().mean(axis)
        assert float((share - p).abs().max()) < 6 * (p * (1 - p) / out.shape[axis]) ** 0.5


def test_dropouts_differ_from_each_other_and_from_pass_to_pass() -> None:
    drawn = _drawn(200_000 + 6 * STRIDE)
    masks = []
    for _ in range(2):
        masks += [DrawnDropout(0.1, drawn, number).from_drawn(torch.ones(200_000)) > 0 for number in range(6)]
        redraw(drawn)
    found = np.corrcoef(torch.stack(masks).float().numpy()) - np.eye(len(masks))
    assert np.abs(found).max() < 6 / 200_000**0.5


def test_gradients_are_dropped_where_values_are() -> None:
    x = torch.ones(1000, requires_grad=True)
    out = DrawnDropout(0.25, _drawn(1000), 0).from_drawn(x)
    out.sum().backward()
    torch.testing.assert_close(x.grad, out.detach())


def test_every_dropout_is_replaced_once_and_equals_torch_when_not_compiled() -> None:
    def make() -> torch.nn.Module:
        torch.manual_seed(1)
        inner = torch.nn.Sequential(torch.nn.Dropout(0.5))
        return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.3), inner)

    plain, model = make(), make()
    for _ in range(2):
        drawn = replace_dropouts(model, 120)
    found = [module for module in model.modules() if isinstance(module, DrawnDropout)]
    assert [(module.p, module.begin) for module in found] == [(0.3, 0), (0.5, STRIDE)]
    assert all(module.drawn is drawn for module in found)
    assert found[-1].begin + 120 <= len(drawn)
    assert not any(type(module) is torch.nn.Dropout for module in model.modules())
    assert list(model.state_dict()) == list(plain.state_dict())  # nothing new to be saved
    x = torch.randn(30, 4)
    torch.testing.assert_close(model.eval()(x), plain.eval()(x))
    torch.manual_seed(2)
    expected = plain.train()(x)
    torch.manual_seed(2)
    torch.testing.assert_close(model.train()(x), expected)


def test_compiled_dropouts_read_the_drawn_numbers_if_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    dropout = DrawnDropout(0.5, _drawn(1000), 0).train()
    x = torch.ones(1000)
    torch.testing.assert_close(dropout(x), dropout.from_drawn(x))
    torch.testing.assert_close(dropout(x), dropout(x))
    large = torch.ones(1004)  # such as the probabilities of attention
    assert not torch.equal(dropout(large), dropout(large))


def test_a_fused_model_redraws_for_every_training_pass() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embeddings, self.dropout = torch.nn.Embedding(9, 4), torch.nn.Dropout(0.5)

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.dropout(self.embeddings(input_ids))

    model = Model()
    fused, ids, seen = FusedModel(model, 4), torch.zeros((2, 3), dtype=torch.long), []
    for _ in range(3):
        fused(input_ids=ids)
        assert fused.drawn is not None
        assert model.dropout.drawn is fused.drawn
        seen.append(fused.drawn[:24].tolist())
    assert len(fused.drawn) >= 24
    assert seen[0] != seen[1] != seen[2]
    model.eval()
    fused(input_ids=ids)
    assert fused.drawn[:24].tolist() == seen[-1]
