"""An exported model over HTTP, by a process that has neither torch nor transformers."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")

from labelwise import load_model
from tests.serve.test_server import BLOCKED, ask, wait_for


def test_an_exported_model_is_served_without_torch(exported, shop, tmp_path):
    log, texts = tmp_path / "log.jsonl", shop["test"].texts[:3]
    command = [sys.executable, "-c", BLOCKED, "serve", str(exported / "ensemble"), "--port", "0", "--watch", "0"]
    with log.open("w") as out:
        process = subprocess.Popen(command, stderr=out)
    try:
        port = wait_for(lambda: [json.loads(line) for line in log.read_text().splitlines()], "listening")["port"]
        status, told = ask(port, texts=texts, top_k=4, explain=True)
        assert status == 200
        here = load_model(exported / "ensemble").predict(texts, top_k=4)
        for found, wanted in zip(told["results"], here, strict=True):
            assert [one["label"] for one in found["suggestions"]] == [name for name, _ in wanted]
            assert len(found["explanations"]) == 4
    finally:
        process.kill()
        process.wait()
