"""The paper's Table 2: data statistics.

    python benchmarks/paper/table2.py DATA [DATA ...] [--json FILE]

n: documents; D: words, separated by white space; L: labels; L̄: labels per training document; n̄: training documents
per label; K: clusters that labelwise chooses; for the paper's data sets these are the paper's numbers.
"""

from __future__ import annotations

import numpy as np
from common import parser_of, read_options, run_script
from output import finish, markdown, print_event

from labelwise.config import IndexConfig
from labelwise.data import describe, load_splits
from labelwise.index import choose_n_clusters

HEADINGS = ("data", "n_trn", "n_tst", "D_trn", "D_tst", "L", "L̄", "n̄", "K")


def main() -> None:
    options = parser_of(__doc__, data="many", encoders=False).parse_args()
    rows, results = [], []
    for path in options.data:
        splits = load_splits(path, on_event=print_event, **vars(read_options()))
        if options.most is not None:
            splits = {name: part.take(np.arange(min(options.most, len(part)))) for name, part in splits.items()}
        stats = describe(splits)
        n_clusters = choose_n_clusters(stats.n_labels, IndexConfig().max_leaf)
        generated = (path / "shop.json").is_file()
        counts = [stats.n_train, stats.n_test, stats.train_words, stats.test_words, stats.n_labels]
        means = [stats.labels_per_document, stats.documents_per_label]
        rows.append(
            [
                path.resolve().name + (" (generated)" if generated else ""),
                *("–" if count is None else f"{count:,}" for count in counts),
                *(f"{mean:.2f}" for mean in means),
                f"{n_clusters:,}",
            ]
        )
        about = {"data": path.resolve().name, "generated": generated, "trial on documents": options.most}
        results.append({**about, "n_clusters": n_clusters, **stats.to_dict()})
    print(markdown(HEADINGS, rows))
    finish(options, {"table": "2", "rows": results})


if __name__ == "__main__":
    run_script(main)
