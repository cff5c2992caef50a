"""labelwise train"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from labelwise.calibrate import MIN_DOCUMENTS
from labelwise.cli.command import Command
from labelwise.cli.runs import megabytes
from labelwise.cli.show import Show
from labelwise.config import LinearTreeConfig
from labelwise.data import Dataset, Format, ReadOptions, load_dataset, split_validation
from labelwise.data.detect import open_source
from labelwise.errors import DataError, StorageError, UsageError
from labelwise.model import LinearTree
from labelwise.presets import load_preset
from labelwise.validation import Validation, read_documents, validate

AS_PRESET = "(default: as the preset says)"
TENTH = 0.1
"""Share of the training documents that is set aside where there is no validation split."""


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """Train a model on the training split, calibrate it on the validation split, and save it with its card.

    Without a validation split, a model trained without a tenth of the documents shows what scores mean; the one that
    is saved is then trained on all of them.

    Try it: labelwise train my-shop my-model --preset parabel
    """

    data: Annotated[Path, Positional, arg(metavar="DATA")]
    """A folder of splits or a single file, in any format that labelwise reads. Texts are used where there are some,
    features otherwise."""
    model: Annotated[Path, Positional, arg(metavar="MODEL")]
    """The folder to make."""
    preset: Annotated[str, arg(metavar="NAME|FILE.toml", help_behavior_hint="(default: default)")] = "default"
    """Whose settings: default, bonsai, dismec, parabel, plt, slice, xr-linear, or a TOML file of your own."""
    cost: Annotated[float | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Cost of a violation against the size of the weights, at every level: liblinear's C."""
    n_trees: Annotated[int | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Trees that are averaged."""
    beam: Annotated[int | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Nodes kept at each level when predicting."""
    negatives: Annotated[Literal["teacher", "matcher", "both"] | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Whose documents are the labels' negatives: the true clusters', the clusters' that the matcher finds, or both."""
    seed: Annotated[int | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Where all chance begins."""
    threads: int | None = None
    """Threads to use; all cores if not given."""
    tune: bool = False
    """Choose cost, cluster size and threshold on the validation documents first: about eight trials."""
    calibrate: Annotated[bool, arg(help_behavior_hint="(default: False)")] = True
    """Leave scores as they are, no probabilities. Without a validation split this saves half the time."""
    run_dir: Path | None = None
    """Keep the stages' results in this folder, and find them again."""
    overwrite: bool = False
    """Replace a model that lies at the destination."""
    format: Format | None = None
    """The data's format; found by looking if not given."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Check, read, tune, train, validate, save, tell."""
        config = self._config()
        self._check_destination()
        begin = time.perf_counter()
        train, validation = self._read(show)
        kind = "split" if validation is not None else "tenth"
        rest = train
        if validation is None and (self.calibrate or self.tune):
            rest, validation = self._set_aside(train, config, show)
        report: dict[str, Any] = {"data": self.data.resolve().name, "preset": Path(self.preset).name}
        if self.tune:
            if validation is None:
                raise DataError(f"too few documents to tune on: {len(train)}; train without --tune", path=self.data)
            config, report["tuning"] = self._tune(config, rest, validation, out, show)

        validated = None
        if kind == "tenth" and validation is not None and self.calibrate:
            show.remark(f"training without {len(validation):,} documents first, to see what scores mean")
            validated = validate(self._fit(config, rest, show), validation, on_event=show.on_event)
            show.remark(f"training on all {len(train):,} documents")
        wall, cpu = time.perf_counter(), time.process_time()
        model = self._fit(config, train, show)
        report |= {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
        if kind == "split" and validation is not None:
            validated = validate(model, validation, on_event=show.on_event)
        if validated is not None:
            report["validation"] = {"kind": kind, **validated.to_dict()}
            self._calibrate(model, validated, show)
        report["trained"] = datetime.now(UTC).date().isoformat()
        model.report_ |= report
        model.save(self.model)
        out.print(_summary(model, self.model, report, time.perf_counter() - begin))
        out.print(f"the model: {self.model}   its card: {self.model / 'README.md'}", markup=False)

    def _config(self) -> LinearTreeConfig:
        """The preset's settings with those of the command line on top."""
        return load_preset(
            self.preset,
            matcher={"cost": self.cost},
            ranker={"cost": self.cost, "negatives": self.negatives},
            n_trees=self.n_trees,
            beam=self.beam,
            seed=self.seed,
            threads=self.threads,
        )

    def _check_destination(self) -> None:
        """Say before the work that there will be no place for its result."""
        if self.model.is_file():
            raise UsageError(f"{self.model} is a file; give a folder to make")
        if not self.model.is_dir() or not any(self.model.iterdir()):
            return
        if not self.overwrite:
            raise UsageError(f"{self.model} exists already; choose another place, or pass --overwrite")
        try:
            LinearTree.load(self.model, verify=False)
        except StorageError as err:
            raise UsageError(f"{self.model} is not empty and holds no model; it is not overwritten") from err

    def _read(self, show: Show) -> tuple[Dataset, Dataset | None]:
        """The training split, and the validation split where there is one."""
        options = asdict(self.read)
        splits = open_source(self.data, format=self.format, options=self.read).splits
        train = load_dataset(self.data, "train", format=self.format, on_event=show.on_event, **options)
        if self.data.is_file() or "validation" not in splits:
            return train, None
        validation = load_dataset(
            self.data, "validation", format=self.format, labels=train.labels, on_event=show.on_event, **options
        )
        return train, validation

    def _set_aside(self, train: Dataset, config: LinearTreeConfig, show: Show) -> tuple[Dataset, Dataset | None]:
        """A tenth of the training documents, unless that would be too few to learn anything from."""
        if len(train) * TENTH >= MIN_DOCUMENTS:
            rest, aside = split_validation(train, TENTH, seed=config.seed)
            if len(aside) >= MIN_DOCUMENTS:
                return rest, aside
        show.remark(
            f"there is no validation split, and a tenth of {len(train):,} documents is too few to calibrate on "
            f"(fewer than {MIN_DOCUMENTS}): the model will give scores, no probabilities"
        )
        return train, None

    def _tune(
        self, config: LinearTreeConfig, train: Dataset, validation: Dataset, out: Console, show: Show
    ) -> tuple[LinearTreeConfig, dict[str, Any]]:
        from labelwise.tune import METRIC, tune

        tuning = tune(config, train, validation, run_dir=self.run_dir, on_event=show.on_event)
        out.print(tuning.table())
        for sentence in tuning.explain():
            out.print(sentence, markup=False)
        return tuning.config, {"trials": len(tuning.trials), "metric": METRIC}

    def _fit(self, config: LinearTreeConfig, train: Dataset, show: Show) -> LinearTree:
        return LinearTree(config).fit(
            read_documents(train), train.Y, label_names=train.labels, run_dir=self.run_dir, on_event=show.on_event
        )

    def _calibrate(self, model: LinearTree, validated: Validation, show: Show) -> None:
        if not self.calibrate:
            return
        model.calibrator_ = validated.calibrator
        if validated.reason is not None:
            show.remark(f"the model gives scores, no probabilities: {validated.reason}")


def _summary(model: LinearTree, path: Path, report: dict[str, Any], seconds: float) -> Table:
    """What was trained, in a few lines."""
    tree, n_trees = model.trees_[0].tree, len(model.trees_)
    table = Table(title=f"{path.name}, trained on {report['data']}", title_style="bold", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row("documents", f"{model.report_['documents']:,}")
    trees = f", in each of {n_trees} trees" if n_trees > 1 else ""
    table.add_row("labels", f"{len(model.labels_):,} in {tree.n_clusters:,} clusters{trees}")
    table.add_row("features", f"{model.n_features_:,}")
    table.add_row("time", f"{report['seconds']:.1f} s, {report['cpu_seconds']:.1f} CPU s; {seconds:.1f} s in all")
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    table.add_row("size on disk", megabytes(size))
    if "validation" in report:
        found = report["validation"]
        where = "the validation split" if found["kind"] == "split" else "a tenth of the data, held out"
        scores = "  ".join(f"{name} {found['scores'][name]:.2f}" for name in ("P@1", "P@3", "P@5", "nDCG@5"))
        table.add_row("validation", f"{scores}\n{found['documents']:,} documents: {where}")
        if "tuning" in report:
            table.add_row("", "they also chose the settings, so these figures flatter a little")
        if model.calibrator_ is not None and found["calibration_error"] is not None:
            table.add_row("calibration error", f"{found['calibration_error']:.2f} %")
    table.add_row("answers", "probabilities" if model.calibrator_ is not None else "scores, not calibrated")
    return table
