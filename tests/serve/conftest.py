"""A server in this process, without a network: requests are put to the ASGI application itself."""

import asyncio
import io
import json
from dataclasses import dataclass

import pytest

from labelwise import LinearTree, generate_shop

pytest.importorskip("fastapi")

from labelwise.serve.app import Application, ServerConfig
from labelwise.serve.limits import Limits
from labelwise.serve.logs import JsonLog

JSON = ((b"content-type", b"application/json"),)


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """Code and sentence; nothing else may be in it."""
        (inner,) = self.json().values()
        assert list(self.json()) == ["error"]
        assert sorted(inner) == ["code", "message"]
        assert inner["message"].endswith(".")
        assert "\n" not in inner["message"]
        return inner["code"], inner["message"]


class Client:
    """Asks an application."""

    def __init__(self, app, runner):
        self.app, self.runner = app, runner

    def __call__(self, method, target, body=b"", headers=JSON, **options):
        return self.runner.run(self.ask(method, target, body, headers, **options))

    def suggest(self, headers=JSON, **fields):
        return self("POST", "/v1/suggest", json.dumps(fields).encode(), headers)

    async def ask(self, method, target, body=b"", headers=JSON, chunk=1 << 16):
        path, _, query = target.partition("?")
        parts = [body[at : at + chunk] for at in range(0, len(body), chunk)] or [b""]
        messages = [
            {"type": "http.request", "body": part, "more_body": number < len(parts) - 1}
            for number, part in enumerate(parts)
        ]
        sent = []

        async def receive():
            if not messages:
                await asyncio.sleep(3600)
            return messages.pop(0)

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": list(headers),
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        await self.app(scope, receive, send)
        start, rest = sent[0], sent[1:]
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(message.get("body", b"") for message in rest))


def fit(folder, n_products=600, *, calibrated=True):
    train, test = generate_shop(n_products, 200).values()
    model = LinearTree(calibrate=calibrated)
    model.fit(train.texts, train.Y, label_names=train.labels, validation=test if calibrated else None)
    model.save(folder)
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("serve") / "shop")


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """A model without calibration."""
    return fit(tmp_path_factory.mktemp("serve") / "plain", calibrated=False)


@pytest.fixture(scope="session")
def runner():
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def serve(runner):
    """Makes a client of an application with settings of its own."""
    made = []

    def make(folders, **settings):
        limits = {name: settings.pop(name) for name in list(settings) if name in Limits.__dataclass_fields__}
        log = io.StringIO()
        app = Application(ServerConfig(folders=folders, limits=Limits(**limits), log=JsonLog(log), **settings))
        made.append(app)
        client = Client(app, runner)
        client.log = log
        return client

    yield make
    for app in made:
        app.models.close()


@pytest.fixture
def client(serve, folder):
    return serve({"shop": folder}, wait_ms=0)
