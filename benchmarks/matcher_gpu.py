#!/usr/bin/env python3
"""Measures the speed of fine-tuning and inference on one GPU, and compares it with the GPU's limits and a plain loop.

    python benchmarks/matcher_gpu.py [--encoder FOLDER] [--clusters 256] [--seconds 100] [--json OUT] [--check] [--tiny]

Fine-tuning is timed with the classes that labelwise trains with (MixedPrecisionOptimizer, TrainStep, Schedule, Packed),
in the order of `match/training/loop.py`: learning rates are set before every step, the loss is read every 20 steps. The
precision is the one that labelwise chooses, and the encoder has its own dropout. A row is the median of three windows.
Only real tokens count, not padding. The time before the windows, compilation included, is the column `first step s`.
labelwise compiles if training is long enough to gain by it: long texts are measured compiled, texts of 12 words are
not; the opposite is measured too if --seconds suffice. Shares of the matmul rate count 6 (inference: 2) × parameters
outside the embeddings × real tokens.

Inference is the matcher's own loop over the same texts. The plain loop pads every text to one width on the host,
computes in fp32 with TF32 allowed, uses torch.optim.AdamW and reads the loss after every step. Idle is the share of
time without any kernel, copy or fill on the device, between the first and the last of 20 steps in torch.profiler.

Texts are random tokens; no figure depends on their meaning. The output is a markdown table, the targets, and a JSON
line. With --check the exit code is 1 if a target is missed or was not measured. --tiny runs every part with small
sizes, on a CPU too; its figures mean nothing.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))  # where labelwise is not installed

from labelwise.config import EncoderConfig, MatcherConfig
from labelwise.events import Task
from labelwise.features.encoder import Encoder
from labelwise.features.packing import make_packer
from labelwise.features.pretrained import find_encoder, quiet
from labelwise.features.token_store import TokenStore
from labelwise.match.finetuned import FineTunedMatcher
from labelwise.match.network import Network
from labelwise.match.training.batches import Packed, Schedule
from labelwise.match.training.device_data import DeviceData
from labelwise.match.training.distributed import Processes
from labelwise.match.training.loop import STEPS_PER_CHECK
from labelwise.match.training.optimizer import MixedPrecisionOptimizer, choose_precision
from labelwise.match.training.step import TrainStep

BEGUN = time.perf_counter()
CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
SEED, WINDOWS, TOP_B = 0, 3, 10
LABELS_PER_TEXT = 3
ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"} if CUDA else {"cpu_op"}
COLUMNS = {
    "M tokens/s": ("tokens_per_s", 1e-6, ".3f"),
    "texts/s": ("texts_per_s", 1, ",.0f"),
    "ms a step": ("ms_per_step", 1, ".2f"),
    "tokens a step": ("tokens_per_step", 1, ",.0f"),
    "of matmul rate": ("of_matmul", 100, ".1f %"),
    "first step s": ("first_step_s", 1, ".1f"),
    "peak GiB": ("peak_gib", 1, ".1f"),
}

rows: dict[str, dict[str, Any]] = {}
kept: dict[str, SimpleNamespace] = {}


def sync() -> None:
    if CUDA:
        torch.cuda.synchronize()


def elapsed() -> float:
    return time.perf_counter() - BEGUN


def timed(work: Callable[[], object]) -> float:
    """Seconds until the device has finished the work."""
    sync()
    begun = time.perf_counter()
    work()
    sync()
    return time.perf_counter() - begun


@contextmanager
def part(name: str) -> Iterator[None]:
    """Report a failure and continue with the next part; memory of the part is released."""
    try:
        yield
    except Exception as error:
        rows.setdefault(name, {})["error"] = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        print(f"| {name} | failed: {rows[name]['error']} |{' |' * (len(COLUMNS) - 1)}", flush=True)
        traceback.print_exc()
    finally:
        gc.collect()
        if CUDA:
            torch.cuda.empty_cache()


def show(name: str, row: dict[str, Any]) -> None:
    rows[name] = row
    cells = []
    for key, factor, style in COLUMNS.values():
        number, _, unit = style.partition(" ")
        cells.append("-" if row.get(key) is None else f"{row[key] * factor:{number}}{unit and ' ' + unit}")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


# ---------------------------------------------------------------------- training runs


def make_corpus(encoder: Encoder, lengths: np.ndarray, n_clusters: int, *, pack: bool = True) -> DeviceData:
    """Random tokens, random clusters, and a linear term, which labelwise has by default."""
    rng, n = np.random.default_rng(SEED), len(lengths)
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    vocabulary = len(encoder.tokenizer)
    tokens = rng.integers(min(1000, vocabulary // 2), vocabulary, indptr[-1]).astype(np.uint16)
    ones = np.ones(n * LABELS_PER_TEXT, np.float32)
    clusters = rng.integers(0, n_clusters, len(ones))
    M = sp.csr_array((ones, (np.repeat(np.arange(n), LABELS_PER_TEXT), clusters)), shape=(n, n_clusters))
    M.sum_duplicates()
    term = np.zeros((n, n_clusters), np.float16)
    packer = make_packer(encoder) if pack else None
    if pack and packer is None:
        raise RuntimeError("this encoder cannot be packed here, so labelwise trains with other steps than these")
    return DeviceData(encoder, TokenStore(tokens, indptr), M, term=term, packer=packer, device=DEVICE)


def prepare(encoder: Encoder, lengths: np.ndarray, batch_size: int, n_clusters: int, compiled: bool) -> SimpleNamespace:
    """The objects that `match/training/loop.py` creates before its loop."""
    torch.manual_seed(SEED)
    config = MatcherConfig(batch_size=batch_size)
    encoder.to(DEVICE)
    network = Network(encoder, n_clusters, dropout=config.dropout).to(DEVICE)
    corpus = make_corpus(encoder, lengths, n_clusters)
    if compiled:
        corpus.compile()
    weights = MixedPrecisionOptimizer(network, config, choose_precision(config.precision, DEVICE), Processes())
    step = TrainStep(network, corpus, weights, config, batch_size)
    schedule = Schedule(Packed(corpus.lengths, batch_size, SEED))
    network.train()
    return SimpleNamespace(
        config=config, network=network, corpus=corpus, weights=weights, step=step, schedule=schedule, done=0, skipped=0
    )


def learn(run: SimpleNamespace, steps: int) -> tuple[int, int]:
    """Run further steps in the way of the training loop; returns their numbers of real tokens and of texts."""
    tokens = texts = 0
    for _ in range(steps):
        batch = run.schedule.batch(run.done)
        run.weights.set_rates(0.1)
        run.step(batch)
        run.done += 1
        tokens += int(run.corpus.lengths[batch.rows].sum())
        texts += len(batch.rows)
        if run.done % STEPS_PER_CHECK == 0:
            run.loss, _, skipped = run.step.collect()
            run.skipped += skipped
    return tokens, texts


def parameters(encoder: Encoder) -> int:
    """The number of parameters outside the embeddings."""
    return sum(p.numel() for name, p in encoder.model.named_parameters() if "embeddings" not in name)


def fine_tuning(name: str, encoder: Encoder, lengths: np.ndarray, batch_size: int, args: Any, **options: Any) -> None:
    """Time training; with `keep` the run is kept for inference and idle time."""
    compiled, steps, keep = options["compiled"], options["steps"], options.get("keep", False)
    if CUDA:
        torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated() if CUDA else 0
    run = prepare(encoder, lengths, batch_size, args.clusters, compiled)
    first = timed(lambda: learn(run, 1))
    second = timed(lambda: learn(run, 1))  # captures a CUDA graph
    learn(run, args.warm_steps)
    windows = []
    for _ in range(WINDOWS):
        counts: list[tuple[int, int]] = []
        seconds = timed(lambda counts=counts: counts.append(learn(run, steps)))
        windows.append((counts[0][0] / seconds, counts[0][1] / seconds, seconds / steps, counts[0][0] / steps))
    rate, texts, seconds, tokens = statistics.median_low(windows)
    learn(run, -run.done % STEPS_PER_CHECK)  # until the loss is read
    row = {
        "tokens_per_s": rate,
        "texts_per_s": texts,
        "ms_per_step": 1e3 * seconds,
        "tokens_per_step": tokens,
        "of_matmul": share_of_matmul(6 * parameters(encoder) * rate),
        "first_step_s": first,
        "second_step_s": second,
        "peak_gib": (torch.cuda.max_memory_allocated() - before) / 2**30 if CUDA else None,
        "windows_tokens_per_s": [window[0] for window in windows],
        "compiled": compiled,
        "captured": any(run.step._graphs.values()),
        "precision": run.weights.precision,
        "loss": run.loss,
        "steps": run.done,
        "skipped_steps": run.skipped,
    }
    show(name, row)
    if keep:
        kept[name] = run


def inference(name: str, trained: str) -> None:
    """The matcher's loop over all texts of a training run, with the trained network in its working precision."""
    run = kept[trained]
    matcher, corpus = FineTunedMatcher(run.config), run.corpus
    matcher.groups_ = [corpus.n_clusters]
    run.network.eval()

    def match() -> object:
        return matcher._match(run.network, corpus, min(TOP_B, corpus.n_clusters), True, Task(None, "matching"))

    first = timed(match)
    seconds = statistics.median_low([timed(match) for _ in range(WINDOWS)])
    run.network.train()
    rate = float(corpus.lengths.sum()) / seconds
    row = {
        "tokens_per_s": rate,
        "texts_per_s": len(corpus) / seconds,
        "of_matmul": share_of_matmul(2 * parameters(corpus.encoder) * rate),
        "first_pass_s": first,
        "of_training": rate / rows[trained]["tokens_per_s"],
    }
    show(name, row)


