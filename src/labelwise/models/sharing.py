"""Models that were made apart but hold the same parts are given one copy of each, so that a text is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from labelwise.features.tfidf import Tfidf
from labelwise.models.base import Model
from labelwise.storage.fingerprint import fingerprint


def share_parts(models: Sequence[Model]) -> None:
    """Equal vocabularies, tokenizers and pretrained encoders become one object; what models answer stays the same."""
    _share(models, "tfidf_", _vocabulary)
    matchers = [model.matcher for model in models if model.matcher is not None]
    _share([matcher for matcher in matchers if matcher.reads_pretrained], "encoder_", _weights)
    _share([matcher.encoder_ for matcher in matchers], "tokenizer", _rules)


def _share(holders: Iterable[Any], name: str, identity: Callable[[Any], str]) -> None:
    holders = [holder for holder in holders if getattr(holder, name) is not None]
    if len({id(getattr(holder, name)) for holder in holders}) < 2:
        return
    known: dict[int, str] = {}
    first: dict[str, Any] = {}
    for holder in holders:
        part = getattr(holder, name)
        if id(part) not in known:
            known[id(part)] = identity(part)
        setattr(holder, name, first.setdefault(known[id(part)], part))


def _vocabulary(tfidf: Tfidf) -> str:
    words = tfidf.vocabulary_
    return fingerprint(
        {"config": tfidf.settings_, "words": [words.letters, words.offsets], "idf": np.asarray(tfidf.idf_)}
    )


def _weights(encoder: Any) -> str:
    about = [encoder.config.max_length, encoder.pooling, _rules(encoder.tokenizer)]
    return fingerprint({"state": encoder.state(), "about": about})


def _rules(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:  # one of the few that are written in Python
        return str(id(tokenizer))
    backend.no_truncation()  # set anew for every batch
    backend.no_padding()
    return fingerprint([backend.to_str(), tokenizer.truncation_side])
