"""One call from data to a model: read the documents, choose the settings, train, save."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from labelwise.config import LinearTreeConfig, XTransformerConfig
from labelwise.config.flat import check_settings
from labelwise.config.presets import AUTO, changed, preset_config
from labelwise.data import BadRows, Dataset, ReadOptions
from labelwise.data.formats.annif import subject_names
from labelwise.data.formats.columns import text_columns
from labelwise.data.frames import column_names, dataset_from_frame, plain_documents
from labelwise.data.load import load_training_splits
from labelwise.data.targets import targets
from labelwise.errors import DataError, UsageError
from labelwise.features.texts import text_list
from labelwise.models.registry import check_destination, new_model
from labelwise.models.training_report import TrainingClock, TrainingColumns
from labelwise.tuning.choice import choose

if TYPE_CHECKING:
    from labelwise.config import ModelConfig
    from labelwise.models.base import Model
    from labelwise.types import OnEvent

logger = logging.getLogger(__name__)

_CHOOSES = ("encoder", "max_length", "device", "threads")
"""Settings that `choose` takes into account."""
_READING = tuple(field.name for field in fields(ReadOptions))
"""Keywords of `train` that say how files and tables are read."""


def train(
    data: Any,
    labels: Any = None,
    *,
    preset: Any = AUTO,
    out: Path | str | None = None,
    validation: Dataset | None = None,
    run_dir: Path | str | None = None,
    on_event: OnEvent | None = None,
    **settings: Any,
) -> Model:
    """A model trained on documents with labels, as the command ``labelwise train --preset auto`` trains it.

    Parameters
    ----------
    data
        A folder of splits or a file in any format that labelwise reads; a `Dataset`; a table with the columns text and
        labels; or, with `labels`, texts or a matrix of features.
    labels
        (n_docs,) lists of label names, or a (n_docs, n_labels) matrix of 0 and 1.
    preset
        A preset's name, a TOML file, a configuration, or a list of these for an ensemble. ``auto`` looks at the data
        and the machine and chooses one.
    out
        A folder to save the model in; a model that it holds is replaced.
    validation
        Documents that choose and calibrate; the split ``validation`` of a folder if not given, and a share of the
        training documents if there is none.
    run_dir
        Keep the results of the stages there, and reuse those of earlier runs.
    **settings
        Changes on top of the preset by flat names, such as ``max_length=32``: see `labelwise.config.flat`. And how a
        file or a table is read, as in `ReadOptions`: ``text_column="title"``.

    Returns
    -------
    model
        A fitted `LinearTree`, `XTransformer` or `Ensemble` with calibrated probabilities.

    Examples
    --------
    >>> from labelwise import generate_shop, train
    >>> shop = generate_shop(500, 100)
    >>> model = train(shop["train"], preset="parabel", n_trees=1)
    >>> [name for name, probability in model.predict(["Mirror, 40 cm, Oak"], top_k=1)[0]]
    ['mirror']
    """
    if out is not None:
        check_destination(out)
    config, reading = None, {name: settings.pop(name) for name in _READING if name in settings}
    if isinstance(preset, str) and preset == AUTO:
        check_settings((LinearTreeConfig, XTransformerConfig), settings, "train")
    else:
        config = preset_config(preset, settings)
    found = BadRows()
    documents, own_validation = _read(data, labels, reading, on_event, found)
    name = preset if isinstance(preset, str | Path) else type(config).__name__
    if config is None:
        config, name = _chosen(documents, settings)
    if documents.texts is None and config.texts_only:
        raise DataError(f"{name} reads texts, and these data have only features; use a linear preset, such as default")
    clock, model = TrainingClock(), new_model(config)
    model.fit_dataset(documents, validation or own_validation, run_dir=run_dir, on_event=on_event)
    if model.role_ == "helper":  # the main process has the model
        return model  # type: ignore[no-any-return]  # as `new_model` says
    model.report_.preset = str(name)
    if isinstance(data, str | Path):
        model.report_.data = Path(data).resolve().name
        model.subject_names_ = subject_names(Path(data), model.labels_)
    if labels is None and not isinstance(data, Dataset) and documents.texts is not None:
        model.report_.columns = TrainingColumns.of(ReadOptions.of(reading), found)
    clock.stop(model.report_)
    if out is not None:
        model.save(out)
    return model  # type: ignore[no-any-return]  # as above


def read_documents(
    data: Any, labels: Any, settings: Mapping[str, Any], on_event: OnEvent | None
) -> tuple[Dataset, dict[str, Any]]:
    """The training documents of what `train` takes, and the settings of the model among its keywords."""
    reading = {name: settings[name] for name in _READING if name in settings}
    rest = {name: value for name, value in settings.items() if name not in reading}
    return _read(data, labels, reading, on_event, BadRows())[0], rest


def _read(
    data: Any, labels: Any, reading: Mapping[str, Any], on_event: OnEvent | None, found: BadRows
) -> tuple[Dataset, Dataset | None]:
    """The training documents, and the validation documents where a folder has some."""
    if isinstance(data, str | Path) and labels is None:
        return load_training_splits(data, on_event=on_event, bad_rows=found, **reading)
    if labels is None and not isinstance(data, Dataset):
        return _from_frame(data, reading, on_event, found), None
    if reading:
        raise UsageError(
            f"{next(iter(reading))} says how a file or a table is read, but these data are read already; leave it out"
        )
    if labels is None:
        return data, None
    if isinstance(data, str | Path | Dataset):
        raise UsageError("labels are given twice: a Dataset or a file has its own; leave labels out, or give texts")
    documents, (Y, names) = plain_documents(data), targets(labels, None)
    features = sp.issparse(documents)
    texts = None if features else text_list(documents)
    return Dataset(Y=Y, labels=names, texts=texts, features=documents if features else None), None


def _from_frame(frame: Any, reading: Mapping[str, Any], on_event: OnEvent | None, found: BadRows) -> Dataset:
    """The documents of a table, with the options of `ReadOptions`."""
    rest = {name: value for name, value in reading.items() if not name.endswith("_column")}
    columns = ReadOptions.of(reading)
    ids, names = reading.get("id_column"), text_columns(column_names(frame), columns.text_column)
    text = names or columns.text_columns
    return dataset_from_frame(
        frame, text=text, labels=columns.labels_column, ids=ids, on_event=on_event, found=found, **rest
    )


def _chosen(documents: Dataset, settings: Mapping[str, Any]) -> tuple[ModelConfig, str]:
    """The settings that the preset auto chooses, with changes on top, and their name."""
    given = {name: settings[name] for name in _CHOOSES if settings.get(name) is not None}
    choice = choose(documents, **given)
    for line in (f"auto chose {choice.preset}", *choice.reasons):
        logger.info(line)
    return changed(choice.config, settings, f"auto chose {choice.preset}"), f"auto: {choice.preset}"
