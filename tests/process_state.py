"""The state of a process that others rely on, and what a piece of work has changed in it.

``python -m tests.process_state FOLDER`` does the pieces of work in `WORK` one after the other and prints, as JSON, the
parts of the state that each has changed. It runs in a process of its own: a change that another test has made already
would not be seen.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import importlib
import json
import locale
import logging
import os
import pkgutil
import random
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LIBRARIES = ("onnxruntime", "safetensors.numpy", "scipy.optimize", "sklearn.ensemble", "torch", "transformers")
"""Imported before the first measurement: what they change when they are imported is not a change by labelwise."""
LARGE = 16 << 20


def digest(value: Any) -> str:
    """A short form of a large value."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def process_state() -> dict[str, Any]:
    """Settings and random numbers that all code of a process shares."""
    return {
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "umask": umask(),
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": {str(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
        "socket timeout": socket.getdefaulttimeout(),
        "garbage collection": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
        "interpreter": (
            sys.getrecursionlimit(),
            sys.getswitchinterval(),
            sys.path[:],
            sys.argv[:],
            str(sys.excepthook),
        ),
        "output": (id(sys.stdout), id(sys.stderr), str(threading.excepthook)),
        "warnings": ([str(one) for one in warnings.filters], str(warnings.showwarning)),
        "logging": {name: logger_state(name) for name in KNOWN_LOGGERS},
        "random": digest(random.getstate()),
        "numpy random": digest([str(part) for part in np.random.get_state()]),  # noqa: NPY002  # the state of the process
        "numpy": (np.geterr(), np.get_printoptions()),
        **torch_state(),
        "transformers": transformers_state(),
        "allocator": large_arrays_have_pages_of_their_own(),
        "threads": sorted(thread.name for thread in threading.enumerate() if not thread.daemon),
    }


KNOWN_LOGGERS: list[str] = []


def logger_state(name: str) -> Any:
    """What decides which messages of a logger reach whom."""
    logger = logging.getLogger(name or None)
    return logger.level, logger.propagate, logger.disabled, [str(one) for one in logger.handlers], str(logger.filters)


def torch_state() -> dict[str, Any]:
    """Settings of torch for all of the process, and its random numbers."""
    import torch

    state: dict[str, Any] = {
        "torch random": digest(torch.get_rng_state().tolist()),
        "torch threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "torch dtype": str(torch.get_default_dtype()),
        "torch device": str(torch.get_default_device()),
        "torch gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()),
        "torch deterministic": (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic),
        "torch precision": (torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32),
        "torch cudnn": (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32),
        "torch attention": (torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()),
        "torch autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
    }
    if torch.cuda.is_available():
        state["torch cuda random"] = [digest(one.tolist()) for one in torch.cuda.get_rng_state_all()]
        state["torch cuda device"] = torch.cuda.current_device()
    return state


def transformers_state() -> Any:
    """The verbosity of transformers."""
    from transformers.utils import logging as said

    return said.get_verbosity(), said.is_progress_bar_enabled()


def umask() -> int:
    """The permissions that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def large_arrays_have_pages_of_their_own() -> bool | None:
    """Whether the C library maps an array of 16 MiB after it has freed another; None if it is not glibc.

    With its default settings glibc keeps the memory of the first array and uses it again. A bit in the word before an
    array says whether its pages are mapped.
    """
    if not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"):
        return None
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    library.free.restype, library.free.argtypes = None, (ctypes.c_void_p,)
    library.free(library.malloc(LARGE))
    address = library.malloc(LARGE)
    mapped = bool(ctypes.c_size_t.from_address(address - ctypes.sizeof(ctypes.c_size_t)).value & 2)
    library.free(address)
    return mapped


# ---------------------------------------------------------------------- work


def texts_and_labels(n: int = 120) -> tuple[list[str], list[list[str]]]:
    """Texts of the words that the tiny tokenizers know, with labels that can be learnt."""
    from tests.features.tiny import WORDS

    rng = np.random.default_rng(0)
    words = [rng.choice(WORDS, 6) for _ in range(n)]
    return [" ".join(some) for some in words], [[f"about {some[0]}", f"near {some[1]}"] for some in words]


def linear(folder: Path) -> None:
    """Train, calibrate, predict, explain, save, load and extend linear models."""
    from labelwise import LinearTree, add_labels, explain, load_model

    texts, labels = texts_and_labels()
    for settings in ({"n_trees": 2}, {"matching": "neighbours", "neighbours": 5}):
        model = LinearTree(**settings).fit(texts, labels, run_dir=folder / "run")
        model.save(folder / "linear")
        loaded = load_model(folder / "linear")
        loaded.predict(texts[:10], top_k=3).write(folder / "found.jsonl")
        explain(loaded, texts[0])
    add_labels(model, [{"label": "new", "text": texts[0]}])


def neural(folder: Path) -> None:
    """Fine-tune a tiny encoder on clusters and labels, on samples of clusters, and not at all; predict, save, load."""
    from labelwise import XTransformer, explain, load_model

    texts, labels = texts_and_labels()
    settings = {"encoder": str(folder / "encoder"), "max_length": 16, "n_clusters": 4, "device": "cpu"}
    for matcher in ({"learn_labels": True}, {"max_clusters_per_step": 3, "gradient_checkpointing": True}):
        changes = {"dropout": 0.2, "steps": 6, "batch_size": 16, **matcher}
        model = XTransformer("x-transformer", **settings, matcher=changes).fit(texts, labels, run_dir=folder / "run")
    model.save(folder / "neural")
    loaded = load_model(folder / "neural")
    loaded.predict(texts[:10], top_k=3)
    explain(loaded, texts[0])
    del settings["device"]
    XTransformer("hybrid", **settings).fit(texts, labels).predict(texts[:3])


def torch_seed(folder: Path) -> None:
    """Set the seed of the process, which labelwise must not do: the check has to find it."""
    import torch

    torch.manual_seed(1)


def heap_limit(folder: Path) -> None:
    """Set limits of the C library, as the command line does: the check has to find it."""
    from labelwise.engines.allocator import limit_heap_growth

    limit_heap_growth()


WORK: tuple[Callable[[Path], None], ...] = (linear, neural, torch_seed, heap_limit)


def import_everything() -> None:
    """Import the libraries and all modules of labelwise."""
    for name in LIBRARIES:
        importlib.import_module(name)
    import labelwise

    for found in pkgutil.walk_packages(labelwise.__path__, "labelwise."):
        if not found.name.endswith(("__main__", ".annif", ".annif_hyperopt")):  # programs, and another installation
            importlib.import_module(found.name)


def main() -> None:
    """Do all pieces of work and print what each has changed."""
    folder = Path(sys.argv[1])
    import_everything()
    from tests.features.tiny import write_model

    write_model(folder / "encoder", "bert")
    KNOWN_LOGGERS.extend(["", *logging.root.manager.loggerDict])
    changes: dict[str, dict[str, list[str]]] = {}
    for work in WORK:
        before = process_state()
        work(folder)
        after = process_state()
        changed = [name for name in before if before[name] != after[name]]
        changes[work.__name__] = {name: [repr(before[name]), repr(after[name])] for name in changed}
    sys.stdout.write(json.dumps(changes) + "\n")


if __name__ == "__main__":
    main()
