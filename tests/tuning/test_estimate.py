"""Rough estimates: they grow with the work, and warn where memory may not suffice."""

from labelwise.config import LinearTreeConfig
from labelwise.config.presets import load_preset
from labelwise.tuning import Estimate, Machine, describe_plan, estimate
from tests.tuning.examples import GB, LAPTOP, LAWS, MANY, SERVER, SHOP


def test_estimates_grow_with_the_work():
    linear = [estimate(LinearTreeConfig(), data, LAPTOP) for data in (SHOP, LAWS, MANY)]
    assert linear[0].seconds < linear[1].seconds < linear[2].seconds
    assert linear[0].memory < linear[1].memory < linear[2].memory
    assert 10 < linear[2].seconds < 600  # 157 CPU seconds once in docs/results/scaling.md, here twice on two cores
    hybrid, full = load_preset("hybrid"), load_preset("x-transformer")
    assert estimate(hybrid, SHOP, LAPTOP).seconds < estimate(full, SHOP, LAPTOP).seconds
    assert estimate(full, LAWS, SERVER).seconds < estimate(full, LAWS, LAPTOP).seconds
    folds = load_preset("x-transformer", matcher={"negatives_from": "out-of-fold"})
    assert estimate(folds, LAWS, SERVER).seconds > estimate(full, LAWS, SERVER).seconds
    paper = load_preset("eurlex-4k")
    assert estimate(paper, LAWS, SERVER).gpu_memory > 0
    assert estimate(hybrid, LAWS, SERVER).gpu_memory == 0


def test_a_warning_about_too_little_memory():
    poor = Machine(cores=1, memory=GB // 10, gpu="T4", gpu_memory=GB // 10)
    lines = Estimate(seconds=7200.0, memory=2 * GB, gpu_memory=3 * GB).lines(poor)
    assert lines[0].startswith("about 2.0 h and 2.0 GB of memory, 3.0 GB on the GPU: rough estimates")
    assert lines[1:] == [
        "only 0.1 GB of memory are free, which may not suffice",
        "only 0.1 GB are free on the GPU, which may not suffice",
    ]
    assert Estimate(seconds=0.1, memory=0).lines(poor)[0].startswith("about 1 s and")
    assert "about 10 min" in Estimate(seconds=600, memory=0).lines(poor)[0]
    assert "about 1,000 h" in Estimate(seconds=3.6e6, memory=0).lines(poor)[0]


def test_the_plan_of_any_preset():
    assert describe_plan("parabel", load_preset("parabel"), SHOP, SERVER)[0] == (
        "parabel on 16 cores: 5,000 documents, 1,200 labels"
    )
    assert describe_plan("eurlex-4k", load_preset("eurlex-4k"), SHOP, SERVER)[0].startswith("eurlex-4k on H200:")
