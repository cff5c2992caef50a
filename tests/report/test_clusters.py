"""The tree as the page shows it, against counts made by hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.config import TfidfConfig
from labelwise.features.tfidf import Tfidf
from labelwise.index import Tree
from labelwise.report import clusters
from labelwise.report.clusters import tree_drawing

# Root, two nodes, three clusters, five labels: ((cat dog)(fish)) and ((oak elm)).
TREE = Tree((np.array([0, 0]), np.array([0, 0, 1]), np.array([0, 0, 1, 2, 2])))
LABELS = ["cat", "dog", "fish", "oak", "elm"]
Y = sp.csr_array(
    np.array([[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 1]])
)
TEXTS = ["purr bark pet", "bark pet", "bark swim pet", "acorn leaf", "bole leaf", "acorn bole leaf"]


def test_counts_words_and_labels():
    tfidf = Tfidf(TfidfConfig()).fit(TEXTS)
    f1 = np.array([100.0, 50.0, np.nan, np.nan, np.nan])
    picture = tree_drawing(TREE, LABELS, Y=Y, X=tfidf.transform(TEXTS), tfidf=tfidf, f1=f1)
    nodes = picture.nodes
    assert [node["p"] for node in nodes] == [-1, 0, 0, 1, 1, 2]
    assert [node["n"] for node in nodes] == [5, 3, 2, 2, 1, 2]
    assert [node["d"] for node in nodes] == [6, 3, 3, 3, 1, 3]  # a document counts once in a node
    assert [node["f"] for node in nodes] == [75.0, 75.0, None, 75.0, None, None]
    assert nodes[0]["t"] == ["dog", "oak", "elm", "cat", "fish"]  # by documents, then by column
    assert set(nodes[1]["w"][:2]) == {"bark", "pet"}
    assert "leaf" in nodes[2]["w"]
    assert nodes[4]["w"][0] == "swim"  # what tells it from its sibling, not what both share
    assert nodes[3]["l"] == [["dog", 3, 50.0], ["cat", 1, 100.0]]
    assert nodes[5]["l"] == [["oak", 2, None], ["elm", 2, None]]
    assert "l" not in nodes[1]
    assert picture.remarks == []


def test_without_data_there_are_labels_only():
    nodes = tree_drawing(TREE, LABELS).nodes
    assert {node["d"] for node in nodes} == {None}
    assert all(node["w"] == [] for node in nodes)
    assert nodes[3]["l"] == [["cat", None, None], ["dog", None, None]]


def test_no_clusters_at_all():
    (root,) = tree_drawing(Tree((np.zeros(5, np.int32),)), LABELS, Y=Y).nodes
    assert (root["p"], root["n"], root["d"]) == (-1, 5, 6)
    assert [label[0] for label in root["l"]] == ["dog", "oak", "elm", "cat", "fish"]


@pytest.mark.parametrize("most", [2, 3, 4])
def test_remarks_name_what_is_omitted(monkeypatch, most):
    monkeypatch.setattr(clusters, "MAX_NODES", most)
    picture = tree_drawing(TREE, LABELS, Y=Y)
    nodes = picture.nodes
    assert len(nodes) == most
    assert picture.remarks
    if most == 2:  # of two equal nodes the larger one
        assert nodes[0]["more"] == 1
        assert nodes[1]["n"] == 3
        assert "Of 2 nodes at depth 1 the 1 with the most documents are shown; 1 are omitted." in picture.remarks
    if most == 3:  # a level that is left out hangs its labels on the level above
        assert [label[0] for label in nodes[1]["l"]] == ["dog", "cat", "fish"]
        assert "1 deeper levels of the tree are omitted." in picture.remarks


def test_long_clusters_list_their_most_frequent_labels(monkeypatch):
    monkeypatch.setattr(clusters, "MAX_LABELS", 30)
    n = 40
    tree = Tree((np.zeros(2, np.int32), np.repeat([0, 1], [30, 10])))
    counts = np.arange(n)
    many = sp.csr_array((np.arange(n)[:, None] < counts[None, :]).astype(float))
    picture = tree_drawing(tree, [f"label {i}" for i in range(n)], Y=many)
    first, second = picture.nodes[1], picture.nodes[2]
    assert (len(first["l"]), first["rest"], len(second["l"]), second["rest"]) == (20, 10, 10, 0)
    assert first["l"][0] == ["label 29", 29, None]
    assert "only the 20 most frequent labels are listed; 10 labels are omitted" in picture.remarks[0]
