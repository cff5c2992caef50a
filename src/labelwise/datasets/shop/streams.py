"""Random numbers by address: the generated shop's blocks can be drawn in any order and give the same products."""

import numpy as np

PRODUCTS, TEXTS, CLICKS, TYPES = range(4)
"""What random numbers are for."""


def stream(seed: int, block: int, purpose: int) -> np.random.Generator:
    """The random numbers of one block for one purpose, the same whichever blocks were drawn before."""
    key, counter = np.array([seed, block], dtype=np.uint64), np.array([0, 0, 0, purpose], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
