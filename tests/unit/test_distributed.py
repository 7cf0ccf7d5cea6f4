"""Several ranks on this machine: the fixed tree of sums, agreement, errors that travel. They are real processes."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.errors import raises_error

from dragoman.config import parse
from dragoman.errors import Error
from dragoman.training.config import TrainingConfig, check_division
from dragoman.training.distributed import Ranks
from dragoman.training.summation import Sums, tree_sum

PLANNED = 8


def leaf(number: int) -> Sums:
    """Gradients of a micro-batch: of three parameters, one of which takes no part in some."""
    draw = torch.Generator().manual_seed(number)
    gradients: list[torch.Tensor | None] = [torch.randn(5, 7, generator=draw), torch.randn(11, generator=draw) * -0.0]
    gradients.append(torch.randn(3, generator=draw) if number % 3 else None)
    return Sums(gradients, torch.randn((), generator=draw), number + 1, 2 * number)


def told(sums: Sums) -> dict[str, Any]:
    """All of it, bit by bit."""
    bits = [None if one is None else one.contiguous().view(torch.int32).tolist() for one in sums.gradients]
    return {"bits": bits, "loss": sums.loss.view(torch.int32).item(), "tokens": [sums.tokens, sums.processed]}


RANK = """
import json, sys
import torch
sys.path.insert(0, sys.argv[2])
from test_distributed import PLANNED, leaf, told
from dragoman.errors import DragomanError, Error, SaidElsewhere
from dragoman.training.distributed import joined
from dragoman.training.summation import tree_sum

