"""The neural matcher: fine-tuned on the clusters of a label index, then asked for the best clusters of a text."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from labelwise import storage
from labelwise.config import MatcherConfig, RankerConfig
from labelwise.engines.forks import native
from labelwise.errors import UsageError
from labelwise.events import Task
from labelwise.features.encoder import Encoder
from labelwise.features.normalize import unit_rows
from labelwise.features.packing import make_packer
from labelwise.match.documents import Documents
from labelwise.match.heads import Head, History, LabelHead, as_rows
from labelwise.match.label_init import fit_labels
from labelwise.match.linear import LinearMatcher, unseen_scores
from labelwise.match.losses import LABEL_LOSS, constant_loss
from labelwise.match.network import Network
from labelwise.match.recall import mean_recall
from labelwise.match.shared import side_by_side
from labelwise.match.training.batches import in_order
from labelwise.match.training.device_data import DeviceData
from labelwise.match.training.distributed import launched_processes, local_device
from labelwise.match.training.loop import Criteria, train
from labelwise.match.training.optimizer import DTYPES, choose_precision
from labelwise.storage.checks import damaged
from labelwise.storage.shared_parts import SharedParts
from labelwise.types import Csr, Floats, OnEvent

# Documents whose tokens and cluster scores lie on the device at once.
DOCUMENTS_PER_PIECE = 1 << 16
TOKENS_PER_BATCH = {"cuda": 1 << 17}
# Compiling saves about a quarter of the time of a step, and takes as long as it saves in so many tokens × weights.
WORK_TO_COMPILE = 2e15
RECALL_AT = (1, 5, 10)
"""Training is evaluated by the mean recall of the true clusters at these cut-offs."""


class FineTunedMatcher:
    """g(x, k) of the paper, a `Matcher`: `fit` trains it, `match` gives embeddings and the best clusters."""

    reads_pretrained = False
    number_of_tree = 0
    network_: Network
    term_: LinearMatcher | None
    """The linear term, None without one."""
    label_head: LabelHead | None
    """The one-vs-all head over the labels; None unless it was trained."""
    groups_: list[int]
    """Clusters of each tree: they lie side by side where several trees share an encoder (`labelwise.match.shared`)."""
    history_: History
    _fast: Network | None = None

    def __init__(self, config: MatcherConfig | None = None, linear: RankerConfig | None = None) -> None:
        self.config, self.linear = config or MatcherConfig(), linear or RankerConfig()

    @property
    def encoder_(self) -> Encoder:
        """The encoder, fine-tuned."""
        return self.network_.encoder

    @property
    def device(self) -> torch.device:
        """The device of the encoder."""
        wanted = None if self.config.device == "auto" else self.config.device
        return local_device() or torch.device(wanted or ("cuda" if torch.cuda.is_available() else "cpu"))

    # ------------------------------------------------------------------ fitting

    def fit(
        self,
        encoder: Encoder,
        documents: Documents,
        M: Csr,
        *,
        Y: Csr | None = None,
        groups: Sequence[int] | None = None,
        validation: tuple[Documents, Csr] | None = None,
        checkpoint: Path | None = None,
        seed: int = 0,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Fine-tune an encoder, which is changed in place.

        Parameters
        ----------
        M : (n_docs, n_clusters) which clusters a document has
        Y : (n_docs, n_labels) its labels, where the configuration says that they are learnt too
        groups : how many of the clusters, in order, belong to each of several trees; all to one if not given
        validation : documents by which to judge, with their clusters, and behind these their labels where those are
            learnt
        """
        config, device = self.config.validated("matcher"), self.device
        if not encoder.trainable:
            raise UsageError(f"{encoder.config.name} is an exported encoder and cannot be trained; give the original")
        processes = launched_processes()
        on_event = on_event if processes.first else None
        encoder.to(device)
        if config.gradient_checkpointing:
            _check_point(encoder)
        n_clusters, n_labels = M.shape[1], _labels_to_learn(config, M, Y)
        network = Network(encoder, n_clusters + n_labels, dropout=config.dropout).to(device)
        E = documents.E
        if E is None and (config.init == "linear" or n_labels):
            E = encoder.embed(documents.tokens, on_event=on_event)
        term = self._start(network, documents, M, E, {"seed": seed, "threads": threads, "on_event": on_event})
        constant = constant_loss(M, config.loss, mean=config.mean_loss)
        if Y is not None and n_labels:
            assert E is not None
            start = fit_labels(unit_rows(E), Y, device=device, seed=seed, on_event=on_event)
            network.set_rows(n_clusters, *start)
            constant += constant_loss(Y, LABEL_LOSS, mean=config.mean_loss)
            M = side_by_side([M, Y])
        packer = make_packer(encoder) if self._packs(device) else None
        corpus = DeviceData(encoder, documents.tokens, M, n_labels=n_labels, term=term, packer=packer, device=device)
        if device.type == "cuda" and self._compiles(network, corpus):
            corpus.compile()
        groups = list(groups or [n_clusters])
        self.network_, self._fast, self.groups_ = network, None, [*groups, n_labels] if n_labels else groups

        def recall() -> float:
            assert validation is not None
            _, found = self.match(validation[0], top_b=max(RECALL_AT), embed=False)
            return mean_recall(found, validation[1], RECALL_AT, self.groups_)

        self.history_ = train(
            network,
            corpus,
            config,
            Criteria(constant, None if validation is None else recall),
            checkpoint=checkpoint,
            seed=seed,
            processes=processes,
            on_event=on_event,
        )
        if config.gradient_checkpointing:
            encoder.model.gradient_checkpointing_disable()
        self.groups_, self.label_head = groups, LabelHead.of(*network.split_head(n_clusters)) if n_labels else None
        del corpus
        if device.type == "cuda":  # what comes next is for the CPU: others may have the card's memory meanwhile
            torch.cuda.empty_cache()
        return self

    def _packs(self, device: torch.device) -> bool:
        """Whether texts may be packed: flash attention needs a GPU and 16-bit numbers."""
        return device.type == "cuda" and choose_precision(self.config.precision, device) != "fp32"

    def _compiles(self, network: Network, corpus: DeviceData) -> bool:
        """Whether compiling the encoder pays: it takes about half a minute."""
        if self.config.compile is not None:
            return self.config.compile
        weights = sum(p.numel() for name, p in network.model.named_parameters() if "embeddings" not in name)
        return bool(self.config.epochs * float(corpus.lengths.sum()) * weights > WORK_TO_COMPILE)

    def _start(
        self,
        network: Network,
        documents: Documents,
        M: Csr,
        E: Floats | None,
        options: dict[str, Any],
    ) -> npt.NDArray[np.float16] | None:
        """Set the head and the linear term; gives the latter's scores of the training documents."""
        config, linear = self.config, replace(self.linear, negatives="tfn")
        self.term_ = None
        if config.init == "zero" and not config.linear_term:
            return None
        X, dense = documents.X, None
        if config.init == "linear":
            assert E is not None
            dense = unit_rows(E) * np.float32(config.dense_weight)
        if not config.linear_term:
            X = X[:, :0]
        model = LinearMatcher.fit(X, dense, M, linear, **options)
        weight, bias = model.head()
        if dense is not None:
            network.set_head(weight * np.float32(config.dense_weight), bias)
        else:
            network.set_head(np.zeros((len(bias), network.head.in_features), np.float32), bias)
        if not config.linear_term:
            return None
        self.term_ = model.sparse_part()
        return unseen_scores(X, dense, M, linear, folds=config.folds, **options)

    # ------------------------------------------------------------------ using

    def match(
        self,
        documents: Documents,
        *,
        top_b: int,
        embed: bool = True,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> tuple[npt.NDArray[np.float32], Csr]:
        """Embeddings, and the best clusters with their scores g.

        Returns
        -------
        E : (n_docs, hidden) pooled embeddings as the network gives them; empty unless asked for
        found : (n_docs, n_clusters) with `top_b` entries in each row, for each group of clusters
        """
        network, device = self._working_network(), self.device
        n_clusters, hidden = network.head.out_features, network.head.in_features
        width = sum(min(top_b, size) for size in self.groups_)
        E = np.empty((len(documents) if embed else 0, hidden), np.float32)
        scores = np.empty((len(documents), width), np.float32)
        clusters = np.empty((len(documents), width), np.int32)
        with Task(on_event, "matching", total=len(documents)) as task:
            for begin in range(0, len(documents), DOCUMENTS_PER_PIECE):
                piece = slice(begin, min(begin + DOCUMENTS_PER_PIECE, len(documents)))
                part = documents
                if piece.stop - piece.start < len(documents):
                    part = documents.take(np.arange(piece.start, piece.stop))
                term = None if self.term_ is None else self.term_.scores(part.X, threads=threads)
                corpus = DeviceData(network.encoder, part.tokens, term=term, device=device)
                e, s, k = self._match(network, corpus, top_b, embed, task)
                scores[piece], clusters[piece] = s.cpu().numpy(), k.cpu().numpy()
                if embed:
                    E[piece] = e.cpu().numpy()
        return E, as_rows(clusters, scores, n_clusters)

    @torch.inference_mode()
    def _match(
        self, network: Network, corpus: DeviceData, top_b: int, embed: bool, task: Task
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        device = corpus.device
        E = torch.empty((len(corpus) if embed else 0, network.head.in_features), device=device)
        begins = np.cumsum([0, *self.groups_[:-1]]).tolist()
        width = sum(min(top_b, size) for size in self.groups_)
        scores = torch.empty((len(corpus), width), device=device)
        clusters = torch.empty((len(corpus), width), dtype=torch.int32, device=device)
        for batch in in_order(corpus.lengths, TOKENS_PER_BATCH.get(device.type, 1 << 11)):
            with native.computing():
                rows = torch.from_numpy(batch.rows).to(device)
                e = network.embed(corpus.inputs(rows, batch.shape))
                parts = network.score(e, corpus.term(rows)).split(self.groups_, dim=1)
                best = [part.topk(min(top_b, part.shape[1]), dim=1) for part in parts]
                scores[rows] = torch.cat([values for values, _ in best], dim=1)
                own = [at + begin for (_, at), begin in zip(best, begins, strict=True)]
                clusters[rows] = torch.cat(own, dim=1).int()
                if embed:
                    E[rows] = e
            task.advance(len(batch.rows))
        return E, scores, clusters

    def _working_network(self) -> Network:
        """The network in the precision that it computes in: itself, or a copy that is made once."""
        network, dtype = self.network_, DTYPES[choose_precision(self.config.precision, self.device)]
        if network.training or network.head.weight.dtype == dtype:  # in training it has that precision already
            return network
        if self._fast is None:
            self._fast = copy.deepcopy(network).cast(dtype).eval()
        return self._fast

    def own(self, found: Csr) -> Csr:
        """All clusters are this matcher's own."""
        return found

    @property
    def n_clusters(self) -> int:
        """Number of clusters, those of all trees together."""
        return sum(self.groups_)

    @property
    def n_features(self) -> int | None:
        """Number of sparse features that the linear term reads; None without one."""
        return None if self.term_ is None else self.term_.n_features

    @property
    def source(self) -> Self:
        """The matcher itself."""
        return self

    # ------------------------------------------------------------------ keeping

    def write(self, folder: Path, parts: SharedParts) -> dict[str, Any]:
        """Write a folder; nothing else is needed to load it."""
        self.save(folder)
        return {}

    def save(self, path: Path | str) -> None:
        """Write a folder: the encoder as Hugging Face keeps it, the head and the linear term."""
        weight, bias = (value.detach().float().cpu().numpy() for value in self.network_.head.parameters())
        head = Head(self.config, self.linear, weight, bias, self.term_, self.groups_, self.history_, self.label_head)
        with storage.atomic_folder(path, overwrite=True) as folder:
            self.network_.encoder.save(folder / "encoder")
            head.save(folder / "head")

    @classmethod
    def load(cls, path: Path | str, *, device: str | None = None, verify: bool = True) -> Self:
        """Read what `save` wrote."""
        path = Path(path)
        head = Head.load(path / "head", verify=verify)
        self = cls(replace(head.config, device=device), head.linear)
        network = Network(Encoder.load(path / "encoder"), len(head.weight), dropout=head.config.dropout)
        if network.head.in_features != head.weight.shape[1]:
            hidden = network.head.in_features
            raise damaged(path, f"its head is of {head.weight.shape[1]} dimensions, its encoder of {hidden}")
        with torch.no_grad():
            network.head.weight.copy_(torch.from_numpy(np.array(head.weight)))
            network.head.bias.copy_(torch.from_numpy(np.array(head.bias)))
        self.term_, self.groups_, self.history_, self.label_head = head.term, head.groups, head.history, head.labels
        self.network_ = network.to(self.device).eval()
        return self


def _labels_to_learn(config: MatcherConfig, M: Csr, Y: Csr | None) -> int:
    """The number of labels that are learnt beside the clusters, 0 unless the configuration asks for it."""
    if not config.learn_labels:
        return 0
    if Y is None:
        raise UsageError("matcher.learn_labels is set, but no labels are given; pass Y")
    if M.shape[1] + Y.shape[1] > config.max_clusters_per_step:
        raise UsageError(
            f"matcher.learn_labels: {Y.shape[1]:,} labels and {M.shape[1]:,} clusters are more than "
            f"max_clusters_per_step, {config.max_clusters_per_step:,}; leave learn_labels out, or raise that setting"
        )
    return int(Y.shape[1])


def _check_point(encoder: Encoder) -> None:
    try:
        encoder.model.gradient_checkpointing_enable({"use_reentrant": False})
    except ValueError as err:
        raise UsageError(
            f"{encoder.config.name} cannot compute activations again; unset gradient_checkpointing"
        ) from err
