#!/usr/bin/env python3
"""Train and measure one peer on one folder of features; print one JSON line.

    python benchmarks/peers/run_peer.py pecos|napkinxc|omikuji FEATURES [--threads 2] [--peers ENV] [--json OUT]

FEATURES is a folder that make_features.py wrote. The script runs in the environment that install.py made, whichever
Python it is started with. pecos is XR-Linear, napkinxc is PLT, omikuji is Parabel.

*_s are wall seconds, *_cpu_s CPU seconds of all threads; predict_*thr_* is the prediction of the whole test set by the
model as it was saved and loaded, the best of --repeat runs, and predict_ms_per_doc its wall time for one document on
one thread; query_*_ms is one document at a time, already in the peer's own form. model_mb is in 10^6 bytes; rss_*_mib
is the highest memory of the process after reading the data, after training and at the end. P, R, PSP and nDCG are in
percent.

PECOS runs at its own defaults. napkinXC's loss is the squared hinge and omikuji has one tree, so that all three solve
about the same problem (their defaults: log loss, three trees).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from environment import VERSIONS, add_peers_option, peers_python

Stages = list[tuple[str, Callable[[], None]]]
"""Steps from features to a saved model, each timed under its name."""


def main(arguments: Sequence[str] | None = None) -> None:
    args = parsed(arguments)
    python = peers_python(args.peers)
    if Path(sys.prefix).resolve() != args.peers.resolve():  # started with another Python
        given = sys.argv[1:] if arguments is None else list(arguments)
        os.execv(python, [str(python), __file__, *given])
    os.environ.setdefault("OMP_NUM_THREADS", str(args.threads))  # read when a peer's library is loaded
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with tempfile.TemporaryDirectory(prefix="peer-") as scratch:
        line = json.dumps(measure(args, Path(scratch)))
    print(line)
    if args.json:
        with args.json.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=tuple(PEERS))
    parser.add_argument("features", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--negatives", choices=("tfn", "tfn+man"), default="tfn", help="of pecos")
    parser.add_argument("--loss", choices=("l2", "log"), default="l2", help="of napkinxc")
    parser.add_argument("--trees", type=int, default=1, help="of omikuji")
    parser.add_argument("--beam", type=int, default=10, help="of pecos and omikuji; napkinxc searches exactly")
    parser.add_argument("--threshold", type=float, default=0.1, help="smaller weights are dropped")
    parser.add_argument("--queries", type=int, default=500, help="documents that are timed one at a time")
    parser.add_argument("--repeat", type=int, default=3, help="predictions of the whole test set")
    parser.add_argument("--verbose", action="store_true", help="show what the peer prints")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also append the line to this file")
    add_peers_option(parser)
    args = parser.parse_args(arguments)
    for name in ("threads", "trees", "beam", "queries", "repeat"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} is {getattr(args, name)}; it must be at least 1")
    if args.negatives != "tfn" and args.peer != "pecos":
        parser.error(f"--negatives {args.negatives} is an option of pecos, not of {args.peer}")
    return args


def measure(args: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """The figures of one run."""
    from importlib.metadata import version

    from measurements import Recorder, describe, folder_mb, quality, read_features

    X, Y, X_test, Y_test = read_features(args.features)
    recorder = Recorder(quiet=not args.verbose)
    recorder.memory("data")
    peer = PEERS[args.peer](args, scratch)
    for name, stage in peer.stages(X, Y):
        with recorder.timed(name):
            stage()
        if name == "train":
            recorder.memory("train")
    recorder.figures["model_mb"] = folder_mb(peer.model_folder)
    with recorder.timed("load"):
        peer.load()
    rows = peer.rows(X_test)
    for threads in dict.fromkeys((1, args.threads if peer.parallel else 1)):
        answers = recorder.best_of(
            f"predict_{threads}thr", args.repeat, lambda threads=threads: peer.predict(rows, threads)
        )
    recorder.per_document(X_test.shape[0])
    recorder.latency(peer.queries(rows, args.queries), peer.query)
    recorder.memory("peak")
    about = {"system": f"{args.peer} {version(VERSIONS[args.peer])}", "setting": peer.setting, "threads": args.threads}
    about |= describe(args.features, X, Y, X_test)
    return about | recorder.figures | quality(peer.label_ids(answers), Y_test, Y)


class Peer:
    """One system: how it trains and saves a model, loads it, and predicts with it."""

    setting: str
    """What distinguishes this run from the peer's others."""
    parallel = True
    """Whether the peer predicts a batch on several threads."""

    def __init__(self, args: argparse.Namespace, scratch: Path) -> None:
        from measurements import TOP_K

        self.args, self.scratch, self.top_k, self.model_folder = args, scratch, TOP_K, scratch / "model"
        self.model: Any = None

    def stages(self, X: Any, Y: Any) -> Stages:
        """The steps from features to a saved model."""
        raise NotImplementedError

    def load(self) -> None:
        """Read the saved model in place of the trained one."""
        raise NotImplementedError

    def rows(self, X: Any) -> Any:
        """Documents in the form that the peer predicts."""
        return X

    def queries(self, rows: Any, n: int) -> list[Any]:
        """The first documents, one at a time."""
        return [rows[i] for i in range(min(n, rows.shape[0]))]

    def predict(self, rows: Any, threads: int) -> Any:
        """The peer's answers for all documents."""
        raise NotImplementedError

    def query(self, row: Any) -> Any:
        """The peer's answer for one document, on one thread."""
        return self.predict(row, 1)

    def label_ids(self, answers: Any) -> list[Sequence[int]]:
        """Label ids of each document, the best first."""
        raise NotImplementedError


