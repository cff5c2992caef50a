"""Documents and machines in numbers."""

from dataclasses import replace

import pytest

from labelwise import generate_shop
from labelwise.errors import UsageError
from labelwise.tuning import Machine, Sizes, free_memory


def test_sizes_are_counted_and_lengths_estimated():
    train = generate_shop(500, 100)["train"]
    found = Sizes.of(train)
    assert (found.n_docs, found.n_labels, found.n_pairs) == (450, 100, train.Y.nnz)
    assert found.characters == pytest.approx(sum(map(len, train.texts)))
    assert found.share_within(512) == 1 > found.share_within(10)
    assert found.tokens(8) == 8 * 450
    assert 15 < found.tokens(512) / 450 < 40
    features = Sizes.of(replace(train, texts=None, features=train.Y))
    assert (features.lengths, features.characters, features.n_values) == ((), 0, train.Y.nnz)
    assert (features.tokens(64), features.share_within(64)) == (0, 1)
    assert Sizes.of(train.take([])).n_docs == 0


def test_this_machine(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    here = Machine.current(threads=1)
    assert (here.cores, here.gpu, here.neural) == (1, None, True)
    assert 0 < here.memory == pytest.approx(free_memory(), rel=0.5)
    with pytest.raises(UsageError, match="the device is cuda, but torch finds no GPU here"):
        Machine.current("cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "pretended")
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (7, 9))
    here = Machine.current()
    assert (here.gpu, here.gpu_memory) == ("pretended", 7)
    assert Machine.current("cpu").gpu is None
    monkeypatch.setattr("labelwise.tuning.sizes.find_spec", lambda name: None)
    assert not Machine.current().neural
