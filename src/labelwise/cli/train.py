"""labelwise train"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

from rich.console import Console
from tyro.conf import Positional, Suppress, arg

from labelwise.cli.command import Command, DeviceOption
from labelwise.cli.console import SafeConsole
from labelwise.cli.engine import EngineOptions
from labelwise.cli.settings import check_options, option
from labelwise.cli.show import Show
from labelwise.cli.train_members import SETTINGS, asked_for, ensemble_of, plan
from labelwise.config import Analyzer, LabelEmbedding, Negatives, Rule
from labelwise.config.flat import flat_names
from labelwise.config.models import SINGLE_CONFIGS
from labelwise.config.presets import Config, changed
from labelwise.data import BadRows, Dataset, Format, ReadOptions
from labelwise.data.load import load_training_splits
from labelwise.engines.allocator import limit_heap_growth
from labelwise.errors import DataError, LabelwiseError, UsageError
from labelwise.kernels.preparing import Preparation
from labelwise.models.registry import check_destination
from labelwise.storage import check_writable

AS_PRESET = "(default: as the preset says)"


@dataclass(frozen=True, kw_only=True)
class Train(EngineOptions, Command):
    """Train a model on the training split, calibrate it on the validation split, and save it with its card.

    Without a validation split, a share of the training documents is held out (--hold-out). The held-out documents
    choose the settings that the preset leaves open, and calibrate. The linear models then learn from them too.

    Several presets, encoders or label embeddings, with commas between them, make an ensemble of all combinations.

    Try it: labelwise train my-shop my-model --preset parabel
    """

    groups: ClassVar = {
        "model": ("preset", "tune", "growing", "seed", "threads"),
        "linear models": ("cost", "n_trees", "beam", "negatives", "analyzer", "opening"),
        "encoder": ("encoder", "max_length", "label_embedding", "epochs", "learn_labels", "device"),
        "ensemble": ("rule", "prune", "own_encoders"),
        "held-out documents": ("hold_out", "learn_validation", "calibrate"),
        "where it runs": ("engine", "address"),
        "output": ("run_dir", "overwrite", "dry_run", "quiet"),
    }

    data: Annotated[Path, Positional, arg(metavar="DATA")]
    """A folder of splits or a single file, in any format that labelwise reads. Texts are used where there are some,
    features otherwise."""
    model: Annotated[Path, Positional, arg(metavar="MODEL")]
    """The folder to write."""
    preset: Annotated[str, arg(metavar="NAME|FILE.toml,…", help_behavior_hint="(default: default)")] = "default"
    """A preset of settings: default, bonsai, dismec, parabel, plt, slice, xr-linear; with an encoder: x-transformer,
    hybrid (not fine-tuned, for CPUs), eurlex-4k, wiki10-31k, amazoncat-13k, wiki-500k (the paper's); auto, which
    chooses a preset for the data and the machine; or a TOML file of your own."""
    encoder: Annotated[str | None, arg(metavar="NAME|FOLDER,…", help_behavior_hint=AS_PRESET)] = None
    """The pretrained encoder: minilm, a folder written by save_pretrained (also by its name alone, in a folder that the
    environment variable LABELWISE_ENCODERS names), or a hub name."""
    max_length: Annotated[int | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Largest number of tokens of a text that the encoder reads."""
    label_embedding: Annotated[
        str | None, arg(metavar=f"{'|'.join(get_args(LabelEmbedding))},…", help_behavior_hint=AS_PRESET)
    ] = None
    """What labels are clustered by: the tf-idf of their documents, the embeddings of their documents, or the embeddings
    of their own texts."""
    rule: Annotated[Rule | None, arg(help_behavior_hint="(default: chosen on validation documents)")] = None
    """The rule that combines the lists of an ensemble's members."""
    prune: Annotated[float | None, arg(metavar="POINTS", help_behavior_hint="(default: all stay)")] = None
    """Drop members of an ensemble that raise the mean of P@1, P@3 and P@5 by less than this number of points."""
    own_encoders: bool = False
    """Fine-tune an encoder for each member, as the paper does. Otherwise members with the same encoder share it."""
    epochs: Annotated[float | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Epochs of fine-tuning."""
    learn_labels: bool = False
    """Fine-tune on the labels too, beside their clusters: better with thousands of labels that have many documents."""
    hold_out: Annotated[float | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Share of the training documents that is held out where there is no validation split."""
    learn_validation: bool = False
    """Train the linear models on the validation split too, after it has chosen the settings and calibrated; encoders
    are not trained on it."""
    device: DeviceOption = None
    """Device of the encoder."""
    analyzer: Annotated[Analyzer | None, arg(help_behavior_hint=AS_PRESET)] = None
    """What tf-idf counts: words, characters (char), or characters inside word boundaries (char_wb); auto: words, and
    characters where texts have no spaces between words, as in Chinese, Japanese and Thai."""
    opening: Annotated[int | None, arg(metavar="WORDS", help_behavior_hint=AS_PRESET)] = None
    """Number of first words of a text that count again in tf-idf, as terms of their own: try 80 for long texts."""
    cost: Annotated[float | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Regularisation constant of the linear models at all levels: liblinear's C."""
    n_trees: Annotated[int | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Number of trees, whose scores are averaged."""
    beam: Annotated[int | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Number of nodes that the search keeps at each level."""
    negatives: Annotated[Negatives | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Negatives of a label: the documents of its cluster (tfn), the documents for which the matcher finds its cluster
    (man), or both."""
    seed: Annotated[int | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Random seed."""
    threads: int | None = None
    """Number of threads; all cores if not given."""
    tune: bool = False
    """First choose cost, cluster size, threshold and the opening of long texts on the held-out documents: eight to
    eleven trials."""
    calibrate: bool = True
    """Train without calibration: predictions are scores, and linear models hold no documents out."""
    dry_run: bool = False
    """Read the data, print what would be trained and an estimate of time and memory, and stop."""
    growing: bool = False
    """Store features of some documents of each cluster in the model: labelwise add-labels then needs no data."""
    run_dir: Path | None = None
    """Store the results of all stages in this folder, and reuse those of earlier runs."""
    overwrite: bool = False
    """Replace a model at the destination."""
    format: Format | None = None
    """Format of the data; detected if not given."""
    read: ReadOptions = field(default_factory=ReadOptions)
    rows_read: Annotated[BadRows, Suppress] = field(default_factory=BadRows)
    """What was found while reading."""

    def start(self) -> None:
        """Run the command; of several processes that a launcher started, only the first one prints."""
        if first_process():
            super().start()
            return
        try:
            check_options(self)
            with self.where_it_runs():
                self.run(Console(quiet=True), Show(quiet=True))
        except LabelwiseError as error:  # the first process prints it
            sys.exit(error.exit_code)

    def run(self, out: Console, show: Show) -> None:
        """Check the options, read the data, choose the settings, train, print a summary."""
        members = asked_for(self)
        self._check_destination()
        for name in {encoder.name for _, config in members for encoder in config.encoders()}:
            self._check_encoder(name)
        if self.dry_run or not first_process():
            train, validation = self._read(show)
        else:
            with Preparation(("linear",), on_event=show.on_event) as preparation:  # other processes compile meanwhile
                train, validation = self._read(show)
                preparation.wait()
        if not members:
            members = [self._choose(train, show)]
        elif self.dry_run:
            self._plan(members, train, show)
        neural = [name for name, config in members if config.texts_only]
        if neural and train.texts is None:
            raise DataError(
                f"{neural[0]} reads texts, and these data have only features; use a linear preset, such as default",
                path=self.data,
            )
        if self.learn_validation and validation is None:
            raise UsageError(
                f"--learn-validation: {self.data} has no validation split; leave it out: the model learns from all "
                "training documents anyway"
            )
        if self.opening and train.texts is None:
            raise DataError("--opening reads texts, and these data have only features; leave it out", path=self.data)
        if self.dry_run or not (neural or first_process()):
            return
        from labelwise.cli.train_run import fit_model

        limit_heap_growth()
        preset = ",".join(dict.fromkeys(name for name, _ in members))
        config: Any = ensemble_of(self, members) if len(members) > 1 else members[0][1]
        fit_model(self, config, preset, train, validation, out, show)

    def with_options(self, config: Config, preset: str) -> Config:
        """The preset's settings with those of the command line on top."""
        known = flat_names(type(config))
        options: dict[str, Any] = {name: getattr(self, name) for name in SETTINGS}
        options |= {"learn_labels": self.learn_labels or None, "learn_validation": self.learn_validation or None}
        options["calibrate"] = None if self.calibrate else False
        given = {name: value for name, value in options.items() if value is not None}
        refused = [name for name in given if name not in known] + (["tune"] if self.tune and not config.tunable else [])
        if refused:
            owners = " and ".join(one.family for one in SINGLE_CONFIGS if one.family != config.family)
            raise UsageError(
                f"{option(refused[0])} is an option of {owners}, but the preset {preset} is of {config.family}; "
                "leave it out, or choose another preset"
            )
        if config.fine_tuning() is None:
            for name in ("epochs", "learn_labels"):
                if name in given:
                    raise UsageError(
                        f"{option(name)}: the preset {preset} does not fine-tune; leave it out, or use x-transformer"
                    )
        return changed(config, given, "", option)

    def _choose(self, train: Dataset, show: Show) -> tuple[str, Config]:
        """Settings for these data on this machine, printed before the work begins."""
        from labelwise.tuning import Machine, Sizes, choose, estimate

        machine, sizes = Machine.current(self.device, threads=self.threads), Sizes.of(train)
        encoder: dict[str, Any] = {} if self.encoder is None else {"encoder": self.encoder}
        choice = choose(sizes, machine=machine, max_length=self.max_length, threads=self.threads, **encoder)
        config = self.with_options(choice.config, f"{choice.preset} (chosen by auto)")
        for line in replace(choice, estimate=estimate(config, sizes, machine)).lines(machine):
            self._say(line, show)
        return f"auto: {choice.preset}", config

    def _plan(self, members: list[tuple[str, Config]], train: Dataset, show: Show) -> None:
        from labelwise.tuning import Machine, Sizes, describe_plan

        machine, sizes = Machine.current(self.device, threads=self.threads), Sizes.of(train)
        if len(members) > 1:
            lines = list(plan(ensemble_of(self, members), sizes, machine))
        else:
            lines = list(describe_plan(self.preset, members[0][1], sizes, machine))
        if self.tune:
            lines.append("--tune first trains eight to eleven models of one tree, which the estimate does not count")
        for line in lines:
            self._say(line, show)

    def _say(self, line: str, show: Show) -> None:
        """Print a remark; with --dry-run it is the result, on standard output."""
        if self.dry_run and first_process():
            SafeConsole().print(line)
        else:
            show.remark(line)

    def _check_encoder(self, name: str) -> None:
        """Refuse, before any work, an encoder that is not there, or a machine without torch."""
        import labelwise.features.encoder  # noqa: F401  # says what to install
        from labelwise.features.pretrained import find_encoder

        find_encoder(name)

    def _check_destination(self) -> None:
        """Refuse, before any work, a destination that cannot be written."""
        if self.model.is_file():
            raise UsageError(f"{self.model} is a file; give a folder to write")
        if self.dry_run:
            return
        check_writable(self.model)
        if self.run_dir is not None:
            check_writable(self.run_dir / "runs")
        if not self.model.is_dir() or not any(self.model.iterdir()):
            return
        if not self.overwrite:
            raise UsageError(f"{self.model} exists already; choose another place, or pass --overwrite")
        check_destination(self.model)

    def _read(self, show: Show) -> tuple[Dataset, Dataset | None]:
        """The training split, and the validation split where there is one."""
        options = {"format": self.format, "on_event": show.on_event, **asdict(self.read)}
        return load_training_splits(self.data, bad_rows=self.rows_read, **options)


def first_process() -> bool:
    """Whether this process is the only one, or the first that a launcher started; asked before torch is there."""
    return int(os.environ.get("WORLD_SIZE", "1")) <= 1 or os.environ.get("RANK", "0") == "0"
