"""Measures the ensemble of nine, its members, and groups of members, for any data set.

    python benchmarks/paper/ensemble.py DATA [--encoders minilm,gte-small=DIR,mpnet=DIR] [--run-dir DIR] [--json FILE]

The script trains the `Ensemble` of labelwise with three label embeddings for each encoder. An encoder is fine-tuned
once for its three label trees; rule, weights and calibration come from the validation split or from held-out documents.
The test documents are predicted once. The table has, with 95 % intervals over the test documents: every member; the
three trees of an encoder, and the three encoders of a label embedding (equal weights, combined by --rule); all members
with equal weights; the Ensemble; and the improvement of each over Parabel in percent. Paired tests answer whether the
Ensemble is better than its best member, whether three trees are better than one, and whether different label embeddings
combine better than different encoders.

Encoders can be fine-tuned in parallel: run the script once for each encoder with one --run-dir and --fit-only, then
once for all encoders. The predictions for held-out and test documents are kept in the run directory; other tables reuse
them without any training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common import Experiment, Row, combine_rows, improvements, parser_of, run_script
from encoders import choose_encoders
from nine import LABEL_EMBEDDINGS, Nine, fit_nine, nine_system
from output import difference, figure, finish, markdown
from settings import neural_settings

from labelwise.errors import UsageError

PARABEL = "parabel"
EQUAL, WHOLE = "all, equal weights", "Ensemble"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rule", default="average", help="rule that combines members with equal weights")
    parser.add_argument("--own-encoders", action="store_true", help="fine-tune an encoder for every member")
    parser.add_argument("--prune", type=float, help="drop members that gain less than this on held-out documents")
    parser.add_argument("--fit-only", action="store_true", help="only train, into the run directory")
    parser.add_argument("--no-parabel", action="store_true", help="do not train Parabel for the comparison")
    options = parser.parse_args()
    with Experiment(options) as experiment:
        encoders = choose_encoders(options.encoders)
        for encoder in encoders:
            if encoder.missing is not None:
                raise UsageError(f"{encoder.name}: {encoder.missing}; leave it out of --encoders, or give NAME=FOLDER")
        settings = {"share_encoder": not options.own_encoders, "prune": options.prune}
        if options.fit_only:
            fit_nine(experiment, nine_system(experiment, encoders, **settings))
            return
        nine = Nine.find(experiment, encoders, **settings)
        rows = table(experiment, nine)
        tests = {claim: experiment.test(rows[a], rows[b]) for claim, (a, b) in claims(experiment, rows).items()}
        about = experiment.about()
    parabel = rows.get(PARABEL)
    shown = [*experiment.metrics("P"), experiment.metrics("PSP")[-1]]
    gains = {name: improvements(row, parabel, shown) for name, row in rows.items()}
    show(experiment, nine, rows, gains, tests)
    metrics = experiment.metrics("P", "R", "nDCG", "PSP")
    results = {
        "table": "ensemble",
        **about,
        **nine.report,
        "rows": [{**row.to_dict(metrics), "over_parabel": gains[name]} for name, row in rows.items()],
        "tests": {claim: None if found is None else found.to_dict() for claim, found in tests.items()},
    }
    finish(options, results)


def table(experiment: Experiment, nine: Nine) -> dict[str, Row]:
    """Rows by name, in the order of the table."""
    options, rows = experiment.options, {}
    if not options.no_parabel:
        rows[PARABEL] = experiment.row(experiment.linear(PARABEL))[0]
    rows |= {", ".join(pair): row for pair, row in nine.rows(experiment).items()}
    kinds, names = ({pair[place]: None for pair in nine.members} for place in (0, 1))
    groups = {f"three trees, {name}": [pair for pair in nine.members if pair[1] == name] for name in names}
    if len(names) > 1:
        groups |= {f"encoders, {kind}": [pair for pair in nine.members if pair[0] == kind] for kind in kinds}
        groups[EQUAL] = list(nine.members)
    for name, pairs in groups.items():
        rows[name] = combine_rows(experiment, name, [rows[", ".join(pair)] for pair in pairs], options.rule)
    rows[WHOLE] = nine.row(experiment, WHOLE)
    return rows


def claims(experiment: Experiment, rows: Mapping[str, Row]) -> dict[str, tuple[str, str]]:
    """Claims, and the rows that test them: the first minus the second."""
    members = [name for name in rows if name.startswith(LABEL_EMBEDDINGS)]

    def best(names: Sequence[str]) -> str:
        def mean(name: str) -> float:
            evaluation = rows[name].evaluation
            assert evaluation is not None
            return sum(evaluation[metric] for metric in experiment.metrics("P"))

        return max(names, key=mean)

    asked = {"the Ensemble is better than its best member": (WHOLE, best(members))}
    trees = [name for name in rows if name.startswith("three trees, ")]
    for name in trees:
        encoder = name.removeprefix("three trees, ")
        own = [member for member in members if member.endswith(f", {encoder}")]
        asked[f"three trees are better than the best one ({encoder})"] = (name, best(own))
    encoders = [name for name in rows if name.startswith("encoders, ")]
    if encoders:
        asked["different label embeddings combine better than different encoders (the best of each)"] = (
            best(trees),
            best(encoders),
        )
        asked["chosen weights and rule are better than equal weights"] = (WHOLE, EQUAL)
    return asked


def show(
    experiment: Experiment,
    nine: Nine,
    rows: Mapping[str, Row],
    gains: Mapping[str, dict[str, Any] | None],
    tests: Mapping[str, Any],
) -> None:
    precisions, psp = experiment.metrics("P"), experiment.metrics("PSP")[-1]
    lines = []
    for name, row in rows.items():
        gained = gains[name]
        tail = "" if row.evaluation is None else f"{row.evaluation.buckets['tail'].scores[psp].value:.2f}"
        shown = [figure(row, metric) for metric in (*precisions, psp)]
        over = [f"{gained[m]['percent']:+.1f} %" if gained else "" for m in (*precisions, psp)]
        lines.append([name, *shown, tail, *over])
    length = neural_settings(experiment.options, experiment.splits.name)["encoder"]["max_length"]
    print(f"\n**{experiment.splits.title}**, {length} tokens per text, seed {experiment.options.seed}\n")
    over = [f"{metric} over Parabel" for metric in (*precisions, psp)]
    print(markdown(["", *precisions, psp, "of which tail labels", *over], lines))
    print(f"\nThe Ensemble: {nine.report['rule']} of {nine.report['over']}.\n")
    weights = [[str(member["name"]), f"{member['weight'] or 0:.3f}"] for member in nine.report["members"]]
    print(markdown(["member", "weight"], weights))
    print("\nFirst minus second (95 % interval; p of the paired test):\n")
    answers = [[claim, *(difference(found, metric) for metric in precisions)] for claim, found in tests.items()]
    print(markdown(["", *precisions], answers))


if __name__ == "__main__":
    run_script(main)
