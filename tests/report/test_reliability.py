import sys

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.errors import DataError, UsageError
from labelwise.report.reliability import plot_reliability

pytest.importorskip("matplotlib")


def toy(n_docs=400):
    """Five predictions per document, too sure of themselves."""
    rng = np.random.default_rng(0)
    probability = rng.beta(0.4, 1.2, size=(n_docs, 5)).clip(1e-3)
    Y = sp.csr_array((rng.random((n_docs, 5)) < probability**1.6).astype(np.float32))
    return Y, sp.csr_array(probability)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_is_written_and_always_the_same(tmp_path, suffix):
    Y, Y_pred = toy()
    first = plot_reliability(Y, Y_pred, tmp_path / f"a{suffix}", title="toy")
    second = plot_reliability(Y[::-1], Y_pred[::-1], tmp_path / f"b{suffix}", title="toy")
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[:4] in (b"\x89PNG", b"<?xm")


def test_the_words_on_it(monkeypatch, tmp_path):
    from matplotlib.axes import Axes

    seen = []
    write, title = Axes.text, Axes.set_title
    monkeypatch.setattr(Axes, "text", lambda self, x, y, s, *a, **k: seen.append(s) or write(self, x, y, s, *a, **k))
    monkeypatch.setattr(Axes, "set_title", lambda self, s, *a, **k: seen.append(s) or title(self, s, *a, **k))
    Y = sp.csr_array([[1, 0], [0, 0]])
    plot_reliability(Y, sp.csr_array([[0.8, 0], [0, 0.8]]), tmp_path / "a.svg", title="toy")
    assert {"toy", "calibration error 30.0 %", "of 2 predictions"} <= set(seen)


@pytest.mark.parametrize("values", [[[0.0, 1.0]], [[1e-9, 0.5]], [[1.0, 1.0]]])
def test_small_data_can_be_drawn(tmp_path, values):
    Y_pred = sp.csr_array((np.ravel(values), [0, 1], [0, 2]), shape=(1, 2))
    picture = plot_reliability(sp.csr_array([[1, 0]]), Y_pred, tmp_path / "a.png", title="small")
    assert picture.stat().st_size > 1000


def test_what_cannot_be_drawn(tmp_path):
    Y, Y_pred = toy()
    with pytest.raises(UsageError, match=r"cannot draw a \.pdf; name it \.png or \.svg"):
        plot_reliability(Y, Y_pred, tmp_path / "a.pdf", title="toy")
    with pytest.raises(UsageError, match="nothing is predicted"):
        plot_reliability(Y, sp.csr_array(Y.shape), tmp_path / "a.png", title="toy")
    with pytest.raises(DataError, match="not a probability"):
        plot_reliability(Y, Y_pred * 3, tmp_path / "a.png", title="toy")


def test_no_state_is_left_behind(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    plot_reliability(*toy(), tmp_path / "a.png", title="toy")
    assert ("matplotlib.pyplot" in sys.modules) == before
