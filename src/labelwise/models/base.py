"""What all models share: labels, calibration, and the files that every model folder has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from labelwise import storage
from labelwise.config import HoldoutConfig
from labelwise.config.flat import signature
from labelwise.config.presets import model_config
from labelwise.config.settings import Count, Device, Range, Share, checked_value
from labelwise.data import Dataset
from labelwise.data.frames import pandas_index
from labelwise.errors import DataError, StorageError, UsageError
from labelwise.features.texts import listed
from labelwise.models.calibrator import CALIBRATED_ON, Calibrator
from labelwise.models.exemplars import Exemplars
from labelwise.models.holdout import HoldoutEvaluation
from labelwise.models.pickling import files_of, from_files
from labelwise.models.prediction_cache import PredictionCache
from labelwise.models.registry import check_destination, known_kind, model_class
from labelwise.models.saved_labels import read_labels, read_subject_names, write_subject_names
from labelwise.models.seen import SeenDocuments
from labelwise.models.training_data import TrainingData
from labelwise.models.training_report import TrainingReport
from labelwise.predictions import Predictions
from labelwise.predictions.ranking import at_least
from labelwise.storage.checks import Entries, damaged
from labelwise.storage.shared_parts import SharedParts
from labelwise.types import Csr, Floats, OnEvent

if TYPE_CHECKING:
    from labelwise.features.encoder_folder import TextEncoder
    from labelwise.index import Tree
    from labelwise.match.base import Matcher
    from labelwise.match.heads import History
    from labelwise.models.ensemble.rules import Combination
    from labelwise.models.growth import GrowthAdapter
    from labelwise.models.scored_trees import ScoredTree
    from labelwise.rank.sparse_weights import LevelWeights


Id = Annotated[int, Range(at_least=-(2**63), at_most=2**63 - 1)]
"""A document's id that is a number."""
SEEN = "seen-documents"
"""The folder of a model that holds the hashes of its training documents; a model without it works as well."""
LONGEST_LIST = 1 << 30
"""More labels of a document than any model has."""


