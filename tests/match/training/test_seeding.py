"""Seeds of training: the numbers are torch's own for that seed, and the state outside is unchanged."""

import pytest
import torch

from labelwise.match.training.seeding import seeded

CPU = torch.device("cpu")


def test_the_numbers_inside_are_those_of_the_seed_and_those_outside_go_on():
    torch.manual_seed(5)
    wanted_outside = torch.rand(4)
    torch.manual_seed(3)
    wanted_inside = torch.rand(4)
    torch.manual_seed(5)
    first = torch.rand(2)
    with seeded(3, CPU):
        inside = torch.rand(4)
    assert torch.equal(inside, wanted_inside)
    assert torch.equal(torch.cat((first, torch.rand(2))), wanted_outside)


def test_the_state_is_restored_after_an_error_and_after_another_seed_inside():
    state = torch.get_rng_state()

    def fail():
        torch.manual_seed(9)
        torch.rand(3)
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"), seeded(3, CPU):
        fail()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.gpu
def test_a_gpu_has_its_own_numbers():
    device = torch.device("cuda")
    torch.cuda.manual_seed(3)
    wanted = torch.rand(4, device=device)
    torch.cuda.manual_seed(5)
    state = torch.cuda.get_rng_state(device)
    with seeded(3, device):
        assert torch.equal(torch.rand(4, device=device), wanted)
    assert torch.equal(torch.cuda.get_rng_state(device), state)