def plain_loop(name: str, ours: str, folder: Path, batch_size: int, width: int, args: Any) -> None:
    """A plain training loop; texts and clusters are those of the run of labelwise."""
    from transformers import AutoModel

    corpus = kept[ours].corpus
    tokens, starts = corpus._tokens.cpu().numpy(), corpus._starts.cpu().numpy()
    clusters = corpus._clusters.cpu().long()
    with quiet():
        model = AutoModel.from_pretrained(folder, dtype=torch.float32).to(DEVICE).train()
    head = torch.nn.Linear(model.config.hidden_size, args.clusters).to(DEVICE)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-5)
    order = np.random.default_rng(SEED).permutation(len(corpus))

    def steps(n: int) -> None:
        for number in range(n):
            chosen = order.take(np.arange(number * batch_size, (number + 1) * batch_size), mode="wrap")
            ids = np.full((batch_size, width), corpus.encoder.pad_id, np.int64)
            mask = np.zeros((batch_size, width), np.int64)
            for at, row in enumerate(chosen):
                length = min(int(corpus.lengths[row]), width)
                ids[at, :length] = tokens[starts[row] : starts[row] + length]
                mask[at, :length] = 1
            Y = torch.zeros(batch_size, args.clusters + 1).scatter_(1, clusters[chosen], 1.0)[:, : args.clusters]
            inputs = {
                "input_ids": torch.from_numpy(ids).to(DEVICE),
                "attention_mask": torch.from_numpy(mask).to(DEVICE),
            }
            states = model(**inputs).last_hidden_state
            loss = torch.nn.functional.binary_cross_entropy_with_logits(head(states[:, 0]), Y.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()

    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        first = timed(lambda: steps(1))
        steps(args.plain_steps // 4)
        seconds = timed(lambda: steps(args.plain_steps)) / args.plain_steps
    finally:
        torch.set_float32_matmul_precision(precision)
    real = float(corpus.lengths.mean()) * batch_size
    row = {
        "tokens_per_s": real / seconds,
        "texts_per_s": batch_size / seconds,
        "ms_per_step": 1e3 * seconds,
        "tokens_per_step": real,
        "of_matmul": share_of_matmul(6 * parameters(corpus.encoder) * real / seconds),
        "first_step_s": first,
        "width": width,
        "ours_is_times": rows[ours]["texts_per_s"] * seconds / batch_size,
    }
    show(name, row)


# ---------------------------------------------------------------------- idle time


def idle(name: str, trained: str, args: Any) -> None:
    """Measure the share of time in which nothing runs on the device."""
    run = kept[trained]
    for attempt in range(2):
        if attempt:  # the profiler may know graphs only if they were captured while it ran
            run.step.reset_graphs()
            trace(lambda: learn(run, 4))
        spans = device_spans(trace(lambda: learn(run, args.idle_steps)))
        if len(spans) >= 50 * args.idle_steps:  # the kernels of a captured step, one by one
            break
    else:
        raise RuntimeError(f"the profiler recorded only {len(spans)} kernels in {args.idle_steps} steps")
    busy, wall = busy_time(spans)
    rows[name] = {
        "idle": 1 - busy / wall,
        "pieces_per_step": len(spans) / args.idle_steps,
        "ms_per_step": 1e-3 * wall / args.idle_steps,
        "busy_ms_per_step": 1e-3 * busy / args.idle_steps,
        "captured_again": bool(attempt),
    }
    print(
        f"| {name}: {100 * rows[name]['idle']:.1f} %, {rows[name]['pieces_per_step']:.0f} kernels a step | - | - | "
        f"{rows[name]['ms_per_step']:.2f} |{' - |' * (len(COLUMNS) - 3)}",
        flush=True,
    )


def trace(work: Callable[[], object]) -> list[dict[str, Any]]:
    """The events that torch.profiler records during some work."""
    from torch.profiler import ProfilerActivity, profile

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "trace.json"
        sync()
        with profile(activities=[ProfilerActivity.CUDA if CUDA else ProfilerActivity.CPU]) as profiler:
            work()
            sync()
        profiler.export_chrome_trace(str(path))
        return json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]


def device_spans(events: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Begin and end, in microseconds, of everything that ran on the device."""
    found = [event for event in events if event.get("ph") == "X" and event.get("cat") in ON_DEVICE]
    return sorted((float(event["ts"]), float(event["ts"]) + float(event["dur"])) for event in found)


def busy_time(spans: list[tuple[float, float]]) -> tuple[float, float]:
    """Time covered by sorted spans, overlaps counted once, and time from the first begin to the last end.

    >>> busy_time([(0, 2), (1, 3), (1, 2), (5, 6)])
    (4.0, 6.0)
    """
    busy, end = 0.0, spans[0][0]
    for begin, stop in spans:
        busy += max(0.0, stop - max(begin, end))
        end = max(end, stop)
    return busy, float(end - spans[0][0])


# ---------------------------------------------------------------------- ceilings


def ceilings(args: Any) -> None:
    """Measure the limits of the GPU: a large matrix product, and a copy, counting bytes read and written."""
    n, dtype = args.matmul, torch.bfloat16 if CUDA else torch.float32
    a, b = (torch.randn(n, n, device=DEVICE, dtype=dtype) for _ in range(2))
    source = torch.empty(args.copy_bytes, dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    speeds, repeat = {}, 20 if CUDA else 2
    for key, amount, work in (
        ("matmul_flops", 2 * n**3, lambda: torch.matmul(a, b)),
        ("copy_bytes_per_s", 2 * args.copy_bytes, lambda: target.copy_(source)),
    ):
        for _ in range(5):
            work()
        seconds = [timed(lambda work=work: [work() for _ in range(repeat)]) for _ in range(WINDOWS)]
        speeds[key] = repeat * amount / statistics.median(seconds)
    rows["ceilings"] = speeds
    print(
        f"\nceilings: bf16 {n}³ product {speeds['matmul_flops'] / 1e12:.1f} TFLOP/s, "
        f"copy on the device {speeds['copy_bytes_per_s'] / 1e12:.2f} TB/s",
        flush=True,
    )


def share_of_matmul(flops: float) -> float | None:
    rate = rows.get("ceilings", {}).get("matmul_flops")
    return None if rate is None else flops / rate


# ---------------------------------------------------------------------- all parts


def sizes(args: argparse.Namespace) -> None:
    """Set the sizes of all parts."""
    args.matmul, args.copy_bytes = (8192, 1 << 32) if not args.tiny else (64, 1 << 16)
    args.warm_steps, args.plain_steps, args.idle_steps = (10, 20, 20) if not args.tiny else (2, 2, 2)
    args.long, args.short_width = (512, 128) if not args.tiny else (32, 16)


def measure(args: argparse.Namespace) -> None:
    folder = find_encoder(args.encoder)
    tiny, many = args.tiny, 1 if not args.tiny else 512
    rng = np.random.default_rng(SEED)
    long, width = args.long, args.short_width
    at_128, at_512 = np.full(32768 // many, width), np.full(8192 // many * (2 if tiny else 1), long)
    words_12 = np.clip(rng.normal(19, 6, 65536 // many).round(), 5, 60 if not tiny else width).astype(np.int64)
    large, small = (512, 128) if not tiny else (8, 4)

    def minilm() -> Encoder:
        return Encoder.load(EncoderConfig(name=str(folder), max_length=512))

    def base() -> Encoder:
        from transformers import BertConfig, BertModel

        torch.manual_seed(SEED)
        config = BertConfig() if not tiny else BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2)
        with quiet():
            model = BertModel(config, add_pooling_layer=False).eval()
        return Encoder(EncoderConfig(name=str(folder)), model, minilm().tokenizer, "mean")

    steps = {"T=128": 40, "T=512": 40, "12 words": 100, "base": 20}
    if tiny:
        steps = dict.fromkeys(steps, 2)
    with part("ceilings"):
        ceilings(args)
    print(f"\n| what | {' | '.join(COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}", flush=True)
    with part("MiniLM, T=128"):
        fine_tuning("MiniLM, T=128", minilm(), at_128, large, args, compiled=True, steps=steps["T=128"], keep=True)
    with part("MiniLM, T=512"):
        fine_tuning("MiniLM, T=512", minilm(), at_512, small, args, compiled=True, steps=steps["T=512"], keep=True)
    for size, text in ((large, "512"), (small, "128")):
        name = f"MiniLM, 12 words, {text} a step"
        with part(name):
            fine_tuning(name, minilm(), words_12, size, args, compiled=False, steps=steps["12 words"], keep=True)
    for name, trained in INFERENCE.items():
        with part(name):
            inference(name, trained)
    for name, ours in PLAIN.items():
        with part(name):
            plain_loop(name, ours, folder, large, width, args)
    kept.pop("MiniLM, T=512", None)
    with part("12×768, T=128"):
        half, size = at_128[: len(at_128) // 2], large // 2
        fine_tuning("12×768, T=128", base(), half, size, args, compiled=True, steps=steps["base"])
    extras = {
        "MiniLM, T=128, not compiled": (at_128, large, False, "T=128"),
        "MiniLM, T=512, not compiled": (at_512, small, False, "T=512"),
        "MiniLM, 12 words, 512 a step, compiled": (words_12, large, True, "12 words"),
        "MiniLM, 12 words, 128 a step, compiled": (words_12, small, True, "12 words"),
    }
    for name, (lengths, size, compiled, kind) in extras.items():
        slowest = max((row.get("first_step_s", 0.0) for row in rows.values()), default=0.0)
        if elapsed() + (slowest if compiled else 0) + 3 > args.seconds - 18:  # the rest: imports, idle time
            continue
        with part(name):
            fine_tuning(name, minilm(), lengths, size, args, compiled=compiled, steps=steps[kind])
    for name, trained in IDLE.items():  # at the end, since the profiler may slow later parts
        with part(name):
            idle(name, trained, args)


INFERENCE = {
    "inference, MiniLM, T=128": "MiniLM, T=128",
    "inference, MiniLM, T=512": "MiniLM, T=512",
    "inference, MiniLM, 12 words": "MiniLM, 12 words, 512 a step",
}
PLAIN = {
    "plain loop, MiniLM, T=128": "MiniLM, T=128",
    "plain loop, MiniLM, 12 words padded to 128": "MiniLM, 12 words, 512 a step",
}
IDLE = {
    "idle, T=128": "MiniLM, T=128",
    "idle, 12 words, 512 a step": "MiniLM, 12 words, 512 a step",
    "idle, 12 words, 128 a step": "MiniLM, 12 words, 128 a step",
}


def targets() -> list[dict[str, Any]]:
    """All targets with the measured values; None if a part failed."""

    def value(name: str, key: str) -> float | None:
        return rows.get(name, {}).get(key)

    wanted = [
        ("MiniLM at T=128, tokens/s", value("MiniLM, T=128", "tokens_per_s"), 3.0e6),
        ("MiniLM at T=512, tokens/s", value("MiniLM, T=512", "tokens_per_s"), 3.5e6),
        ("12-word texts, 512 a step, texts/s", value("MiniLM, 12 words, 512 a step", "texts_per_s"), 20_000),
        ("12-word texts, 128 a step, texts/s", value("MiniLM, 12 words, 128 a step", "texts_per_s"), 20_000),
        ("12×768 encoder, share of the matmul rate", value("12×768, T=128", "of_matmul"), 0.40),
    ]
    wanted += [(f"{name}, times the training rate", value(name, "of_training"), 3.0) for name in INFERENCE]
    wanted += [(f"training, times the {name}", value(name, "ours_is_times"), 3.0) for name in PLAIN]
    compared = [
        {"target": name, "value": found, "at_least": limit, "met": found is not None and found >= limit}
        for name, found, limit in wanted
    ]
    compared += [
        {"target": name, "value": found, "below": 0.10, "met": found is not None and found < 0.10}
        for name, found in ((name, value(name, "idle")) for name in IDLE)
    ]
    return compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="minilm", help="a folder with MiniLM, or minilm for the installed package")
    parser.add_argument("--clusters", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=100.0, help="time for rows without a target")
    parser.add_argument("--json", type=Path, help="also append the JSON line to this file")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the script; on a CPU too")
    args = parser.parse_args()
    if not CUDA and not args.tiny:
        print("there is no GPU here, so there is nothing to measure; --tiny tries the script on a CPU", file=sys.stderr)
        sys.exit(1 if args.check else 0)
    sizes(args)
    device = torch.cuda.get_device_name() if CUDA else "CPU"
    print(f"{device}, torch {torch.__version__}; random tokens, {args.clusters} clusters", flush=True)
    if args.tiny:
        print("tiny sizes: these figures mean nothing", flush=True)
    measure(args)
    compared = targets()
    print()
    for target in compared:
        limit = f"at least {target['at_least']:,.10g}" if "at_least" in target else f"below {target['below']:g}"
        found = "not measured" if target["value"] is None else f"{target['value']:,.4g}"
        if target["value"] is not None and target["value"] >= 1000:
            found = f"{target['value']:,.0f}"
        print(f"- {'met' if target['met'] else 'missed'}: {target['target']}: {found} ({limit})")
    about = {"device": device, "torch": torch.__version__, "clusters": args.clusters, "tiny": args.tiny}
    line = {"benchmark": "matcher_gpu", **about, "tokens": "random", "seconds": elapsed()}
    line |= {"rows": rows, "targets": compared}
    text = json.dumps(rounded(line), ensure_ascii=False)
    print(f"\n{text}", flush=True)
    if args.json:
        with args.json.open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    sys.stdout.flush()
    sys.exit(1 if args.check and not all(target["met"] for target in compared) else 0)


def rounded(value: Any) -> Any:
    """All numbers rounded to five digits."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
