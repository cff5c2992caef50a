"""Labels by their number of training documents: head, torso and tail."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from labelwise.config.settings import checked_value
from labelwise.errors import UsageError
from labelwise.features.texts import type_and_value
from labelwise.types import Ints

BUCKETS: Mapping[str, int] = MappingProxyType({"head": 101, "torso": 6, "tail": 0})
"""Name of each bucket and the least number of training documents of its labels; labels without any are in the last."""


def check_buckets(buckets: Mapping[str, int]) -> dict[str, int]:
    """Checked buckets, the most frequent labels first."""
    if not isinstance(buckets, Mapping):
        raise UsageError(
            f"buckets is {type_and_value(buckets)}; give least numbers by name: {{'head': 101, 'tail': 0}}"
        )
    least = {str(name): checked_value(int, number, f"the bucket {name!r}") for name, number in buckets.items()}
    ordered = dict(sorted(least.items(), key=lambda bucket: -bucket[1]))
    floors = list(ordered.values())
    if len(set(floors)) < len(floors) or (floors and floors[-1] != 0) or len(floors) > 255:
        raise UsageError(
            f"buckets are {dict(buckets)}; give every bucket its own least number of training documents, "
            "and one bucket 0, so that each label has a bucket: {'head': 101, 'torso': 6, 'tail': 0}"
        )
    return ordered


def assign_buckets(counts: Ints, buckets: Mapping[str, int]) -> Ints:
    """(n_labels,) index of the bucket of each label, by the label's number of training documents."""
    floors = np.array(list(buckets.values()))
    # The first bucket, in descending order of their least numbers, that a label reaches.
    place: Ints = (counts[:, None] < floors[None, :]).sum(axis=1).astype(np.uint8)
    return place


def describe_bucket(name: str, buckets: Mapping[str, int]) -> str:
    """The range of a bucket in words: ``6–100 training documents``."""
    floors = list(buckets.values())
    place = list(buckets).index(name)
    if place == 0:
        return f"{floors[0]} or more training documents"
    ceiling = floors[place - 1] - 1
    if ceiling == floors[place]:
        return f"{ceiling} training documents"
    return f"{floors[place]}–{ceiling} training documents"
