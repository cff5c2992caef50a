"""Fits an ensemble as one of several processes: python -m tests.models.ensemble.fit_together ENCODER OUT"""

import json
import sys
from pathlib import Path

import torch

from labelwise import Ensemble, generate_shop, load_preset
from labelwise.match.training import loop
from labelwise.match.training.distributed import launched_processes
from labelwise.models.pipeline import Pipeline


def members(encoder_folder):
    """Three models that share a matcher; two of them have out-of-fold negatives, with different beams."""
    for beam, negatives, label_embedding in (
        (10, "model", "text-emb"),
        (10, "out-of-fold", "pifa-neural"),
        (12, "out-of-fold", "pifa-neural"),
    ):
        matcher = {"steps": 2, "batch_size": 12, "device": "cpu", "folds": 2, "negatives_from": negatives}
        encoder = {"name": str(encoder_folder), "max_length": 16}
        yield {"encoder": encoder, "matcher": matcher, "beam": beam, "label_embedding": label_embedding}


def fit(encoder_folder, run_dir):
    loop.SECONDS_PER_CHECKPOINT = 0.0  # each step: processes that do not read the same checkpoints are found out
    train = generate_shop(150, 100)["train"]
    configs = [load_preset("x-transformer", **settings) for settings in members(encoder_folder)]
    return Ensemble(configs).fit(train.texts, train.Y, label_names=train.labels, run_dir=run_dir)


def main(encoder_folder, out):
    torch.set_num_threads(1)
    trained, original = [], Pipeline._fine_tune

    def recorded(self, rows, *, evaluate, fold=None):
        trained.append([fold, None if rows is None else rows.tolist()])
        return original(self, rows, evaluate=evaluate, fold=fold)

    Pipeline._fine_tune = recorded
    model = fit(encoder_folder, Path(out) / "run")
    rank = launched_processes().rank
    (Path(out) / f"trained-{rank}.json").write_text(json.dumps({"role": model.role_, "trained": trained}))


if __name__ == "__main__":
    main(*sys.argv[1:])
