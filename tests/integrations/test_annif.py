"""The backend for Annif, used by Annif's own commands, each in its own process."""

import importlib.util
import json
import os
import pickle
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from labelwise import LinearTree, convert, generate_shop, load_model, load_preset, precision_at_k
from labelwise.metrics import ndcg_at_k
from tests.integrations.test_subjects import CORPUS, VOCABULARY, Document

pytest.importorskip("annif", reason="annif is not installed; make test-annif gives it an environment of its own")
from annif.exception import ConfigurationException, NotInitializedException, NotSupportedException

from labelwise.integrations.annif import LabelwiseBackend

ANNIF = shutil.which("annif", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
pytestmark = [
    pytest.mark.skipif(ANNIF is None, reason="the command annif is not on the path"),
    pytest.mark.filterwarnings("ignore"),  # Annif's own
]
PROJECT = "[{name}]\nname=Shop\nlanguage=en\nbackend=labelwise\nvocab=shop\npreset=parabel\nn_trees=2\nlimit=20\n"
PROJECTS = PROJECT.format(name="grown") + "allow_learn=yes\n" + PROJECT.format(name="shop")


@pytest.fixture(scope="module")
def shop():
    return generate_shop(700, 120)


@pytest.fixture(scope="module")
def place(tmp_path_factory, shop):
    """A folder with a vocabulary, a corpus and a project."""
    folder = tmp_path_factory.mktemp("annif")
    labels = shop["train"].labels
    uris = {name: f"http://example.org/{number}" for number, name in enumerate(labels)}
    (folder / "vocab.tsv").write_text("".join(f"<{uri}>\t{name}\n" for name, uri in uris.items()))
    for split, data in shop.items():
        rows = [" ".join(f"<{uris[data.labels[at]]}>" for at in data.Y[[row]].indices) for row in range(len(data))]
        lines = (f"{text}\t{row}\n" for text, row in zip(data.texts, rows, strict=True))
        (folder / f"{split}.tsv").write_text("".join(lines))
    (folder / "projects.cfg").write_text(PROJECTS)
    return folder


@pytest.fixture(scope="module")
def annif(place):
    def run(*command, text="", config="labelwise.integrations.annif.Config"):
        options = {"cwd": place, "env": environment(place, config), "timeout": 120}
        return subprocess.run([ANNIF, *command], input=text, capture_output=True, text=True, **options)

    return run


def environment(place, config="labelwise.integrations.annif.Config"):
    return {**os.environ, "ANNIF_CONFIG": config, "ANNIF_DATADIR": str(place / "data")}


@pytest.fixture(scope="module")
def trained(annif, place):
    assert annif("load-vocab", "-L", "en", "shop", "vocab.tsv").returncode == 0
    early = annif("suggest", "shop", text="a mirror")
    assert "not trained" in early.stderr or "not found" in early.stderr
    done = annif("train", "shop", "train.tsv")
    assert done.returncode == 0, done.stderr
    return place / "data" / "projects" / "shop" / "labelwise-model"


def test_suggestions_have_the_probabilities_of_the_model(annif, trained, shop):
    text = shop["test"].texts[0]
    told = annif("suggest", "-l", "5", "shop", text=text).stdout
    found = re.findall(r"<(\S+)>\t(.+)\t([0-9.]+)", told)
    model = load_model(trained)
    assert model.calibrator_ is not None
    wanted = model.predict([text], top_k=20)[0][:5]
    assert [float(score) for *_, score in found] == pytest.approx([score for _, score in wanted], abs=1e-4)
    assert {uri for uri, *_ in found} <= {uri for uri, _ in model.predict([text], top_k=20)[0]}
    assert all(uri.rsplit("/")[-1] == str(shop["train"].labels.index(name)) for uri, name, _ in found)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_eval_agrees_with_our_metrics(annif, trained, shop, place, jobs):
    figures = place / f"figures-{jobs}.json"
    done = annif("eval", "-j", jobs, "-M", str(figures), "shop", "test.tsv")
    assert done.returncode == 0, done.stderr
    model, test = load_model(trained), shop["test"]
    model.labels_ = [shop["train"].labels[int(uri.rsplit("/")[-1])] for uri in model.labels_]
    found = model.predict(test.texts, top_k=20)
    known = test.with_labels(model.labels_)
    told = json.loads(figures.read_text())
    assert told["Documents_evaluated"] == len(test)
    for k in (1, 3, 5):
        assert 100 * told[f"Precision@{k}"] == pytest.approx(precision_at_k(known.Y, found.matrix, k=k), abs=1e-3)
    assert 100 * told["NDCG@5"] == pytest.approx(ndcg_at_k(known.Y, found.matrix, k=5), abs=1e-2)
    assert told["Precision@1"] > 0.5


def test_training_from_kept_documents(annif, trained):
    before = load_model(trained)
    done = annif("train", "--cached", "-b", "labelwise.n_trees=1", "shop")
    assert done.returncode == 0, done.stderr
    after = load_model(trained)
    assert (len(before.trees_), len(after.trees_)) == (2, 1)
    assert after.report_.documents == before.report_.documents
    assert not [file for file in trained.parent.iterdir() if file.suffix == ".partial"]


def test_learning_is_training_on_all_documents(annif, trained, shop):
    assert annif("train", "grown", "test.tsv").returncode == 0
    done = annif("learn", "grown", "train.tsv")
    assert done.returncode == 0, done.stderr
    found = load_model(trained.parents[1] / "grown" / "labelwise-model")
    texts, names = [], []
    for data in (shop["test"], shop["train"]):
        texts += data.texts
        names += [[data.labels[at] for at in data.Y[[row]].indices] for row in range(len(data))]
    found.labels_ = [shop["train"].labels[int(uri.rsplit("/")[-1])] for uri in found.labels_]
    wanted = LinearTree(load_preset("parabel", n_trees=2)).fit(texts, names, label_names=found.labels_)
    assert list(found.predict(texts[:50])) == list(wanted.predict(texts[:50]))


def test_the_web_server_suggests(annif, trained, shop, place):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, text = f"http://127.0.0.1:{port}/v1/projects/shop/suggest", shop["test"].texts[0]
    asked = urllib.parse.urlencode({"text": text, "limit": 3}).encode()
    options = {"cwd": place, "env": environment(place), "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([ANNIF, "run", "--port", str(port)], **options)
    try:
        for _ in range(120):
            try:
                answer = json.load(urllib.request.urlopen(url, asked, timeout=30))
                break
            except urllib.error.URLError:  # it is not listening yet
                assert server.poll() is None
                time.sleep(0.5)
    finally:
        server.terminate()
        server.wait(30)
    wanted = load_model(trained).predict([text], top_k=20)[0][:3]
    assert [(one["uri"], pytest.approx(one["score"], abs=1e-6)) for one in answer["results"]] == wanted


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("train", "-b", "labelwise.n_trees=x", "shop", "test.tsv"), "Misconfigured project 'shop': .*whole number"),
        (("train", "-b", "labelwise.presett=plt", "shop", "test.tsv"), "no setting 'presett'; did you mean 'preset'"),
        (("train", "shop", "empty.tsv"), "Not supported project 'shop': cannot train on no documents"),
        (("suggest", "-b", "labelwise.limit=none", "shop"), "Misconfigured project 'shop': limit is 'none'"),
        (("learn", "shop", "test.tsv"), "Not enabled project 'shop'"),
    ],
)
def test_errors_are_errors_of_annif_and_leave_the_model(annif, trained, place, command, said):
    (place / "empty.tsv").write_text("")
    before = (trained / "config.json").read_bytes()
    done = annif(*command, text="a mirror")
    assert done.returncode == 1
    assert re.search(said, done.stderr)
    assert "Traceback" not in done.stderr
    assert (trained / "config.json").read_bytes() == before


