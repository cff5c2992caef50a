"""The model card, whole, in its short form and its long one."""

import platform
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import __version__
from labelwise.config.presets import load_preset
from labelwise.models.card import render_card
from labelwise.models.linear_tree import LinearTree
from labelwise.models.training_report import HoldoutResult, TrainingReport, Tuning

TEXTS = ["a cat", "a dog", "cat and dog", "an oak", "an elm", "oak and elm"]
LABELS = [["animal", "cat"], ["animal", "dog"], ["animal", "cat", "dog"], ["plant"], ["plant"], ["plant"]]

VERSIONS = ", ".join(
    [f"labelwise {__version__}", f"Python {platform.python_version()}"]
    + [f"{name} {version(name)}" for name in ("numpy", "scipy", "numba")]
)
USAGE = """\
## How to use it

```sh
labelwise predict MODEL texts.txt --top-k 5
```

```python
import labelwise
model = labelwise.load_model("MODEL")
print(model.predict(["a text"], top_k=5)[0])
```
"""
SHORT = f"""\
# A tree of linear models over 4 labels

A labelwise {__version__} model that reads texts and answers with labels and their scores (it is not calibrated: no \
probabilities).

|  |  |
| --- | --- |
| trained on | 6 documents, 1.7 labels each |
| fingerprint of the data | f1a3b96bc69fec60 |
| labels | 4 in 2 clusters |
| features | 7, tf-idf of the texts |

## How good it is

Not measured. `labelwise evaluate MODEL DATA` does it.

{USAGE}
## Settings that differ from the default

None.

## Versions

{VERSIONS}
"""
LONG = f"""\
# A tree of linear models over 4 labels

A labelwise {__version__} model that reads texts and answers with labels and their scores (it is not calibrated: no \
probabilities).

|  |  |
| --- | --- |
| trained on | 6 documents of pets\\|trees, 1.7 labels each |
| fingerprint of the data | f1a3b96bc69fec60 |
| labels | 4 in 2 clusters |
| features | 7, tf-idf of the texts |
| trees | 2, averaged |
| preset | mine.toml |
| training took | 1.2 s, 2.3 CPU s |
| trained | 2026-11-16 |

## How good it is

Measured on 90 documents, the validation split, which the model was not trained on. Percent.

| P@1 | nDCG@5 |
| --- | --- |
| 81.12 | 62.50 |

A document without true labels counts 0, labels never seen in training count as missed, and where fewer than k labels \
are predicted the missing ones are wrong.

Calibration error: 1.50 % (expected calibration error over 15 bins of equal size, the 20 best labels of a document; \
each half of these documents judged by the curve of the other half).

Settings were chosen by nDCG@5 on the same documents, the best of 8 trials: so the figures are slightly too high.

{USAGE}
## Settings that differ from the default

| setting | here | default |
| --- | --- | --- |
| ranker.cost | 2.0 | 1.0 |
| n_trees | 2 | 1 |

## Versions

{VERSIONS}
"""


def fitted(**overrides):
    return LinearTree(load_preset("default", threads=1, **overrides)).fit(TEXTS, LABELS)


def test_the_short_card(tmp_path):
    model = fitted()
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "README.md").read_text(encoding="utf-8") == render_card(model) == SHORT


def test_the_long_card(tmp_path):
    model = fitted(n_trees=2, ranker={"cost": 2.0})
    model.report_ = replace(
        model.report_,
        data="pets|trees",
        preset="mine.toml",
        seconds=1.23,
        cpu_seconds=2.34,
        trained="2026-11-16",
        tuning=Tuning(trials=8, metric="nDCG@5"),
        validation=HoldoutResult(
            kind="split", documents=90, scores={"P@1": 81.123, "nDCG@5": 62.5}, calibration_error=1.5
        ),
    )
    assert render_card(model) == LONG
    model.save(tmp_path / "model")
    again = LinearTree.load(tmp_path / "model")
    assert again.report_ == model.report_
    assert render_card(again) == LONG


def test_a_model_of_features_and_one_without_a_report():
    X, Y = sp.csr_array(np.eye(4, dtype=np.float32)), sp.csr_array(np.eye(4, dtype=np.float32))
    model = LinearTree().fit(X, Y)
    card = render_card(model)
    assert "reads rows of features" in card
    assert "labelwise predict MODEL DATA" in card
    assert "model.predict(X, top_k=5)" in card
    model.report_ = TrainingReport()  # saved before there were reports
    assert "trained on" not in render_card(model)


@pytest.mark.parametrize("kind", ["split", "tenth", "part"])
def test_all_kinds_of_validation_are_told(kind):
    model = fitted()
    model.report_.validation = HoldoutResult(kind=kind, documents=60, scores={"P@1": 1.0})
    card = render_card(model)
    assert "Measured on 60 documents, " in card
    assert "Calibration error" not in card
