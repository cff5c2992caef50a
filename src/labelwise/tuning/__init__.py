"""Settings that fit the data and the machine, and rough estimates of time and memory.

`choose` looks at the documents and the machine and chooses X-Transformer, the hybrid or the linear default, with
reasons. `estimate` gives the time and the memory of a training with any settings. Both compute with a few rough rates
and measure nothing, so an estimate can be wrong by a factor of two or three.
`train` chooses, trains and saves in one call, and `cross_validate` trains and evaluates on each fold of the data.
"""

from labelwise.tuning.choice import Choice, choose
from labelwise.tuning.cross_validation import CrossValidation, cross_validate
from labelwise.tuning.estimate import Estimate, clusters, describe_plan, estimate
from labelwise.tuning.one_call import train
from labelwise.tuning.sizes import EncoderSize, Machine, Sizes, free_memory

__all__ = [
    "Choice",
    "CrossValidation",
    "EncoderSize",
    "Estimate",
    "Machine",
    "Sizes",
    "choose",
    "clusters",
    "cross_validate",
    "describe_plan",
    "estimate",
    "free_memory",
    "train",
]
