"""Weights in fewer bits against rounding by hand, label by label."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.rank.quantized import pack, unpack
from tests.kernels.test_beam import level_of
from tests.reference.weights import level_matrix


def made(n_features, n_labels, n_dense, seed):
    """A level, and its weights as a matrix: (n_features + n_dense, n_labels), the bias last."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_features + n_dense, n_labels)).astype(np.float32) * rng.lognormal(size=n_labels)
    W[:n_features][rng.random((n_features, n_labels)) < 0.6] = 0
    W[:n_features, 0] = 0  # a label without sparse weights
    W = W.astype(np.float32)
    return level_of(W, np.arange(n_labels) % 3, n_dense=n_dense), W


def rounded(weights):
    """The nearest of 255 multiples of the largest weight's 127th part."""
    largest = np.abs(weights).max(initial=0)
    return weights if largest == 0 else np.round(weights / largest * 127) * (largest / 127)


@given(st.integers(1, 30), st.integers(3, 20), st.integers(1, 9), st.integers(0, 99))
def test_eight_bits(n_features, n_labels, n_dense, seed):
    level, W = made(n_features, n_labels, n_dense, seed)
    packed = pack(level, "int8", "a.")
    assert packed["a.entry_value"].dtype == packed["a.dense"].dtype == np.int8
    back = unpack(packed, "a.")
    assert back.entry_value.dtype == back.dense.dtype == np.float16
    found = level_matrix(back, n_features)
    for label in range(n_labels):
        own = W[:, label]
        parts = [rounded(own[:n_features]), rounded(own[n_features:-1]), own[-1:]]
        wanted = np.concatenate(parts)
        # 16-bit floats have 11 bits of their own; where two multiples are equally near, either will do
        step = np.repeat([np.abs(part).max(initial=0) / 127 for part in parts], [len(part) for part in parts])
        error, allowed = np.abs(found[:, label] - wanted), np.abs(wanted) / 1024 + 1e-7
        near_half = np.abs(np.abs(own - wanted) - step / 2) < 1e-4 * step
        assert (error <= allowed + step * near_half).all()


def test_sixteen_bits():
    level, W = made(40, 12, 5, 0)
    packed = pack(level, "fp16", "")
    back = unpack(packed, "")
    assert back.entry_value.dtype == back.dense.dtype == np.float16
    np.testing.assert_array_equal(level_matrix(back, 40), W.astype(np.float16).astype(np.float32))
    assert packed["dense"].nbytes == level.dense.nbytes / 2


def test_what_has_all_its_bits_is_mapped_as_it_is():
    level, _ = made(10, 6, 2, 1)
    back = unpack(level.to_arrays("0."), "0.")
    assert back.dense is level.dense
    assert back.entry_value is level.entry_value


@pytest.mark.parametrize("bits", ["fp16", "int8"])
def test_huge_weights_stay_finite(bits):
    level, _ = made(5, 3, 2, 2)
    level.dense[:] = 1e6
    assert np.isfinite(unpack(pack(level, bits, ""), "").dense.astype(np.float32)).all()
