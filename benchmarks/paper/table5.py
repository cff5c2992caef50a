"""Makes the paper's Table 5, the ablation of X-Transformer in ten configurations, for any data set.

    python benchmarks/paper/table5.py DATA [--encoders minilm,gte-small=DIR,mpnet=DIR] [--run-dir DIR] [--json FILE]

Three encoders take the places of BERT, RoBERTa and XLNet. The first three of encoders.toml are sentence encoders, tuned
contrastively, and the table says so. Rows 0 to 2 share a fine-tuned matcher. Rows 7 to 9 combine the rankings of single
models by --rule (the paper: rank_average). The columns are P and R at 1, 3 and 5 with 95 % intervals of the bootstrap.
Each row is tested against the row above it. Three claims of the paper are tested: neural features help (row 1 against
row 0), matcher-aware negatives help (2 against 1), different label embeddings combine better than different encoders (7
against 8).

Each model is trained once, and intervals are over test documents. With --seeds N all single models are trained with N
random seeds, and the tests are about means. With --shared rows 2 to 9 are made of the members of labelwise's Ensemble,
which fine-tunes an encoder once for its three label trees: a third of the fine-tuning.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from common import Experiment, Row, combine_rows, parser_of, run_script
from encoders import EncoderChoice, choose_encoders, known_encoders
from nine import LABEL_EMBEDDINGS, Nine, nine_rows
from output import difference, figure, finish, markdown, say

from labelwise.comparison.results import pooled
from labelwise.errors import UsageError

CLAIMS = {
    "neural features help": ("1", "0"),
    "matcher-aware negatives help": ("2", "1"),
    "different label embeddings combine better than different encoders": ("7", "8"),
}
"""Claims of the paper, and the rows that test them: the first minus the second."""


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rule", default="rank_average", help="rule by which rows 7 to 9 combine their members")
    parser.add_argument(
        "--seeds", type=int, default=1, help="number of random seeds of every single model, from --seed on"
    )
    parser.add_argument("--shared", action="store_true", help="rows 2 to 9 from models that share an encoder")
    parser.add_argument(
        "--rows", default="0,1,2,3,4,5,6,7,8,9", help="configurations, by commas; E is the Ensemble of labelwise"
    )
    options = parser.parse_args()
    wanted = [part.strip() for part in options.rows.split(",")]
    with Experiment(options) as experiment:
        encoders = choose_encoders(options.encoders)
        if len(encoders) != 3:
            raise UsageError(f"--encoders {options.encoders}: give three, for the places of BERT, RoBERTa and XLNet")
        runs = [table(experiment, encoders, wanted, options.seed + number) for number in range(options.seeds)]
        rows = [mean_row(experiment, same) for same in zip(*runs, strict=True)]
        about = experiment.about()
        tests = [(first, second, experiment.test(first, second)) for second, first in pairwise(rows)]
        answers = [answer(experiment, claim, rows, *pair) for claim, pair in CLAIMS.items()]
    show(experiment, rows, tests, answers, runs)
    metrics = experiment.metrics("P", "R", "PSP")
    results = {
        "table": "5",
        **about,
        "encoders": {encoder.name: encoder.about for encoder in encoders},
        "rows": [{**row.to_dict(metrics), "seeds": seeds(runs, number)} for number, row in enumerate(rows)],
        "tests": [
            {"first": first.name, "second": second.name, **({} if found is None else found.to_dict())}
            for first, second, found in tests
        ],
        "answers": answers,
        "not_run": [name for name, encoder in known_encoders().items() if "not_run" in encoder],
    }
    finish(options, results)


def table(experiment: Experiment, encoders: Sequence[EncoderChoice], wanted: Sequence[str], seed: int) -> list[Row]:
    """The ten rows with one random seed."""
    experiment.options.seed = seed
    first, last = encoders[0], encoders[-1]
    single = {
        "2": ("pifa-tfidf", first),
        "3": ("pifa-tfidf", encoders[1]),
        "4": ("pifa-tfidf", last),
        "5": ("pifa-neural", last),
        "6": ("text-emb", last),
    }
    groups = {
        "7": [(kind, last) for kind in LABEL_EMBEDDINGS],
        "8": [("pifa-neural", encoder) for encoder in encoders],
        "9": [(kind, encoder) for encoder in encoders for kind in LABEL_EMBEDDINGS],
    }
    rows: dict[str, Row] = {}
    for number, features, negatives in (("0", "tfidf", "tfn"), ("1", "both", "tfn")):
        if number in wanted:
            rows[number] = ranker_row(experiment, number, first, features, negatives)
    needed = {member for number, members in groups.items() if number in wanted for member in members}
    needed |= {pair for number, pair in single.items() if number in wanted}
    shared = experiment.options.shared and all(encoder.missing is None for encoder in encoders)
    found = Nine.find(experiment, encoders).rows(experiment) if shared and needed else {}
    for encoder in encoders if not shared else ():
        kinds = [kind for kind in LABEL_EMBEDDINGS if (kind, encoder) in needed]
        found |= nine_rows(experiment, [encoder], kinds)
    for number, (kind, encoder) in single.items():
        if number in wanted:
            row = found[kind, encoder.name]
            columns = described(kind, encoder.name, "tf-idf ⊕ neural", "TFN + MAN")
            rows[number] = Row(number, columns, row.evaluation, row.costs, row.predictions, row.note)
    for number, members in groups.items():
        if number in wanted:
            parts = [found[kind, encoder.name] for kind, encoder in members]
            kinds, names = ({pair[0] for pair in members}, {pair[1].name for pair in members})
            columns = described(
                "all" if len(kinds) > 1 else kinds.pop(),
                "all" if len(names) > 1 else names.pop(),
                "tf-idf ⊕ neural",
                "TFN + MAN",
            )
            rows[number] = combine_rows(experiment, number, parts, experiment.options.rule, **columns)
    if "E" in wanted:
        columns = described("all", "all, each tuned once", "tf-idf ⊕ neural", "TFN + MAN")
        missing = next((encoder.missing for encoder in encoders if encoder.missing is not None), None)
        rows["E"] = Row("E", columns, note=f"not run: {missing}")
        if missing is None:
            rows["E"] = Nine.find(experiment, encoders).row(experiment, "E", **columns)
    unknown = [number for number in wanted if number not in rows]
    if unknown:
        raise UsageError(f"--rows: there is no row {', '.join(unknown)}; there are 0 to 9 and E")
    return [rows[number] for number in wanted]


def ranker_row(experiment: Experiment, number: str, encoder: EncoderChoice, features: str, negatives: str) -> Row:
    """Rows 0 and 1: the matcher of row 2 with another ranker."""
    columns = described("pifa-tfidf", encoder.name, "tf-idf" if features == "tfidf" else "tf-idf ⊕ neural", "TFN")
    if encoder.missing is not None:
        return Row(number, columns, note=f"not run: {encoder.missing}")
    changes: dict[str, Any] = {"label_embedding": "pifa-tfidf", "features": features}
    changes["ranker"] = {"negatives": negatives}
    if experiment.options.matcher_weight is not None:  # without MAN the clusters' scores must count in full
        changes["matcher_weight"] = 1.0
    return experiment.row(experiment.neural(number, encoder, **changes), **columns)[0]


def described(indexing: str, matching: str, ranker: str, negatives: str) -> dict[str, str]:
    """The four columns of a configuration."""
    return {"indexing": indexing, "matching": matching, "ranker input": ranker, "negatives": negatives}


def mean_row(experiment: Experiment, same: Sequence[Row]) -> Row:
    """The mean of one row over several random seeds."""
    evaluations = [row.evaluation for row in same]
    there = [found for found in evaluations if found is not None]
    if len(same) == 1 or len(there) < len(same):
        return same[0]
    return Row(same[0].name, same[0].columns, pooled(there), same[0].costs, None, same[0].note)


def seeds(runs: Sequence[Sequence[Row]], number: int) -> list[dict[str, float]]:
    """P of each random seed."""
    found = [run[number].evaluation for run in runs]
    return [{f"P@{k}": one[f"P@{k}"] for k in one.ks} for one in found if one is not None]


def answer(experiment: Experiment, claim: str, rows: Sequence[Row], first: str, second: str) -> dict[str, Any]:
    """Whether the data support a claim: yes or no only if the intervals of P@1, P@3 and P@5 agree."""
    named = {row.name: row for row in rows}
    found = experiment.test(named[first], named[second]) if first in named and second in named else None
    if found is None:
        return {"claim": claim, "rows": [first, second], "answer": "not run"}
    signs = {metric: verdict_of(found[metric].low, found[metric].high) for metric in experiment.metrics("P")}
    verdicts = set(signs.values())
    verdict = "undecided"
    if "yes" in verdicts and "no" not in verdicts:
        verdict = "yes" if verdicts == {"yes"} else "yes in " + ", ".join(m for m, s in signs.items() if s == "yes")
    elif "no" in verdicts and "yes" not in verdicts:
        verdict = "no" if verdicts == {"no"} else "no in " + ", ".join(m for m, s in signs.items() if s == "no")
    elif {"yes", "no"} <= verdicts:
        verdict = "; ".join(f"{sign} in {metric}" for metric, sign in signs.items())
    return {"claim": claim, "rows": [first, second], "answer": verdict, **found.to_dict()}


def verdict_of(low: float, high: float) -> str:
    """Whether an interval is above zero (yes), below zero (no), or has zero (undecided)."""
    return "yes" if low > 0 else "no" if high < 0 else "undecided"


def show(
    experiment: Experiment,
    rows: Sequence[Row],
    tests: Sequence[Any],
    answers: Sequence[dict[str, Any]],
    runs: Sequence[Sequence[Row]],
) -> None:
    metrics, columns = experiment.metrics("P", "R"), ("indexing", "matching", "ranker input", "negatives")
    print(f"\n**{experiment.splits.title}**\n")
    print(markdown(["", *columns, *metrics], [_line(row, columns, metrics) for row in rows]))
    if len(runs) > 1:
        print(f"\nMeans of {len(runs)} seeds; standard deviation of the single runs:\n")
        lines = []
        for number, row in enumerate(rows):
            values = seeds(runs, number)
            if len(values) > 1:
                spread = [stdev(value[m] for value in values) for m in experiment.metrics("P")]
                mean = [fmean(value[m] for value in values) for m in experiment.metrics("P")]
                lines.append([row.name, *(f"{a:.2f} ±{b:.2f}" for a, b in zip(mean, spread, strict=True))])
        print(markdown(["", *experiment.metrics("P")], lines))
    print("\nEach row minus the one above it (95 % interval; p of the paired test):\n")
    shown = experiment.metrics("P")
    lines = [[f"{a.name} - {b.name}", *(difference(found, m) for m in shown)] for a, b, found in tests]
    print(markdown(["rows", *shown], lines))
    print()
    for found in answers:
        print(f"- {found['claim']} (row {found['rows'][0]} against {found['rows'][1]}): **{found['answer']}**")
    print(
        "\nEncoders: " + "; ".join(f"{e.name} is {e.about}" for e in choose_encoders(experiment.options.encoders)) + "."
    )
    for name, encoder in known_encoders().items():
        if "not_run" in encoder:
            print(f"\n{encoder['about']} ({name}): not run, {encoder['not_run']}; ready in encoders.toml")
    for row in rows:
        if row.note is not None:
            say(f"row {row.name}: {row.note}")


def _line(row: Row, columns: Sequence[str], metrics: Sequence[str]) -> list[str]:
    return [row.name, *(row.columns[column] for column in columns), *(figure(row, metric) for metric in metrics)]


if __name__ == "__main__":
    run_script(main)
