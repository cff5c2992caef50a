"""Models in forked and spawned processes, in threads, and in a server that is loaded before the fork."""

import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labelwise import LinearTree, generate_shop, load_model

ROOT = Path(__file__).parents[1]
TEXTS = ["a mirror for the bathroom", "cheap red shoe", "", "oak picture frame"] * 12
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A linear model, one with a torch encoder, and the same exported."""
    folder = tmp_path_factory.mktemp("processes")
    train = generate_shop(300, 100)["train"]
    LinearTree().fit(train.texts, train.Y, label_names=train.labels).save(folder / "linear")
    found = {"linear": folder / "linear"}
    if pytest.importorskip("torch", reason="needs torch"):
        from labelwise import XTransformer, load_preset
        from tests.features.tiny import write_model

        encoder = {"name": str(write_model(folder / "tiny", "bert")), "max_length": 16}
        XTransformer(load_preset("hybrid", encoder=encoder)).fit(train.texts, train.Y, label_names=train.labels).save(
            folder / "torch"
        )
        found["torch"] = folder / "torch"
    return found


@pytest.fixture(scope="module")
def exported(folders):
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    pytest.importorskip("onnxscript", reason="needs the extra onnx")
    from labelwise.integrations.onnx_export import export_model

    export_model(folders["torch"], folders["torch"].parent / "onnx")
    return folders["torch"].parent / "onnx"


@pytest.fixture(params=["linear", "torch", "onnx"])
def folder(request, folders):
    return request.getfixturevalue("exported") if request.param == "onnx" else folders[request.param]


def in_a_process(code, *arguments):
    """Run code in a process of its own, since forks of this one would inherit its threads. It must not hang."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", f"from tests.test_processes import *\n{code}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def forked(work):
    """The exit code of a child that does the work within 30 seconds."""
    child = os.fork()
    if not child:
        signal.alarm(30)
        try:
            work()
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def rows(model):
    return [[(label, round(score, 5)) for label, score in row] for row in model.predict(TEXTS, top_k=3)]


def predict_and_fork(folder):
    model = load_model(folder)
    want = rows(model)

    def work():
        found = rows(model)
        assert found == want
        assert rows(load_model(folder)) == found  # loaded after the fork, in the thread that forked
        with ThreadPoolExecutor(2) as pool:
            assert all(part == found for part in pool.map(lambda _: rows(model), range(4)))
        assert forked(lambda: rows(model)) == 0  # a child of the child

    sys.stdout.write(f"{forked(work)} {forked(work)} {rows(model) == want}")


def test_predict_after_a_fork(folder):
    assert in_a_process("predict_and_fork(sys.argv[1])", folder) == ["0", "0", "True"]


def fork_while_threads_predict(folder):
    """Forks while two threads predict, and right after threads have ended, whose native threads still clean up."""
    model = load_model(folder)
    want = rows(model)
    ended = []
    for _ in range(4):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: rows(model), range(2)))
        ended.append(forked(lambda: rows(model)))
    over = threading.Event()

    def predict_on():
        while not over.is_set():
            assert rows(model) == want

    with ThreadPoolExecutor(2) as pool:
        busy = [pool.submit(predict_on) for _ in range(2)]
        ended += [forked(lambda: rows(model)) for _ in range(4)]
        over.set()
        assert [each.result() for each in busy] == [None, None]
    sys.stdout.write(f"{sum(ended)}")


def test_forks_while_threads_predict(folder):
    assert in_a_process("fork_while_threads_predict(sys.argv[1])", folder) == ["0"]


def preload(folder):
    """What gunicorn --preload does: the application is made, workers are forked, each answers."""
    from labelwise.serve.app import Application, ServerConfig
    from tests.serve.conftest import Client

    application = Application(ServerConfig(folders={"model": Path(folder)}))

    def work():
        with asyncio.Runner() as runner:
            answer = Client(application, runner).suggest(texts=TEXTS, top_k=2)
        assert answer.status == 200
        assert len(json.loads(answer.body)["results"]) == len(TEXTS)
        application.models.close()

    sys.stdout.write(f"{forked(work)} {forked(work)}")


def test_a_server_that_was_loaded_before_the_fork(folder):
    pytest.importorskip("fastapi")
    assert in_a_process("preload(sys.argv[1])", folder) == ["0", "0"]


def spawned(folder):
    return rows(load_model(folder))


def test_spawned_processes(folders):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(spawned, (folders["linear"],)) == rows(load_model(folders["linear"]))


def test_threads(folder):
    model = load_model(folder)
    want = rows(model)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == want for found in pool.map(lambda _: rows(model), range(16)))
