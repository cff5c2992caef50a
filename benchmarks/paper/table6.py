"""Makes the paper's Table 6: improvement over Parabel, measured and published.

    python benchmarks/paper/table6.py RESULTS.json [RESULTS.json ...] [--json FILE]

RESULTS are files of table3.py --json or labelwise compare --output (comparison.json) with a system called parabel. The
published figures are those of the paper's Table 6, each relative to the Parabel of its own paper. They are for
Eurlex-4K and Wiki-500K, and the measured ones are for other data sets. An improvement on one data set says little about
another data set: compare the rows of one data set only.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import run_script
from output import finish, markdown

from labelwise.errors import DataError

METRICS = ("P@1", "P@3", "P@5")
WARNING = (
    "Different data sets: the published figures are for Eurlex-4K and Wiki-500K, each relative to the Parabel of its "
    "paper; the others are relative to the Parabel of labelwise on the data named. Compare within a data set only."
)


@dataclass(frozen=True)
class Published:
    """A line of the paper's Table 6: improvements over Parabel in percent."""

    method: str
    source: str
    eurlex_4k: tuple[float, float, float]
    wiki_500k: tuple[float, float, float]


PUBLISHED = (
    Published("X-Transformer", "Chang et al. 2020, Table 3", (6.27, 9.08, 8.55), (12.49, 15.94, 17.26)),
    Published("SLICE", "Jain et al. 2019, Table 2", (4.27, 3.34, 3.11), (5.53, 7.02, 7.56)),
    Published("GLaS", "Guo et al. 2019, Table 3", (-5.18, -5.48, -5.34), (4.77, 3.37, 4.27)),
    Published("ProXML", "Babbar and Schölkopf 2019, Table 5", (3.86, 2.90, 2.43), (2.22, 0.82, 2.92)),
    Published("PPDSparse", "Prabhu et al. 2018, Table 2", (1.92, 2.93, 2.92), (2.39, 2.33, 2.88)),
    Published("SLEEC", "Khandagale et al. 2019, Table 2", (-3.53, -6.40, -9.04), (-29.84, -40.73, -45.08)),
)
# Table 3 of the paper, from which the first line of its Table 6 is computed; for Eurlex-4K not exactly.
TABLE_3 = {
    "Eurlex-4K": {"X-Transformer": (87.22, 75.12, 62.90), "Parabel": (82.12, 68.91, 57.89)},
    "Wiki-500K": {"X-Transformer": (77.28, 57.47, 45.31), "Parabel": (68.70, 49.57, 38.64)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", type=Path)
    parser.add_argument("--json", type=Path, help="write the results into this file")
    options = parser.parse_args()
    print("\nPublished, over Parabel (paper's Table 6):\n")
    lines = [[p.method, p.source, *map(percent, p.eurlex_4k), *map(percent, p.wiki_500k)] for p in PUBLISHED]
    for_sets = [f"{data} {metric}" for data in TABLE_3 for metric in METRICS]
    again = [gain(found["X-Transformer"], found["Parabel"]) for found in TABLE_3.values()]
    lines.append(
        ["X-Transformer", "computed from the same Table 3", *(percent(value) for part in again for value in part)]
    )
    print(markdown(["method", "source", *for_sets], lines))
    ours = [improvements(path) for path in options.results]
    for found in ours:
        print(f"\nlabelwise over its Parabel, on {found['data']}{' (generated data)' if found['generated'] else ''}:\n")
        rows = [[name, *(cell(gained[metric]) for metric in METRICS)] for name, gained in found["systems"].items()]
        print(markdown(["system", *METRICS], rows))
    print(f"\n{WARNING}")
    finish(options, {"table": "6", "warning": WARNING, "published": [vars(p) for p in PUBLISHED], "ours": ours})


def improvements(path: Path) -> dict[str, Any]:
    """Improvement of every system of a results file over Parabel, with intervals if the file has them."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        data, generated = found["data"], bool(found["generated"])
        scores, intervals = precisions(found)
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise DataError(f"these are not results of table3.py or labelwise compare ({err})", path=path) from err
    if "parabel" not in scores:
        raise DataError(f"there is no system called parabel, only {', '.join(scores)}", path=path)
    systems = {}
    for name, own in scores.items():
        if name != "parabel":
            plain = dict(zip(METRICS, gain(own, scores["parabel"]), strict=True))
            systems[name] = {
                metric: (intervals.get(name) or {}).get(metric) or {"percent": plain[metric]} for metric in METRICS
            }
    return {"data": data, "generated": generated, "systems": systems}


def precisions(found: dict[str, Any]) -> tuple[dict[str, tuple[float, ...]], dict[str, Any]]:
    """P@1, P@3 and P@5 of every system that ran, and the improvements that the file has."""
    scores, intervals = {}, {}
    for row in found.get("rows") or found["systems"]:
        figures = row["scores"] if "scores" in row else (row.get("evaluation") or {}).get("scores")
        if figures:
            scores[row["name"]] = tuple(figures[metric]["value"] for metric in METRICS)
            intervals[row["name"]] = row.get("over_parabel")
    return scores, intervals


def gain(own: tuple[float, ...], parabel: tuple[float, ...]) -> tuple[float, ...]:
    """Improvement over Parabel in percent."""
    return tuple(100 * (a / b - 1) for a, b in zip(own, parabel, strict=True))


def percent(value: float) -> str:
    return f"{value:+.2f} %"


def cell(gained: dict[str, float]) -> str:
    interval = f" ({gained['low']:+.2f} … {gained['high']:+.2f})" if "low" in gained else ""
    return percent(gained["percent"]) + interval


if __name__ == "__main__":
    run_script(main)
