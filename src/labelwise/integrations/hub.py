"""Models on the Hugging Face hub: the folder that `save` writes, with a head on its card that the hub understands.

Only what goes over the network needs the extra `hub`; folders do not.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelwise import __version__, storage
from labelwise.errors import StorageError, UsageError, need
from labelwise.events import Task
from labelwise.models.base import load_model
from labelwise.models.registry import check_destination
from labelwise.storage import to_json
from labelwise.storage.paths import checked_path
from labelwise.storage.shared_parts import SharedParts

if TYPE_CHECKING:
    from labelwise.models.base import Model
    from labelwise.types import OnEvent

CARD = "README.md"
READ = ["*.json", "*.jsonl", "*.safetensors", "*.onnx", "*.txt", "*.model", CARD]
"""What is fetched of a repository: what a model consists of, and nothing that could hold code or pickles."""
OURS = [f"{room}/*" for room in ("tree-*", "tfidf", "index", "matcher", "ranker", "members", "shared", "memory")]
OURS += ["labels.txt", "labels.jsonl", "calibration.json"]
"""Files of an earlier model in a repository, which a new model may not have."""
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")


def save_pretrained(model: Model, folder: Path | str, *, repo: str | None = None) -> None:
    """Write what `save` writes, with a card for the hub; `repo` is named in the card's example."""
    check_destination(folder)
    with storage.atomic_folder(folder, overwrite=True) as aside:
        model.write(aside, SharedParts())
        _forget_paths(model, aside)
        card = (aside / CARD).read_text(encoding="utf-8")
        if repo is not None:
            card = card.replace('labelwise.load_model("MODEL")', f"labelwise.from_pretrained({to_json(repo)})")
        (aside / CARD).write_text(card_head(model, repo) + card, encoding="utf-8", newline="\n")


def from_pretrained(
    folder_or_repo: Path | str,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: Path | str | None = None,
    local_files_only: bool = False,
    verify: bool = True,
) -> Model:
    """A model of any kind, from a folder or from a repository of the hub.

    Parameters
    ----------
    folder_or_repo
        A folder that is there, or a name such as user/model.
    revision
        A branch, tag or commit of the repository.
    local_files_only
        Take what was fetched before; do not use the network.

    Examples
    --------
    >>> from labelwise import LinearTree, from_pretrained
    >>> LinearTree().fit(["a shoe", "a mug"], [["shoe"], ["mug"]]).save("my-model")
    >>> model = from_pretrained("my-model")  # or "user/my-model", from the hub
    >>> model.predict(["my shoe"], top_k=1)[0]
    [('shoe', 0.8...)]
    """
    repo = str(folder_or_repo)
    if checked_path(folder_or_repo).is_dir():
        return load_model(folder_or_repo, verify=verify)
    if not _REPOSITORY.fullmatch(repo) or repo.startswith("."):
        raise StorageError(f"{repo} is neither a folder nor a name of a repository; give a folder, or user/model")
    hub = _hub()
    with _told(f"{repo} cannot be fetched from the hub"):
        found = hub.snapshot_download(
            repo,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
            allow_patterns=READ,
            library_name="labelwise",
            library_version=__version__,
        )
    return load_model(found, verify=verify)


def push_to_hub(
    model: Model,
    repo: str,
    *,
    private: bool | None = None,
    token: str | bool | None = None,
    revision: str | None = None,
    message: str | None = None,
    on_event: OnEvent | None = None,
) -> str:
    """Upload a model, with its card, into a repository that is made if need be.

    Parameters
    ----------
    repo
        A name such as user/model.
    private
        Whether a new repository is private; as the account's settings say if not given.
    message
        Of the commit.

    Returns
    -------
    url
        Where the model can be seen.
    """
    if not _REPOSITORY.fullmatch(repo):
        raise UsageError(f"{repo!r} is not a name of a repository; give one such as user/model")
    hub = _hub()
    with tempfile.TemporaryDirectory() as place, Task(on_event, f"uploading to {repo}", unit="steps", total=3) as task:
        folder = Path(place) / "model"
        save_pretrained(model, folder, repo=repo)
        task.advance()
        with _told(f"the model cannot be uploaded to {repo}"):
            api = hub.HfApi(token=token, library_name="labelwise", library_version=__version__)
            made = api.create_repo(repo, private=private, exist_ok=True)
            task.advance()
            api.upload_folder(
                repo_id=made.repo_id,
                folder_path=folder,
                revision=revision,
                commit_message=message or f"A model of labelwise {__version__}",
                delete_patterns=OURS,
            )
            task.advance()
    return str(made)


def card_head(model: Model, repo: str | None = None) -> str:
    """The front matter of a card: library, tags, and what was measured."""
    texts = model.reads_texts
    tags = ["labelwise", "multi-label", "extreme-multi-label-classification", model.kind]
    lines = ["---", "library_name: labelwise"]
    if texts:
        lines.append("pipeline_tag: text-classification")
    lines += ["tags:", *(f"- {tag}" for tag in tags)]
    validation = model.report_.validation
    if validation is not None:
        name = repo.rpartition("/")[2] if repo else model.title()
        data = model.report_.data or "held-out documents"
        lines += [
            "metrics:",
            "- precision",
            "model-index:",
            f"- name: {to_json(name)}",
            "  results:",
            "  - task:",
            "      type: text-classification",
            "      name: Multi-label text classification",
            "    dataset:",
            f"      type: {to_json(_slug(data))}",
            f"      name: {to_json(data)}",
            "      split: validation",
            "    metrics:",
        ]
        for metric, value in validation.scores.items():
            lines += [
                f"    - type: {to_json(_slug(metric))}",
                f"      name: {to_json(metric)}",
                f"      value: {value:.4f}",
            ]
    return "\n".join([*lines, "---", "", ""])


def _forget_paths(model: Model, folder: Path) -> None:
    """Name encoders that lay in a folder by its last part alone: the path on this machine is private."""
    names = {encoder.name for encoder in model.config.encoders()}
    paths = {name: Path(name).name for name in names if Path(name).is_absolute() or name.startswith((".", "~"))}
    if not paths:
        return
    for file in [*folder.rglob("*.json"), *folder.rglob(CARD)]:
        text = file.read_text(encoding="utf-8")
        for path, name in paths.items():
            text = text.replace(f'"name": {to_json(path)}', f'"name": {to_json(name)}').replace(
                f"| {path} |", f"| {name} |"
            )
        file.write_text(text, encoding="utf-8", newline="\n")


def _slug(name: str) -> str:
    """A name of letters, digits and hyphens; the k of P@k stays."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower().replace("@", "-at-")).strip("-") or "unknown"


def _hub() -> Any:
    return need("huggingface_hub", extra="hub", purpose="models on the hub")


@contextmanager
def _told(what: str) -> Iterator[None]:
    """One sentence about what the hub or the network refuses."""
    http = need("httpx", extra="hub", purpose="models on the hub")
    try:
        yield
    except (OSError, ValueError, http.HTTPError) as err:
        reason = next((line.strip() for line in str(err).splitlines() if line.strip()), type(err).__name__)
        raise StorageError(f"{what}: {reason.rstrip('.')}; check the name, the network, and your token") from err
