"""Settings that several benchmarks share: folder of the data sets, lengths of texts, options of the command line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

# Tokens that are read of a text: most texts of the data set fit, or their beginning has the subject.
LENGTHS = {"gutenberg-lcsh": 32, "debdeps-15k": 128, "usbills-4k": 256, "eurlex57k": 256}


def data_folder() -> Path:
    """The folder of the real data sets, which the environment variable LABELWISE_DATA names."""
    return Path(os.environ.get("LABELWISE_DATA", "data"))


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Options for systems with an encoder."""
    parser.add_argument("--max-length", type=int, help="tokens of a text that encoders read")
    parser.add_argument(
        "--dense-weight", type=float, help="do not choose it on held-out documents: a third of the time"
    )
    parser.add_argument("--score-transform", help="do not choose it on held-out documents")
    parser.add_argument("--matcher-weight", type=float, help="do not choose it on held-out documents")
    parser.add_argument(
        "--uncalibrated",
        action="store_true",
        help="no calibration: trains the ranker once if nothing else is to be chosen",
    )
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--steps", type=int, help="steps of fine-tuning, instead of epochs")
    parser.add_argument("--batch-size", type=int, help="documents of a fine-tuning step")
    parser.add_argument("--learning-rate", type=float, help="learning rate of the encoder")
    parser.add_argument("--head-learning-rate", type=float, help="learning rate of the head")
    parser.add_argument("--learn-labels", action="store_true", default=None, help="fine-tune on the labels too")
    parser.add_argument(
        "--learn-validation",
        action="store_true",
        default=None,
        help="train rankers and linear systems on the validation split too, after it has chosen",
    )
    parser.add_argument("--beam", type=int, help="clusters that are searched; the preset's if not given")
    parser.add_argument("--max-leaf", type=int, help="most labels of a cluster; the preset's if not given")
    parser.add_argument("--ngrams", type=int, help="longest n-grams of words in tf-idf; the preset's if not given")
    parser.add_argument("--opening", type=int, help="first words of a text that count a second time in tf-idf")
    parser.add_argument("--min-df", type=int, help="drop terms of tf-idf in fewer documents; the preset's if not given")
    parser.add_argument(
        "--precision",
        choices=("fp32", "bf16", "fp16"),
        help="precision of fine-tuning; by default the best of the device",
    )


def neural_settings(options: argparse.Namespace, data: str) -> dict[str, Any]:
    """The options as changes to a preset, for `load_preset`; options that are not given stay those of the preset."""
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
        "holdout": _given({"calibrate": not options.uncalibrated, "learn_validation": options.learn_validation}),
        "beam": options.beam,
    }


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
