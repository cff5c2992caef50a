"""How an encoder is fine-tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

from labelwise.config.settings import Count, Device, NonNegative, Positive, Range, Settings, Share

MatcherLoss: TypeAlias = Literal["squared-hinge", "hinge", "bce"]
"""Losses of the matcher; `labelwise.match.losses` has their formulas."""
ComputePrecision: TypeAlias = Literal["fp32", "bf16", "fp16"]
"""Formats of the numbers that an encoder computes with."""
Precision: TypeAlias = Literal["auto", ComputePrecision]
"""The precision that is asked for; auto is the best that the device has."""


@dataclass(frozen=True, kw_only=True)
class MatcherConfig(Settings):
    """How the encoder is fine-tuned to find a text's clusters."""

    RENAMED: ClassVar[Mapping[str, str | None]] = {
        "start": "init",
        "clip": "max_grad_norm",
        "most_clusters": "max_clusters_per_step",
        "checkpoint_activations": "gradient_checkpointing",
        "seed": None,
    }

    loss: MatcherLoss = "squared-hinge"
    """Squared hinge as in the paper, hinge, or binary cross-entropy."""
    mean_loss: bool = False
    """Divide the loss of a document by the number of clusters instead of summing over them."""
    epochs: Positive = 6.0
    """Passes over the training documents."""
    steps: Count | None = None
    """Optimizer steps instead of epochs, as the paper counts."""
    batch_size: Count = 128
    """Documents of one step."""
    micro_batch: Count | None = None
    """Documents that are on the device at once; gradients are accumulated over a batch. If not given, a whole batch,
    halved as often as the device runs out of memory."""
    learning_rate: Positive = 5e-5
    """Learning rate of the encoder after the warm-up; it falls linearly to zero."""
    head_learning_rate: Positive = 2e-3
    """Learning rate of the layer that scores the clusters."""
    warmup: Share = 0.1
    """Share of the steps in which the learning rates rise from zero."""
    weight_decay: NonNegative = 0.01
    """Weight decay of matrices; biases and norms are not decayed."""
    max_grad_norm: Positive = 1.0
    """Largest norm of the gradient; larger gradients are scaled down."""
    dropout: Annotated[float, Range(at_least=0, at_most=0.99)] = 0.1
    """Dropout on the pooled embedding."""
    init: Literal["linear", "zero"] = "linear"
    """The head starts as a linear model on the pretrained embeddings, or with weights of zero."""
    linear_term: bool = True
    """Add to a cluster's score that of a linear model on tf-idf, so that the encoder learns what is missing there."""
    folds: Annotated[int, Range(at_least=2)] = 4
    """Number of folds for the out-of-fold scores that the linear term gives training documents."""
    dense_weight: Positive = 1.0
    """Length of the embedding beside tf-idf's 1 in the linear model that fine-tuning starts from."""
    learn_labels: bool = False
    """Add a one-vs-all head over the labels beside the head over their clusters: the embedding then tells the labels of
    a cluster apart, and the network's scores of labels take the place of the embedding's weights in the ranker. For
    thousands of labels with many documents each; the head, and the memory of a step, grow with the labels."""
    max_clusters_per_step: Count = 65_536
    """Clusters that a step scores. Of more, the clusters of the batch's documents and a random sample of the others."""
    negatives_from: Literal["model", "out-of-fold"] = "model"
    """Which matcher finds the clusters that give training documents their matcher-aware negatives: the trained matcher,
    or, at `folds` times the cost, matchers trained without the document."""
    patience: Count = 4
    """Early stopping: stop when the recall of held-out documents' clusters has not risen this many times in a row."""
    evaluate_every: Positive = 1.0
    """Epochs between two evaluations on the held-out documents."""
    precision: Precision = "auto"
    """Precision of the encoder: bf16 on GPUs that have it, fp32 on CPUs. Weights are updated in fp32 in any case."""
    gradient_checkpointing: bool = False
    """Compute activations again in the backward pass: less memory, a third more time."""
    graph_steps: bool = field(default=True, compare=False)
    """On a GPU, capture a step as a CUDA graph once and replay it."""
    compile: bool | None = field(default=None, compare=False)
    """On a GPU, let torch.compile fuse the encoder's operations, which takes a minute; if not given, where it saves
    time."""
    device: Device | None = field(default=None, compare=False)
    """Device: cpu, cuda, cuda:1, mps …; auto, as if not given: the GPU if there is one."""
