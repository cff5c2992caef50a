"""Machines that are made up, and data sets in numbers."""

from labelwise.tuning import Machine, Sizes

GB = 10**9
LAPTOP = Machine(cores=2, memory=16 * GB)
SERVER = Machine(cores=16, memory=128 * GB, gpu="H200", gpu_memory=139 * GB)
SMALL_GPU = Machine(cores=8, memory=32 * GB, gpu="T4", gpu_memory=5 * GB)


def sizes(n_docs, n_labels, characters, pairs=5):
    words = characters / 6
    return Sizes(
        n_docs=n_docs,
        n_labels=n_labels,
        n_pairs=pairs * n_docs,
        characters=n_docs * characters,
        lengths=(characters / 4 + 2,) * 10,
        n_values=n_docs * min(words, 2.2 * words**0.74),
    )


SHOP = sizes(5_000, 1_200, 90)
LAWS = sizes(45_000, 4_300, 3_600)
MANY = sizes(2_000_000, 1_000_000, 90)
