"""Batches across requests: who goes together, who is refused, who is not harmed by another."""

import asyncio
import threading
import time

import pytest

from labelwise.serve.batching import Batcher
from labelwise.serve.limits import Limits
from labelwise.serve.prometheus import ServerMetrics
from labelwise.serve.request_error import RequestError

PLAIN = (5, False)


class Shouting:
    """A model that answers in capitals, remembers its batches, and can be made to wait or to fail."""

    def __init__(self):
        self.batches = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, texts, kind):
        self.go.wait(5)
        self.batches.append((list(texts), kind))
        if "bad" in texts:
            raise ValueError("bad text")
        return "v1", [text.upper() for text in texts]


@pytest.fixture
def work():
    return Shouting()


@pytest.fixture
def make(work):
    made = []

    def batcher(**limits):
        made.append(Batcher("m", work, Limits(**limits), ServerMetrics()))
        return made[-1]

    yield batcher
    for one in made:
        one.close()


async def gather(batcher, *requests, kind=PLAIN):
    asked = [batcher.answer(texts, kind) for texts in requests]
    return await asyncio.gather(*asked, return_exceptions=True)


def test_requests_of_a_batch_get_their_own_rows(make, work):
    answers = asyncio.run(gather(make(wait_ms=20), ["a"], ["b", "c"], ["d"]))
    assert answers == [("v1", ["A"]), ("v1", ["B", "C"]), ("v1", ["D"])]
    assert work.batches == [(["a", "b", "c", "d"], PLAIN)]


def test_a_full_batch_does_not_wait(make, work):
    start = time.perf_counter()
    asyncio.run(gather(make(wait_ms=60_000, batch=2), ["a"], ["b"]))
    assert time.perf_counter() - start < 10
    assert work.batches == [(["a", "b"], PLAIN)]


def test_a_single_request_waits_no_longer_than_wait_ms(make):
    start = time.perf_counter()
    asyncio.run(gather(make(wait_ms=30), ["a"]))
    assert 0.03 <= time.perf_counter() - start < 2


def test_batches_are_bounded_and_a_large_request_goes_alone(make, work):
    asyncio.run(gather(make(wait_ms=5, batch=3, queue=100), ["a"], ["b"] * 5, ["c"], ["d"], ["e"]))
    sizes = [len(texts) for texts, _ in work.batches]
    assert sum(sizes) == 9
    assert sorted(sizes) in ([1, 3, 5], [3, 1, 5])
    assert ["b"] * 5 in [texts for texts, _ in work.batches]


def test_requests_of_different_kinds_are_predicted_separately(make, work):
    async def mixed():
        batcher = make(wait_ms=10)
        kinds = [(5, False), (9, False), (5, False), (5, True)]
        asked = [batcher.answer([str(at)], kind) for at, kind in enumerate(kinds)]
        return await asyncio.gather(*asked)

    assert [rows for _, rows in asyncio.run(mixed())] == [["0"], ["1"], ["2"], ["3"]]
    assert work.batches == [(["0", "2"], (5, False)), (["1"], (9, False)), (["3"], (5, True))]


def test_a_full_queue_refuses_and_has_room_again(make, work):
    async def flood():
        batcher = make(wait_ms=0, batch=1, queue=3)
        work.go.clear()
        first = asyncio.ensure_future(batcher.answer(["running"], PLAIN))
        await asyncio.sleep(0.05)
        asked = [asyncio.ensure_future(batcher.answer([str(number)], PLAIN)) for number in range(8)]
        await asyncio.sleep(0.05)
        assert batcher.waiting == 3
        work.go.set()
        answers = await asyncio.gather(first, *asked, return_exceptions=True)
        assert batcher.waiting == 0
        return answers, await batcher.answer(["after"], PLAIN)

    answers, after = asyncio.run(flood())
    refused = [answer for answer in answers if isinstance(answer, RequestError)]
    assert len(refused) == 5
    assert answers[1:4] == [("v1", ["0"]), ("v1", ["1"]), ("v1", ["2"])]
    assert (refused[0].status, refused[0].code, refused[0].headers) == (503, "overloaded", {"Retry-After": "1"})
    assert refused[0].message == "the server is busy: 3 texts wait already; try again in a second."
    assert after == ("v1", ["AFTER"])


def test_a_request_past_its_deadline_gets_an_error_and_is_not_predicted(make, work):
    async def late():
        batcher = make(wait_ms=0, batch=1, deadline=0.1)
        work.go.clear()
        asked = [asyncio.ensure_future(batcher.answer([text], PLAIN)) for text in ("slow", "waiting")]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        work.go.set()
        return answers, await batcher.answer(["after"], PLAIN), batcher.waiting

    answers, after, waiting = asyncio.run(late())
    assert [(answer.status, answer.code) for answer in answers] == [(503, "deadline")] * 2
    assert "no answer within 0.1 seconds" in answers[0].message
    assert (after, waiting) == (("v1", ["AFTER"]), 0)
    assert [texts for texts, _ in work.batches] == [["slow"], ["after"]]


def test_a_failure_affects_only_its_own_request(make):
    answers = asyncio.run(gather(make(wait_ms=10), ["a"], ["bad"], ["b"]))
    assert answers[0] == ("v1", ["A"])
    assert answers[2] == ("v1", ["B"])
    assert isinstance(answers[1], ValueError)


def test_metrics_of_batches(make):
    batcher = make(wait_ms=10)
    asyncio.run(gather(batcher, ["a"], ["b", "c"]))
    text = batcher.metrics.text()
    assert 'labelwise_batch_texts_bucket{model="m",le="2"} 0\n' in text
    assert 'labelwise_batch_texts_bucket{model="m",le="4"} 1\n' in text
    assert 'labelwise_batch_texts_sum{model="m"} 3\n' in text
    assert 'labelwise_texts_total{model="m"} 3\n' in text
