"""Writes the tiny models that stand for a format version: `python -m tests.model_formats.make`, once for each version.

A folder `vN` holds saved models of that version and `answers.json`, what each said of `TEXTS` when it was saved. What
is here is never written anew: `test_old_models.py` reads it with the present code.
"""

import json
import os
import tempfile
from pathlib import Path

from labelwise import Dataset, Ensemble, EnsembleConfig, LinearTree, NewLabel, XTransformer, add_labels, keep_documents
from labelwise.config import EncoderConfig, IndexConfig, LinearTreeConfig, MatcherConfig, XTransformerConfig
from labelwise.integrations.onnx_export import export_model
from labelwise.storage import FORMAT_VERSION
from tests.features.tiny import write_model
from tests.match.planted import planted

TEXTS = ["the law of fishing quotas", "northern waters", "a cheap red shoe", "", "quotas law waters northern cheap"]
CLUSTERS = IndexConfig(n_clusters=2)
LINEAR = LinearTreeConfig(index=CLUSTERS, n_trees=2, threads=1)
FINE_TUNING = MatcherConfig(epochs=1.0, batch_size=16, device="cpu", precision="fp32")


def main() -> None:
    """Fit, ask, save."""
    home = Path(__file__).parent / f"v{FORMAT_VERSION}"
    home.mkdir()
    texts, Y = planted(120)
    names = [f"label {number}" for number in range(Y.shape[1])]
    validation = Dataset(Y=planted(80, seed=1)[1], labels=names, texts=planted(80, seed=1)[0])
    with tempfile.TemporaryDirectory() as place:
        write_model(Path(place) / "tiny-bert", "bert")
        os.environ["LABELWISE_ENCODERS"] = place
        encoder = EncoderConfig(name="tiny-bert", max_length=16)
        neural = XTransformerConfig(encoder=encoder, index=CLUSTERS, matcher=FINE_TUNING, threads=1)
        frozen = XTransformerConfig(encoder=encoder, index=CLUSTERS, fine_tune=False, threads=1)
        linear = LinearTree(LINEAR).fit(texts, Y, label_names=names, validation=validation)
        fitted = {
            "linear": linear,
            "grown": add_labels(
                keep_documents(linear, Dataset(Y=Y, labels=names, texts=texts)), [NewLabel("shoe", None, [TEXTS[2]])]
            ),
            "x-transformer": XTransformer(neural).fit(texts, Y, label_names=names, validation=validation),
            "frozen": XTransformer(frozen).fit(texts, Y, label_names=names, validation=validation),
            "ensemble": Ensemble(EnsembleConfig(members=(LINEAR, neural, frozen), threads=1)).fit(
                texts, Y, label_names=names, validation=validation
            ),
        }
    answers = {name: list(model.predict(TEXTS, top_k=3)) for name, model in fitted.items()}
    for name, model in fitted.items():
        model.save(home / name)
    export_model(home / "x-transformer", home / "exported", int8=True, ranker="int8")
    (home / "answers.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
