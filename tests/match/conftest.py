"""One tiny model for all tests of matching."""

import pytest
import torch

from tests.features.tiny import write_model


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """The folder of a tiny BERT."""
    return write_model(tmp_path_factory.mktemp("models") / "bert", "bert")


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny tensors are not worth sharing out."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
