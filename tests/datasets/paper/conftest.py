"""A server with the stand-in."""

import pytest

from labelwise.datasets.paper import download
from tests.datasets.paper.served import members, packed, serving


@pytest.fixture(scope="session")
def archive():
    return packed(members())


@pytest.fixture
def server(archive, monkeypatch):
    monkeypatch.setattr(download, "PAUSE", 0.0)
    with serving(archive) as what:
        yield what
