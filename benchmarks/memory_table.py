#!/usr/bin/env python3
"""Measures the paper's Table 1: GPU memory of training a 24-layer encoder with heads of different sizes.

    python benchmarks/memory_table.py [--batch 1] [--tiny] [--json FILE]

A 24-layer × 1024 BERT with random weights (the paper: XLNet-large) reads one text of 128 tokens in fp32, as in the
paper. Two heads are written in the plain way, with torch.optim.AdamW: two classes, and one output for each of a million
labels. The other rows are the network and the optimizer of labelwise: labels reach the GPU only as clusters, so that
memory is the same for a thousand labels and for a million. The last rows are in bf16 with 32-bit master weights and
packed texts, which is the default of labelwise. Steps are not captured as CUDA graphs here; a captured step needs a
little more memory.

Columns are torch.cuda.memory_allocated in MiB after each stage, and the peak of all stages, minus the memory that was
allocated before (workspaces of the libraries). The paper's figures include the CUDA context and the allocator's cache.
labelwise allocates gradients before the first forward pass, and keeps a corpus on the device: tokens, clusters and the
scores of the linear term, for 1,024 documents here. The table says what does not fit. --tiny runs the script with small
sizes, on a CPU too, without figures of memory.
"""

import argparse
import copy
import gc
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))  # where labelwise is not installed

from labelwise.config import EncoderConfig, MatcherConfig
from labelwise.features.encoder import Encoder
from labelwise.features.packing import make_packer
from labelwise.features.token_store import TokenStore
from labelwise.match.losses import document_losses
from labelwise.match.network import Network
from labelwise.match.training.batches import Packed, Padded
from labelwise.match.training.device_data import DeviceData
from labelwise.match.training.distributed import Processes
from labelwise.match.training.optimizer import MixedPrecisionOptimizer
from labelwise.match.training.step import TrainStep

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
STAGES = ("load", "forward", "backward", "step")
LENGTH, LABELS_PER_TEXT, SEED = 128, 5, 0
PAPERS_CARD = 12e9
Mark = Callable[[str], None]


class Words:
    """The part of a tokenizer that an encoder uses; texts are random tokens here."""

    pad_token_id, cls_token_id, padding_side = 0, 101, "right"

    def __call__(self, text: str) -> dict[str, list[int]]:
        ids = [101, *range(1, 1 + len(text.split())), 102]
        return {"input_ids": ids, "token_type_ids": [0] * len(ids)}


def measure(work: Callable[[Mark, dict[str, Any]], None]) -> dict[str, Any]:
    """Run the stages of a case; returns its parameters and the memory after each stage."""
    row: dict[str, Any] = {"allocated_mib": {}, "peak_mib": {}, "before_mib": 0.0}
    gc.collect()
    begun = time.perf_counter()
    if CUDA:
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        row["before_mib"] = torch.cuda.memory_allocated() / 2**20

    def mark(stage: str) -> None:
        row["reached"] = stage
        if CUDA:
            torch.cuda.synchronize()
            row["allocated_mib"][stage] = torch.cuda.memory_allocated() / 2**20 - row["before_mib"]
            row["peak_mib"][stage] = torch.cuda.max_memory_allocated() / 2**20 - row["before_mib"]
            torch.cuda.reset_peak_memory_stats()

    try:
        work(mark, row)
    except torch.OutOfMemoryError:
        row["error"] = "out of memory"
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        traceback.print_exc()
    row["seconds"] = time.perf_counter() - begun
    return row


def count(row: dict[str, Any], encoder: nn.Module, head: nn.Module) -> None:
    row["encoder_params"] = sum(p.numel() for p in encoder.parameters())
    row["head_params"] = sum(p.numel() for p in head.parameters())


# ---------------------------------------------------------------------- the networks


def flat(bert: nn.Module, n_outputs: int, batch: int, mark: Mark, row: dict[str, Any]) -> None:
    """A plain network with one output for each label."""
    model = copy.deepcopy(bert).to(DEVICE).train()
    head = nn.Linear(model.config.hidden_size, n_outputs, device=DEVICE)
    count(row, model, head)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-5)
    ids = torch.randint(1000, 20000, (batch, LENGTH), device=DEVICE) % model.config.vocab_size
    mark("load")
    scores = head(model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[:, 0])
    if n_outputs == 2:
        loss = nn.functional.cross_entropy(scores, torch.zeros(batch, dtype=torch.int64, device=DEVICE))
    else:
        Y = torch.zeros_like(scores)
        Y[:, :LABELS_PER_TEXT] = 1
        loss = nn.functional.binary_cross_entropy_with_logits(scores, Y)
    mark("forward")
    loss.backward()
    mark("backward")
    optimizer.step()
    mark("step")


