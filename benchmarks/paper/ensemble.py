"""The ensemble of nine, its members, and what kind of difference between members is worth most, on any data set.

    python benchmarks/paper/ensemble.py DATA [--encoders minilm,gte-small=DIR,mpnet=DIR] [--run-dir DIR] [--json FILE]

Trains labelwise's Ensemble of three label embeddings with each encoder (an encoder is fine-tuned once for its three
trees; rule, weights and calibration come from validation or held-out documents) and predicts the test documents once.
From the members' lists it then shows, with 95 % intervals over the test documents: every member; the three trees of an
encoder and the three encoders of a tree (equal weights, by --rule); all with equal weights; the Ensemble itself; and
how far each is ahead of Parabel in percent. Paired tests answer: is the Ensemble better than its best member, are three
trees better than one, do different label embeddings combine better than different encoders.

--lists DIR keeps the members' lists of held-out and test documents. Encoders can be trained side by side: run the
script once for each encoder with one --run-dir and --fit-only, then once for all of them, which finds everything there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from common import Bench, Row, combine_rows, parser_of, relative, run_script
from encoders import choose_encoders
from nine import LABEL_EMBEDDINGS, member_system
from output import difference, figure, finish, markdown, say, tell
from settings import neural_settings

from labelwise.config import EnsembleConfig, XTransformerConfig
from labelwise.ensemble import Ensemble
from labelwise.errors import UsageError
from labelwise.parts.reading import Reading
from labelwise.predictions import Predictions
from labelwise.storage import save
from labelwise.types import Csr

PARABEL = "parabel"
EQUAL, WHOLE = "all, equal weights", "Ensemble"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rule", default="average", help="how members of equal weight are combined")
    parser.add_argument("--own-encoders", action="store_true", help="fine-tune an encoder for every member")
    parser.add_argument("--prune", type=float, help="drop members that bring less than this on held-out documents")
    parser.add_argument("--fit-only", action="store_true", help="fill the run directory, predict nothing")
    parser.add_argument("--no-parabel", action="store_true", help="do not train Parabel to compare with")
    parser.add_argument("--lists", type=Path, help="keep the members' lists in this folder")
    options = parser.parse_args()
    with Bench(options) as bench:
        begun = time.perf_counter(), time.process_time()
        model = fit(bench)
        seconds = {"fit_s": time.perf_counter() - begun[0], "fit_cpu_s": time.process_time() - begun[1]}
        say(f"fitted in {seconds['fit_s']:.1f} s ({seconds['fit_cpu_s']:.1f} CPU s)")
        if options.fit_only:
            return
        rows = table(bench, model)
        tests = {claim: bench.test(rows[a], rows[b]) for claim, (a, b) in claims(bench, rows).items()}
        about = bench.about()
    parabel = rows.get(PARABEL)
    gains = {name: improvements(row, parabel, bench) for name, row in rows.items()}
    show(bench, model, rows, gains, tests)
    metrics = bench.metrics("P", "R", "nDCG", "PSP")
    results = {
        "table": "ensemble",
        **about,
        **seconds,
        "rule": model.rule_,
        "over": model.over_,
        "members": model.report_["members"],
        "validation": model.report_.get("validation", {}).get("scores"),
        "rows": [{**row.to_dict(metrics), "over_parabel": gains[name]} for name, row in rows.items()],
        "tests": {claim: None if found is None else found.to_dict() for claim, found in tests.items()},
    }
    finish(options, results)


# ---------------------------------------------------------------------- training


def fit(bench: Bench) -> Ensemble:
    """The Ensemble of all label embeddings and encoders."""
    options, train = bench.options, bench.splits.train
    encoders = choose_encoders(options.encoders)
    for encoder in encoders:
        if encoder.missing is not None:
            raise UsageError(f"{encoder.name}: {encoder.missing}; leave it out of --encoders, or give NAME=FOLDER")
    configs = [member_system(bench, kind, encoder).config for encoder, kind in product(encoders, LABEL_EMBEDDINGS)]
    members = tuple(config for config in configs if isinstance(config, XTransformerConfig))
    config = EnsembleConfig(
        members=members,
        share_encoder=not options.own_encoders,
        prune=options.prune,
        seed=options.seed,
        threads=options.threads,
    )
    return Ensemble(config).fit(
        train.texts or [],
        train.Y,
        label_names=train.labels,
        label_texts=train.label_texts,
        validation=bench.splits.validation,
        run_dir=bench.run.path,
        on_event=tell,
    )


# ---------------------------------------------------------------------- judging


def table(bench: Bench, model: Ensemble) -> dict[str, Row]:
    """Rows by name, in the order in which they are shown."""
    options, test = bench.options, bench.splits.test
    begun = time.perf_counter()
    reading = Reading(test.texts, threads=options.threads, on_event=tell)
    depth = model.config.depth
    lists: dict[tuple[str, str], Predictions] = {}
    for member in model.members_:
        assert isinstance(member.config, XTransformerConfig)
        scores = member.scores(reading, depth)
        if member.calibrator_ is not None:
            scores = member.calibrator_.transform_matrix(scores)
        kind, name = member.config.label_embedding, Path(member.config.encoder.name).name
        lists[kind, name] = Predictions(scores, member.labels_).with_labels(test.labels)
        keep(options.lists, f"{kind}-{name}", scores, getattr(member, "held_", None))
    answer = Predictions(model.scores(reading, max(bench.rules.ks)), model.labels_).with_labels(test.labels)
    say(f"{len(test):,} test documents in {time.perf_counter() - begun:.1f} s")
    rows = {}
    if not options.no_parabel:
        rows[PARABEL] = bench.row(bench.linear(PARABEL))[0]
    for pair, found in lists.items():
        rows[", ".join(pair)] = bench.judged(", ".join(pair), found)
    kinds, names = ({pair[place]: None for pair in lists} for place in (0, 1))
    groups = {f"three trees, {name}": [", ".join(pair) for pair in lists if pair[1] == name] for name in names}
    if len(names) > 1:
        groups |= {f"encoders, {kind}": [", ".join(pair) for pair in lists if pair[0] == kind] for kind in kinds}
        groups[EQUAL] = [", ".join(pair) for pair in lists]
    for name, parts in groups.items():
        rows[name] = combine_rows(bench, name, [rows[part] for part in parts], options.rule)
    rows[WHOLE] = bench.judged(WHOLE, answer)
    return rows


def keep(folder: Path | None, name: str, test: Csr, held: Csr | None) -> None:
    """A member's lists, for whoever wants to look at other combinations."""
    if folder is not None:
        matrices = {"test": test} if held is None else {"test": test, "held": held}
        save(folder / name, kind="lists", config={}, arrays={}, matrices=matrices)


