"""Trains a matcher as one of several processes: python -m tests.match.training.together ENCODER OUT"""

import sys
from pathlib import Path

import numpy as np
import torch

from labelwise.match.finetuned import FineTunedMatcher
from labelwise.match.training.distributed import launched_processes
from tests.match.planted import documents_of, encoder_of, planted, settings, weights_of

CHANGES = {"epochs": 3.0, "batch_size": 12, "init": "linear", "linear_term": True, "patience": 99}


def fit(encoder_folder, on_event=None):
    texts, M = planted(60)
    encoder = encoder_of(encoder_folder, dropout=0.0)
    others, truth = planted(20, seed=1)
    matcher = FineTunedMatcher(settings(**CHANGES))
    return matcher.fit(
        encoder,
        documents_of(encoder, texts),
        M,
        validation=(documents_of(encoder, others), truth),
        threads=1,
        on_event=on_event,
    )


def main(encoder_folder, out):
    torch.set_num_threads(1)
    processes = launched_processes()

    def on_event(name, values):
        sys.stdout.write(f"rank {processes.rank}: {name}\n")

    matcher = fit(encoder_folder, on_event)
    curve = [list(point.values()) for point in matcher.history_.curve]
    np.save(Path(out) / f"weights-{processes.rank}-of-{processes.count}.npy", weights_of(matcher.network_).numpy())
    np.save(Path(out) / f"curve-{processes.rank}.npy", np.concatenate(curve))


if __name__ == "__main__":
    main(*sys.argv[1:])
