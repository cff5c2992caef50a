"""The paper's Table 3: main results, on any data set.

    python benchmarks/paper/table3.py DATA [--encoders minilm,gte-small=DIR,mpnet=DIR] [--run-dir DIR] [--json FILE]

The upper rows are linear systems as labelwise has them (presets); then Parabel on the last encoder's pretrained
embeddings, on tf-idf, and on the fine-tuned embeddings beside tf-idf; then X-Transformer by itself with each encoder
(pifa-neural, as the preset says), and the ensemble of nine (three label embeddings with each of three encoders): as
labelwise's Ensemble, which fine-tunes an encoder once for its three trees and learns weights on held-out documents, or,
with --ensemble lists, the lists of nine models trained by themselves, combined by --rule as in the paper. Encoders are
sentence encoders tuned contrastively where encoders.toml says so: their rows are not the paper's. Intervals are 95 %,
bootstrap over the test documents; the last columns are the improvement over Parabel in percent, with the interval of
the paired bootstrap.
"""

from __future__ import annotations

from typing import Any

from common import Bench, Row, combine_rows, parser_of, relative, run_script
from encoders import choose_encoders
from features import pretrained_row, tuned_row
from nine import LABEL_EMBEDDINGS, ensemble_row, nine_rows
from output import figure, finish, markdown
from settings import neural_settings

LINEAR = "dismec,parabel,bonsai,plt,xr-linear,slice"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--linear", default=LINEAR, help="linear presets, by commas")
    parser.add_argument(
        "--ensemble",
        choices=("model", "lists", "none"),
        default="model",
        help="labelwise's Ensemble, the lists of nine models trained by themselves, or none",
    )
    parser.add_argument("--rule", default="rank_average", help="how the lists of nine models are combined")
    options = parser.parse_args()
    with Bench(options) as bench:
        rows = table(bench)
        metrics = bench.metrics("P", "R", "nDCG", "PSP")
        about = bench.about()
    anchor = next((row for row in rows if row.name == "parabel"), None)
    gains = {row.name: improvements(row, anchor, bench.metrics("P")) for row in rows}
    shown = [*bench.metrics("P"), bench.metrics("PSP")[-1]]
    lines = []
    for row in rows:
        gained = gains[row.name]
        lines.append([row.name, *(figure(row, m) for m in shown), *(gain_cell(gained, m) for m in bench.metrics("P"))])
    print(f"\n**{bench.splits.title}**\n")
    print(markdown(["system", *shown, *(f"{m} over Parabel" for m in bench.metrics("P"))], lines))
    by_frequency(bench, rows)
    for row in rows:
        if row.note is not None:
            print(f"\n{row.name}: {row.note}")
    results = [{**row.to_dict(metrics), "over_parabel": gains[row.name]} for row in rows]
    finish(options, {"table": "3", **about, "rows": results})


def by_frequency(bench: Bench, rows: list[Row]) -> None:
    """PSP and R at the last cut-off, of labels of each frequency: PSP's parts add up to the whole."""
    judged = [row for row in rows if row.evaluation is not None]
    buckets = list(judged[0].evaluation.buckets) if judged and judged[0].evaluation is not None else []
    last = [metrics[-1] for metrics in (bench.metrics("PSP"), bench.metrics("R"))]
    lines = []
    for row in judged:
        assert row.evaluation is not None
        found = [row.evaluation.buckets[bucket].scores[metric] for metric in last for bucket in buckets]
        lines.append([row.name, *(f"{score.value:.2f}" for score in found)])
    if buckets:
        print("\nBy label frequency (head: more than 100 training documents, tail: five and fewer):\n")
        print(markdown(["system", *(f"{metric} {bucket}" for metric in last for bucket in buckets)], lines))


def table(bench: Bench) -> list[Row]:
    """All rows, from the cheapest to the dearest."""
    options = bench.options
    rows = [bench.row(bench.linear(preset.strip()))[0] for preset in options.linear.split(",") if preset.strip()]
    encoders = choose_encoders(options.encoders)
    last = encoders[-1]
    length = neural_settings(options, bench.splits.name)["encoder"]["max_length"]
    rows.append(pretrained_row(bench, last, length))
    same = next((row for row in rows if row.name == "parabel"), None)
    if same is not None:
        same.note = "this is also the paper's tf-idf + Parabel: there is one implementation here"
    singles, model, system = [], None, None
    for encoder in encoders:
        name = f"X-Transformer, {encoder.name}"
        if encoder.missing is not None:
            singles.append(Row(name, note=f"not run: {encoder.missing}"))
            continue
        system = bench.neural(name, encoder)
        row, outcome = bench.row(system, keep_model=encoder == last, encoder=encoder.about)
        singles.append(row)
        if encoder == last and outcome is not None:
            model = outcome.model
    rows.append(tuned_row(bench, last, model, system))
    rows += singles
    if options.ensemble == "model":
        rows.append(ensemble_row(bench, f"X-Transformer, ensemble of {3 * len(encoders)}", encoders))
    elif options.ensemble == "lists":
        known = "pifa-neural" if system is None else system.config.label_embedding
        others = nine_rows(bench, encoders, [kind for kind in LABEL_EMBEDDINGS if kind != known])
        members = [*singles, *others.values()]
        rows.append(combine_rows(bench, f"X-Transformer, ensemble of {len(members)}", members, options.rule))
    return rows


def improvements(row: Row, anchor: Row | None, metrics: list[str]) -> dict[str, Any] | None:
    """Over Parabel in percent, by metric."""
    if anchor is None or row.evaluation is None or anchor.evaluation is None or row is anchor:
        return None
    return {metric: relative(row.evaluation, anchor.evaluation, metric) for metric in metrics}


def gain_cell(gained: dict[str, Any] | None, metric: str) -> str:
    """An improvement in percent with its interval."""
    if gained is None:
        return ""
    found = gained[metric]
    return f"{found['percent']:+.1f} % ({found['low']:+.1f} … {found['high']:+.1f})"


if __name__ == "__main__":
    run_script(main)
