"""An encoder that was exported as an ONNX file: read by onnxruntime, on the CPU, without torch or transformers."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.config import EncoderConfig, PoolingMethod
from labelwise.config.settings import Range
from labelwise.engines.forks import native
from labelwise.engines.threads import available_cores, map_in_order
from labelwise.errors import StorageError, UsageError, need
from labelwise.events import Task
from labelwise.features.encoder_checks import check_tokenizer_file, library_refusals
from labelwise.features.encoder_folder import DESCRIPTION, check_files, find_pooling, located, read_description
from labelwise.features.onnx_checks import check_onnx
from labelwise.features.token_store import TokenStore, batches
from labelwise.storage.checks import Entries, damaged
from labelwise.types import OnEvent

MODEL = "model.onnx"
TOKENS_TO_TRY = 1024
MOST_TOKENS = 1 << 17
"""Tokens of a text, at most; the positions of an encoder are a table, which is shorter."""
TokenId = Annotated[int, Range(at_least=0, at_most=(1 << 31) - 1)]
OUTPUT = "pooled"
TOKENIZER = "tokenizer.json"
# Each piece is read by one core: that is faster than several cores on one piece, and its tokens fit the core's cache.
TOKENS_PER_PIECE = 128
# onnxruntime's joint kernel for a sum and its layer norm takes six times as long as two separate kernels.
_SLOW = ["SkipLayerNormFusion"]


class OnnxEncoder:
    """An exported encoder, used like `Encoder` except for training; the pooling is part of the file.

    With 8 bits, the inputs of a layer are scaled by the largest one in the piece, so that a vector depends a little on
    the other texts of its piece.
    """

    trainable: ClassVar[bool] = False

    def __init__(self, config: EncoderConfig, folder: Path, about: dict[str, Any]) -> None:
        exported = Entries(about["onnx"], folder / DESCRIPTION)
        self.config, self.folder, self.pooling = config, folder, about["config"]["pooling"]
        if missing := {"pad_id", "left", "token_types", "truncation_side"} - set(exported.values):
            known = ", ".join(sorted(missing))
            raise StorageError(f"{folder} was exported by an older labelwise (no {known}); export the model again")
        self.int8: bool = exported.get("int8", bool)
        self.hidden_size: int = exported.get("hidden_size", Annotated[int, Range(at_least=1, at_most=1 << 20)])
        self.pad_id: int = exported.get("pad_id", TokenId)
        self.pads_left: bool = exported.get("left", bool)
        self.token_types: dict[int, int] | None = exported.get("token_types", dict[int, TokenId] | None)
        """Types other than 0 by token, or None where the model has no types."""
        side = exported.get("truncation_side", Literal["left", "right"])
        check_onnx(folder / MODEL)
        check_tokenizer_file(folder / TOKENIZER)
        self.tokenizer = Tokenizer(folder / TOKENIZER, side)
        self._checksums = {name: known["sha256"] for name, known in about["files"].items()}
        self._session = _open(folder / MODEL)
        if self.config.max_length > MOST_TOKENS:
            raise UsageError(f"max_length is {config.max_length}; exported encoders read at most {MOST_TOKENS} tokens")
        self._try_out()

    def _try_out(self) -> None:
        """Embed a short text and one of the most tokens: a folder whose parts do not fit is refused before any work."""
        names = {"input_ids", "attention_mask", *(() if self.token_types is None else ("token_type_ids",))}
        place = self.folder / MODEL
        if {one.name for one in self._session.get_inputs()} != names:
            raise damaged(place, f"its inputs are not {', '.join(sorted(names))}")
        if OUTPUT not in {one.name for one in self._session.get_outputs()}:
            raise damaged(place, f"it has no output {OUTPUT}")
        E = self.embed(["a b", "word " * min(self.config.max_length, TOKENS_TO_TRY)])
        if not np.isfinite(E).all():
            raise damaged(place, "the embeddings that it gives are not finite")

    @classmethod
    def load(cls, folder: Path, config: EncoderConfig | None = None) -> Self:
        """Load the encoder of a folder that `labelwise export` wrote.

        Parameters
        ----------
        config
            The configuration to use, if it is not the saved one.
        """
        saved, folder = located(folder)
        config = config or saved
        check_files(folder)
        if find_pooling(config, folder) != saved.pooling:
            raise UsageError(_other_pooling(folder, saved.pooling, config.pooling))
        about = read_description(folder)
        if not {MODEL, TOKENIZER} <= set(about.get("files", {})):
            raise damaged(folder / DESCRIPTION, f"files does not have {MODEL} and {TOKENIZER}")
        return cls(config, folder, about)

    @property
    def form(self) -> str:
        """The format that the encoder was exported to, in a few words."""
        return "ONNX, weights of 8 bits" if self.int8 else "ONNX"

    def state(self) -> dict[str, Any]:
        """The checksums of the files, which identify the encoder in fingerprints."""
        return self._checksums

    def save(self, path: Path | str) -> None:
        """Copy the folder that the encoder was read from."""
        if not (self.folder / MODEL).is_file():
            raise StorageError(f"{self.folder} is gone, so that the encoder cannot be copied; load the model again")
        with storage.atomic_folder(path, overwrite=True) as folder:
            shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    # ------------------------------------------------------------------ texts to vectors

    def tokenize(
        self, texts: Sequence[str], *, threads: int | None = None, on_event: OnEvent | None = None
    ) -> TokenStore:
        """The tokens of texts, at most `config.max_length` of each text."""
        return TokenStore.build(texts, self.tokenizer, self.config.max_length, threads=threads, on_event=on_event)

    def unknown_share(self, store: TokenStore) -> float:
        """The share of tokens that stand for words which the tokenizer does not know."""
        unknown = getattr(self.tokenizer.backend_tokenizer.model, "unk_token", None)
        token = None if unknown is None else self.tokenizer.backend_tokenizer.token_to_id(unknown)
        return store.share_of(token, n_special=self.tokenizer.backend_tokenizer.num_special_tokens_to_add(False))

    def embed(
        self,
        texts: Sequence[str] | TokenStore,
        *,
        pooling: PoolingMethod | None = None,
        device: Any = None,
        on_event: OnEvent | None = None,
    ) -> npt.NDArray[np.float32]:
        """Vectors of texts, like those of `Encoder.embed`, computed on the CPU whatever `device` says."""
        if pooling not in (None, self.pooling):
            raise UsageError(_other_pooling(self.folder, self.pooling, str(pooling)))
        store = texts if isinstance(texts, TokenStore) else self.tokenize(texts, on_event=on_event)
        lengths, threads = store.lengths, available_cores()
        order = np.argsort(-lengths, kind="stable")  # texts of one length need no padding
        n_tokens = min(TOKENS_PER_PIECE, -(-int(lengths.sum()) // threads))
        pieces = [order[begin:end] for begin, end, *_ in batches(lengths[order], n_tokens, True)]
        E = np.empty((len(store), self.hidden_size), np.float32)
        with Task(on_event, "embeddings", total=len(store)) as task:
            embedded = map_in_order(partial(self._embed_rows, store), pieces, threads)
            for rows, vectors in zip(pieces, embedded, strict=True):
                E[rows] = vectors
                task.advance(len(rows))
        return E

    def _embed_rows(self, store: TokenStore, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """(n_rows, hidden_size) the vectors of some texts, read in one batch."""
        piece = store.take(rows)
        width = max(int(piece.lengths.max()), 1)
        place = np.arange(width)
        real = place >= width - piece.lengths[:, None] if self.pads_left else place < piece.lengths[:, None]
        ids = np.full(real.shape, self.pad_id, np.int64)
        ids[real] = piece.tokens
        inputs = {"input_ids": ids, "attention_mask": real.astype(np.int64)}
        if self.token_types is not None:
            inputs["token_type_ids"] = types = np.zeros_like(ids)
            for token, kind in self.token_types.items():
                types[ids == token] = kind
        try:
            with native.computing():
                vectors = self._session.run([OUTPUT], inputs)[0]
        except _runtime_errors() as err:
            reason = str(err).partition("\n")[0][:300]
            raise StorageError(f"{self.folder / MODEL} cannot be computed ({reason}); export the model again") from err
        if (
            not isinstance(vectors, np.ndarray)
            or vectors.dtype != np.float32
            or vectors.shape != (len(ids), self.hidden_size)
        ):
            raise damaged(self.folder / MODEL, f"its output is no vector of {self.hidden_size} numbers for each text")
        return vectors

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class Tokenizer:
    """A tokenizer file, with the parts of a transformers tokenizer's interface that `TokenStore.build` uses."""

    def __init__(self, file: Path, truncation_side: str) -> None:
        tokenizers = need("tokenizers", extra="exported", purpose="exported models")
        with library_refusals(f"{file} cannot be read as a tokenizer", "export the model again", StorageError):
            self.backend_tokenizer = tokenizers.Tokenizer.from_file(str(file))
        self.truncation_side = truncation_side

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))


def _open(file: Path) -> Any:
    """Open a session of onnxruntime that uses one core per call."""
    runtime = need("onnxruntime", extra="exported", purpose="exported models")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.load_model_format", "ONNX")
    options.log_severity_level = 4
    try:
        return runtime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"], disabled_optimizers=_SLOW
        )
    except _runtime_errors() as err:
        reason = str(err).partition("\n")[0][:300]
        raise StorageError(f"{file} cannot be read by onnxruntime ({reason}); export the model again") from err


def _runtime_errors() -> tuple[type[Exception], ...]:
    """The classes of onnxruntime's errors, which have no common one."""
    state: Any = need("onnxruntime.capi.onnxruntime_pybind11_state", extra="exported", purpose="exported models")
    own = [one for one in vars(state).values() if isinstance(one, type) and issubclass(one, Exception)]
    return (*own, RuntimeError, ValueError, TypeError, IndexError)


def _other_pooling(folder: Path, own: str, wanted: str) -> str:
    return f"{folder} is an ONNX file with {own} pooling, not {wanted}; use the encoder that it was exported from"
