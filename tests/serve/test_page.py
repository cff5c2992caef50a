"""The page's files: how they are served, and that they load nothing from elsewhere."""

import re
from importlib.resources import files
from pathlib import PurePosixPath

import pytest

pytest.importorskip("fastapi")

from labelwise import load_model
from labelwise.serve.keys import make_key
from labelwise.serve.page import FILES

STATIC = files("labelwise.serve").joinpath("static")


def source(name):
    return STATIC.joinpath(name).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES)
def test_files_are_served_with_their_types_and_a_strict_policy(client, path):
    name, _ = FILES[path]
    answer = client("GET", path, headers=())
    assert (answer.status, answer.body.decode()) == (200, source(name))
    kind = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}[PurePosixPath(name).suffix]
    assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["x-content-type-options"] == "nosniff"
    rules = dict(rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_browsers_keep_the_files_and_ask_whether_they_are_new(client):
    first = client("GET", "/page.js", headers=())
    assert first.headers["cache-control"] == "no-cache"
    tag = first.headers["etag"]
    assert re.fullmatch('"[0-9a-f]{16}"', tag)
    for known in (tag, f'"other", W/{tag}'):
        again = client("GET", "/page.js", headers=[(b"if-none-match", known.encode())])
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert client("GET", "/page.js", headers=[(b"if-none-match", b'"0123456789abcdef"')]).status == 200
    head = client("HEAD", "/page.css", headers=())
    assert head.status == 200
    assert head.headers["content-length"] == str(len(source("page.css").encode()))


def test_the_page_needs_no_key(serve, folder, tmp_path):
    make_key(tmp_path / "keys", name="someone")
    client = serve({"shop": folder}, keys=tmp_path / "keys")
    assert {client("GET", path, headers=()).status for path in FILES} == {200}
    assert client("GET", "/v1/model", headers=()).status == 401


def test_nothing_else_is_served(client):
    for path in ("/static/page.js", "/page.py", "/../page.js", "/page.js/", "/index.html"):
        assert client("GET", path, headers=()).status == 404
    assert client("POST", "/page.js").status == 405
    assert not set(FILES) & set(client("GET", "/openapi.json").json()["paths"])


def test_every_file_is_served_and_every_address_leads_to_one():
    names = {name for name, _ in FILES.values()}
    assert {entry.name for entry in STATIC.iterdir()} == names
    named = {found for name in names for found in re.findall(r'(?:src=|href=|from )"(?:\./)?([\w.]+)', source(name))}
    assert named >= {"page.css", "page.js", "ask.js", "why.js", "routes.html", "routes.js"}
    assert {f"/{found}" for found in named - {"data", "."}} <= {*FILES, "/openapi.json"}


def test_texts_to_try_are_those_given_or_names_of_labels(serve, folder):
    told = serve({"shop": folder})("GET", "/v1/model").json()
    assert len(told["examples"]) == 3
    assert set(told["examples"]) <= set(load_model(folder).labels_)
    assert serve({"shop": folder}, examples=["a red mirror"])("GET", "/v1/model").json()["examples"] == ["a red mirror"]


def test_nothing_is_loaded_from_elsewhere_and_data_never_becomes_markup():
    for name, _ in FILES.values():
        text = source(name)
        assert not re.search(r"https?:|//[a-z]|@import", text.replace("// ", "")), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text), name
    page = source("index.html")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)", page)


def test_the_page_is_small():
    assert sum(len(source(name).encode()) for name, _ in FILES.values()) < 50_000
