#!/usr/bin/env python3
"""Write a data set as the matrices that every system of a comparison reads.

    python benchmarks/peers/make_features.py DATA FOLDER [--tfidf scikit-learn|labelwise] [--texts]

DATA is anything that labelwise reads with a training and a test split. FOLDER gets X.trn.npz and X.tst.npz (tf-idf,
fitted on the training texts) and Y.trn.npz and Y.tst.npz (0/1 labels): scipy CSR, float32. --texts also writes trn.txt
and tst.txt, one text a line, for XR-Transformer. Runs in labelwise's environment; scikit-learn's tf-idf, the default,
needs scikit-learn there. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.append(str(Path(__file__).resolve().parents[2] / "src"))  # where labelwise is not installed


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tfidf", choices=("scikit-learn", "labelwise"), default="scikit-learn")
    parser.add_argument("--texts", action="store_true", help="also write the texts, for XR-Transformer")
    args = parser.parse_args(arguments)

    from labelwise.data import load_splits
    from labelwise.errors import LabelwiseError

    try:
        splits = load_splits(args.data)
    except LabelwiseError as error:
        sys.exit(str(error))
    absent = [name for name in ("train", "test") if name not in splits or splits[name].texts is None]
    if absent:
        sys.exit(f"{args.data} has no texts of a split called {absent[0]}")
    args.folder.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {"data": args.data.resolve().name, "tfidf": args.tfidf}
    tfidf = scikit_learn() if args.tfidf == "scikit-learn" else labelwise()
    for split, short, transform in (("train", "trn", tfidf.fit_transform), ("test", "tst", tfidf.transform)):
        texts, Y = splits[split].texts, splits[split].Y
        wall = time.perf_counter()
        X = sp.csr_matrix(transform(texts))
        record[f"{split}_tfidf_s"] = round(time.perf_counter() - wall, 3)
        X.sort_indices()
        sp.save_npz(args.folder / f"X.{short}.npz", X, compressed=False)
        sp.save_npz(args.folder / f"Y.{short}.npz", sp.csr_matrix(Y, dtype=np.float32), compressed=False)
        if args.texts:
            with (args.folder / f"{short}.txt").open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(" ".join(text.split()) + "\n" for text in texts)
        record |= {f"{split}_docs": X.shape[0], "features": X.shape[1], "labels": Y.shape[1]}
    print(json.dumps(record))


def scikit_learn() -> Any:
    """The tf-idf of the comparisons: every word, 1 + ln(tf), rows of length one."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        sys.exit("scikit-learn is not installed; pip install scikit-learn, or use --tfidf labelwise")
    return TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b", dtype=np.float32)


def labelwise() -> Any:
    """labelwise's own tf-idf at its defaults."""
    from labelwise import Tfidf

    return Tfidf()


if __name__ == "__main__":
    main()
