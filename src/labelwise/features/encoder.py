"""Any pretrained transformers encoder: texts to tokens, tokens to batches, batches to one vector per text."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from labelwise import __version__, storage
from labelwise.config import EncoderConfig, PoolingMethod, Precision
from labelwise.engines.forks import native
from labelwise.errors import StorageError, UsageError, need
from labelwise.events import Task
from labelwise.features.encoder_checks import (
    WeightSizes,
    check_config,
    check_tokenizer,
    check_weights,
    library_refusals,
    no_tokenizer,
)
from labelwise.features.encoder_folder import (
    DESCRIPTION,
    check_files,
    checksum,
    find_pooling,
    is_exported,
    located,
    original_name,
)
from labelwise.features.pooling import pool
from labelwise.features.pretrained import quiet
from labelwise.features.token_store import TokenStore, batches, limit_length
from labelwise.storage.checks import damaged
from labelwise.types import OnEvent

if TYPE_CHECKING:
    import torch
else:
    torch = need("torch", extra="neural", purpose="encoders")

BATCH_TOKENS_CPU, BATCH_TOKENS_GPU = 2048, 1 << 17
# Documents are moved to the device in pieces of about this number of tokens, which bounds the memory of the device.
TOKENS_PER_PIECE = 1 << 26
MOST_TOKENS = 1 << 17
"""Tokens of a text, at most."""
TOKENS_TO_TRY = 1024
"""Tokens of the text that is embedded when an encoder is loaded, at most."""
VALUES_BESIDE_WEIGHTS = 1 << 24
"""Numbers that a model may hold beside its weights: positions, masks, frequencies."""


class Encoder:
    """A transformers model with its tokenizer and a pooling: one vector per text.

    The model is an ordinary module (`encoder.model`) that any training loop can train; `batch` and `forward` consist of
    tensor operations alone, without waiting for the device, so that a training step can be compiled and captured.

    Examples
    --------
    >>> from labelwise import Encoder
    >>> from labelwise.config import EncoderConfig
    >>> encoder = Encoder.load(EncoderConfig(name="minilm"))
    >>> E = encoder.embed(["a sofa", "a couch"])
    >>> E.shape  # (n_docs, hidden_size)
    (2, 384)
    """

    trainable: ClassVar[bool] = True
    """Whether there are weights to train."""
    original_name: str = ""
    """The name under which the pretrained encoder was first read, which a saved folder keeps."""

    def __init__(self, config: EncoderConfig, model: Any, tokenizer: Any, pooling: PoolingMethod) -> None:
        native.use(in_child=_use_one_thread)
        self.config, self.model, self.tokenizer, self.pooling = config, model, tokenizer, pooling
        self.hidden_size: int = model.config.hidden_size
        self.n_embeddings: int = model.get_input_embeddings().num_embeddings
        self.pad_id: int = _first(tokenizer.pad_token_id, model.config.pad_token_id, 0)
        self.pads_left: bool = tokenizer.padding_side == "left"
        # The tokenizer's output shows where the classification token is and which tokens have a type.
        sample = tokenizer("a b")
        ids: list[int] = sample["input_ids"]
        cls = tokenizer.cls_token_id
        self.cls_last: bool = ids[-1] == cls and ids[0] != cls if cls in ids else self.pads_left
        takes = inspect.signature(model.forward).parameters
        types = sample.get("token_type_ids") if "token_type_ids" in takes else None
        self.token_types: dict[int, int] | None = None
        """Types other than 0 by token, or None where the model has no types."""
        if types is not None:
            self.token_types = {token: kind for token, kind in zip(ids, types, strict=True) if kind}

    # ------------------------------------------------------------------ loading and saving

    @classmethod
    def load(
        cls,
        config: EncoderConfig | Path | str | None = None,
        *,
        device: torch.device | str = "cpu",
        random: bool = False,
    ) -> Self:
        """Load an encoder by its configuration, or from a folder that `save` wrote.

        Parameters
        ----------
        random
            Initialise the weights at random (by `torch.manual_seed`) instead of reading them, for baselines and tests.
        """
        transformers = need("transformers", extra="neural", purpose="encoders")
        config, folder = located(config)
        if is_exported(folder):
            from labelwise.features.onnx_encoder import OnnxEncoder

            return OnnxEncoder.load(folder, config)  # type: ignore[return-value]  # the same interface, without training
        check_files(folder)
        sizes = None if random else check_weights(folder)
        check_config(folder, sizes or WeightSizes(0, 0, 0))
        check_tokenizer(folder)
        pooling = find_pooling(config, folder)
        with quiet(), _as_sentence(folder):
            settings = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            if len(tokenizer) <= len(set(tokenizer.all_special_ids)):
                raise no_tokenizer(folder)
            model = _load_model(transformers, settings, folder, pooling, sizes)
        if type(tokenizer.model_max_length) not in (int, float):
            raise damaged(folder / "tokenizer_config.json", "its model_max_length is no number")
        if config.max_length > MOST_TOKENS:
            raise UsageError(f"max_length is {config.max_length}, but {config.name} reads at most {MOST_TOKENS} tokens")
        places = getattr(settings, "max_position_embeddings", None) or 0  # XLNet, which has no limit, says -1
        longest = min(tokenizer.model_max_length, places) if places > 0 else tokenizer.model_max_length
        if config.max_length > longest:
            raise UsageError(f"max_length is {config.max_length}, but {config.name} reads at most {longest} tokens")
        with _as_sentence(folder):
            encoder = cls(config, model.eval(), tokenizer, pooling)
            if not random:
                encoder._try_out(folder)
        encoder.model.to(device)
        encoder.original_name = original_name(config.name, folder)
        return encoder

    def _try_out(self, folder: Path) -> None:
        """Embed a short text and one of the most tokens: a folder whose parts do not fit is refused before any work."""
        if not isinstance(self.hidden_size, int) or not isinstance(self.pad_id, int):
            raise damaged(folder / "config.json", "hidden_size and pad_token_id must be whole numbers")
        E = self.embed(["a b", "word " * min(self.config.max_length, TOKENS_TO_TRY)], precision="fp32")
        if not np.isfinite(E).all():
            raise damaged(folder, "the embeddings that its weights give are not finite")

    def save(self, path: Path | str) -> None:
        """Write a Hugging Face folder that `load`, and transformers itself, can read."""
        with storage.atomic_folder(path, overwrite=True) as folder, quiet():
            self.model.save_pretrained(folder)
            limit_length(self.tokenizer, self.config.max_length)  # its file then never depends on what it read before
            self.tokenizer.save_pretrained(folder)
            name = self.original_name or self.config.name
            config = dataclasses.replace(self.config, name=name, pooling=self.pooling)
            about = {"format": "labelwise", "version": storage.FORMAT_VERSION, "labelwise": __version__}
            sums = {file.name: checksum(file) for file in storage.files_below(folder, ".safetensors")}
            storage.write_json(folder / DESCRIPTION, {**about, "kind": "encoder", "config": config, "files": sums})

    @property
    def form(self) -> str:
        """The format that the encoder was exported to, in a few words; empty for a transformers model."""
        return ""

    def state(self) -> dict[str, Any]:
        """The weights by name, which identify the encoder in fingerprints."""
        return {name: value.detach().float().cpu().numpy() for name, value in self.model.state_dict().items()}

    def to(self, device: torch.device | str) -> Self:
        """Move the model to a device."""
        self.model.to(device)
        return self

    @property
    def device(self) -> torch.device:
        """The device that holds the model."""
        return next(self.model.parameters()).device  # type: ignore[no-any-return]  # transformers count as Any

    # ------------------------------------------------------------------ texts to vectors

    def tokenize(
        self, texts: Sequence[str], *, threads: int | None = None, on_event: OnEvent | None = None
    ) -> TokenStore:
        """The tokens of texts, at most `config.max_length` of each text."""
        tokens = TokenStore.build(texts, self.tokenizer, self.config.max_length, threads=threads, on_event=on_event)
        self._check_tokens(tokens)
        return tokens

    def unknown_share(self, store: TokenStore) -> float:
        """The share of tokens that stand for words which the tokenizer does not know."""
        return store.share_of(self.tokenizer.unk_token_id, n_special=self.tokenizer.num_special_tokens_to_add())

    def _check_tokens(self, store: TokenStore) -> None:
        """Refuse tokens for which there are no weights, which transformers would look up all the same."""
        if len(store.tokens) and int(store.tokens.max()) >= self.n_embeddings:
            raise StorageError(
                f"the tokenizer gives the token {store.tokens.max()}, but the encoder {self.config.name} knows "
                f"{self.n_embeddings:,}; give an encoder with its own tokenizer"
            )

    def batch(
        self, tokens: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor, width: int
    ) -> dict[str, torch.Tensor]:
        """The model's inputs for some texts, made on the device that holds the tokens.

        Parameters
        ----------
        tokens
            (n_tokens,) integers, all texts one after the other.
        starts, lengths
            (batch,) int64: where each text begins, and its number of tokens, at most `width`.
        width
            Number of tokens that each text is padded to.
        """
        place = torch.arange(width, device=tokens.device)
        if self.pads_left:
            place = place - width + lengths.unsqueeze(1)  # (batch, width), negative for padding
            real = place >= 0
        else:
            real = place < lengths.unsqueeze(1)
        where = torch.where(real, starts.unsqueeze(1) + place, 0)
        input_ids = torch.where(real, tokens[where].long(), self.pad_id)
        inputs = {"input_ids": input_ids, "attention_mask": real.long()}
        types = self.types_of(input_ids)
        if types is not None:
            inputs["token_type_ids"] = types
        return inputs

    def types_of(self, input_ids: torch.Tensor) -> torch.Tensor | None:
        """The token types, None where the model has no types."""
        if self.token_types is None:
            return None
        types = torch.zeros_like(input_ids)
        for token, kind in self.token_types.items():
            types = torch.where(input_ids == token, kind, types)
        return types

    def forward(
        self, batch: Mapping[str, torch.Tensor], *, pooling: PoolingMethod | None = None, model: Any = None
    ) -> torch.Tensor:
        """(batch, hidden_size) float32 vectors of a batch; a batch without attention_mask has no padding.

        `model` replaces the encoder's own model, for example by a compiled one.
        """
        output = (self.model if model is None else model)(**batch, return_dict=True)
        kind = pooling or self.pooling
        return pool(output, batch.get("attention_mask"), kind, left=self.pads_left, last=self.cls_last)

    def embed(
        self,
        texts: Sequence[str] | TokenStore,
        *,
        pooling: PoolingMethod | None = None,
        batch_tokens: int | None = None,
        device: torch.device | str | None = None,
        precision: Precision = "auto",
        on_event: OnEvent | None = None,
    ) -> npt.NDArray[np.float32]:
        """Pooled vectors of texts, not scaled to length one.

        Parameters
        ----------
        texts
            Texts, or their tokens as `tokenize` returns them.
        pooling
            Another pooling than the encoder's own; "mean" is the paper's text embedding of labels.
        batch_tokens
            Approximate number of tokens per batch, padding included.
        device
            Device to compute on; the model stays there. If not given, the device that holds the model.
        precision
            Precision of the model's matrix products: by default fp32 on CPUs and bf16 on GPUs that have it.

        Returns
        -------
        E : (n_docs, hidden_size) float32
        """
        if device is not None:
            self.to(device)
        on = self.device
        if on.type == "cuda" and native.inherited:
            raise UsageError("a GPU cannot be used after a fork; load the model after the fork, or start with spawn")
        store = texts if isinstance(texts, TokenStore) else self.tokenize(texts, on_event=on_event)
        batch_tokens = batch_tokens or (BATCH_TOKENS_CPU if on.type == "cpu" else BATCH_TOKENS_GPU)
        self._check_tokens(store)
        lengths = store.lengths
        order = np.argsort(-lengths, kind="stable")  # the longest first: too little memory shows at once
        E = np.empty((len(store), self.hidden_size), np.float32)
        training = self.model.training
        self.model.eval()
        try:
            with (
                torch.inference_mode(),
                _autocast(on, precision),
                Task(on_event, "embeddings", total=len(store)) as task,
            ):
                for rows in _pieces(order, lengths):
                    piece = store.take(rows)
                    tokens = torch.from_numpy(piece.tokens.astype(np.int32)).to(on)
                    starts = torch.from_numpy(piece.indptr[:-1]).to(on)
                    sizes = torch.from_numpy(piece.lengths).to(on)
                    vectors = torch.empty((len(rows), self.hidden_size), device=on)
                    for begin, end, width, even in batches(piece.lengths, batch_tokens, on.type == "cpu"):
                        inputs = self.batch(tokens, starts[begin:end], sizes[begin:end], width)
                        if even:  # no padding, hence no mask, which saves its share of the attention
                            del inputs["attention_mask"]
                        try:
                            with native.computing():
                                vectors[begin:end] = self.forward(inputs, pooling=pooling)
                        except IndexError as err:
                            reason = f"{self.config.name} has no weights for texts of {width} tokens"
                            raise UsageError(f"{reason}; lower max_length") from err
                        task.advance(end - begin)
                    E[rows] = vectors.cpu().numpy()
        finally:
            self.model.train(training)
        return E


# ---------------------------------------------------------------------- loading


def _as_sentence(folder: Path) -> AbstractContextManager[None]:
    """Context in which what the libraries cannot read is refused with one sentence."""
    return library_refusals(
        f"{folder} cannot be read as an encoder",
        "give a folder written by save_pretrained, with config.json, *.safetensors and the tokenizer's files",
    )


def _load_model(
    transformers: Any, settings: Any, folder: Path, pooling: PoolingMethod, sizes: WeightSizes | None
) -> Any:
    """Load the module, with a pooler only where the pooling uses one: the weights of others would never be trained.

    Without `sizes` its weights are initialised at random.
    """
    kind = transformers.AutoModel._model_mapping[type(settings)]
    kind = kind[0] if isinstance(kind, tuple) else kind
    alone = transformers.AutoModelForTextEncoding._model_mapping.get(type(settings), kind)
    if alone.__name__.endswith("EncoderModel"):  # of T5 and its like the encoder without the decoder
        kind = alone
    if getattr(kind, "main_input_name", "input_ids") != "input_ids":
        raise UsageError(f"{folder} holds a {kind.__name__}, which reads no texts; give an encoder of texts")
    options: dict[str, Any] = {}
    if "add_pooling_layer" in inspect.signature(kind.__init__).parameters:
        options["add_pooling_layer"] = pooling == "pooler"
    elif pooling == "pooler":
        raise UsageError(f'{kind.__name__} has no pooler; use pooling="cls" or "mean"')
    if sizes is None:
        return kind._from_config(settings, dtype=torch.float32, **options)
    _check_memory(kind, settings, options, folder, sizes)
    model, report = kind.from_pretrained(
        folder,
        config=settings,
        dtype=torch.float32,
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
        **options,
    )
    missing = sorted(report["missing_keys"])
    if missing:
        raise UsageError(
            f"{folder} lacks {len(missing)} weights of a {kind.__name__} ({missing[0]}, …)"
            + ('; use pooling="cls" or "mean"' if missing[0].startswith("pooler.") else "; give a complete encoder")
        )
    return model


def _check_memory(kind: Any, settings: Any, options: dict[str, Any], folder: Path, sizes: WeightSizes) -> None:
    """Refuse a configuration that asks for much more memory than the weights of the folder take."""
    with torch.device("meta"):
        model = kind(copy.deepcopy(settings), **options)
    wanted = sum(value.numel() for value in (*model.parameters(), *model.buffers()))
    if wanted > sizes.values + VALUES_BESIDE_WEIGHTS:
        raise damaged(
            folder / "config.json",
            f"it asks for {wanted:,} numbers, but the weights of the folder are {sizes.values:,}",
        )


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


# ---------------------------------------------------------------------- batches


def _pieces(order: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Cut the documents, in this order, into pieces whose tokens fit the device at once."""
    piece = np.cumsum(lengths[order]) // TOKENS_PER_PIECE
    yield from np.split(order, np.flatnonzero(np.diff(piece)) + 1) if len(order) else ()


def _use_one_thread() -> None:
    """In a forked process, torch would wait for ever for its parent's threads; with one thread it needs no others."""
    torch.set_num_threads(1)


def _autocast(device: torch.device, precision: Precision) -> AbstractContextManager[Any]:
    if precision == "auto":
        able = device.type == "cuda" and torch.cuda.is_bf16_supported()
        precision = "bf16" if able else "fp32"
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16 if precision == "bf16" else torch.float16)