class Pecos(Peer):
    """PECOS XR-Linear: PIFA embeddings, balanced k-means, one linear model per node and label."""

    def stages(self, X: Any, Y: Any) -> Stages:
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        args, parts = self.args, {}
        self.setting = args.negatives

        def embed() -> None:
            parts["Z"] = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=args.threads)

        def cluster() -> None:
            parts["C"] = Indexer.gen(parts["Z"], seed=0, threads=args.threads)

        def train() -> None:
            options = {"negative_sampling_scheme": args.negatives, "threshold": args.threshold, "threads": args.threads}
            self.model = XLinearModel.train(X, Y, C=parts["C"], **options)

        def save() -> None:
            self.model.save(str(self.model_folder))

        return [("embed", embed), ("cluster", cluster), ("train", train), ("save", save)]

    def load(self) -> None:
        from pecos.xmc.xlinear.model import XLinearModel

        self.model = None
        self.model = XLinearModel.load(str(self.model_folder), is_predict_only=True)

    def predict(self, rows: Any, threads: int) -> Any:
        return self.model.predict(rows, beam_size=self.args.beam, only_topk=self.top_k, threads=threads)

    def label_ids(self, answers: Any) -> list[Sequence[int]]:
        from measurements import best_labels

        return best_labels(answers.tocsr())


class NapkinXC(Peer):
    """napkinXC's probabilistic label tree; training writes the model's folder."""

    def stages(self, X: Any, Y: Any) -> Stages:
        self.setting = f"loss={self.args.loss}"
        labels = [Y.indices[a:b].tolist() for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]
        return [("train", lambda: self._tree(self.args.threads).fit(X, labels))]

    def load(self) -> None:
        self.model = self._tree(1)
        self.model.load()

    def predict(self, rows: Any, threads: int) -> Any:
        if self.model.get_params()["threads"] != threads:
            self.model.set_params(threads=threads)
        return self.model.predict(rows, top_k=self.top_k)

    def query(self, row: Any) -> Any:
        return self.model.predict(row, top_k=self.top_k)

    def queries(self, rows: Any, n: int) -> list[Any]:
        self.model.set_params(threads=1)
        return super().queries(rows, n)

    def label_ids(self, answers: Any) -> list[Sequence[int]]:
        return [list(ids) for ids in answers]

    def _tree(self, threads: int) -> Any:
        from napkinxc.models import PLT

        options = {"loss": self.args.loss, "weights_threshold": self.args.threshold, "threads": threads}
        return PLT(str(self.model_folder), seed=0, verbose=False, **options)


class Omikuji(Peer):
    """omikuji's Parabel trees; trains from a text file and predicts one document at a time."""

    parallel = False

    def stages(self, X: Any, Y: Any) -> Stages:
        import omikuji

        self.setting = f"trees={self.args.trees}"
        source = self.scratch / "train.txt"
        options = omikuji.Model.default_hyper_param()
        options.n_trees, options.linear_weight_threshold = self.args.trees, self.args.threshold

        def write_input() -> None:
            with source.open("w", encoding="utf-8") as file:
                file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
                for row, features in enumerate(self.rows(X)):
                    labels = ",".join(map(str, Y.indices[Y.indptr[row] : Y.indptr[row + 1]]))
                    file.write(f"{labels} {' '.join(f'{column}:{value:.6g}' for column, value in features)}\n")

        def train() -> None:
            self.model = omikuji.Model.train_on_data(str(source), options, n_threads=self.args.threads)

        return [
            ("write_input", write_input),
            ("train", train),
            ("save", lambda: self.model.save(str(self.model_folder))),
        ]

    def load(self) -> None:
        import omikuji

        self.model = None
        self.model = omikuji.Model.load(str(self.model_folder))
        self.model.init_prediction_thread_pool(1)

    def rows(self, X: Any) -> Any:
        bounds = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)) for a, b in bounds]

    def queries(self, rows: Any, n: int) -> list[Any]:
        return rows[:n]

    def predict(self, rows: Any, threads: int) -> Any:
        return [self.query(row) for row in rows]

    def query(self, row: Any) -> Any:
        return self.model.predict(row, beam_size=self.args.beam, top_k=self.top_k)

    def label_ids(self, answers: Any) -> list[Sequence[int]]:
        return [[label for label, _ in answer] for answer in answers]


PEERS: dict[str, type[Peer]] = {"pecos": Pecos, "napkinxc": NapkinXC, "omikuji": Omikuji}


if __name__ == "__main__":
    main()
