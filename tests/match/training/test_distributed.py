"""Several processes that train together end where one alone would."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from labelwise.errors import UsageError
from labelwise.match.training.distributed import Processes, choose_device, launched_processes, local_device
from tests.match.planted import weights_of
from tests.match.training.together import fit

ROOT = Path(__file__).parents[3]


def free_port():
    try:
        with socket.socket() as opened:
            opened.bind(("127.0.0.1", 0))
            return opened.getsockname()[1]
    except OSError as err:
        pytest.skip(f"no port can be opened here ({err})")


def test_one_process_is_alone(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert launched_processes() == Processes(0, 1)
    assert local_device() is None
    assert Processes().first
    values = torch.ones(3)
    Processes().average(values)
    assert values.tolist() == [1.0] * 3
    assert Processes().agree(2.5, torch.device("cpu")) == 2.5


def test_shares_of_a_batch_are_all_of_it():
    rows = np.arange(12)
    shares = [rows[Processes(rank, 3).share(12)] for rank in range(3)]
    assert [share.tolist() for share in shares] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_two_processes_train_what_one_does_and_only_the_first_speaks(bert, tmp_path):
    # What `accelerate launch` runs on GPUs; for CPUs alone it knows but one process.
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    command += ["--master_port", str(free_port()), "-m", "tests.match.training.together", str(bert), str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if name not in ("WORLD_SIZE", "RANK")}
    environment |= {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rank 0: matcher" in done.stdout
    assert "rank 1" not in done.stdout
    assert sorted(file.name for file in tmp_path.glob("weights*")) == ["weights-0-of-2.npy", "weights-1-of-2.npy"]
    found = [np.load(tmp_path / f"weights-{rank}-of-2.npy") for rank in range(2)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(np.load(tmp_path / "curve-0.npy"), np.load(tmp_path / "curve-1.npy"))
    alone = fit(bert)
    np.testing.assert_allclose(found[0], weights_of(alone.network_).numpy(), atol=1e-5)
    losses = [list(point.values()) for point in alone.history_.curve]
    np.testing.assert_allclose(np.load(tmp_path / "curve-0.npy"), np.concatenate(losses), rtol=1e-3)


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    assert [choose_device(name) for name in ("cuda:1", "auto", None, "cpu")] == ["cuda:1", "cuda", "cuda", "cpu"]
    with pytest.raises(UsageError, match="the device is cuda:2, but the last one that torch finds here is cuda:1; use"):
        choose_device("cuda:2")
    with pytest.raises(UsageError, match="the device is mps, but torch finds no device mps here; leave the device out"):
        choose_device("mps")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert choose_device("auto") is None
    with pytest.raises(UsageError, match="the device is cuda:2, but torch finds no GPU here; leave the device out"):
        choose_device("cuda:2")
