"""Labels by meaning, with an encoder whose vectors are known by eye; by name, see test_app."""

import numpy as np

from labelwise.models.linear_tree import LinearTree
from labelwise.serve.label_search import LabelSearch
from tests.serve.conftest import JSON

VECTORS = {"cat": [3, 0], "Kitten": [2, 0.5], "oak": [0, 1], "feline": [5, 1], "tree": [-1, 4]}


class Encoder:
    def __init__(self):
        self.calls = []

    def embed(self, texts):
        self.calls.append(list(texts))
        return np.array([VECTORS[text] for text in texts], np.float32)


class Labels:
    """What a search reads of a model."""

    def __init__(self, labels, encoder):
        self.labels_, self.encoder = labels, encoder


def test_the_nearest_come_first_and_labels_are_embedded_once():
    encoder = Encoder()
    search = LabelSearch(Labels(["oak", "cat", "Kitten"], encoder))
    assert search.by_meaning
    # cosines with (5, 1): cat 0.981, Kitten 0.999, oak 0.196
    assert search.find("feline", "meaning") == ["Kitten", "cat", "oak"]
    assert search.find("tree", "meaning") == ["oak", "Kitten", "cat"]
    assert encoder.calls == [["cat", "Kitten", "oak"], ["feline"], ["tree"]]
    assert search.find("k", "prefix") == ["Kitten"]
    assert search.find("K", "substring") == ["Kitten", "oak"]


def test_a_model_without_an_encoder_has_no_search_by_meaning():
    assert not LabelSearch(Labels(["oak", "cat"], None)).by_meaning


def test_over_http(serve, folder, monkeypatch):
    monkeypatch.setattr(LinearTree, "encoder", Lengths())
    client = serve({"shop": folder})
    answer = client("GET", "/v1/labels?q=mat&match=meaning&limit=5", headers=JSON).json()
    names = client("GET", "/v1/labels?limit=1000").json()["labels"]
    assert answer["total"] == len(names)
    assert answer["labels"] == sorted(names, key=lambda name: (abs(len(name) - 3), names.index(name)))[:5]
    assert client("GET", "/v1/model").json()["searchable_by_meaning"] is True
    ways = client("GET", "/openapi.json").json()["paths"]["/v1/labels"]["get"]["parameters"][1]["schema"]["enum"]
    assert ways == ["prefix", "substring", "meaning"]


class Lengths:
    """Texts are alike if they are of the same length: vectors on a quarter of a circle."""

    def embed(self, texts):
        angles = np.array([len(text) for text in texts]) / 100
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
