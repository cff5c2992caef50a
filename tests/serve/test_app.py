"""What every route answers, and that errors have one shape."""

import asyncio
import json

import pytest

from labelwise import load_model
from tests.serve.conftest import JSON, Client

TEXTS = ["a mirror for the bathroom", "", "läufer schuhe size 9"]


def pairs(result, number="probability"):
    return [(entry["label"], entry[number]) for entry in result["suggestions"]]


def test_suggestions_are_what_the_model_predicts(client, folder):
    model = load_model(folder)
    for top_k in (1, 4):
        answer = client.suggest(texts=TEXTS, top_k=top_k)
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
        assert [pairs(result) for result in answer.json()["results"]] == list(model.predict(TEXTS, top_k=top_k))
    assert client.suggest(texts=TEXTS, top_k=4.0).json() == answer.json()
    one = client.suggest(text=TEXTS[0]).json()
    assert one["model"] == "shop"
    assert [pairs(result) for result in one["results"]] == list(model.predict(TEXTS[:1], top_k=10))


def test_labels_below_min_probability_are_left_out(client, folder):
    want = list(load_model(folder).predict(TEXTS, top_k=10, min_probability=0.3))
    answer = client.suggest(texts=TEXTS, min_probability=0.3)
    assert [pairs(result) for result in answer.json()["results"]] == want
    assert client.suggest(text="", min_probability=1).json()["results"] == [{"suggestions": []}]


def test_requests_at_the_same_time_get_their_own_answers(serve, folder):
    client, model = serve({"shop": folder}, batch=8, wait_ms=5), load_model(folder)
    asked = [(TEXTS[number % 3], 1 + number % 4) for number in range(40)]

    async def all_at_once():
        bodies = [json.dumps({"text": text, "top_k": top_k}).encode() for text, top_k in asked]
        return await asyncio.gather(*(client.ask("POST", "/v1/suggest", body) for body in bodies))

    for (text, top_k), answer in zip(asked, client.runner.run(all_at_once()), strict=True):
        assert pairs(answer.json()["results"][0]) == model.predict([text], top_k=top_k)[0]


def test_a_model_without_calibration_gives_scores(serve, plain):
    client = serve({"plain": plain})
    want = load_model(plain).predict(TEXTS[:1], top_k=2)[0]
    assert pairs(client.suggest(text=TEXTS[0], top_k=2).json()["results"][0], "score") == want
    answer = client.suggest(text="a", min_probability=0.5)
    assert answer.status == 409
    assert answer.error == (
        "not_calibrated",
        "the scores of plain are not probabilities: it is not calibrated; leave out min_probability.",
    )


def test_several_models(serve, folder, plain):
    client = serve({"first": folder, "second": plain})
    assert client.suggest(text="a").json()["model"] == "first"
    assert client.suggest(text="a", model="second").json()["model"] == "second"
    assert client.suggest(text="a", model="third").error == (
        "unknown_model",
        "there is no model of that name; there are: first, second.",
    )
    assert client("GET", "/v1/model?model=second").json()["calibrated"] is False
    assert client("GET", "/v1/labels?model=nobody").status == 404


@pytest.mark.parametrize(
    ("body", "status", "code", "says"),
    [
        (b"", 400, "invalid_json", "not valid JSON"),
        (b"{", 400, "invalid_json", "not valid JSON"),
        (b"\xff\xfe", 400, "invalid_json", "not valid JSON"),
        (b'{"text": "\\ud800"}', 400, "invalid_json", "hex escape"),
        (b'{"text": "\xc3\x28"}', 400, "invalid_json", "not valid JSON"),
        (b"[" * 100_000, 400, "invalid_json", "recursion"),
        (b"[]", 422, "invalid_request", "the body: "),
        (b"null", 422, "invalid_request", "the body: "),
        (b"{}", 422, "invalid_request", "the body has neither text nor texts; give one text, or a list of texts."),
        (b'{"text": "a", "texts": ["b"]}', 422, "invalid_request", "the body has both text and texts"),
        (b'{"texts": []}', 422, "invalid_request", "texts: list should have at least 1 item"),
        (b'{"texts": ["a", 3]}', 422, "invalid_request", "texts[1]: input should be a valid string."),
        (b'{"text": null}', 422, "invalid_request", "text: input should be a valid string."),
        (b'{"text": "a", "top_k": 0}', 422, "invalid_request", "top_k: input should be greater than or equal to 1."),
        (b'{"text": "a", "top_k": 1001}', 422, "invalid_request", "less than or equal to 1000"),
        (b'{"text": "a", "top_k": 2.5}', 422, "invalid_request", "top_k"),
        (b'{"text": "a", "top_k": true}', 422, "invalid_request", "top_k"),
        (b'{"text": "a", "top_k": 1' + b"0" * 5000 + b"}", 400, "invalid_json", "number"),
        (b'{"text": "a", "min_probability": NaN}', 422, "invalid_request", "finite"),
        (b'{"text": "a", "min_probability": 1e999}', 422, "invalid_request", "finite"),
        (b'{"text": "a", "min_probability": -0.1}', 422, "invalid_request", "greater than or equal to 0"),
        (b'{"text": "a", "explain": "yes"}', 422, "invalid_request", "explain: input should be a valid boolean."),
        (b'{"text": "a", "topk": 3}', 422, "invalid_request", "'topk' is not a field of a request; there are: text,"),
    ],
)
def test_malformed_bodies_get_one_sentence(client, body, status, code, says):
    answer = client("POST", "/v1/suggest", body)
    assert answer.status == status
    assert answer.error[0] == code
    assert says in answer.error[1]


