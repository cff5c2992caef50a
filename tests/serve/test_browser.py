"""The page in a real Chromium: typing, threshold, reasons, search, keys, errors, a slow server."""

import io
import re
import shutil
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

import uvicorn
from playwright import sync_api as api

from labelwise import load_model
from labelwise.explanations import explain
from labelwise.serve.app import Application, ServerConfig
from labelwise.serve.keys import make_key
from labelwise.serve.limits import Limits
from labelwise.serve.logs import JsonLog

expect = api.expect
TEXT = "😀 a red mirror for the bathroom <b>3</b> piece set, mirror"
SUGGEST = "**/v1/suggest"


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        names = ("chromium", "chromium-browser", "google-chrome")
        path = own if Path(own).exists() else next(filter(None, map(shutil.which, names)), None)
        if path is None:
            pytest.skip("there is no Chromium; run: playwright install chromium")
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def start():
    """Starts servers on free ports of this machine."""
    running = []

    def make(folders, **settings):
        app = Application(ServerConfig(folders=folders, log=JsonLog(io.StringIO()), watch=0, **settings))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on"))
        thread = threading.Thread(target=server.run)
        thread.start()
        running.append((server, thread))
        while not server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"

    yield make
    for server, _ in running:
        server.should_exit = True
    for _, thread in running:
        thread.join(10)


@pytest.fixture(scope="module")
def address(start, folder, plain):
    return start({"shop": folder, "plain": plain}, limits=Limits(wait_ms=0, max_characters=2_000))


@pytest.fixture
def visit(browser):
    """Opens pages; none of them may fail inside, break its policy or ask another server."""
    contexts, faults = [], []

    def note(message):
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            faults.append(message.text)

    def make(address, *, ready=True, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8_000)
        page.on("console", note)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: request.url.startswith((address, "data:")) or faults.append(request.url))
        page.goto(address)
        if ready:
            expect(page.locator("#about")).to_contain_text("labels")
        return page

    yield make
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def page(visit, address):
    return visit(address)


def suggest(page, text=TEXT):
    page.fill("#text", text)
    page.press("#text", "Control+Enter")


def shown(page):
    return page.locator("#labels > li:visible .name").all_inner_texts()


def test_typing(page, folder):
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type(TEXT)
    expect(page.locator("#count")).to_have_text(f"{len(TEXT)} of at most 2,000 characters")
    page.keyboard.press("Control+Enter")
    want = load_model(folder).predict([TEXT], top_k=10)[0]
    expect(page.locator("#labels > li")).to_have_count(10)
    assert shown(page) == [label for label, _ in want]
    assert page.locator(".value").all_inner_texts() == [f"{100 * value:.1f} %" for _, value in want]
    widths = page.locator(".fill").evaluate_all("all => all.map(e => e.offsetWidth / e.parentElement.offsetWidth)")
    assert widths == pytest.approx([value for _, value in want], abs=0.01)
    page.select_option("#most", "5")
    page.click("#go")
    expect(page.locator("#labels > li")).to_have_count(5)
    page.fill("#text", "something else")
    expect(page.locator("#summary")).to_contain_text("the text as it was before you changed it")


def test_an_example_and_its_command(visit, start, folder):
    page = visit(start({"shop": folder}, examples=["it's a red mirror", "a play mat"]))
    expect(page.locator("#title")).to_have_text("shop")
    expect(page.locator("#about")).to_contain_text("of held-out texts (P@1)")
    page.click(".examples button >> nth=0")
    expect(page.locator("#labels > li")).to_have_count(10)
    assert page.input_value("#text") == "it's a red mirror"
    page.click("#command summary")
    expect(page.locator("#curl")).to_contain_text(
        """-d '{"text":"it'\\''s a red mirror","top_k":10}' http://127.0.0.1"""
    )
    page.click("#copy")
    expect(page.locator("#copied")).not_to_be_empty()


