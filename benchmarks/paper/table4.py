"""Makes the paper's Table 4, from product titles to search queries, on the generated shop.

    python benchmarks/paper/table4.py [--products 100000] [--queries 20000] [--encoders minilm] [--run-dir DIR]

The paper's Prod2Query (14 million products, 1 million queries) is not public, so the data are the shop that labelwise
generates. Its texts come from a grammar: tokens say little there that words do not say, and the figures prove little
about real shops. The rows are Parabel, `hybrid`, and X-Transformer with the first of --encoders; the columns are P and
R at 1, 5 and 10, and the improvement over Parabel in percent with the interval of the paired bootstrap. The paper's
improvements: P +10.7 % +7.4 % +6.6 %, R +12.0 % +4.9 % +2.8 %. --data takes another data set instead of the shop.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from common import Experiment, Row, parser_of, relative, run_script
from encoders import choose_encoders
from output import figure, finish, markdown, print_event, say

from labelwise.datasets.shop import write_shop

PUBLISHED = {"P@1": 10.7, "P@5": 7.4, "P@10": 6.6, "R@1": 12.0, "R@5": 4.9, "R@10": 2.8}
"""X-Transformer over Parabel on Prod2Query, in percent."""
WARNING = (
    "The data are generated: texts come from a grammar, so these figures prove nothing about real shops. "
    "The published row is of other data."
)


def main() -> None:
    parser = parser_of(__doc__, data=None)
    parser.add_argument("--data", type=Path, help="another data set instead of the shop")
    parser.add_argument("--products", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--systems", default="hybrid,x-transformer", help="systems in addition to Parabel, by commas")
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        data = options.data or shop(options.run_dir or Path(scratch), options.products, options.queries)
        with Experiment(options, ks=(1, 5, 10), data=data) as experiment:
            rows = table(experiment)
            about = experiment.about()
    metrics = experiment.metrics("P", "R")
    anchor, others = rows[0], rows[1:]
    gains = {
        row.name: {metric: relative(row.evaluation, anchor.evaluation, metric) for metric in metrics}
        for row in others
        if row.evaluation is not None and anchor.evaluation is not None
    }
    print(f"\n**{experiment.splits.title}**\n")
    print(markdown(["system", *metrics], [[row.name, *(figure(row, metric) for metric in metrics)] for row in rows]))
    print("\nOver Parabel:\n")
    lines = [[name, *(_gain(found[metric]) for metric in metrics)] for name, found in gains.items()]
    lines.append(["published: X-Transformer on Prod2Query", *(f"+{PUBLISHED[metric]} %" for metric in metrics)])
    print(markdown(["system", *metrics], lines))
    if experiment.splits.generated:
        print(f"\n{WARNING}")
    for row in rows:
        if row.note is not None:
            print(f"\n{row.name}: {row.note}")
    results = [{**row.to_dict(metrics), "over_parabel": gains.get(row.name)} for row in rows]
    finish(options, {"table": "4", **about, "warning": WARNING, "rows": results, "published": PUBLISHED})


def shop(place: Path, products: int, queries: int) -> Path:
    """The folder of the generated data, which are made once."""
    folder = place / f"shop-{products}x{queries}"
    if not (folder / "shop.json").is_file():
        say(f"generating {products:,} products with {queries:,} queries")
        write_shop(folder, products, queries, on_event=print_event)
    return folder


def table(experiment: Experiment) -> list[Row]:
    rows = [experiment.row(experiment.linear("parabel"))[0]]
    encoder = choose_encoders(experiment.options.encoders)[0]
    experiment.options.max_length = experiment.options.max_length or 32  # titles are short
    for preset in experiment.options.systems.split(","):
        name = f"{preset.strip()}, {encoder.name}"
        if encoder.missing is not None:
            rows.append(Row(name, note=f"not run: {encoder.missing}"))
        else:
            preset = experiment.options.preset if preset.strip() == "x-transformer" else preset.strip()
            rows.append(experiment.row(experiment.neural(name, encoder, preset), encoder=encoder.about)[0])
    return rows


def _gain(found: dict[str, float]) -> str:
    return f"{found['percent']:+.1f} % ({found['low']:+.1f} … {found['high']:+.1f})"


if __name__ == "__main__":
    run_script(main)
