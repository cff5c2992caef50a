#!/usr/bin/env python3
"""Train and measure PECOS XR-Transformer, the neural peer, with a recipe of its authors; print one JSON line.

    python benchmarks/peers/xr_transformer.py FEATURES ENCODER [--recipe wiki10-31k|eurlex-4k] [--max-length 128]
        [--steps 1000,1000,400] [--documents N] [--peers ENV] [--json OUT]

FEATURES is a folder that make_features.py wrote with --texts; add --tfidf labelwise where labelwise's own X-Transformer
is the other side of the comparison. ENCODER is a folder of a BERT encoder as Hugging Face's save_pretrained writes it.
The script runs in the environment that install.py --xr-transformer made, whichever Python it is started with. Without a
GPU it only serves to try out a few steps.

The recipes are those of the authors' experiments with a single encoder (NeurIPS 2021), made for about 15,000 documents:
batches of 32, learning rate 5e-5, the steps of each level of the tree, costs and beams. --steps has one number for each
level of the tree; larger data sets need more of them. fit_s and fit_cpu_s (all threads) cover everything from the
features to the model.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environment import add_peers_option, peers_python

THRESHOLD = 0.001
"""Smaller weights are dropped."""


@dataclass(frozen=True)
class Recipe:
    """What the authors set for one data set; a tuple that is shorter than the tree repeats its first value."""

    first_tree: dict[str, int]
    """The tree on tf-idf, whose levels the encoder is trained on one after the other."""
    final_tree: dict[str, int]
    """The tree on embeddings and tf-idf, for the linear models."""
    steps: tuple[int, ...]
    """Steps of fine-tuning at each level."""
    beams: tuple[int, ...]
    """Nodes that are kept at each level of the final tree when predicting."""
    candidates: int
    """Clusters that the encoder passes to the next level."""
    cost_sensitive: bool
    """Weigh clusters by the number of a document's labels in them."""
    inner_costs: tuple[float, float]
    """Costs of errors on positives and on negatives in the levels above the labels."""
    label_costs: tuple[float, float]
    """The same two costs in the level of the labels."""