def test_limits(serve, folder):
    client = serve({"shop": folder}, max_body=2000, max_texts=3, max_characters=10)
    answer = client.suggest(text="x" * 3000)
    assert (answer.status, answer.error[0], answer.headers["connection"]) == (413, "too_large", "close")
    told = (*JSON, (b"content-length", b"99999999999999999999999"))
    assert client("POST", "/v1/suggest", b"{}", told).status == 413
    assert client("POST", "/v1/suggest", b'{"text":"' + b"x" * 3000, chunk=500).status == 413
    assert "at most 10 characters" in client.suggest(text="x" * 11).error[1]
    assert "at most 3 items" in client.suggest(texts=["x"] * 4).error[1]
    assert client.suggest(texts=["x" * 10] * 3).status == 200


def test_only_json_is_read(client):
    for headers in ((), ((b"content-type", b"text/plain"),)):
        answer = client("POST", "/v1/suggest", b'{"text": "a"}', headers)
        assert (answer.status, answer.error[0]) == (415, "unsupported_media_type")
    assert client("POST", "/v1/suggest", b'{"text": "a"}', [(b"content-type", b"Application/JSON; x=y")]).status == 200


def test_a_body_that_does_not_arrive(serve, folder):
    client = serve({"shop": folder}, deadline=0.05)

    async def unfinished():
        sent = []

        async def receive():
            await asyncio.sleep(5)

        scope = {"type": "http", "method": "POST", "path": "/v1/suggest", "headers": list(JSON)}
        await client.app(scope, receive, lambda message: asyncio.sleep(0, sent.append(message)))
        return sent

    start, rest = client.runner.run(unfinished())
    assert start["status"] == 408
    assert b"did not arrive within 0.05 seconds" in rest["body"]


def test_labels_are_found(client, folder):
    names = load_model(folder).labels_
    everything = client("GET", "/v1/labels?limit=1000").json()
    assert everything["total"] == len(names)
    assert sorted(everything["labels"]) == sorted(names)
    for query in ("mat", "MAT"):
        found = client("GET", f"/v1/labels?q={query}&limit=1000").json()["labels"]
        assert sorted(found) == sorted(name for name in names if "mat" in name.casefold())
        found = client("GET", f"/v1/labels?q={query}&match=prefix&limit=1000").json()["labels"]
        assert sorted(found) == sorted(name for name in names if name.casefold().startswith("mat"))
    assert client("GET", "/v1/labels?q=no-such-label").json()["labels"] == []


def test_labels_come_page_by_page(client):
    whole = client("GET", "/v1/labels?limit=1000").json()["labels"]
    pages, offset = [], 0
    while offset is not None:
        page = client("GET", f"/v1/labels?limit=70&offset={offset}").json()
        pages += page["labels"]
        offset = page["next_offset"]
    assert pages == whole
    assert client("GET", "/v1/labels?offset=100000").json()["labels"] == []


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("match=meaning&q=a", 400, "the model shop cannot search labels by meaning; use prefix or substring."),
        ("match=magic", 422, "match: input should be 'prefix', 'substring' or 'meaning'."),
        ("offset=-1", 422, "offset: input should be greater than or equal to 0."),
        ("limit=0", 422, "limit: input should be greater than or equal to 1."),
        ("limit=99999999999999999999999999", 422, "limit: "),
        ("limit=x", 422, "limit: input should be a valid integer"),
    ],
)
def test_wrong_searches(client, query, status, says):
    answer = client("GET", f"/v1/labels?{query}")
    assert answer.status == status
    assert says in answer.error[1]


