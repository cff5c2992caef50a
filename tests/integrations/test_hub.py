"""The hub without a network: folders, and a hub that lies in a folder."""

import json
import shutil
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import labelwise
from labelwise import Ensemble, LinearTree, XTransformer
from labelwise.config import HoldoutConfig
from labelwise.errors import MissingExtraError, StorageError, UsageError
from labelwise.integrations.hub import card_head
from labelwise.models.base import Model
from labelwise.models.training_report import HoldoutResult
from tests.features.tiny import write_model

TEXTS = ["a cat", "a dog", "cat and dog", "an oak", "an elm", "oak and elm"]
LABELS = [["animal", "cat"], ["animal", "dog"], ["animal", "cat", "dog"], ["plant"], ["plant"], ["plant"]]


@pytest.fixture
def model():
    made = LinearTree().fit(TEXTS, LABELS)
    made.report_.data = 'A "shop": small'
    made.report_.validation = HoldoutResult(kind="split", documents=6, scores={"P@1": 91.5, "nDCG@5": 80.25})
    return made


class FakeHub:
    """What is used of huggingface_hub, with repositories as folders."""

    def __init__(self, root):
        self.root, self.calls = root, []
        hub = self

        class HfApi:
            def __init__(self, token=None, **about):
                hub.calls.append(("api", token))

            def create_repo(self, repo, *, private, exist_ok):
                hub.calls.append(("create", repo, private, exist_ok))
                (hub.root / repo).mkdir(parents=True, exist_ok=exist_ok)
                return RepoUrl(f"https://hub.example/{repo}")

            def upload_folder(self, *, repo_id, folder_path, revision, commit_message, delete_patterns):
                hub.calls.append(("upload", repo_id, commit_message))
                place = hub.root / repo_id
                for file in [f for f in place.rglob("*") if f.is_file()]:
                    if any(fnmatch(file.relative_to(place).as_posix(), pattern) for pattern in delete_patterns):
                        file.unlink()
                shutil.copytree(folder_path, place, dirs_exist_ok=True)

        class RepoUrl(str):
            @property
            def repo_id(self):
                return self.removeprefix("https://hub.example/")

        self.HfApi = HfApi

    def snapshot_download(self, repo, *, allow_patterns, revision, **options):
        self.calls.append(("download", repo, revision))
        if not (self.root / repo).is_dir():
            raise FileNotFoundError(f"Repository Not Found for {repo}.\nMore lines.")
        found = self.root / "cache" / repo
        for file in [f for f in (self.root / repo).rglob("*") if f.is_file()]:
            name = file.relative_to(self.root / repo)
            if any(fnmatch(name.as_posix(), pattern) for pattern in allow_patterns):
                (found / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, found / name)
        return str(found)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    pytest.importorskip("httpx")
    made = FakeHub(tmp_path / "hub")
    monkeypatch.setattr("labelwise.integrations.hub._hub", lambda: made)
    return made


def test_a_folder_is_that_of_save_but_for_the_head(model, tmp_path):
    model.save(tmp_path / "saved")
    model.save_pretrained(tmp_path / "hub")
    names = {file.relative_to(tmp_path / "saved") for file in (tmp_path / "saved").rglob("*")}
    assert names == {file.relative_to(tmp_path / "hub") for file in (tmp_path / "hub").rglob("*")}
    for name in names - {Path("README.md")}:
        file = tmp_path / "saved" / name
        assert file.is_dir() or file.read_bytes() == (tmp_path / "hub" / name).read_bytes()
    card = (tmp_path / "hub" / "README.md").read_text()
    assert card == card_head(model) + (tmp_path / "saved" / "README.md").read_text()
    for again in (Model.from_pretrained(tmp_path / "hub"), LinearTree.from_pretrained(tmp_path / "saved")):
        assert list(again.predict(TEXTS)) == list(model.predict(TEXTS))


def test_the_head_is_yaml_that_the_hub_reads(model):
    cards = pytest.importorskip("huggingface_hub")
    card = cards.ModelCard(card_head(model, "user/shop-model") + "# Title\n")
    assert card.data.library_name == "labelwise"
    assert card.data.pipeline_tag == "text-classification"
    assert card.data.tags == ["labelwise", "multi-label", "extreme-multi-label-classification", "linear-tree"]
    assert card.data.model_name == "shop-model"
    found = [(r.metric_type, r.metric_name, r.metric_value, r.dataset_name) for r in card.data.eval_results]
    assert found == [("p-at-1", "P@1", 91.5, 'A "shop": small'), ("ndcg-at-5", "nDCG@5", 80.25, 'A "shop": small')]
    assert card.text.strip() == "# Title"


def test_the_head_of_a_model_on_features_without_figures():
    made = LinearTree().fit(sp.csr_array(np.eye(4, dtype=np.float32)), [["a"], ["b"], ["a"], ["b"]])
    assert card_head(made) == (
        "---\nlibrary_name: labelwise\ntags:\n- labelwise\n- multi-label\n- extreme-multi-label-classification\n"
        "- linear-tree\n---\n\n"
    )


