"""Makes the paper's Table 3, the main results, for any data set.

    python benchmarks/paper/table3.py DATA [--encoders minilm,gte-small=DIR,mpnet=DIR] [--run-dir DIR] [--json FILE]

The first rows are the linear presets of labelwise. The next rows are Parabel on pretrained embeddings of the last
encoder, on tf-idf, and on fine-tuned embeddings with tf-idf. The last rows are X-Transformer with each encoder (with
the label embedding of the preset, pifa-neural), and the ensemble of nine: three label embeddings with each of three
encoders. The ensemble is the `Ensemble` of labelwise, which fine-tunes an encoder once for its three label trees and
chooses weights on held-out documents; the rows of single models are then its members. With --ensemble lists nine models
are trained separately and their rankings are combined by --rule, as in the paper.

encoders.toml says which encoders are sentence encoders, tuned contrastively; their rows are not the paper's. Intervals
are 95 % intervals of the bootstrap over the test documents. The last columns are the improvement over Parabel in
percent, with the interval of the paired bootstrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Experiment, Row, combine_rows, improvements, parser_of, run_script
from encoders import EncoderChoice, choose_encoders
from features import pretrained_row, tuned_row
from nine import LABEL_EMBEDDINGS, Nine, fit_nine, nine_rows, nine_system
from output import figure, finish, markdown
from settings import neural_settings

from labelwise.models.base import load_model

if TYPE_CHECKING:
    from labelwise.features.encoder import Encoder

LINEAR = "dismec,parabel,bonsai,plt,xr-linear,slice"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--linear", default=LINEAR, help="linear presets, by commas")
    parser.add_argument(
        "--ensemble",
        choices=("model", "lists", "none"),
        default="model",
        help="the Ensemble of labelwise, the rankings of nine models that are trained separately, or none",
    )
    parser.add_argument("--frozen", action="store_true", help="only rows without fine-tuning, for CPUs")
    parser.add_argument("--rule", default="rank_average", help="rule that combines the rankings of nine models")
    options = parser.parse_args()
    with Experiment(options) as experiment:
        rows = table(experiment)
        metrics = experiment.metrics("P", "R", "nDCG", "PSP")
        about = experiment.about()
    anchor = next((row for row in rows if row.name == "parabel"), None)
    gains = {row.name: improvements(row, anchor, experiment.metrics("P")) for row in rows}
    shown = [*experiment.metrics("P"), experiment.metrics("PSP")[-1]]
    lines = []
    for row in rows:
        gained = gains[row.name]
        lines.append(
            [row.name, *(figure(row, m) for m in shown), *(gain_cell(gained, m) for m in experiment.metrics("P"))]
        )
    print(f"\n**{experiment.splits.title}**\n")
    print(markdown(["system", *shown, *(f"{m} over Parabel" for m in experiment.metrics("P"))], lines))
    by_frequency(experiment, rows)
    for row in rows:
        if row.note is not None:
            print(f"\n{row.name}: {row.note}")
    results = [{**row.to_dict(metrics), "over_parabel": gains[row.name]} for row in rows]
    finish(options, {"table": "3", **about, "rows": results})


def by_frequency(experiment: Experiment, rows: list[Row]) -> None:
    """Print PSP and R at the last cut-off by label frequency; the parts of PSP add up to the whole."""
    evaluated = [row for row in rows if row.evaluation is not None]
    buckets = list(evaluated[0].evaluation.buckets) if evaluated and evaluated[0].evaluation is not None else []
    last = [metrics[-1] for metrics in (experiment.metrics("PSP"), experiment.metrics("R"))]
    lines = []
    for row in evaluated:
        assert row.evaluation is not None
        found = [row.evaluation.buckets[bucket].scores[metric] for metric in last for bucket in buckets]
        lines.append([row.name, *(f"{score.value:.2f}" for score in found)])
    if buckets:
        print("\nBy label frequency (head: more than 100 training documents, tail: five and fewer):\n")
        print(markdown(["system", *(f"{metric} {bucket}" for metric in last for bucket in buckets)], lines))


def table(experiment: Experiment) -> list[Row]:
    """All rows, the cheapest first."""
    options = experiment.options
    rows = [
        experiment.row(experiment.linear(preset.strip()))[0] for preset in options.linear.split(",") if preset.strip()
    ]
    encoders = choose_encoders(options.encoders)
    last = encoders[-1]
    length = neural_settings(options, experiment.splits.name)["encoder"]["max_length"]
    rows.append(pretrained_row(experiment, last, length))
    same = next((row for row in rows if row.name == "parabel"), None)
    if same is not None:
        same.note = "this is also the row tf-idf + Parabel of the paper, since there is one implementation here"
    if options.frozen:
        return rows
    whole = options.ensemble == "model" and all(encoder.missing is None for encoder in encoders)
    rows += members_of_one(experiment, encoders) if whole else trained_separately(experiment, encoders)
    return rows


def members_of_one(experiment: Experiment, encoders: Sequence[EncoderChoice]) -> list[Row]:
    """The Ensemble of labelwise, and its members with the label embedding of the preset."""
    nine, last = Nine.find(experiment, encoders), encoders[-1]
    kind = experiment.neural(last.name, last).config.label_embedding
    of_last = nine_system(experiment, [last])  # reused from the run directory, where the encoder was fine-tuned

    def tuned() -> Encoder:
        return fit_nine(experiment, of_last)[0].members_[0].matcher_.encoder_

    rows = [tuned_row(experiment, last, tuned, of_last)]
    found = nine.rows(experiment)
    for encoder in encoders:
        row = found[kind, encoder.name]
        rows.append(replace(row, name=f"X-Transformer, {encoder.name}", columns={"encoder": encoder.about}))
    return [*rows, nine.row(experiment, whole_name(encoders))]


def trained_separately(experiment: Experiment, encoders: Sequence[EncoderChoice]) -> list[Row]:
    """Models that are trained separately, and their combined rankings if --ensemble asks for them."""
    options, last = experiment.options, encoders[-1]
    singles, kind, tuned, system = [], "", None, None
    for encoder in encoders:
        name = f"X-Transformer, {encoder.name}"
        if encoder.missing is not None:
            singles.append(Row(name, note=f"not run: {encoder.missing}"))
            continue
        system = experiment.neural(name, encoder)
        kind = system.config.label_embedding
        row, outcome = experiment.row(system, keep_model=encoder == last, encoder=encoder.about)
        singles.append(row)
        if encoder == last and outcome is not None and outcome.model is not None:
            tuned = partial(_encoder_of, outcome.model)
    rows = [tuned_row(experiment, last, tuned, system), *singles]
    if options.ensemble == "lists":
        others = nine_rows(experiment, encoders, [other for other in LABEL_EMBEDDINGS if other != kind])
        rows.append(combine_rows(experiment, whole_name(encoders), [*singles, *others.values()], options.rule))
    elif options.ensemble == "model":
        missing = next(encoder.missing for encoder in encoders if encoder.missing is not None)
        rows.append(Row(whole_name(encoders), note=f"not run: {missing}"))
    return rows


def whole_name(encoders: Sequence[EncoderChoice]) -> str:
    return f"X-Transformer, ensemble of {len(LABEL_EMBEDDINGS) * len(encoders)}"


def _encoder_of(model: Path) -> Encoder:
    loaded: Any = load_model(model)
    return loaded.matcher_.encoder_


def gain_cell(gained: dict[str, Any] | None, metric: str) -> str:
    """An improvement in percent with its interval."""
    if gained is None:
        return ""
    found = gained[metric]
    return f"{found['percent']:+.1f} % ({found['low']:+.1f} … {found['high']:+.1f})"


if __name__ == "__main__":
    run_script(main)
