"""The parts of the Annif backend that need no Annif."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import LinearTree
from labelwise.config import HoldoutConfig, LinearTreeConfig, XTransformerConfig
from labelwise.config.presets import load_preset
from labelwise.errors import StorageError, UsageError
from labelwise.integrations.subjects import (
    SubjectTexts,
    limit,
    over_subjects,
    parsed_value,
    project_config,
    subject_numbers,
    suggestion_scores,
    threads,
)
from labelwise.models.registry import new_model


@dataclass
class Subject:
    uri: str
    labels: dict | None


@dataclass
class Document:
    text: str
    subject_set: list = field(default_factory=list)


class Vocabulary(list):
    """An index of subjects like Annif's: subjects without names are deprecated and cannot be found."""

    def by_uri(self, uri, warnings=True):
        return next((number for number, one in enumerate(self) if one.uri == uri and one.labels is not None), None)


VOCABULARY = Vocabulary(
    [Subject("u:cat", {"en": "cat"}), Subject("u:old", None), Subject("u:dog", {"fi": "koira"}), Subject("u:cow", {})]
)
CORPUS = [Document("a cat", [0]), Document("a cat, a dog", [2, 0]), Document("nothing"), Document(" ", [0])]


def test_documents_without_a_text_or_a_subject_are_left_out_and_the_others_are_read_from_a_file(tmp_path):
    documents = SubjectTexts.of(iter(CORPUS), VOCABULARY)
    assert documents == SubjectTexts(["a cat", "a cat, a dog"], [["u:cat"], ["u:dog", "u:cat"]])
    documents = SubjectTexts(["line\nbreak  ö", "b"], documents.uris)
    documents.save(tmp_path / "kept.jsonl")
    assert SubjectTexts.load(tmp_path / "kept.jsonl") == documents
    (tmp_path / "kept.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(StorageError, match="damaged"):
        SubjectTexts.load(tmp_path / "kept.jsonl")


def test_labels_are_uris_described_by_their_names():
    train = SubjectTexts(["x", "y"], [["u:dog", "u:cat"], ["u:gone"]]).dataset(VOCABULARY, "en")
    described = dict(zip(train.labels, train.label_texts, strict=True))
    assert described == {"u:cat": "cat", "u:dog": "u:dog", "u:gone": "u:gone"}
    assert [[train.labels[at] for at in train.Y[[row]].indices] for row in range(2)] in (
        [["u:cat", "u:dog"], ["u:gone"]],
        [["u:dog", "u:cat"], ["u:gone"]],
    )


@pytest.mark.parametrize(
    ("given", "value"),
    [("2", 2), ("0.5", 0.5), ("true", True), ("[1, 2]", [1, 2]), ("hinge", "hinge"), ("1\nb = 2", 1), (3, 3), ("", "")],
)
def test_values_are_read_as_toml(given, value):
    assert parsed_value(given) == value
    assert type(parsed_value(given)) is type(value)


def test_settings_of_a_project():
    section = {"name": "Pets", "backend": "labelwise", "vocab": "pets", "language": "en", "limit": "9"}
    train = SubjectTexts(["a cat"], [["u:cat"]]).dataset(VOCABULARY, "en")
    assert project_config(section, train) == LinearTreeConfig()
    section |= {"preset": "parabel", "n_trees": "2", "ranker.cost": "2", "tfidf.ngram_range": "[1, 2]"}
    config = project_config(section, train, jobs=3)
    assert (config.n_trees, config.ranker.cost, config.tfidf.ngram_range, config.threads) == (2, 2.0, (1, 2), 3)
    config = project_config({"ranker": {"cost": 2, "tolerance": 0.5}, "ranker.tolerance": "2", "threads": "4"}, train)
    assert (config.ranker.cost, config.ranker.tolerance, config.threads) == (2.0, 2.0, 4)
    config = project_config({"preset": "hybrid"}, train)
    assert config == load_preset("hybrid")
    config = project_config({"preset": "hybrid", "hold_out": "0.2"}, train)
    assert isinstance(config, XTransformerConfig)
    assert config.holdout.share == 0.2
    for wrong, said in (
        ({"preset": "parable"}, "no preset 'parable'"),
        ({"presett": "parabel"}, r"there is no setting 'presett'; did you mean 'preset'\?"),
        ({"n_tres": "3"}, "did you mean 'n_trees'"),
        ({"zzzzzz": "3"}, "there are: preset, threads, "),
        ({"n_trees": "many"}, "n_trees is 'many'; it must be a whole number"),
        ({"ranker.cst": "2"}, "no setting 'cst'"),
        ({"anker.cost": "2"}, "no setting 'anker'"),
    ):
        with pytest.raises(UsageError, match=said):
            project_config(wrong, train)


def test_the_hold_out_policy():
    train = SubjectTexts(["a cat", "a dog"], [["u:cat"], ["u:dog"]]).dataset(VOCABULARY, "en")
    assert project_config({}, train).holdout == HoldoutConfig()
    config = project_config({"hold_out": "0", "calibrate": "false"}, train)
    assert config.holdout == HoldoutConfig(share=0.0, calibrate=False)
    for wrong in ("1", "-0.1", "half", "true"):
        with pytest.raises(UsageError, match="hold_out is"):
            project_config({"hold_out": wrong}, train)


def test_limit_and_threads():
    assert (limit({"limit": "7"}), limit({})) == (7, 100)
    assert (threads({}), threads({"threads": "2"})) == (None, 2)
    for wrong in ("0", "2.5", "all", "true"):
        with pytest.raises(UsageError, match="limit is"):
            limit({"limit": wrong})
        with pytest.raises(UsageError, match="threads is"):
            threads({"threads": wrong})


def test_scores_lie_between_0_and_1_and_blank_texts_have_none():
    pairs = [("a white cat", ["u:cat"]), ("a black dog", ["u:dog"]), ("cat and dog", ["u:cat", "u:dog"])] * 8
    train = SubjectTexts(*map(list, zip(*pairs, strict=True))).dataset(VOCABULARY, "en")
    for score_transform in ("l3-hinge", "ranker-only"):
        model = LinearTree(score_transform=score_transform).fit_dataset(train)
        assert isinstance(model, LinearTree)
        assert model.calibrator_ is None
        scores = suggestion_scores(model, ["the dog", "", "the cat"], 1)
        assert np.diff(scores.indptr[:2]) == 1
        assert np.all((scores.data >= 0) & (scores.data <= 1))
        assert scores.toarray()[1].max() == 0
        best = [train.labels[at] for at in scores.toarray()[[0, 2]].argmax(axis=1)]
        assert best == ["u:dog", "u:cat"]


def test_a_project_with_an_encoder(tmp_path):
    pytest.importorskip("transformers", reason="needs the extra neural")
    from tests.features.tiny import write_model

    train = SubjectTexts(["a cat", "a dog", "cat and dog"] * 4, [["u:cat"], ["u:dog"], ["u:cat", "u:dog"]] * 4)
    section = {"preset": "hybrid", "encoder.name": str(write_model(tmp_path / "tiny", "bert")), "matcher.device": "cpu"}
    data = train.dataset(VOCABULARY, "en")
    config = project_config({**section, "encoder.max_length": "8"}, data)
    assert config.encoder.max_length == 8
    model = new_model(config).fit_dataset(data)
    assert model.encoder is not None
    assert suggestion_scores(model, ["the dog"], 2).argmax() == data.labels.index("u:dog")


def test_scores_over_the_vocabulary_as_it_is_now():
    numbers = subject_numbers(["u:dog", "u:old", "u:never", "u:cat"], VOCABULARY)
    assert numbers.tolist() == [2, -1, -1, 0]
    scores = sp.csr_array(np.array([[0.5, 0.9, 0.4, 0.25], [0, 0.1, 0, 0]], np.float32))
    found = over_subjects(scores, numbers, len(VOCABULARY))
    assert found.toarray().tolist() == [[0.25, 0, 0.5, 0], [0, 0, 0, 0]]
    assert found.nnz == 2