def test_all_routes(visit, start, folder):
    page = visit(start({"shop": folder}))
    page.click("text=All routes")
    expect(page.locator("#routes h2").first).to_be_visible()
    names = page.locator("#routes h2").all_inner_texts()
    assert {"POST /v1/suggest", "GET /v1/model", "GET /v1/labels", "POST /v1/reload"} <= set(names)
    first = page.locator("#routes section").first
    expect(first).to_contain_text("Largest number of labels for each text.")
    expect(first).to_contain_text("at least 1, at most 1000, default 10")


def test_threshold(page, folder):
    suggest(page)
    expect(page.locator("#labels > li")).to_have_count(10)
    page.focus("#threshold")
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#least")).to_have_text("30 %")
    want = [label for label, _ in load_model(folder).predict([TEXT], top_k=10, min_probability=0.3)[0]]
    assert 0 < len(want) < 10
    assert shown(page) == want
    expect(page.locator("#summary")).to_contain_text(f"{len(want)} of 10 labels at 30 % or more")
    page.keyboard.press("End")
    expect(page.locator("#summary")).to_contain_text("No label reaches 100 %; the best has")
    page.keyboard.press("Home")
    assert len(shown(page)) == 10


def test_reasons_by_keyboard(page, folder):
    suggest(page)
    page.locator(".label").nth(0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".why")).to_be_visible()
    told = explain(load_model(folder), TEXT, top_k=2)[1]
    expect(page.locator("[aria-expanded=true] .name")).to_have_text(told.label)
    spans = sorted((span, word.contribution) for word in told.words for span in word.spans)
    marks = page.locator(".marked mark")
    assert marks.all_inner_texts() == [TEXT[first:last] for (first, last), _ in spans]
    assert [mark.get_attribute("class").split()[0] for mark in marks.all()] == [
        "against" if v < 0 else "for" for _, v in spans
    ]
    expect(page.locator(".marked")).to_have_text(TEXT)
    values = [float(cell.replace("−", "-")) for cell in page.locator(".why .number").all_inner_texts()]
    assert sum(values[:-1]) == pytest.approx(values[-1], abs=0.001 * len(values))
    assert values[-1] == pytest.approx(told.own_score, abs=0.001)
    expect(page.locator(".path")).to_be_hidden()  # details are folded
    page.click("summary:has-text('Path through')")
    steps = page.locator(".path b").all_inner_texts()
    assert steps == ["all labels", f"cluster {told.paths[0].steps[0].node}", told.label]
    page.keyboard.press("Escape")
    expect(page.locator(".why")).to_be_hidden()
    expect(page.locator(".label").nth(1)).to_be_focused()


def test_words_of_an_encoder_documents_and_members(page):
    text, label = "𝒳 new york city\n<img src=x>", "<b>New</b> York"
    word = {"term": "new york", "contribution": 1.0, "spans": [[2, 10]]}
    told = {
        "label": label, "score": 2.5, "probability": 0.9, "listed": True, "own_score": 2.5, "bias": 0.0,
        "words": [word], "others": 0.25, "paths": [], "combine": "a mean", "notes": ["Half of it was read"],
        "neural": {"share": 1.25, "base": 0.5, "others": 0.0, "error": 0.0, "method": "gradients",
                   "words": [{"term": "york", "contribution": -3.0, "spans": [[6, 10]]}]},
        "neighbours": [{"text": "<i>The city</i>", "id": "d7", "similarity": 0.875}],
    }  # fmt: skip
    step = {"kind": "label", "node": 3, "score": 1.0, "factor": None, "n_labels": 1, "among": []}
    path = {"steps": [step], "score": 1.0, "weight": 0.5, "listed": False}
    inner = {**told, "neural": None, "neighbours": [], "members": [], "paths": [path, path]}
    member = {"name": "parabel", "weight": 0.5, "value": 0.8, "contribution": 0.4, "explanation": inner}
    result = {"suggestions": [{"label": label, "probability": 0.9}], "explanations": [{**told, "members": [member]}]}
    answer = {"model": "shop", "version": "1", "results": [result]}
    page.route(SUGGEST, lambda route: route.fulfill(json=answer))
    suggest(page, text)
    page.click(".label")
    assert page.locator(".marked mark").all_inner_texts() == ["new ", "york"]
    assert [mark.get_attribute("title") for mark in page.locator(".marked mark").all()] == [
        "adds +1.000",
        "adds −2.000",
    ]
    expect(page.locator(".why > details > table").first).to_contain_text("By gradients")
    expect(page.locator(".alike")).to_have_text("<i>The city</i>alike 0.88 · d7")
    page.click("summary:has-text('parabel')")
    expect(page.locator(".why")).to_contain_text("Tree 2: score 1.000, counts 50 %, where the search does not come")
    expect(page.locator(".why > p").last).to_have_text("Half of it was read")
    assert page.locator("main img, main i, main .name b").count() == 0


