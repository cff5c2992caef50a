"""Two evaluated systems that many tests look at."""

import pytest

from labelwise.metrics import evaluate
from tests.metrics.examples import noisy_systems


@pytest.fixture(scope="session")
def evaluations():
    """The evaluations of a good system and of a worse one, on the same documents."""
    Y, good, bad = noisy_systems()
    return [evaluate(Y, scores, Y_train=Y, bootstrap=400) for scores in (good, bad)]
