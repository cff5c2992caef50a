"""Settings that fit the data and the machine, and what training will roughly take.

`choose` looks at the documents and the machine and picks X-Transformer, the hybrid or the linear default, with reasons;
`estimate` says for any settings how long and how large. Both are arithmetic on a few rough rates, not measurements: the
truth may well lie a factor of two or three away. `train` chooses, trains and saves in one call.
"""

from labelwise.tuning.choice import Choice, choose
from labelwise.tuning.estimate import Estimate, clusters, describe_plan, estimate
from labelwise.tuning.one_call import train
from labelwise.tuning.sizes import EncoderSize, Machine, Sizes, free_memory

__all__ = [
    "Choice",
    "EncoderSize",
    "Estimate",
    "Machine",
    "Sizes",
    "choose",
    "clusters",
    "describe_plan",
    "estimate",
    "free_memory",
    "train",
]