def test_another_model_without_probabilities(page, plain):
    suggest(page)
    expect(page.locator(".value").first).to_contain_text("%")
    page.select_option("#model", "plain")
    want = load_model(plain).predict([TEXT], top_k=10)[0]
    expect(page.locator(".value").first).to_have_text(f"{want[0][1]:.3f}")
    assert shown(page) == [label for label, _ in want]
    expect(page.locator("#threshold")).to_be_hidden()
    expect(page.locator("#about")).to_contain_text("scores, not probabilities")


def test_search(page, folder):
    names = sorted(load_model(folder).labels_, key=str.casefold)
    page.fill("#q", "MIR")
    want = [name for name in names if "mir" in name.casefold()]
    expect(page.locator("#search-note")).to_have_text(f"{len(want)} labels")
    assert page.locator("#matches li").all_inner_texts() == want
    page.select_option("#match", "prefix")
    want = [name for name in names if name.casefold().startswith("mir")]
    expect(page.locator("#matches li")).to_have_count(len(want))
    page.select_option("#match", "substring")
    page.fill("#q", "e")
    expect(page.locator("#matches li")).to_have_count(50)
    page.click("#further")
    expect(page.locator("#matches li")).to_have_count(min(100, sum("e" in name.casefold() for name in names)))
    page.fill("#q", "zzzz")
    expect(page.locator("#search-note")).to_have_text("No such label.")
    assert page.locator("#match option:enabled").count() == 2  # this model has no encoder


def test_keys(visit, start, folder, tmp_path):
    key = make_key(tmp_path / "keys", name="reader")
    page = visit(start({"shop": folder}, keys=tmp_path / "keys"), ready=False)
    expect(page.locator("#key")).to_be_focused()
    expect(page.locator("#key-why")).to_contain_text("An API key is needed.")
    page.keyboard.type("schlüssel")
    page.keyboard.press("Enter")
    expect(page.locator("#key-why")).to_contain_text("only plain letters")
    page.fill("#key", "wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#key-why")).to_contain_text("This API key is not known.")
    page.fill("#key", key)
    page.keyboard.press("Enter")
    expect(page.locator("#about")).to_contain_text("200 labels")
    expect(page.locator("#key-form")).to_be_hidden()
    page.reload()
    suggest(page)
    expect(page.locator("#labels > li")).to_have_count(10)


def test_the_server_is_gone_and_comes_back(page):
    page.route(SUGGEST, lambda route: route.abort())
    suggest(page)
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    assert page.input_value("#text") == TEXT
    page.unroute(SUGGEST)
    page.click("#again")
    expect(page.locator("#labels > li")).to_have_count(10)
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_busy_server_is_asked_again(page):
    busy = {"error": {"code": "overloaded", "message": "the queue is full; come back."}}
    asked = []

    def refuse_once(route):
        asked.append(route)
        if len(asked) == 1:
            route.fulfill(status=503, headers={"Retry-After": "1"}, json=busy)
        else:
            route.continue_()

    page.route(SUGGEST, refuse_once)
    suggest(page)
    expect(page.locator("#waiting")).to_contain_text("The queue is full; come back. Trying again in 1 s.")
    expect(page.locator("#labels > li")).to_have_count(10)
    expect(page.locator("#waiting")).to_be_hidden()
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (503, '{"error": {"code": "draining", "message": "about to stop."}}', "About to stop."),
        (502, "<html>Bad gateway</html>", "The server answered with status 502"),
        (422, '{"error": {"code": "cannot_answer", "message": "that is odd."}}', "That is odd."),
    ],
)
def test_errors_are_shown_as_sentences(page, status, body, words):
    page.route(SUGGEST, lambda route: route.fulfill(status=status, body=body))
    suggest(page)
    expect(page.get_by_role("alert")).to_contain_text(words)
    assert page.locator("#again").is_visible() == (status >= 500)