def test_there_and_back(model, hub):
    heard = []
    url = model.push_to_hub("user/m", private=True, token="t", on_event=lambda name, values: heard.append(values))
    assert url == "https://hub.example/user/m"
    assert hub.calls[:2] == [("api", "t"), ("create", "user/m", True, True)]
    assert (heard[-1]["done"], heard[-1]["finished"]) == (3, True)
    (hub.root / "user/m/code.pkl").write_bytes(b"never fetched")
    again = labelwise.from_pretrained("user/m", revision="main")
    assert hub.calls[-1] == ("download", "user/m", "main")
    assert list(again.predict(TEXTS)) == list(model.predict(TEXTS))
    assert not (hub.root / "cache/user/m/code.pkl").exists()
    assert 'labelwise.from_pretrained("user/m")' in (hub.root / "user/m/README.md").read_text()


def test_a_new_model_replaces_all_of_the_old_one(model, hub):
    config = labelwise.load_preset("default", n_trees=2)
    LinearTree(config).fit(TEXTS, LABELS).push_to_hub("user/m")
    (hub.root / "user/m/LICENSE").write_text("mine")
    model.push_to_hub("user/m")
    assert sorted(file.name for file in (hub.root / "user/m").iterdir() if any(file.rglob("*.json"))) == [
        "seen-documents",
        "tfidf",
        "tree-0",
    ]
    assert (hub.root / "user/m/LICENSE").is_file()


def test_ensembles_travel_too(model, hub):
    both = Ensemble.of([LinearTree().fit(TEXTS, LABELS), LinearTree().fit(TEXTS, LABELS)])
    both.push_to_hub("user/both")
    assert list(Ensemble.from_pretrained("user/both").predict(TEXTS)) == list(both.predict(TEXTS))


def test_where_an_encoder_lay_stays_untold(tmp_path):
    pytest.importorskip("transformers", reason="needs the extra neural")
    encoder = str(write_model(tmp_path / "home-of-ann" / "tiny", "bert"))
    config = labelwise.load_preset("hybrid", encoder={"name": encoder, "max_length": 8}, matcher={"device": "cpu"})
    made = XTransformer(replace(config, holdout=HoldoutConfig(share=0.0))).fit(TEXTS, LABELS)
    made.save_pretrained(tmp_path / "out")
    for file in (tmp_path / "out").rglob("*"):
        assert file.is_dir() or b"home-of-ann" not in file.read_bytes()
    again = XTransformer.from_pretrained(tmp_path / "out")
    assert again.config.encoder.name == "tiny"
    assert list(again.predict(TEXTS)) == list(made.predict(TEXTS))


def test_an_exported_encoder_travels_too(hub, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    pytest.importorskip("onnxscript", reason="needs the extra onnx")
    from labelwise.integrations.onnx_export import export_model

    encoder = {"name": str(write_model(tmp_path / "tiny", "bert")), "max_length": 8}
    config = labelwise.load_preset("hybrid", encoder=encoder, matcher={"device": "cpu"}, hold_out=0.0)
    XTransformer(config).fit(TEXTS, LABELS).save(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "small")
    model = labelwise.load_model(tmp_path / "small")
    model.push_to_hub("user/small")
    assert list(labelwise.from_pretrained("user/small").predict(TEXTS)) == list(model.predict(TEXTS))
    assert list((hub.root / "cache").rglob("*.onnx"))


def test_what_cannot_be(model, hub, tmp_path):
    model.save(tmp_path / "m")
    with pytest.raises(StorageError, match="holds a saved linear-tree, not a model of class XTransformer; use"):
        XTransformer.from_pretrained(tmp_path / "m")
    with pytest.raises(
        StorageError, match=r"^user/no cannot be fetched from the hub: Repository Not Found for user/no; ch"
    ):
        labelwise.from_pretrained("user/no")
    for name in ("./nothing", "/no/such/folder", "a b"):
        with pytest.raises(StorageError, match="is neither a folder nor a name"):
            labelwise.from_pretrained(name)
    with pytest.raises(UsageError, match="is not a name of a repository"):
        model.push_to_hub("user/m/x")
    calls = len(hub.calls)
    with pytest.raises(UsageError, match="not fitted yet"):
        LinearTree().push_to_hub("user/unfitted")
    assert len(hub.calls) == calls
    about = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps({**about, "version": 99}))
    with pytest.raises(StorageError, match="format version 99"):
        labelwise.from_pretrained(tmp_path / "m")


def test_without_the_extra(model, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"models on the hub need huggingface_hub.*'labelwise\[hub\]'"):
        model.push_to_hub("user/m")
    with pytest.raises(MissingExtraError, match=r"labelwise\[hub\]"):
        labelwise.from_pretrained("user/m")
    model.save_pretrained(tmp_path / "m")
    assert Model.from_pretrained(tmp_path / "m").labels_ == model.labels_