def test_the_description_of_a_model(client, folder):
    told, model = client("GET", "/v1/model").json(), load_model(folder)
    assert (told["kind"], told["n_labels"]) == ("linear-tree", len(model.labels_))
    assert told["card"] == (folder / "README.md").read_text(encoding="utf-8")
    assert told["config"]["n_trees"] == model.config.n_trees
    assert told["limits"]["max_texts"] == 256
    assert told["version"] == client.suggest(text="a").json()["version"]


def test_health_readiness_and_draining(client):
    assert client("GET", "/health").json() == {"status": "alive"}
    assert client("GET", "/ready").json() == {"status": "ready"}
    client.app.draining = True
    answer = client("GET", "/ready")
    assert (answer.status, answer.error[0]) == (503, "draining")
    assert client("GET", "/health").status == 200


def test_unknown_paths_and_methods(client):
    assert client("GET", "/v2").error[0] == "not_found"
    assert client("GET", "/v1/labels/").status == 404
    for method, path in (
        ("GET", "/v1/suggest"),
        ("PUT", "/v1/suggest"),
        ("POST", "/health"),
        ("GET", "/v1/reload"),
        ("BREW", "/v1/model"),
    ):
        answer = client(method, path)
        assert (answer.status, answer.error[0]) == (405, "wrong_method")


def test_metrics_count(client):
    client.suggest(texts=["a", "b"])
    client.suggest(text=3)
    client("GET", "/secret/path")
    text = client("GET", "/metrics").body.decode()
    assert 'labelwise_requests_total{method="POST",path="/v1/suggest",status="200"} 1\n' in text
    assert 'labelwise_requests_total{method="GET",path="other",status="404"} 1\n' in text
    assert 'labelwise_texts_total{model="shop"} 2\n' in text
    assert 'labelwise_refused_total{code="invalid_request"} 1\n' in text
    assert 'labelwise_queue_texts{model="shop"} 0\n' in text
    assert "secret" not in text


def test_the_log_has_no_texts(client):
    client.suggest(text="my secret diary")
    client.suggest(text="my secret diary", top_k="secret")
    client("POST", "/v1/suggest", b'{"text": "my secret')
    client.app.log.flush()
    lines = [json.loads(line) for line in client.log.getvalue().splitlines()]
    assert [line["status"] for line in lines] == [200, 422, 400]
    assert lines[0]["texts"] == 1
    assert "secret" not in client.log.getvalue()


def test_other_origins_need_the_cors_option(serve, folder):
    asking = (*JSON, (b"origin", b"https://example.org"))
    answer = serve({"shop": folder}).suggest(text="a", headers=asking)
    assert "access-control-allow-origin" not in answer.headers
    client = serve({"shop": folder}, cors=["https://example.org"])
    assert client.suggest(text="a", headers=asking).headers["access-control-allow-origin"] == "https://example.org"
    other = client.suggest(text="a", headers=(*JSON, (b"origin", b"https://example.com")))
    assert "access-control-allow-origin" not in other.headers
    ahead = [(b"origin", b"https://example.org"), (b"access-control-request-method", b"POST")]
    assert client("OPTIONS", "/v1/suggest", headers=ahead).status == 200


def test_the_openapi_document_and_its_examples(client):
    document = client("GET", "/openapi.json").json()
    assert set(document["paths"]) == {
        "/v1/suggest", "/v1/labels", "/v1/model", "/v1/reload", "/health", "/ready", "/metrics",
    }  # fmt: skip
    schema = document["components"]["schemas"]["SuggestRequest"]
    assert schema["properties"]["texts"]["maxItems"] == 256
    assert schema["additionalProperties"] is False
    for example in schema["examples"]:
        assert client.suggest(**example).status == 200


def test_the_framework_and_the_handler_give_the_same_answer(client):
    body = b'{"text": "a mirror for the bathroom", "top_k": 2}'
    long = Client(client.app.api, client.runner)("POST", "/v1/suggest", body)
    assert long.json() == client("POST", "/v1/suggest", body).json()