def claims(bench: Bench, rows: Mapping[str, Row]) -> dict[str, tuple[str, str]]:
    """What is asked, and the rows that answer it: the first minus the second."""
    members = [name for name in rows if name.startswith(LABEL_EMBEDDINGS)]

    def best(names: Sequence[str]) -> str:
        def mean(name: str) -> float:
            evaluation = rows[name].evaluation
            assert evaluation is not None
            return sum(evaluation[metric] for metric in bench.metrics("P"))

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
        asked["learnt weights and rule are better than equal weights"] = (WHOLE, EQUAL)
    return asked


def improvements(row: Row, parabel: Row | None, bench: Bench) -> dict[str, Any] | None:
    """Over Parabel in percent, by metric."""
    if parabel is None or parabel.evaluation is None or row.evaluation is None or row is parabel:
        return None
    shown = [*bench.metrics("P"), bench.metrics("PSP")[-1]]
    return {metric: relative(row.evaluation, parabel.evaluation, metric) for metric in shown}


def show(
    bench: Bench,
    model: Ensemble,
    rows: Mapping[str, Row],
    gains: Mapping[str, dict[str, Any] | None],
    tests: Mapping[str, Any],
) -> None:
    precisions, psp = bench.metrics("P"), bench.metrics("PSP")[-1]
    lines = []
    for name, row in rows.items():
        gained = gains[name]
        tail = "" if row.evaluation is None else f"{row.evaluation.buckets['tail'].scores[psp].value:.2f}"
        shown = [figure(row, metric) for metric in (*precisions, psp)]
        over = [f"{gained[m]['percent']:+.1f} %" if gained else "" for m in (*precisions, psp)]
        lines.append([name, *shown, tail, *over])
    length = neural_settings(bench.options, bench.splits.name)["encoder"]["max_length"]
    print(f"\n**{bench.splits.title}**, {length} tokens of a text, seed {bench.options.seed}\n")
    over = [f"{metric} over Parabel" for metric in (*precisions, psp)]
    print(markdown(["", *precisions, psp, "of it tail labels'", *over], lines))
    print(f"\nThe Ensemble: {model.rule_} of {model.over_}.\n")
    weights = [[str(member["name"]), f"{member['weight'] or 0:.3f}"] for member in model.report_["members"]]
    print(markdown(["member", "weight"], weights))
    print("\nFirst minus second (95 % interval; p of the paired test):\n")
    answers = [[claim, *(difference(found, metric) for metric in precisions)] for claim, found in tests.items()]
    print(markdown(["", *precisions], answers))


if __name__ == "__main__":
    run_script(main)
