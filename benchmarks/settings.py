"""Settings that several benchmarks share: tokens of a text for each data set, and options of the command line."""

from __future__ import annotations

import argparse
from typing import Any

# Tokens of a text that are read: most texts of the set fit, or the first ones tell what it is about.
LENGTHS = {"gutenberg-lcsh": 32, "debdeps-15k": 128, "usbills-4k": 256, "eurlex57k": 256}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Options for systems with an encoder."""
    parser.add_argument("--max-length", type=int, help="tokens of a text that encoders read")
    parser.add_argument("--dense-weight", type=float, help="fix it instead of choosing it: a third of the time")
    parser.add_argument("--score-transform", help="fix it instead of choosing it")
    parser.add_argument("--matcher-weight", type=float, help="fix it instead of choosing it")
    parser.add_argument("--uncalibrated", action="store_true", help="train the ranker once, if all else is fixed")
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--steps", type=int, help="of fine-tuning, instead of epochs")
    parser.add_argument("--batch-size", type=int, help="documents of a step of fine-tuning")
    parser.add_argument("--learning-rate", type=float, help="of the encoder in fine-tuning")
    parser.add_argument("--head-learning-rate", type=float, help="of what scores the clusters")
    parser.add_argument("--learn-labels", action="store_true", default=None, help="fine-tune on the labels too")
    parser.add_argument(
        "--learn-validation",
        action="store_true",
        default=None,
        help="once all is chosen, learn from the validation split too: rankers, and linear systems",
    )
    parser.add_argument("--beam", type=int, help="clusters that are searched, instead of the preset's")
    parser.add_argument("--max-leaf", type=int, help="most labels of a cluster, instead of the preset's")
    parser.add_argument("--ngrams", type=int, help="longest n-grams of words in tf-idf, instead of the preset's")
    parser.add_argument("--opening", type=int, help="first words of a text that count again in tf-idf")
    parser.add_argument("--min-df", type=int, help="drop terms of tf-idf in fewer documents, instead of the preset's")
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), help="of fine-tuning, instead of the best one")


def neural_settings(options: argparse.Namespace, data: str) -> dict[str, Any]:
    """The same as changes to a preset, for `load_preset`; what is not given stays as the preset has it."""
    encoder = {"max_length": options.max_length or LENGTHS.get(data, 128)}
    names = ("epochs", "steps", "batch_size", "learning_rate", "head_learning_rate", "learn_labels", "precision")
    matcher = {name: getattr(options, name) for name in names}
    ngrams = None if options.ngrams is None else (1, options.ngrams)
    return {
        "encoder": encoder,
        "matcher": _given(matcher),
        "index": _given({"max_leaf": options.max_leaf}),
        "tfidf": _given({"ngram_range": ngrams, "min_df": options.min_df, "opening": options.opening}),
        "dense_weight": options.dense_weight,
        "score_transform": options.score_transform,
        "matcher_weight": options.matcher_weight,
        "calibrate": not options.uncalibrated,
        "learn_validation": options.learn_validation,
        "beam": options.beam,
    }


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
