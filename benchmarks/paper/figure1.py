"""Draws the paper's Figure 1: documents per label, and documents per cluster.

    python benchmarks/paper/figure1.py DATA [--encoders minilm] [--output DIR] [--run-dir DIR] [--json FILE]

Left: training documents of each label. Right: training documents of each cluster, that is, documents with at least one
label of the cluster, for each of the three label embeddings (pifa-tfidf; pifa-neural and text-emb with the first of
--encoders, pretrained only; the paper fine-tunes it first). In the paper, on Wiki-500K, 2.1 % of the labels and 99.4 %
of the clusters have more than 100 documents. Writes figure1-left.svg and figure1-right.svg into --output.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Experiment, parser_of, run_script
from encoders import EncoderChoice, choose_encoders
from output import finish, markdown, say

from labelwise.config import HoldoutConfig, IndexConfig
from labelwise.data.stats import HEAD_DOCUMENTS, label_counts
from labelwise.errors import need
from labelwise.features.tfidf import Tfidf
from labelwise.index import Tree, build_tree, embed_labels
from labelwise.models.stages import StageCache
from labelwise.models.training_data import TrainingData
from labelwise.rank.negatives import teacher_forcing
from labelwise.report.tail import plot_tail

COLOURS = {"pifa-tfidf": "#0072B2", "pifa-neural": "#E69F00", "text-emb": "#009E73"}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--output", type=Path, help="folder for the pictures")
    options = parser.parse_args()
    with Experiment(options) as experiment:
        counts = label_counts(experiment.splits.train)
        sizes, notes = cluster_sizes(experiment)
        about = experiment.about()
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        left = options.output / "figure1-left.svg"
        plot_tail(counts, left, title=about["data"], generated=about["generated"])
        draw(sizes, options.output / "figure1-right.svg", experiment.splits.title)
        say(f"drawn: {left}, {options.output / 'figure1-right.svg'}")
    rows = [["labels", f"{len(counts):,}", *_shares(counts)]]
    rows += [[f"clusters by {kind}", f"{len(found):,}", *_shares(found)] for kind, found in sizes.items()]
    print(markdown(["what", "how many", f"more than {HEAD_DOCUMENTS} documents", "median", "least"], rows))
    for kind, note in notes.items():
        print(f"\n{kind}: {note}")
    figures = {kind: {"share_above": above(found), "documents": found.tolist()} for kind, found in sizes.items()}
    labels = {"share_above": above(counts), "documents": np.sort(counts)[::-1].tolist()}
    finish(options, {"figure": "1", **about, "labels_": labels, "clusters": figures, "notes": notes})


def cluster_sizes(experiment: Experiment) -> tuple[dict[str, Any], dict[str, str]]:
    """Documents of each cluster, largest first, by label embedding; and the reason for a missing one."""
    train = experiment.splits.train
    encoder = choose_encoders(experiment.options.encoders)[0]
    sizes, notes = {}, {}
    for kind, tree in trees(experiment, encoder):
        M = teacher_forcing(train.Y, tree.clusters, tree.n_clusters)
        sizes[kind] = np.sort(np.bincount(M.indices, minlength=tree.n_clusters))[::-1]
    if encoder.missing is None:
        notes["pifa-neural, text-emb"] = f"by {encoder.about}, not fine-tuned"
    else:
        notes |= {kind: f"not run: {encoder.missing}" for kind in COLOURS if kind not in sizes}
    return sizes, notes


def trees(experiment: Experiment, encoder: EncoderChoice) -> Iterator[tuple[str, Tree]]:
    """The label trees of X-Transformer, reused from the run directory; without an encoder only the first."""
    train, options = experiment.splits.train, experiment.options
    if encoder.missing is not None:
        Z = embed_labels(train.Y, Tfidf().fit_transform(train.texts), threads=options.threads)
        yield "pifa-tfidf", build_tree(Z, IndexConfig(), seed=options.seed, threads=options.threads)
        return
    from labelwise.models.pipeline import Pipeline

    names: dict[str, Any] = {"label_names": train.labels, "label_texts": train.label_texts}
    data = TrainingData.of(train.texts, train.Y, HoldoutConfig(share=0.0), seed=options.seed, **names)
    cache = StageCache(data, experiment.run)
    for kind in COLOURS:
        say(f"{kind} …")
        yield kind, Pipeline(experiment.neural(kind, encoder, label_embedding=kind).config, cache).clusters()


def above(documents: Any) -> float:
    """The share with more than a hundred documents."""
    return float((np.asarray(documents) > HEAD_DOCUMENTS).mean())


def _shares(documents: Any) -> list[str]:
    return [f"{above(documents):.1%}", f"{np.median(documents):,.0f}", f"{documents.min():,}"]


def draw(sizes: dict[str, Any], path: Path, title: str) -> None:
    """Figure 1, right: a line for each label embedding."""
    figure = need("matplotlib.figure", extra="plot", purpose="pictures").Figure(
        figsize=(7.2, 4.2), layout="constrained"
    )
    axes = figure.add_subplot()
    for kind, found in sizes.items():
        label = f"{kind}: {above(found):.1%} above {HEAD_DOCUMENTS}"
        axes.step(np.arange(1, len(found) + 1), np.maximum(found, 0.6), where="post", color=COLOURS[kind], label=label)
    axes.axhline(HEAD_DOCUMENTS, color="#707070", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    axes.set_yscale("log")
    axes.set_xlabel("clusters, largest first")
    axes.set_ylabel("training documents")
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(frameon=False)
    matplotlib = need("matplotlib", extra="plot", purpose="pictures")
    with matplotlib.rc_context({"svg.hashsalt": "labelwise", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    run_script(main)