def test_texts_that_are_too_long(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.click("#go")
    expect(page.get_by_role("alert")).to_have_text(re.compile("Type or paste a text first"))
    suggest(page, "😀" * 2_001)
    expect(page.get_by_role("alert")).to_contain_text("has 2,001 characters, and this server takes at most 2,000")
    assert asked == []
    suggest(page, "😀" * 2_000)
    expect(page.locator("#labels > li")).to_have_count(10)


def test_a_missing_explanation_is_reported_in_its_place(page):
    suggest(page)
    error = {"error": {"code": "no_explanations", "message": "this server cannot explain."}}
    page.route(SUGGEST, lambda route: route.fulfill(status=501, json=error))
    page.click(".label >> nth=0")
    expect(page.locator(".panel .problem")).to_contain_text("This server cannot explain.")
    page.unroute(SUGGEST)
    page.click(".panel .problem button")
    expect(page.locator(".why")).to_be_visible()


def test_a_slow_server(page):
    held = []

    def hold(route):
        held.append(route)

    page.route(SUGGEST, hold)
    page.clock.install(time=0)
    page.clock.pause_at(1_000)
    waiting = page.locator("#waiting")
    with page.expect_request(SUGGEST):
        suggest(page)
    page.clock.run_for(399)
    assert waiting.is_hidden()
    page.clock.run_for(1)
    assert page.inner_text("#waiting-note") == "The server reads the text …"
    page.clock.run_for(3_000)
    assert page.inner_text("#waiting-note") == "The server reads the text, for 3 s now …"
    page.clock.resume()
    page.click("#cancel")
    expect(waiting).to_be_hidden()
    expect(page.locator("#text")).to_be_focused()
    expect(page.get_by_role("alert")).to_be_hidden()
    # Of two requests the newer one counts, whichever is answered first.
    suggest(page, "wall mirror")
    expect(waiting).to_be_visible()
    page.unroute(SUGGEST)
    suggest(page, "running shoes")
    expect(page.locator("#labels > li")).to_have_count(10)
    expect(waiting).to_be_hidden()
    assert len(held) == 2
    page.route(SUGGEST, hold)
    page.click(".label >> nth=0")
    expect(page.locator(".panel .waiting")).to_contain_text("The server explains …")
    page.click(".panel .waiting button")
    expect(page.locator(".label").first).to_have_attribute("aria-expanded", "false")


@pytest.mark.parametrize("width", [360, 1200])
def test_phones_and_both_schemes(visit, address, width):
    grounds = set()
    for scheme in ("light", "dark"):
        page = visit(address, viewport={"width": width, "height": 800}, color_scheme=scheme)
        suggest(page, "mirror " + "x" * 300)
        expect(page.locator(".label").first).to_be_in_viewport(ratio=1)
        page.click(".label >> nth=0")
        expect(page.locator(".why")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        small = "all => all.filter(e => e.offsetHeight && e.offsetHeight < 40).map(e => e.id || e.className)"
        assert page.locator("button, select, textarea, input").evaluate_all(small) == []
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.route(SUGGEST, lambda route: route.abort())
        page.set_viewport_size({"width": width, "height": 500})
        page.press("#text", "Control+Enter")
        expect(page.locator("#again")).to_be_in_viewport(ratio=1)
    assert len(grounds) == 2
