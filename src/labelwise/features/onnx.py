"""An encoder that was exported as an ONNX file: read by onnxruntime, on the CPU."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.config import EncoderConfig
from labelwise.errors import StorageError, UsageError, need
from labelwise.features.encoder import DESCRIPTION, Encoder, Precision, batches
from labelwise.features.pooling import Pooling
from labelwise.features.pretrained import quiet
from labelwise.features.tokens import TokenStore
from labelwise.types import OnEvent

if TYPE_CHECKING:
    import torch
else:
    torch = need("torch", extra="neural", purpose="encoders")

MODEL = "model.onnx"
OUTPUT = "pooled"
# One core reads a piece alone: that is faster than several at one, and so few tokens stay in its cache.
TOKENS_PER_PIECE = 512
PIECES_AT_ONCE = 16
# onnxruntime's one kernel for a sum and its layer norm takes six times as long as the two apart.
_SLOW = ["SkipLayerNormFusion"]


class OnnxEncoder(Encoder):
    """Used like `Encoder`, but for training; the pooling lies in the file. With 8 bits, the numbers that a layer reads
    are scaled by the largest of the piece, so that a vector depends a little on the texts that are read with it.
    """

    trainable = False

    def __init__(self, config: EncoderConfig, model: _Session, tokenizer: Any, pooling: Pooling, folder: Path) -> None:
        super().__init__(config, model, tokenizer, pooling)
        self.folder = folder
        if "token_type_ids" not in model.names:
            self.token_types = None

    @classmethod
    def open(cls, config: EncoderConfig, folder: Path, pooling: Pooling) -> Self:
        """The encoder of a folder that `labelwise export` wrote, and whose files are whole."""
        transformers = need("transformers", extra="neural", purpose="encoders")
        about = storage.read_json(folder / DESCRIPTION)
        if pooling != about["config"]["pooling"]:
            raise UsageError(_other_pooling(folder, about["config"]["pooling"], pooling))
        with quiet():
            settings = transformers.AutoConfig.from_pretrained(folder)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        session = _Session(folder / MODEL, settings, about["files"][MODEL]["sha256"], bool(about["onnx"]["int8"]))
        return cls(config, session, tokenizer, pooling, folder)

    @property
    def form(self) -> str:
        """What its weights are, in a few words."""
        return "ONNX, weights of 8 bits" if self.model.int8 else "ONNX"

    def save(self, path: Path | str) -> None:
        """Copy the folder that it was read from."""
        if not (self.folder / MODEL).is_file():
            raise StorageError(f"{self.folder} is gone, so that the encoder cannot be copied; load the model again")
        with storage.atomic_folder(path, overwrite=True) as folder:
            shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    def to(self, device: torch.device | str) -> Self:
        """Nothing: it computes on the CPU."""
        return self

    @property
    def device(self) -> torch.device:
        """Where it computes: on the CPU."""
        return torch.device("cpu")

    def forward(
        self, batch: Mapping[str, torch.Tensor], *, pooling: Pooling | None = None, model: Any = None
    ) -> torch.Tensor:
        """(batch, hidden_size) float32 vectors of a batch, which the cores share; see `Encoder.forward`."""
        if pooling not in (None, self.pooling):
            raise UsageError(_other_pooling(self.folder, self.pooling, str(pooling)))
        arrays = {name: value.cpu().numpy() for name, value in batch.items()}
        ids = arrays["input_ids"]
        arrays.setdefault("attention_mask", np.ones_like(ids))
        arrays = {name: arrays[name] for name in self.model.names}
        threads = torch.get_num_threads()
        lengths = arrays["attention_mask"].sum(axis=1)
        most = min(TOKENS_PER_PIECE, -(-int(lengths.sum()) // threads))
        borders = [(begin, end) for begin, end, *_ in batches(lengths, most, True)]
        pieces = [{name: array[begin:end] for name, array in arrays.items()} for begin, end in borders]
        if len(pieces) == 1 or threads == 1:
            found = [self._read(piece) for piece in pieces]
        else:
            with ThreadPoolExecutor(min(threads, len(pieces))) as pool:
                found = list(pool.map(self._read, pieces))
        return torch.from_numpy(np.concatenate(found)).to(batch["input_ids"].device)

    def _read(self, piece: dict[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.float32]:
        """The vectors of a piece, without the padding that its own texts do not need."""
        width = max(int(piece["attention_mask"].sum(axis=1).max()), 1)
        cut = slice(-width, None) if self.left else slice(width)
        return self.model.run({name: np.ascontiguousarray(array[:, cut]) for name, array in piece.items()})  # type: ignore[no-any-return]

    def embed(
        self,
        texts: Sequence[str] | TokenStore,
        *,
        pooling: Pooling | None = None,
        batch_tokens: int | None = None,
        device: torch.device | str | None = None,
        precision: Precision = "auto",
        on_event: OnEvent | None = None,
    ) -> npt.NDArray[np.float32]:
        """Vectors of texts, as `Encoder.embed` gives them; device and precision are the file's own."""
        batch_tokens = batch_tokens or TOKENS_PER_PIECE * PIECES_AT_ONCE * torch.get_num_threads()
        return super().embed(texts, pooling=pooling, batch_tokens=batch_tokens, precision="float32", on_event=on_event)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class _Session(torch.nn.Module):
    """An ONNX file in the place of a transformers model; its one buffer says which file, wherever weights would."""

    def __init__(self, file: Path, settings: Any, checksum: str, int8: bool) -> None:
        super().__init__()
        runtime = need("onnxruntime", extra="onnx", purpose="exported models")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        try:
            self._session = runtime.InferenceSession(
                str(file), options, providers=["CPUExecutionProvider"], disabled_optimizers=_SLOW
            )
        except Exception as err:  # onnxruntime's errors have no common class
            reason = str(err).partition("\n")[0]
            raise StorageError(f"{file} cannot be read by onnxruntime ({reason}); export the model again") from err
        self.config, self.int8 = settings, int8
        self.names = [given.name for given in self._session.get_inputs()]
        self.register_buffer("checksum", torch.tensor(list(bytes.fromhex(checksum)), dtype=torch.uint8))

    def run(self, inputs: dict[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.float32]:
        """(batch, hidden) vectors."""
        found: npt.NDArray[np.float32] = self._session.run([OUTPUT], inputs)[0]
        return found

    def forward(self, input_ids: Any, attention_mask: Any = None, token_type_ids: Any = None) -> Any:
        """Not this way: `OnnxEncoder.forward` calls `run`."""
        raise NotImplementedError

    def get_input_embeddings(self) -> Any:
        """None to be had: an explanation does not divide the embedding's share."""
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _other_pooling(folder: Path, own: str, asked: str) -> str:
    return f"{folder} is an ONNX file with {own} pooling, not {asked}; use the encoder that it was made of"