def test_the_page(client):
    answer = client("GET", "/")
    assert answer.headers["content-type"].startswith("text/html")
    assert b"/v1/suggest" in answer.body
    assert b"http" not in answer.body  # nothing from elsewhere


def test_explanations_where_they_cannot_be_imported(client, monkeypatch):
    monkeypatch.setattr("labelwise.serve.suggest.can_explain", lambda: False)
    answer = client.suggest(text="a", explain=True)
    assert answer.status == 501
    assert answer.error[1] == "this server cannot explain its suggestions; leave out explain."


def test_explanations_come_with_the_suggestions(client, monkeypatch):
    class Told:
        def __init__(self, text, number):
            self.told = {"label": number, "text": text}

        def to_dict(self):
            return self.told

    def explain(model, text, label=None, top_k=5, threads=None):
        return [Told(text, label) for label, _ in model.predict([text], top_k=top_k)[0]]

    monkeypatch.setattr("labelwise.serve.suggest.can_explain", lambda: True)
    monkeypatch.setattr("labelwise.serve.model_pool.explainer", lambda: explain)
    results = client.suggest(texts=["a", "b"], explain=True, top_k=2).json()["results"]
    assert [one["explanations"] for one in results] == [
        [{"label": label, "text": text} for label, _ in pairs(one)] for text, one in zip("ab", results, strict=True)
    ]
    least = results[0]["suggestions"][0]["probability"]
    (likely,) = client.suggest(text="a", explain=True, top_k=5, min_probability=least).json()["results"]
    assert [one["label"] for one in likely["explanations"]] == [label for label, _ in pairs(likely)]
    assert len(likely["explanations"]) < 5
    for texts, top_k, explained in ((["a"] * 11, 10, 9), (["a"] * 30, 10, 3), (["a"], 10, 10)):
        results = client.suggest(texts=texts, explain=True, top_k=top_k).json()["results"]
        assert {len(one["explanations"]) for one in results} == {explained}  # a hundred in all
        assert {len(one["suggestions"]) for one in results} == {top_k}


def test_explanations_are_those_of_explain(client):
    pytest.importorskip("labelwise.explanations")
    (result,) = client.suggest(text=TEXTS[0], explain=True, top_k=3).json()["results"]
    told = [(one["label"], pytest.approx(one["probability"], rel=1e-5)) for one in result["explanations"]]
    assert pairs(result) == told


def test_an_internal_error_shows_no_details(client, monkeypatch):
    def fail(*args, **options):
        raise RuntimeError("the text was: my secret diary")

    monkeypatch.setattr(type(client.app.models.find(None).current.model), "predict", fail)
    answer = client.suggest(text="my secret diary")
    assert (answer.status, answer.error[0]) == (500, "internal")
    client.app.log.flush()
    assert '"kind": "RuntimeError"' in client.log.getvalue()
    assert "secret" not in client.log.getvalue()


def test_every_answer_has_the_security_headers(serve, folder):
    client = serve({"shop": folder}, cors=["https://good.example"], max_body=100)
    preflight = ((b"origin", b"https://good.example"), (b"access-control-request-method", b"POST"))
    for method, path, headers, status in (
        ("GET", "/", (), 200),
        ("GET", "/page.js", (), 200),
        ("GET", "/v1/model", (), 200),
        ("GET", "/openapi.json", (), 200),
        ("GET", "/metrics", (), 200),
        ("GET", "/none", (), 404),
        ("PUT", "/v1/suggest", (), 405),
        ("POST", "/v1/suggest", (), 415),
        ("POST", "/v1/reload", (), 403),
        ("OPTIONS", "/v1/suggest", preflight, 200),
        ("OPTIONS", "/v1/suggest", ((b"origin", b"https://evil.example"), preflight[1]), 400),
    ):
        answer = client(method, path, headers=headers)
        assert answer.status == status, path
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == ("no-cache" if path in ("/", "/page.js") else "no-store")
        assert "connection" not in answer.headers
    assert "script-src 'self'" in client("GET", "/").headers["content-security-policy"]
    client.app.draining = True
    assert client.suggest(text="a").headers["connection"] == "close"


def test_a_request_that_the_stop_interrupts_gets_an_answer(serve, folder, monkeypatch):
    client = serve({"shop": folder})

    async def interrupted(headers, receive):
        raise asyncio.CancelledError

    monkeypatch.setattr(client.app.suggest_handler, "handle", interrupted)
    answer = client.suggest(text="a")
    assert (answer.status, answer.error[0]) == (503, "draining")
