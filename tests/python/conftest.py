import os

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("tokenyard", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("tokenyard")


def has_card():
    return torch.cuda.is_available()


@pytest.fixture(scope="session", params=["cpu", "cuda"])
def device(request):
    """Tests run on each; TOKENYARD_TEST_DEVICES="cuda" leaves the others out."""
    wanted = os.environ.get("TOKENYARD_TEST_DEVICES", "cpu,cuda").split(",")
    if request.param not in wanted:
        pytest.skip(f"TOKENYARD_TEST_DEVICES is {','.join(wanted)}")
    if request.param == "cuda" and not has_card():
        pytest.skip("no CUDA card")
    return request.param


@pytest.fixture
def cuda(device):
    """For what the CPU has not: streams and graphs."""
    if device != "cuda":
        pytest.skip("no streams on the CPU")
    return torch.device("cuda")
