"""New versions take the old one's place without a request noticing, and broken ones do not."""

import asyncio
import json
import shutil

import pytest

from labelwise import load_model
from labelwise.errors import StorageError, UsageError
from labelwise.models.linear_tree import LinearTree
from labelwise.serve.model_pool import load_version
from tests.serve.conftest import fit

BODY = json.dumps({"text": "a mirror for the bathroom", "top_k": 3}).encode()


@pytest.fixture
def moving(folder, tmp_path):
    """A copy of the model that may be written over."""
    return shutil.copytree(folder, tmp_path / "moving")


def answer_of(folder):
    return [list(pair) for pair in load_model(folder).predict(["a mirror for the bathroom"], top_k=3)[0]]


def told(answer):
    (result,) = answer.json()["results"]
    return [[entry["label"], entry["probability"]] for entry in result["suggestions"]]


def test_a_new_version_replaces_the_old_one_while_requests_arrive(serve, moving, tmp_path):
    client = serve({"m": moving}, wait_ms=1)
    wants = {client.app.models["m"].current.short_id: answer_of(moving)}

    async def ask_on(stop, answers):
        while not stop.is_set():
            answers.append(await client.ask("POST", "/v1/suggest", BODY))
            await asyncio.sleep(0)

    async def exchange():
        stop, answers = asyncio.Event(), []
        asking = [asyncio.ensure_future(ask_on(stop, answers)) for _ in range(8)]
        watching = asyncio.ensure_future(client.app.models.watch(0.05))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(fit, moving, 900)
        for _ in range(200):
            await asyncio.sleep(0.05)
            if client.app.models["m"].current.short_id not in wants:
                break
        await asyncio.sleep(0.2)
        stop.set()
        await asyncio.gather(*asking)
        watching.cancel()
        return answers

    answers = client.runner.run(exchange())
    wants[client.app.models["m"].current.short_id] = answer_of(moving)
    assert len(wants) == 2
    assert {answer.status for answer in answers} == {200}
    assert {answer.json()["version"] for answer in answers} == set(wants)
    for answer in answers:
        assert told(answer) == wants[answer.json()["version"]]
    text = client("GET", "/metrics").body.decode()
    assert 'labelwise_reloads_total{model="m",outcome="loaded"} 1\n' in text
    assert text.count("labelwise_model_info{") == 1


def test_the_version_depends_on_all_files(moving, tmp_path):
    first = load_version(moving)
    assert load_version(shutil.copytree(moving, tmp_path / "copy")).signature == first.signature
    model = load_model(moving)
    model.calibrator_ = None  # the description is the same, the answers are not
    model.save(moving)
    assert (moving / "config.json").read_bytes() == (tmp_path / "copy" / "config.json").read_bytes()
    assert load_version(moving).signature != first.signature


def test_a_broken_version_changes_nothing(serve, moving):
    client = serve({"m": moving})
    served, want = client.app.models["m"], answer_of(moving)
    (moving / "config.json").write_text('{"kind": "linear-tree"')
    assert served.changed()
    for _ in range(2):
        client.runner.run(client.app.models.reload_all())
    assert told(client("POST", "/v1/suggest", BODY)) == want
    assert client.log.getvalue().count("reload_failed") == 1
    (moving / "config.json").unlink()
    assert not served.changed()
    assert told(client("POST", "/v1/suggest", BODY)) == want


def test_an_unchanged_folder_is_not_loaded_again(serve, moving):
    client = serve({"m": moving})
    before = client.app.models["m"].current
    (moving / "config.json").touch()
    client.runner.run(client.app.models.reload_all())
    assert client.app.models["m"].current is before
    assert not client.app.models["m"].changed()


def test_folders_that_cannot_be_served(tmp_path, folder):
    with pytest.raises(StorageError, match="is not a model; give a folder"):
        load_version(tmp_path)
    model = load_model(folder)
    features = LinearTree().fit(model.tfidf_.transform(["a mirror", "a mat"]), [["x"], ["y"]])
    features.save(tmp_path / "features")
    with pytest.raises(UsageError, match="trained on features and cannot read texts"):
        load_version(tmp_path / "features")