class Model(ABC):
    """A fitted model turns documents into predictions, and answers questions about itself.

    `LinearTree`, `XTransformer` and `Ensemble` implement it; `labelwise.models.registry` lists them by their kind. Code
    that works with any model asks the model's own properties and never for its class.
    """

    kind: ClassVar[str]
    """What its folder says it is: a key of `labelwise.models.registry.KINDS`."""
    config_class: ClassVar[type[Any]]
    """The class of its configuration."""
    config: Any
    tfidf_: Any
    """None if the model was fitted on features, not on texts."""
    labels_: list[str]
    calibrator_: Calibrator | None
    """None if there was nothing to calibrate on: scores are then the model's own."""
    report_: TrainingReport
    """Sizes, held-out figures, and what was chosen: see `labelwise.models.training_report`."""
    exemplars_: Exemplars | None = None
    """Documents that serve as negatives of labels added later; None unless asked for (see `labelwise.incremental`)."""
    seen_: SeenDocuments | None = None
    """Hashes of the training documents, by which an evaluation on them is noticed; None for models without."""
    subject_names_: Mapping[str, str] | None = None
    """Names of labels that are URIs, where the training data had them in subjects.tsv; None for other models."""
    held_out_scores_: Csr | None = None
    """(n_held, n_labels) scores of the held-out documents' best labels, by a model that had not seen them; there after
    `fit` only."""
    role_: Literal["main", "helper"] = "main"
    """Of several processes that train together the main process gets the fitted model. A helper stays unfitted."""

    def __init_subclass__(cls) -> None:
        if "config_class" in cls.__dict__:
            cls.__signature__ = signature(cls.config_class)  # type: ignore[attr-defined]  # what help and editors read

    def __init__(self, preset: Path | str | Any | None = None, **settings: Any) -> None:
        """A model that is not fitted yet.

        Parameters
        ----------
        preset
            A preset's name, a TOML file of settings, or a configuration; the defaults if not given. For an ensemble a
            list of these, one for each member.
        **settings
            Changes on top, by the flat names of `labelwise.config.flat` (``n_trees=5``, ``max_length=32``), or by the
            fields of the configuration (``ranker={"cost": 2.0}``). None leaves a setting as it is.
        """
        self.config = model_config(self.config_class, preset, settings)

    @property
    def _is_fitted(self) -> bool:
        return hasattr(self, "labels_")

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[Any]]:
        """A fitted model goes into a pickle as the files that `save` writes."""
        return (from_files, (files_of(self),)) if self._is_fitted else (self.__class__, (self.config,))

    def __copy__(self) -> Self:
        """A model of the same parts."""
        made = object.__new__(self.__class__)
        made.__dict__.update(self.__dict__)
        return made

    def __repr__(self) -> str:
        if not self._is_fitted:
            return f"{type(self).__name__}(not fitted)"
        return f"{type(self).__name__}({self.describe()}, {len(self.labels_):,} labels)"

    def __str__(self) -> str:
        """The model with its facts, one on each line."""
        if not self._is_fitted:
            return repr(self)
        facts = [(name, value) for name, value in self.facts() if not name.startswith("member ")]
        facts.append(("answers", "probabilities" if self.calibrator_ is not None else "scores, not calibrated"))
        width = max(len(name) for name, _ in facts)
        return "\n".join([repr(self), *(f"  {name:<{width}}  {value}" for name, value in facts)])

    # ------------------------------------------------------------------ what it is made of

    @property
    def members(self) -> tuple[Model, ...]:
        """The models that answer together: those of an ensemble. A single model is its own only member."""
        return (self,)

    def map_members(self, change: Callable[[Model], Model]) -> Model:
        """A model whose members are what `change` gives for them; this one stays as it is."""
        return change(self)

    @property
    @abstractmethod
    def trees(self) -> tuple[Tree, ...]:
        """The label trees that are searched, those of all members."""

    @property
    @abstractmethod
    def label_levels(self) -> tuple[LevelWeights, ...]:
        """The weights of the labels' own models, for each of `trees`."""

    @property
    def matcher(self) -> Matcher | None:
        """The matcher that finds clusters by an encoder; None for linear models and for several members."""
        return None

    @property
    def encoder(self) -> TextEncoder | None:
        """The encoder that reads the texts, of several members the first one's; None for linear models."""
        return None

    @property
    def history(self) -> History | None:
        """What the fine-tuning of `encoder` looked like; None where nothing was fine-tuned."""
        return None

    @property
    def reads_texts(self) -> bool:
        """Whether documents are texts; otherwise they are rows of features."""
        return self.tfidf_ is not None

    @property
    @abstractmethod
    def bounded_scores(self) -> bool:
        """Whether scores lie between 0 and 1 before they are calibrated."""

    @property
    def combination(self) -> Combination | None:
        """How the lists of several members become one list; None for a single model."""
        return None

    def scored_trees(self, reading: PredictionCache, top_k: int) -> tuple[ScoredTree, ...]:
        """The label trees with the scores of one text, searched as for a prediction of `top_k` labels.

        `labelwise.explanations` explains these. It explains the members of a `combination` one by one.
        """
        raise UsageError(f"models of class {type(self).__name__} cannot be explained")

    def document_vectors(self, reading: PredictionCache) -> Csr | Floats:
        """(n_docs, n_features) the vectors that similar documents are found by: tf-idf, or embeddings of length one."""
        return reading.features(self.tfidf_)

    def growth(self) -> GrowthAdapter:
        """What `labelwise.incremental` needs to add and remove labels; members grow one by one (`map_members`)."""
        raise UsageError(f"models of class {type(self).__name__} cannot grow; train a new model with all labels")

    def describe(self) -> str:
        """What tells the model from others, in a few words."""
        words: str = self.config.describe()
        return words

    # ------------------------------------------------------------------ using

    @abstractmethod
    def inputs(self, dataset: Dataset) -> list[str] | Csr:
        """What the model reads of a data set."""

    def predict(
        self,
        texts_or_X: Any,
        top_k: int = 10,
        *,
        min_probability: float = 0.0,
        ids: Sequence[str] | None = None,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Predictions:
        """The best labels of each document, with probabilities if the model is calibrated.

        Parameters
        ----------
        texts_or_X
            Texts or features, as the model was fitted on.
        min_probability
            Leave out labels below this: a document may then have no label at all. The model must be calibrated.
        ids
            The documents' own ids, passed on to the predictions.
        threads
            Threads to use; as the configuration says if not given. Predictions do not depend on it.
        """
        top_k = checked_top_k(top_k)
        min_probability = checked_value(Share, min_probability, "min_probability")
        if min_probability and self._is_fitted and self.calibrator_ is None:
            raise UsageError(
                f"this {type(self).__name__} is not calibrated, so its scores are not probabilities; train it with "
                "calibration, or leave out min_probability"
            )
        reading = self.reading(self._readable(texts_or_X), threads=threads, on_event=on_event)
        names = None if ids is None else checked_ids(ids, len(reading))
        found = self._answer(self.scores(reading, top_k), min_probability, names)
        share = None if self.seen_ is None else self.seen_.share(reading.documents)
        return replace(found, index=pandas_index(texts_or_X) if ids is None else None, trained_share=share)

    def reading(
        self, documents: Any, *, threads: int | None = None, on_event: OnEvent | None = None
    ) -> PredictionCache:
        """Documents for `scores`; threads as the configuration says if not given."""
        threads = self.config.threads if threads is None else threads
        return PredictionCache(documents, threads=threads, on_event=on_event)

    def _readable(self, texts_or_X: Any) -> Any:
        """What is given to a fitted model, checked."""
        if not hasattr(texts_or_X, "__iter__") and not hasattr(texts_or_X, "tocsr"):
            kind = type(texts_or_X).__name__
            raise DataError(f"the documents are of class {kind}; give a list of texts, or a matrix of features")
        return texts_or_X

    @abstractmethod
    def scores(self, reading: PredictionCache, top_k: int) -> Csr:
        """(n_docs, n_labels) the best labels of each document with the model's own scores, as they were combined."""

    def fit_dataset(
        self,
        train: Dataset,
        validation: Dataset | None = None,
        *,
        run_dir: Path | str | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Train on a data set with its label names: the `fit` of every kind of model.

        Parameters
        ----------
        validation
            Documents that are held out, in place of a share of the training documents.
        """
        options: dict[str, Any] = {"validation": validation, "run_dir": run_dir, "on_event": on_event}
        if self.reads_label_texts:
            options["label_texts"] = train.label_texts
        model: Any = self  # the kinds of models differ in what else `fit` takes
        model.fit(train.documents, train.Y, label_names=train.labels, **options)
        return self

    reads_label_texts: ClassVar[bool] = True
    """Whether `fit` can use texts that say what the labels mean."""

    # ------------------------------------------------------------------ keeping

    def save(self, path: Path | str) -> None:
        """Write a self-contained folder from which `load` makes the same model; a model that lies there is replaced."""
        check_destination(path)
        with storage.atomic_folder(path, overwrite=True) as folder:
            self.write(folder, SharedParts())
            write_subject_names(folder, self.subject_names_)

    def save_pretrained(self, folder: Path | str) -> None:
        """Write what `save` writes, with a card that the Hugging Face hub understands."""
        from labelwise.integrations import hub

        hub.save_pretrained(self, folder)

    @classmethod
    def from_pretrained(cls, folder_or_repo: Path | str, **options: Any) -> Self:
        """A model of this class from a folder, or from the hub: see `labelwise.integrations.hub.from_pretrained`."""
        from labelwise.integrations import hub

        model = hub.from_pretrained(folder_or_repo, **options)
        if not isinstance(model, cls):
            raise StorageError(
                f"{folder_or_repo} holds a saved {model.kind}, not a model of class {cls.__name__}; use "
                "labelwise.from_pretrained, which reads any model"
            )
        return model

    def push_to_hub(self, repo: str, **options: Any) -> str:
        """Upload into a repository of the hub, and say where it is: see `labelwise.integrations.hub.push_to_hub`."""
        from labelwise.integrations import hub

        return hub.push_to_hub(self, repo, **options)

    @abstractmethod
    def write(self, folder: Path, shelf: SharedParts) -> None:
        """Write into a folder that is there; parts that models may share go through the shelf."""

    @classmethod
    def load(cls, path: Path | str, *, verify: bool = True, shelf: SharedParts | None = None) -> Self:
        """Read what `save` wrote; weights are mapped into memory, nothing in the folder is executed.

        A save may replace the folder meanwhile: the result is the old model or the new one, whole.
        """
        if shelf is not None:  # a part of a larger folder, whose reader looks after this
            model = cls._read_folder(path, verify=verify, shelf=shelf)
            model.subject_names_ = read_subject_names(Path(path))
            return model
        return storage.read_whole(
            path, lambda place: cls.load(place, verify=verify, shelf=SharedParts.of_folder(place))
        )

    @classmethod
    @abstractmethod
    def _read_folder(cls, path: Path | str, *, verify: bool = True, shelf: SharedParts | None = None) -> Self:
        """Read the folder of a model, whose parts may be shared with other models through the shelf."""

    @abstractmethod
    def title(self) -> str:
        """The kind of model in a few words, for the card."""

    @abstractmethod
    def facts(self) -> Iterator[tuple[str, str]]:
        """Names and values that describe the model, for the card and the summary of a training."""

    def calibrate(self, validation: Dataset, *, on_event: OnEvent | None = None) -> Self:
        """Learn what scores mean from documents that the model was not trained on."""
        checked_value(Dataset, validation, "validation")
        self.calibrator_ = None
        known = validation.with_labels(self.labels_)
        found = self.predict(self.inputs(known), top_k=CALIBRATED_ON, on_event=on_event).matrix
        # Columns that only the validation data have cannot be predicted.
        self.calibrator_ = Calibrator.fit(found, known.Y[:, : len(self.labels_)])
        return self

    def _take_data(self, data: TrainingData) -> None:
        """Keep by what the training data are recognised: hashes of the documents, and one of all data."""
        documents = data.documents.texts if data.documents.X is None else data.documents.X
        assert documents is not None
        self.seen_ = SeenDocuments.of(documents)
        self.report_.fingerprint = data.fingerprint()

    def _take_evaluation(self, data: TrainingData, evaluation: HoldoutEvaluation | None, policy: HoldoutConfig) -> None:
        """Keep what the held-out documents say of the model: figures, and the calibration if the policy wants one."""
        self.calibrator_ = None
        if evaluation is None:
            return
        self.report_.validation = data.result(**evaluation.figures)
        if policy.calibrate:
            self.calibrator_ = evaluation.calibrator

    def _answer(self, matrix: Csr, min_probability: float, ids: Sequence[str] | None) -> Predictions:
        """Scores as predictions: calibrated where the model is, without what is too unlikely."""
        if self.calibrator_ is not None:
            matrix = self.calibrator_.transform_matrix(matrix)
        if min_probability > 0:
            matrix = at_least(matrix, min_probability)
        return Predictions(matrix, self.labels_, ids, calibrated=self.calibrator_ is not None)

    def _save_common(self, folder: Path, card: str, **more: Any) -> None:
        """Write names, calibration, card, description, and documents if some are kept."""
        broken = any("\n" in name or "\r" in name for name in self.labels_)
        lines = (storage.to_json(name) if broken else name for name in self.labels_)
        names = folder / ("labels.jsonl" if broken else "labels.txt")
        names.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        if self.calibrator_ is not None:
            self.calibrator_.save(folder / "calibration.json")
        if self.exemplars_ is not None:
            self.exemplars_.save(folder / "memory")
        if self.seen_ is not None:
            self.seen_.save(folder / SEEN)
        (folder / "README.md").write_text(card, encoding="utf-8", errors="backslashreplace", newline="\n")
        about = {"config": self.config, **more, "n_labels": len(self.labels_), "report": self.report_.to_dict()}
        storage.write_description(folder, kind=self.kind, config=about)

    def _load_common(self, path: Path, about: Entries) -> None:
        """Read names, calibration and report.

        Threads of the machine that trained the model say nothing of the machine that uses it.
        """
        self.config = replace(self.config, threads=None)
        self.labels_ = read_labels(path, about.get("n_labels", Count))
        self.report_ = TrainingReport.from_dict(about.values.get("report", {}), path)
        calibration = path / "calibration.json"
        self.calibrator_ = Calibrator.load(calibration) if calibration.exists() else None
        self.seen_ = SeenDocuments.load(path / SEEN) if (path / SEEN).is_dir() else None

    def _load_exemplars(self, path: Path, n_features: int, *, verify: bool) -> None:
        """Read the documents that were kept, which must fit the labels, the features and the label trees."""
        self.exemplars_ = None
        if not (path / "memory").is_dir():
            return
        kept = Exemplars.load(path / "memory", verify=verify)
        sizes = [tree.n_clusters for tree in self.trees]
        hidden = None if self.encoder is None else self.encoder.hidden_size
        if (
            (kept.n_features, kept.Y.shape[1]) != (n_features, len(self.labels_))
            or [M.shape[1] for M in kept.near] != sizes
            or (kept.E is not None and kept.E.shape[1] != hidden)
        ):
            raise damaged(path / "memory", "the kept documents do not belong to the model")
        self.exemplars_ = kept


def saved_entries(path: Path, kind: str) -> Entries:
    """What the config.json of a model folder says of a model of this kind."""
    return Entries(storage.read_description(path, kind=kind), path / storage.CONFIG).table("config")


def load_model(
    path: Path | str, *, verify: bool = True, device: str | None = None, shelf: SharedParts | None = None
) -> Model:
    """A saved model, whatever its kind.

    Parameters
    ----------
    path
        The folder of the model.
    verify
        Whether the checksums of the weights are compared.
    device
        Where an encoder computes: cpu, cuda, cuda:1, mps …; auto, as if not given, is the GPU if there is one.

    Examples
    --------
    >>> from labelwise import LinearTree, load_model
    >>> LinearTree().fit(["a shoe", "a mug"], [["shoe"], ["mug"]]).save("my-model")
    >>> model = load_model("my-model")
    >>> model.predict(["my shoe"], top_k=1)[0]
    [('shoe', 0.8...)]
    """
    if shelf is None:
        if device is not None:
            checked_value(Device, device, "device")
        return storage.read_whole(
            path, lambda place: load_model(place, verify=verify, shelf=SharedParts.of_folder(place, device=device))
        )
    path = Path(path)
    kind = known_kind(storage.read_description(path).get("kind"), path)
    return model_class(kind).load(path, verify=verify, shelf=shelf)


def checked_top_k(top_k: Any, name: str = "top_k") -> int:
    """A number of labels as an int; no list is longer than the largest."""
    return min(int(checked_value(Count, top_k, name)), LONGEST_LIST)


def checked_ids(ids: Any, n_docs: int) -> list[str]:
    """The documents' own ids as strings; numbers are written out."""
    found = [name if isinstance(name, str) else str(checked_value(Id, name, "an id")) for name in listed(ids, "ids")]
    if len(found) != n_docs:
        raise DataError(f"there are {len(found)} ids but {n_docs} documents; they must match one to one")
    return found


def check_fitted(model: Any, attribute: str) -> None:
    """Refuse to use a model that was never fitted."""
    if getattr(model, "role_", "main") == "helper":
        raise UsageError(
            f"this {type(model).__name__} is that of a helper process, which only takes part in fine-tuning; use the "
            "model of the main process"
        )
    if not hasattr(model, attribute):
        raise UsageError(f"this {type(model).__name__} is not fitted yet; call fit, or load a saved one")