def ours(
    bert: nn.Module,
    n_labels: int,
    n_clusters: int,
    precision: str,
    batch: int,
    n_docs: int,
    mark: Mark,
    row: dict[str, Any],
) -> None:
    """The network of labelwise; forward and backward passes are separate here, and one function in TrainStep."""
    config = MatcherConfig(batch_size=batch, precision=precision)
    model = copy.deepcopy(bert)
    encoder = Encoder(EncoderConfig(), model, Words(), "mean").to(DEVICE)
    network = Network(encoder, n_clusters, dropout=config.dropout).to(DEVICE).train()
    count(row, model, network.head)
    packer = make_packer(encoder) if precision != "fp32" else None
    row["packed"] = packer is not None
    M = clusters_of(n_docs, n_labels, n_clusters)
    before = torch.cuda.memory_allocated() if CUDA else 0
    corpus = DeviceData(
        encoder, texts(n_docs, model.config.vocab_size), M, packer=packer, device=DEVICE,
        term=np.zeros((n_docs, n_clusters), np.float16),
    )  # fmt: skip
    row["corpus_mib"] = (torch.cuda.memory_allocated() - before) / 2**20 if CUDA else None
    mark("load")
    weights = MixedPrecisionOptimizer(network, config, precision, Processes())
    weights.set_rates(0.1)
    step = TrainStep(network, corpus, weights, config, batch)
    plan = (Padded if packer is None else Packed)(corpus.lengths, batch, SEED)
    documents, shape = next(step._split(plan.epoch(0)[0]))
    rows = torch.from_numpy(documents).to(DEVICE)
    embedding = network.embed(corpus.inputs(rows, shape), packer, len(rows))
    chosen = corpus.sample(rows, config.max_clusters_per_step)
    clusters, shares = (None, None) if chosen is None else chosen[:2]
    scores = network.score(embedding, corpus.term(rows, chosen), clusters)
    losses = document_losses(scores, corpus.signs(rows, chosen), config.loss, mean=config.mean_loss, weights=shares)
    loss = (losses * (rows >= 0).float()).sum() / batch
    mark("forward")
    (loss * weights.scale).backward()
    mark("backward")
    weights.update()
    mark("step")


def clusters_of(n_docs: int, n_labels: int, n_clusters: int) -> sp.csr_array:
    """(n_docs, n_clusters) M = Y C of random labels in clusters of equal size."""
    rng = np.random.default_rng(SEED)
    at = np.repeat(np.arange(n_docs), LABELS_PER_TEXT)
    chosen = rng.integers(0, n_labels, len(at))
    Y = sp.csr_array((np.ones(len(at), np.float32), (at, chosen)), shape=(n_docs, n_labels))
    cluster = rng.permutation(n_labels) % n_clusters
    C = sp.csr_array((np.ones(n_labels, np.float32), (np.arange(n_labels), cluster)), shape=(n_labels, n_clusters))
    M = sp.csr_array(Y @ C)
    M.data[:] = 1
    return M