def test_a_damaged_model_and_another_analyzer_are_errors(annif, trained, place):
    (place / "projects.cfg").write_text(PROJECTS + "analyzer=simple\n")
    done = annif("suggest", "shop", text="a mirror")
    (place / "projects.cfg").write_text(PROJECTS)
    assert "trained with analyzer=none but the project now says analyzer=simple" in done.stderr
    names = trained / "labels.txt"
    whole = names.read_bytes()
    names.write_bytes(whole[: len(whole) // 2])
    done = annif("suggest", "shop", text="a mirror")
    names.write_bytes(whole)
    assert "Operation failed project 'shop'" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_configuration_annif_does_not_know_the_backend(annif, trained):
    assert annif("suggest", "shop", text="a", config="annif.default_config.Config").returncode != 0


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_hyperopt_prints_settings_and_changes_nothing(annif, trained, place, jobs):
    before = (trained / "config.json").read_bytes()
    results = place / f"trials-{jobs}.tsv"
    done = annif("hyperopt", "-T", "2", "-j", jobs, "-m", "NDCG@5", "-r", str(results), "shop", "test.tsv")
    assert done.returncode == 0, done.stderr
    score, lines = re.search(r"Got best NDCG@5 score ([0-9.]+) with:\n---\n(.*)---", done.stdout, re.DOTALL).groups()
    assert float(score) > 0.5
    found = dict(line.split("=") for line in lines.splitlines())
    assert sorted(found) == ["cost", "max_leaf", "weight_threshold"]
    assert load_preset("parabel", **{name: float(value) for name, value in found.items() if name != "max_leaf"})
    assert len(results.read_text().splitlines()) == 3
    assert (trained / "config.json").read_bytes() == before


def test_a_corpus_that_labelwise_wrote_and_its_vocabulary(annif, place):
    rows = [
        {"text": f"{kind} number {n}", "labels": [f"{kind}s -- history"]} for n in range(40) for kind in ("cat", "dog")
    ]
    (place / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    convert(place / "own.jsonl", place / "own", "annif")
    (place / "projects.cfg").write_text(PROJECTS + PROJECT.format(name="own").replace("vocab=shop", "vocab=own"))
    try:
        assert annif("load-vocab", "-L", "en", "own", "own/subjects.tsv").returncode == 0
        done = annif("train", "own", "own/train.tsv")
        assert done.returncode == 0, done.stderr
        told = annif("suggest", "-l", "1", "own", text="a dog").stdout
    finally:
        (place / "projects.cfg").write_text(PROJECTS)
    assert told.startswith("<urn:labelwise:dogs%20--%20history>\tdogs -- history\t")


# ---------------------------------------------------------------------- the class of the backend


class Words:
    """An analyzer that reverses words."""

    def tokenize_words(self, text):
        return [word[::-1] for word in text.split()]


class Without:
    """An analyzer whose data are missing."""

    def tokenize_words(self, text):
        raise LookupError("Resource punkt_tab not found.")


class Project:
    """The attributes of a project that a backend reads."""

    project_id, vocab_lang, analyzer_spec, analyzer, subjects = "pets", "en", "backwards", Words(), VOCABULARY

    def __init__(self, datadir):
        self.datadir = datadir


def corpus(*documents):
    return type("Corpus", (), {"documents": iter(documents)})


def test_the_analyzer_reads_all_texts_and_a_pickled_backend_has_no_model(tmp_path):
    backend = LabelwiseBackend("labelwise", {"limit": "1"}, Project(tmp_path))
    assert not backend.is_trained
    backend.train(corpus(*CORPUS))
    assert backend.is_trained
    assert "tac" in set(backend._loaded[0].tfidf_.feature_names())
    copied = pickle.loads(pickle.dumps(backend))
    assert copied._loaded is None
    for one in (backend, copied):
        batch = one.suggest(CORPUS[:1])
        assert [found.subject_id for found in batch[0]] == [0]
        assert 0 < next(iter(batch[0])).score <= 1


def test_threads_are_those_of_the_project_and_one_beside_other_processes(tmp_path, monkeypatch):
    backend = LabelwiseBackend("labelwise", {"threads": "3"}, Project(tmp_path))
    backend.train(corpus(*CORPUS), jobs=2)
    assert backend._loaded[0].config.threads == 2
    asked, predict = [], LinearTree.predict

    def recorded(*args, threads=None, **options):
        asked.append(threads)
        return predict(*args, threads=threads, **options)

    monkeypatch.setattr(LinearTree, "predict", recorded)
    backend._loaded = None
    backend.initialize()
    backend.suggest(CORPUS[:1])
    backend.suggest(CORPUS[:1], {"threads": "2"})
    backend.initialize(parallel=True)
    backend.suggest(CORPUS[:1])
    assert asked == [3, 2, 1]


def test_wrong_settings_and_missing_documents_are_errors(tmp_path):
    backend = LabelwiseBackend("labelwise", {}, Project(tmp_path))
    with pytest.raises(ConfigurationException, match="hold_out is 2"):
        backend.train(corpus(*CORPUS), {"hold_out": "2"})
    with pytest.raises(ConfigurationException, match="threads is 0; it must be a whole number of 1 or more"):
        backend.train(corpus(*CORPUS), {"threads": "0"}, jobs=2)
    if importlib.util.find_spec("torch") is None:
        with pytest.raises(ConfigurationException, match=r"need torch, .* run: pip install 'labelwise\[neural\]'"):
            backend.train(corpus(*CORPUS), {"preset": "hybrid"})
    for act in (lambda: backend.train("cached"), lambda: backend.learn(corpus(*CORPUS))):
        with pytest.raises(NotInitializedException, match="train on a corpus first"):
            act()
    with pytest.raises(NotInitializedException, match="train on a corpus first"):
        backend.get_hp_optimizer(corpus(*CORPUS), "NDCG").optimize(1, 1, None)
    with pytest.raises(NotInitializedException, match="train the project first"):
        backend.suggest(CORPUS)
    backend.train(corpus(*CORPUS))
    with pytest.raises(NotSupportedException, match="cannot train on no documents"):
        backend.learn(corpus(Document("a text without subjects")))
    backend.project.analyzer = Without()
    with pytest.raises(ConfigurationException, match="analyzer=backwards lacks data of NLTK"):
        backend.suggest(CORPUS)