RECIPES = {
    "eurlex-4k": Recipe(
        first_tree={"nr_splits": 16, "min_codes": 16, "max_leaf_size": 16},
        final_tree={"nr_splits": 8, "max_leaf_size": 16},
        steps=(600, 800, 1200),
        beams=(75, 75, 100, 25),
        candidates=5,
        cost_sensitive=False,
        inner_costs=(1.0, 2.0),
        label_costs=(2.0, 4.0),
    ),
    "wiki10-31k": Recipe(
        first_tree={"nr_splits": 16, "min_codes": 128, "max_leaf_size": 16},
        final_tree={"nr_splits": 16, "max_leaf_size": 16},
        steps=(1000, 1000, 400),
        beams=(100,),
        candidates=20,
        cost_sensitive=True,
        inner_costs=(4.0, 1.0),
        label_costs=(4.0, 1.0),
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("encoder", type=Path)
    parser.add_argument("--recipe", choices=sorted(RECIPES), default="wiki10-31k")
    parser.add_argument("--max-length", type=int, default=128, help="tokens of a text")
    parser.add_argument("--steps", help="numbers of steps by commas, one for each level of the tree")
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--documents", type=int, help="train on the first ones only, to try the script out")
    parser.add_argument("--workers", type=int, default=8, help="processes that prepare batches, at least 1")
    parser.add_argument("--threads", type=int, default=-1, help="of clustering and of linear models; -1 for all cores")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also append the line to this file")
    add_peers_option(parser)
    args = parser.parse_args(arguments)
    python = peers_python(args.peers)
    if Path(sys.prefix).resolve() != args.peers.resolve():  # started with another Python
        given = sys.argv[1:] if arguments is None else list(arguments)
        os.execv(python, [str(python), __file__, *given])
    if not (args.encoder / "config.json").is_file():
        sys.exit(f"{args.encoder} is not the folder of an encoder: it has no config.json")
    # Other frameworks of the machine may be compiled for another numpy; the encoder is a folder, not a name on the hub.
    os.environ |= {"USE_TF": "0", "USE_FLAX": "0", "USE_TORCH": "1", "HF_HUB_OFFLINE": "1"}
    line = json.dumps(measure(args))
    print(line)
    if args.json:
        with args.json.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """The figures of one run."""
    from importlib.metadata import version

    from measurements import TOP_K, Recorder, best_labels, describe, quality, read_features

    try:
        import torch
        from pecos.utils import torch_util
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.base import HierarchicalKMeans
        from pecos.xmc.xtransformer.model import XTransformer
        from pecos.xmc.xtransformer.module import MLProblemWithText
    except ImportError as error:
        sys.exit(f"{error}; complete the environment with: python benchmarks/peers/install.py --xr-transformer")

    X, Y, X_test, Y_test = read_features(args.features)
    texts, test_texts = read_texts(args.features, "trn", X.shape[0]), read_texts(args.features, "tst", X_test.shape[0])
    if args.documents:
        X, Y, texts = X[: args.documents], Y[: args.documents], texts[: args.documents]
    torch_util.set_seed(0)
    recipe, on_gpu = RECIPES[args.recipe], torch.cuda.is_available()
    recorder = Recorder()
    with recorder.timed("fit"):
        first_tree = HierarchicalKMeans.TrainParams.from_dict(clustering(recipe.first_tree, args.threads))
        clusters = Indexer.gen(LabelEmbeddingFactory.pifa(Y, X), train_params=first_tree)
        ranker_levels = levels_of(recipe.final_tree, Y.shape[1])
        steps = steps_of(args.steps, recipe, len(clusters))
        training = XTransformer.TrainParams.from_dict(
            training_settings(args, recipe, steps, ranker_levels), recursive=True
        )
        for level in training.matcher_params_chain:
            level.use_gpu = on_gpu
        prediction = XTransformer.PredParams.from_dict(
            prediction_settings(recipe, len(clusters), ranker_levels, args.max_length), recursive=True
        )
        problem = MLProblemWithText(texts, Y, X_feat=X)
        model = XTransformer.train(problem, clustering=clusters, train_params=training, pred_params=prediction)
    options = {"batch_size": 128, "batch_gen_workers": args.workers, "only_topk": TOP_K, "use_gpu": on_gpu}
    with recorder.timed("predict"):
        scores = model.predict(test_texts, X_feat=X_test, **options)
    recorder.memory("peak")
    about = {"system": f"pecos {version('libpecos')} xr-transformer", "setting": args.recipe}
    about |= {"device": torch.cuda.get_device_name() if on_gpu else "CPU", "encoder": args.encoder.resolve().name}
    about |= {"steps": steps, "batch_size": args.batch_size, "learning_rate": args.learning_rate}
    about |= {"max_length": args.max_length} | describe(args.features, X, Y, X_test)
    return about | recorder.figures | quality(best_labels(scores.tocsr()), Y_test, Y)


def read_texts(folder: Path, name: str, n_docs: int) -> list[str]:
    """The texts of a split, one for each row of its features."""
    file = folder / f"{name}.txt"
    if not file.is_file():
        sys.exit(f"there is no {file}; make it with: python benchmarks/peers/make_features.py DATA {folder} --texts")
    texts = file.read_text(encoding="utf-8").split("\n")[:-1]
    if len(texts) != n_docs:
        sys.exit(f"{file} has {len(texts)} texts, but X.{name}.npz has {n_docs} rows; make both again")
    return texts


def steps_of(given: str | None, recipe: Recipe, n_levels: int) -> list[int]:
    """Steps of fine-tuning at each level of the tree."""
    if given is None:
        return list(last(recipe.steps, n_levels))
    steps = [int(part) for part in given.split(",")]
    if len(steps) != n_levels:
        sys.exit(f"--steps has {len(steps)} numbers, but the tree has {n_levels} levels")
    return steps


def last(values: Sequence[Any], n: int) -> list[Any]:
    """The last n values; where there are fewer, the first one is repeated before them."""
    return [values[0]] * (n - len(values)) + list(values)[-n:]


def levels_of(tree: dict[str, int], n_labels: int) -> int:
    """Levels of the tree that PECOS makes over a number of labels, that of the labels included."""
    leaves = 2 ** max(1, math.ceil(math.log2(n_labels / tree["max_leaf_size"])))
    nodes, levels = tree["nr_splits"], 2
    while nodes < leaves:
        nodes, levels = nodes * tree["nr_splits"], levels + 1
    return levels


def clustering(tree: dict[str, int], threads: int) -> dict[str, Any]:
    return tree | {"spherical": True, "kmeans_max_iter": 20, "threads": threads}


def training_settings(
    args: argparse.Namespace, recipe: Recipe, steps: Sequence[int], ranker_levels: int
) -> dict[str, Any]:
    """The dictionary that PECOS reads settings of training from; the rest stays at its defaults."""
    encoder = {
        "model_shortcut": str(args.encoder),
        "bootstrap_method": "weighted-linear",
        "loss_function": "weighted-squared-hinge",
        "negative_sampling": "tfn+man",
        "cost_sensitive_ranker": recipe.cost_sensitive,
        "max_active_matching_labels": 1000,
        "threshold": THRESHOLD,
        "batch_size": args.batch_size,
        "batch_gen_workers": args.workers,
        "learning_rate": args.learning_rate,
        "warmup_steps": 100,
        "save_steps": 200,
        "num_train_epochs": 10,
    }
    costs = last((recipe.inner_costs, recipe.label_costs), ranker_levels)
    levels = [{"Cp": cp, "Cn": cn, "threshold": THRESHOLD, "threads": args.threads} for cp, cn in costs]
    negatives = last(("tfn", "tfn+man"), ranker_levels)
    ranker = {
        "rel_mode": "induce",
        "rel_norm": "l1",
        "hlm_args": {"model_chain": levels, "neg_mining_chain": negatives},
    }
    return {
        "preliminary_indexer_params": clustering(recipe.first_tree, args.threads),
        "refined_indexer_params": clustering(recipe.final_tree, args.threads),
        "matcher_params_chain": [encoder | {"max_steps": n} for n in steps],
        "ranker_params": ranker,
    }


def prediction_settings(recipe: Recipe, n_levels: int, ranker_levels: int, max_length: int) -> dict[str, Any]:
    """The dictionary that PECOS reads settings of prediction from."""
    encoder = {
        "only_topk": recipe.candidates,
        "post_processor": "l3-hinge",
        "ensemble_method": "concat-only",
        "truncate_length": max_length,
    }
    transforms = last(("l3-hinge", "noop"), ranker_levels)
    beams = last(recipe.beams, ranker_levels)
    levels = [{"only_topk": b, "post_processor": t} for b, t in zip(beams, transforms, strict=True)]
    return {"matcher_params_chain": [encoder] * n_levels, "ranker_params": {"hlm_args": {"model_chain": levels}}}


if __name__ == "__main__":
    main()