parameters = [torch.zeros(5, 7), torch.zeros(11), torch.zeros(3)]
found = {}
with joined() as ranks:
    for count in range(1, PLANNED + 1):
        mine = ranks.local_micro_batches(PLANNED, count)
        found[count] = told(ranks.all_reduce(tree_sum(map(leaf, mine)), parameters, PLANNED, count))
    # Negative controls: every world-th micro-batch, and the mean of the ranks' means.
    strided = tree_sum(leaf(number) for number in range(ranks.rank, PLANNED, ranks.world))
    found["strided"] = told(ranks.all_reduce(strided, parameters, PLANNED, PLANNED))
    own = tree_sum(map(leaf, ranks.local_micro_batches(PLANNED, PLANNED)))
    own.gradients = [one if one is None else one / own.tokens / ranks.world for one in own.gradients]
    found["means"] = told(ranks.all_reduce(own, parameters, PLANNED, PLANNED))
    found["any"] = [ranks.any(ranks.rank == 1), ranks.any(False)]
    found["numbers"] = ranks.broadcast_numbers(lambda: [3, 4], 2)
    found["told"] = ranks.broadcast(lambda: {"a": [1.5, None]})
    found["first"] = [ranks.on_rank_zero(lambda: ranks.rank), ranks.rank]
    found["gathered"] = [ranks.all_gather(str(ranks.rank * call)) for call in (1, 2, 3)]

    def refused():
        raise Error.NO_SPACE("the disk is full")

    try:
        ranks.on_rank_zero(refused)
    except DragomanError as error:
        found["error"] = [type(error).__name__, str(error)]
    try:
        ranks.require_alike(f"same: 1\\nother: {ranks.rank // 2}", "corpus")
    except DragomanError as error:
        found["alike"] = [type(error).__name__, str(error).replace(" on ", " ").split(" ", 3)[-1]]
    ranks.require_alike("same", "corpus")
    open(f"{sys.argv[1]}/{ranks.rank}.json", "w").write(json.dumps(found))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.system)])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of some ranks has found."""
    folder, world = tmp_path_factory.mktemp("ranks"), request.param
    port = str(free_port())
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(folder), str(Path(__file__).parent)],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(world),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
            },
        )
        for rank in range(world)
    ]
    assert [rank.wait(300) for rank in ranks] == [0] * world
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)]


@pytest.fixture
def alone() -> dict[int, dict[str, Any]]:
    sums = {count: tree_sum(map(leaf, range(count))) for count in range(1, PLANNED + 1)}
    return {count: told(one) for count, one in sums.items() if one is not None}


def test_the_sum_has_the_same_bits_however_many_ranks_add(
    found: list[dict[str, Any]], alone: dict[int, dict[str, Any]]
) -> None:
    for rank in found:
        for count, expected in alone.items():
            assert rank[str(count)] == expected, count


def test_another_order_and_a_mean_of_means_have_others(
    found: list[dict[str, Any]], alone: dict[int, dict[str, Any]]
) -> None:
    """The test above can fail."""
    for rank in found:
        assert rank["strided"]["bits"] != alone[PLANNED]["bits"]
        assert rank["strided"]["tokens"] == alone[PLANNED]["tokens"]
        mean = torch.tensor(rank["means"]["bits"][0], dtype=torch.int32).view(torch.float32)
        true = tree_sum(map(leaf, range(PLANNED)))
        assert true is not None
        assert true.gradients[0] is not None
        assert not torch.allclose(mean, true.gradients[0] / true.tokens, rtol=1e-3)


def test_ranks_agree(found: list[dict[str, Any]]) -> None:
    world = len(found)
    for number, rank in enumerate(found):
        assert rank["any"] == [True, False]
        assert rank["numbers"] == [3, 4]
        assert rank["told"] == {"a": [1.5, None]}
        assert rank["first"] == [0 if number == 0 else None, number]
        assert rank["gathered"] == [[str(other * call) for other in range(world)] for call in (1, 2, 3)]
        assert rank["error"] == ["DragomanError" if number == 0 else "SaidElsewhere", "the disk is full"]
    if world == 4:
        assert found[2]["alike"][0] == "DragomanError"
        assert found[0]["alike"] == ["SaidElsewhere", found[2]["alike"][1]]
        assert "another corpus than process 0: other: 1, where it has other: 0" in found[0]["alike"][1]
    else:
        assert "alike" not in found[0]


def test_the_tree() -> None:
    """Sums of powers that a sum from left to right would lose."""
    numbers = [1.0, 2.0**-24, 2.0**-24, 2.0**-24]

    def one(value: float) -> Sums:
        return Sums([torch.tensor([value])], torch.tensor(value), 1, 1)

    total = tree_sum(map(one, numbers))
    assert total is not None
    assert float(total.loss) == float(torch.tensor(1.0) + torch.tensor(2.0**-23)) != 1.0
    assert total.tokens == 4
    assert tree_sum([]) is None
    ranks = Ranks()
    assert list(ranks.local_micro_batches(1, 3)) == [0, 1, 2]
    assert ranks.broadcast(lambda: "x") == "x"


@pytest.mark.parametrize(
    ("micro_batches", "processes", "reduce", "remedy"),
    [
        (1, 2, "exact", "micro_batches=2 training.batch_tokens=1024"),
        (6, 2, "exact", "both are powers of two.*micro_batches=8 training.batch_tokens=1536"),
        (4, 3, "exact", "a power of two"),
        (2, 4, "exact", "micro_batches=4 training.batch_tokens=1024"),
        (4, 3, "fast", "micro_batches=6 training.batch_tokens=1365"),
        (4, 4, "exact", None),
        (8, 2, "exact", None),
        (6, 3, "fast", None),
        (3, 1, "exact", None),
    ],
)
def test_what_cannot_be_divided_is_refused(micro_batches: int, processes: int, reduce: str, remedy: str | None) -> None:
    training = parse(TrainingConfig, {"micro_batches": micro_batches, "reduce": reduce, "batch_tokens": 2048})
    if remedy is None:
        check_division(training, processes)
    else:
        with raises_error(Error.WRONG_SETTING):
            check_division(training, processes)


def test_processes_in_processes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.training import launch

    monkeypatch.setenv("WORLD_SIZE", "2")
    with raises_error(Error.CONFLICT):
        launch.refuse_processes(2)


def test_each_process_has_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman import device

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.backends, "cuda", SimpleNamespace(enable_cudnn_sdp=lambda on: None))
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert device.pick_device("cuda").index is None
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert device.pick_device("auto") == torch.device("cuda", 3)
    assert device.pick_device("cuda:1") == torch.device("cuda", 1)
