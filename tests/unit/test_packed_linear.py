"""Packed weights give what plain ones give, and a translation on several threads is that on one."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from tests.errors import raises_error
from torch import nn

from dragoman.backends.packed_linear import PackedLinear, pack
from dragoman.device import has_onednn, side_by_side
from dragoman.errors import Error
from dragoman.nn.embeddings import OutputProjection, TokenEmbedding

pytestmark = pytest.mark.skipif(not has_onednn(), reason="this build of PyTorch has no oneDNN for this processor")
CPU = torch.device("cpu")


class Small(nn.Module):
    """Two linear layers, one of them without a bias, and an output tied to an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(50, 12, pad_id=0, scaled=True)
        self.body = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 12, bias=False))
        self.output = OutputProjection(50, 12, self.embedding)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.output(self.body(self.embedding(ids)))


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.bfloat16, 5e-2)])
def test_a_packed_model_says_the_same(dtype: torch.dtype, close: float) -> None:
    torch.manual_seed(1)
    model, ids = Small().to(dtype), torch.randint(50, (3, 7))
    expected, names = model(ids), dict(model.named_parameters())
    pack(model)
    layers = [module for module in model.modules() if isinstance(module, PackedLinear)]
    assert [layer.packed for layer in layers] == [None] * 3, "made when it is first needed"
    with torch.inference_mode():
        torch.testing.assert_close(model(ids), expected.detach(), atol=close, rtol=close)
        assert not any(layer.packed is None for layer in layers)
    assert torch.equal(model(ids), expected), "with gradients it computes with the parameters themselves"
    assert dict(model.named_parameters()).keys() == names.keys()
    assert all(parameter is names[name] for name, parameter in model.named_parameters())
    with torch.inference_mode():
        assert torch.equal(copy.deepcopy(model)(ids), model(ids))


def test_bfloat16_is_not_packed_for_a_processor_that_does_not_multiply_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.backends.packed_linear.has_onednn_bf16", lambda: False)
    torch.manual_seed(1)
    model, ids = Small(), torch.randint(50, (3, 7))
    expected = copy.deepcopy(model).to(torch.bfloat16)(ids)
    pack(model)
    model.to(torch.bfloat16)
    with torch.inference_mode():
        assert torch.equal(model(ids), expected)


def test_a_packed_model_that_changes_its_type_is_packed_anew() -> None:
    torch.manual_seed(1)
    model, ids = Small(), torch.randint(50, (3, 7))
    pack(model)
    model.to(torch.bfloat16)
    with torch.inference_mode():
        found = model(ids)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, model(ids).detach(), atol=5e-2, rtol=5e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_is_the_same_whatever_stands_beside_it(dtype: torch.dtype) -> None:
    """To the last bit, from one row on: what the batching promise needs of a product."""
    torch.manual_seed(2)
    for inputs, outputs in ((64, 64), (96, 384), (512, 128), (128, 1201)):
        linear = nn.Linear(inputs, outputs).to(dtype)
        packed, x = PackedLinear(linear.weight, linear.bias), torch.randn(200, inputs).to(dtype)
        with torch.inference_mode():
            together = packed(x)
            assert all(torch.equal(packed(x[:rows]), together[:rows]) for rows in (1, 2, 3, 5, 8, 12, 31, 64, 199))


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 3])
def test_jobs_run_on_one_thread_each_and_come_back_in_order(threads: Any, count: int) -> None:
    threads(count)
    found = side_by_side(lambda job: (job, torch.get_num_threads()), range(20), CPU)
    assert found == [(job, 1) for job in range(20)]
    assert torch.get_num_threads() == count
    assert side_by_side(lambda job: job, [], CPU) == []


def test_a_complaint_of_a_job_reaches_the_caller(threads: Any) -> None:
    threads(2)

    def work(job: int) -> int:
        if job == 3:
            raise Error.BLANK("the third")
        return job

    with raises_error(Error.BLANK):
        side_by_side(work, range(6), CPU)
    assert torch.get_num_threads() == 2