def texts(n_docs: int, vocabulary: int) -> TokenStore:
    tokens = np.random.default_rng(SEED).integers(vocabulary // 2, vocabulary, n_docs * LENGTH).astype(np.uint16)
    return TokenStore(tokens, np.arange(n_docs + 1, dtype=np.int64) * LENGTH)


# ---------------------------------------------------------------------- the table


def show(name: str, row: dict[str, Any]) -> None:
    """Print a line of the table, with the reason for a stage that was not reached."""
    cells = ["-" if key not in row else f"{row[key] / 1e6:,.3f}" for key in ("encoder_params", "head_params")]
    reached = STAGES.index(row["reached"]) + 1 if "reached" in row else 0
    for number, stage in enumerate(STAGES):
        if number >= reached:
            cells.append(row.get("error", "-") if number == reached else "-")
        else:
            cells.append(f"{row['allocated_mib'][stage]:,.0f}" if stage in row["allocated_mib"] else "done")
    peaks = row["peak_mib"].values()
    whole = bool(peaks) and "error" not in row
    row["highest_mib"] = max(peaks) if whole else None
    row["fits_papers_card"] = max(peaks) * 2**20 < PAPERS_CARD if whole else None
    cells.append(f"{row['highest_mib']:,.0f}" if whole else "-")
    cells.append("-" if not whole else "yes" if row["fits_papers_card"] else "no")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=1, help="texts of 128 tokens; the paper has one")
    parser.add_argument("--json", type=Path, help="also append the JSON line to this file")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the script; on a CPU too")
    args = parser.parse_args()
    if not CUDA and not args.tiny:
        print("there is no GPU here, so there is nothing to measure; --tiny tries the script on a CPU", file=sys.stderr)
        sys.exit(0)
    begun = time.perf_counter()
    from transformers import BertConfig, BertModel

    million, many, most, n_docs = (10**6, 8192, MatcherConfig().max_clusters_per_step, 1024)
    if args.tiny:
        million, many, most, n_docs = (1000, 64, 128, 32)
    settings = {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}
    if args.tiny:
        settings = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
    torch.manual_seed(SEED)
    bert = BertModel(BertConfig(**settings), add_pooling_layer=False)
    small = BertModel(BertConfig(hidden_size=64, num_hidden_layers=1, num_attention_heads=2), add_pooling_layer=False)
    for warm_up in (  # libraries allocate their workspaces before memory is counted
        lambda mark, row: flat(small, 2, args.batch, mark, row),
        lambda mark, row: ours(small, 100, 8, "fp32", args.batch, 8, mark, row),
        lambda mark, row: ours(small, 100, 8, "bf16", args.batch, 8, mark, row),
    ):
        measure(warm_up)
    device = torch.cuda.get_device_name() if CUDA else "CPU"
    layers, width = settings["num_hidden_layers"], settings["hidden_size"]
    print(
        f"{device}, torch {torch.__version__}; {layers} × {width} BERT with random weights, "
        f"{args.batch} × {LENGTH} tokens; MiB allocated after each stage\n\n"
        "| head | encoder, M parameters | head, M | load model | + forward | + backward | + optimizer step | peak | "
        "under 12 GB |\n|---|---:|---:|---:|---:|---:|---:|---:|---|",
        flush=True,
    )
    rows: dict[str, dict[str, Any]] = {}

    def case(name: str, work: Callable[..., None], *options: Any) -> None:
        rows[name] = measure(lambda mark, row: work(bert, *options, mark, row))
        show(name, rows[name])

    case("2 classes, fp32", flat, 2, args.batch)
    case(f"flat, {million:,} labels, fp32", flat, million, args.batch)
    sweep = {}
    for n_labels in (million // 1000, million // 100, million // 10, million):
        name = f"labelwise, {many:,} clusters of {n_labels:,} labels, fp32"
        case(name, ours, n_labels, many, "fp32", args.batch, n_docs)
        sweep[n_labels] = rows[name]
    for n_clusters in (most, 4 * most):  # all clusters in a step; a sample of them
        name = f"labelwise, {n_clusters:,} clusters of {million:,} labels, fp32"
        case(name, ours, million, n_clusters, "fp32", args.batch, n_docs)
    for n_clusters in (many, most):
        name = f"labelwise, {n_clusters:,} clusters of {million:,} labels, bf16"
        case(name, ours, million, n_clusters, "bf16", args.batch, n_docs)
    peaks = [row["highest_mib"] for row in sweep.values() if row["highest_mib"]]
    if len(peaks) == len(sweep):
        print(
            f"\nFrom {min(sweep):,} to {max(sweep):,} labels in {many:,} clusters the peak moves between "
            f"{min(peaks):,.1f} and {max(peaks):,.1f} MiB. (With the fewest labels most clusters are empty.)"
        )
    padded = [name for name, row in rows.items() if name.endswith("bf16") and not row.get("packed")]
    if padded:
        print(f"Texts were padded, not packed, in: {'; '.join(padded)}.")
    corpus = {name: row["corpus_mib"] for name, row in rows.items() if row.get("corpus_mib")}
    if corpus:
        print(f"The corpus of {n_docs:,} documents takes {min(corpus.values()):.0f} to {max(corpus.values()):.0f} MiB.")
    about = {"device": device, "torch": torch.__version__, "tiny": args.tiny, "batch": args.batch, "length": LENGTH}
    line = {"benchmark": "memory_table", **about, "encoder": settings, "seconds": time.perf_counter() - begun}
    text = json.dumps(rounded({**line, "rows": rows}))
    print(f"\n{text}", flush=True)
    if args.json:
        with args.json.open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def rounded(value: Any) -> Any:
    """All numbers rounded to one decimal."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return round(value, 1) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
