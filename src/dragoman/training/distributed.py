"""Several processes that train one model: who computes which micro-batches, and how they agree.

`torchrun` starts the processes (here called ranks, as in PyTorch) and tells each by its environment which one it is.
All have the whole model and take the same steps; a step's micro-batches are divided among them. Rank 0 alone writes,
and what depends on a clock or a disk is decided by it. A world of one, `Ranks()`, has nobody to wait for.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.device import own_gpu
from dragoman.errors import DragomanError, Error, SaidElsewhere
from dragoman.progress import complain, only_errors
from dragoman.training.summation import Sums

T = TypeVar("T")

BEAT_S = 1.0
FROZEN_S = 30.0
"""A rank whose process shows no sign of life for so long is given up; torchrun then ends all within 30 s more."""
COLLECTIVE_S = 60.0
"""The least time that the others' gradients are waited for, after the slowest step of the pre-flight is known."""
PATIENT = timedelta(hours=12)
"""The time to wait for work of rank 0 that may take long; its heartbeat shows that rank 0 lives."""
JOIN_S = 600.0
GIVEN_UP = "dragoman/given up"
"""Key of the launcher's store: the mistake that an earlier start ended by."""
POLL_S = 0.01


class Ranks:
    """A world with a single process."""

    rank = 0
    world = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def local_micro_batches(self, planned: int, count: int) -> range:
        """Which of a step's `count` micro-batches (of `planned` in a full step) this rank computes."""
        return range(count)

    def all_reduce(self, sums: Sums | None, parameters: Sequence[Tensor], planned: int, count: int) -> Sums:
        """The sum over all ranks, in the order of the micro-batches."""
        assert sums is not None
        return sums

    def any(self, flag: bool) -> bool:
        """True on all ranks if it is true on one rank."""
        return flag

    def on_rank_zero(self, work: Callable[[], T]) -> T | None:
        """The result of work that rank 0 does while the others wait; there it is None. Its errors are raised on all."""
        return work()

    def broadcast(self, work: Callable[[], T]) -> T:
        """As `on_rank_zero`, with a result that JSON can hold, which all ranks get."""
        return work()

    def broadcast_numbers(self, decide: Callable[[], Sequence[int]], count: int) -> Sequence[int]:
        """As `broadcast`, of so many whole numbers: quick enough for every step."""
        return decide()

    def all_gather(self, text: str) -> list[str]:
        """The texts of all ranks, in their order."""
        return [text]

    def dealt(self, own: Sequence[Any]) -> list[Any]:
        """One result for each of some items that were dealt to the ranks in turn, in the order of the items; `own` are
        this rank's, as JSON can hold them."""
        shards = [json.loads(text) for text in self.all_gather(json.dumps(own))]
        return [shards[item % self.world][item // self.world] for item in range(sum(map(len, shards)))]

    def require_alike(self, text: str, what: str) -> None:
        """Raises DragomanError on all ranks where a rank's text is not that of rank 0."""

    def watch(self, seconds_per_step: float) -> None:
        """From now on give up a rank that is frozen or stays away from a step for long."""

    def close(self) -> None: ...


class TorchRanks(Ranks):
    """One of the ranks that torchrun (or another launcher with its environment variables) has started."""

    def __init__(self) -> None:
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self._plain = self._client()
        if self._plain.check([GIVEN_UP]):
            raise SaidElsewhere(self._plain.get(GIVEN_UP).decode())
        number = _round(self._plain, self.rank, self.world)
        self._prefix = f"dragoman/{number}"
        self._store = dist.PrefixStore(self._prefix, self._plain)
        on_gpu = torch.cuda.is_available()
        if on_gpu:
            torch.cuda.set_device(own_gpu())
        backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
        dist.init_process_group(
            backend,
            store=dist.PrefixStore("group", self._store),
            rank=self.rank,
            world_size=self.world,
            timeout=PATIENT,
        )
        self.gradients_group: Any = dist.group.WORLD
        self._calls, self._gathered = 0, ""
        self._heart: _Heart | None = None

    def _client(self) -> dist.TCPStore:
        """A connection to the key-value store of the launcher; without torchrun, rank 0 is its server."""
        serves = self.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        return dist.TCPStore(address, port, None, serves, timedelta(seconds=JOIN_S))

    # -- gradients ---------------------------------------------------------------------------------------------------

    def local_micro_batches(self, planned: int, count: int) -> range:
        """A contiguous block of the full step's, so that its sum is a whole subtree of `summation.tree_sum`."""
        share = planned // self.world
        return range(min(count, self.rank * share), min(count, (self.rank + 1) * share))

    def all_reduce(self, sums: Sums | None, parameters: Sequence[Tensor], planned: int, count: int) -> Sums:
        """An all-reduce by recursive doubling (Thakur et al. 2005): in round k a rank exchanges its sum with the one
        2^k away, and both add, so that all go up the tree together."""
        share = planned // self.world
        # 1. Every rank learns what every other rank has, so that both sides of an exchange know what will be sent.
        flags = self.flags(sums, len(parameters))
        has = flags[:, 0] > 0
        assert has.tolist() == [rank * share < count for rank in range(self.world)], "another division of the step"
        flat = None if sums is None else flattened(sums, parameters)
        present, distance = flags[:, 3:] > 0, 1
        mine = present[self.rank]
        # 2. Ranks are leaves of a tree. After round k each rank has the sum of its block of 2^k ranks.
        while distance < self.world:
            partner = self.rank ^ distance
            start = partner // distance * distance  # the first rank of the partner's block
            own = self.rank // distance * distance
            theirs = present[start : start + distance].any(dim=0)
            own_has, their_has = bool(has[own : own + distance].any()), bool(has[start : start + distance].any())
            if own_has or their_has:
                flat = self._exchanged(
                    flat, mine if own_has else None, theirs if their_has else None, partner, parameters
                )
            mine = mine | theirs
            distance *= 2
        assert flat is not None
        gradients, loss = unflattened(flat, parameters, mine)
        return Sums(gradients, loss, int(flags[:, 1].sum()), int(flags[:, 2].sum()))

    def flags(self, sums: Sums | None, parameters: int) -> Tensor:
        """(world, 3 + parameters): has a sum, tokens, tokens processed, and which parameters have a gradient."""
        own = torch.zeros(3 + parameters, dtype=torch.int64)
        if sums is not None:
            own[:3] = torch.tensor([1, sums.tokens, sums.processed])
            own[3:] = torch.tensor([gradient is not None for gradient in sums.gradients])
        gathered = [torch.empty_like(own) for _ in range(self.world)]
        dist.all_gather(gathered, own, group=self.gradients_group)
        return torch.stack(gathered)

    def _exchanged(
        self,
        flat: Tensor | None,
        own: Tensor | None,
        theirs: Tensor | None,
        partner: int,
        parameters: Sequence[Tensor],
    ) -> Tensor | None:
        """The sum of this rank's block of ranks and its partner's.

        `own`, `theirs`: which parameters have a gradient there, None where the block has computed nothing.
        """
        # A block without a sum neither sends nor is waited for.
        operations, received = [], None
        if own is not None:
            assert flat is not None
            operations.append(dist.P2POp(dist.isend, flat, partner, self.gradients_group))
        if theirs is not None:
            size = sum(parameter.numel() for parameter in parameters) + 1
            received = torch.empty(size, device=parameters[0].device)
            operations.append(dist.P2POp(dist.irecv, received, partner, self.gradients_group))
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        if received is None or flat is None:
            return flat if received is None else received
        total = received + flat  # the same on both sides, to the bit: addition of two numbers commutes
        if own is not None and theirs is not None and not torch.equal(own, theirs):
            # What takes part on one side only is not added to zeros: -0.0 + 0.0 is another zero.
            sizes = [*(parameter.numel() for parameter in parameters), 1]
            rows = zip(total.split(sizes), flat.split(sizes), received.split(sizes), strict=True)
            for here, there, (sum_, own_row, their_row) in zip(own, theirs, rows, strict=False):
                if here != there:
                    sum_.copy_(own_row if here else their_row)
        return total

    # -- agreement ---------------------------------------------------------------------------------------------------

    def any(self, flag: bool) -> bool:
        reduced = torch.tensor(int(flag))
        dist.all_reduce(reduced, dist.ReduceOp.MAX)
        return bool(reduced)

    def on_rank_zero(self, work: Callable[[], T]) -> T | None:
        return self._at_first(work, lambda result: "null")[0]

    def broadcast(self, work: Callable[[], T]) -> T:
        result, text = self._at_first(work, json.dumps)
        return result if self.is_first else json.loads(text)  # type: ignore[return-value]

    def broadcast_numbers(self, decide: Callable[[], Sequence[int]], count: int) -> Sequence[int]:
        own = decide() if self.is_first else [0] * count
        numbers = torch.tensor([int(number) for number in own])
        dist.broadcast(numbers, 0)
        return numbers.tolist()

    def _at_first(self, work: Callable[[], T], to_text: Callable[[T], str]) -> tuple[T | None, str]:
        """(the result, on rank 0), and its text. The others look into the store, where no timeout runs."""
        self._calls += 1
        key = f"first/{self._calls}"
        if self.is_first:
            try:
                result = work()
                text = to_text(result)
            except DragomanError as error:
                self._store.set(key, "e" + str(error))
                raise
            self._store.set(key, "r" + text)
            return result, text
        self._wait_for(key)
        answer = self._store.get(key).decode()
        if answer[0] == "e":
            raise SaidElsewhere(answer[1:])
        return None, answer[1:]

    def all_gather(self, text: str) -> list[str]:
        self._calls += 1
        before, self._gathered = self._gathered, f"text/{self._calls}/{self.rank}"
        self._store.set(f"text/{self._calls}/{self.rank}", text)
        keys = [f"text/{self._calls}/{rank}" for rank in range(self.world)]
        for key in keys:
            self._wait_for(key)
        if before:  # all are here, so all have read it
            self._store.delete_key(before)
        return [self._store.get(key).decode() for key in keys]

    def _wait_for(self, key: str) -> None:
        while not self._store.check([key]):
            time.sleep(POLL_S)

    def require_alike(self, text: str, what: str) -> None:
        texts = self.all_gather(f"{socket.gethostname()}\n{text}")
        expected = texts[0].partition("\n")[2]
        for rank, other in enumerate(texts):
            host, _, theirs = other.partition("\n")
            if theirs != expected:
                error = (
                    f"process {rank} on {host} has another {what} than process 0: {_first_difference(expected, theirs)}"
                )
                raise Error.MISMATCH(error) if rank == self.rank else SaidElsewhere(error)

    # -- failures ----------------------------------------------------------------------------------------------------

    def watch(self, seconds_per_step: float) -> None:
        wait = timedelta(seconds=max(COLLECTIVE_S, 20 * seconds_per_step))
        self.gradients_group = dist.new_group(timeout=wait)
        if self._heart is None:
            self._heart = _Heart(dist.PrefixStore(self._prefix, self._client()), self.rank, self.world)

    def gives_up(self, why: str) -> bool:
        """Let no restart try again what ends by a mistake of the user's; True to the first rank that says this one."""
        self._plain.set(GIVEN_UP, why)
        return self._store.add(f"said/{why}", 1) == 1

    def close(self) -> None:
        if self._heart is not None:
            self._heart.stop()
        dist.destroy_process_group()


class _Heart(threading.Thread):
    """Shows that this process runs, and looks whether the next one does. A process that is stopped, or whose machine
    is, cannot tell; the others would wait for it for ever."""

    def __init__(self, store: Any, rank: int, world: int) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self.store, self.rank, self.next = store, rank, (rank + 1) % world
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        seen, since, beat = b"", time.monotonic(), 0
        while not self.over.wait(BEAT_S):
            beat += 1
            try:
                self.store.set(f"beat/{self.rank}", str(beat))
                key = f"beat/{self.next}"
                now = self.store.get(key) if self.store.check([key]) else b""
            except (RuntimeError, ValueError):  # the launcher, whose store it is, is gone
                now = seen
            if now != seen or now == b"over":
                seen, since = now, time.monotonic()
            if time.monotonic() - since > FROZEN_S and not self.over.is_set():
                complain(
                    f"dragoman: process {self.next} shows no sign of life for {FROZEN_S:.0f} s: ending; the same "
                    "command goes on from the last checkpoint"
                )
                os._exit(1)

    def stop(self) -> None:
        self.over.set()
        self.join()
        with contextlib.suppress(RuntimeError, ValueError):
            self.store.set(f"beat/{self.rank}", "over")


@contextlib.contextmanager
def joined() -> Iterator[Ranks]:
    """This process's place among those that train together, by the environment; alone where there are no others."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield Ranks()
        return
    ranks = TorchRanks()
    if not ranks.is_first:
        only_errors()
    try:
        yield ranks
    except DragomanError as error:
        if not isinstance(error, SaidElsewhere) and ranks.gives_up(str(error)):
            raise
        raise SaidElsewhere(str(error)) from error
    except RuntimeError as error:
        if not (isinstance(error, dist.DistError) or "gloo" in str(error)):
            raise
        if "--debug" in sys.argv:
            raise
        complain(f"dragoman: process {ranks.rank} ends, as it has lost its connection to another one")
        raise SystemExit(1) from error
    finally:
        ranks.close()


def _round(store: dist.TCPStore, rank: int, world: int) -> str:
    """A number of this start of all ranks, which their keys in the store begin with.

    The store outlives a restart, and a lost node's successors count their restarts anew. So rank 0 draws the number,
    and answers each of the others by the name that it came with: an answer to a process that is gone is not taken.
    """
    deadline = time.monotonic() + JOIN_S
    # Rank 0: draw a number, wait for each other rank to join by a name, and answer with that name.
    if rank == 0:
        number = str(store.add("dragoman/rounds", 1))
        store.set("dragoman/round", number)
        for other in range(1, world):
            _until(lambda other=other: store.check([f"dragoman/join/{number}/{other}"]), deadline)  # type: ignore[misc]
            store.set(f"dragoman/go/{number}/{other}", store.get(f"dragoman/join/{number}/{other}").decode())
        return number
    # Others: join the newest number that rank 0 has drawn. A number left by an earlier start never gets an answer.
    name, last = uuid.uuid4().hex, ""

    def answered() -> bool:
        nonlocal last
        if not store.check(["dragoman/round"]):
            return False
        number = store.get("dragoman/round").decode()
        if number != last:
            store.set(f"dragoman/join/{number}/{rank}", name)
            last = number
        key = f"dragoman/go/{number}/{rank}"
        return bool(store.check([key])) and store.get(key).decode() == name

    _until(answered, deadline)
    return last


def _until(condition: Callable[[], bool], deadline: float) -> None:
    while not condition():
        if time.monotonic() > deadline:
            raise Error.PROCESS_FAILED(
                f"the other processes did not come within {JOIN_S:.0f} s", "were all of them started?"
            )
        time.sleep(POLL_S)


def flattened(sums: Sums, parameters: Sequence[Tensor]) -> Tensor:
    """All gradients and the loss in one row; zeros where a parameter has none."""
    pairs = zip(sums.gradients, parameters, strict=True)
    rows = [(torch.zeros_like(parameter) if one is None else one).reshape(-1) for one, parameter in pairs]
    return torch.cat([*rows, sums.loss.reshape(1)])


def unflattened(flat: Tensor, parameters: Sequence[Tensor], present: Tensor) -> tuple[list[Tensor | None], Tensor]:
    *parts, loss = flat.split([*(parameter.numel() for parameter in parameters), 1])
    each = zip(parameters, parts, present.tolist(), strict=True)
    return [part.view_as(parameter) if there else None for parameter, part, there in each], loss.reshape(())


def _first_difference(expected: str, actual: str) -> str:
    """The first line of `actual` that differs from the line of `expected`."""
    lines = zip(expected.splitlines(), actual.splitlines(), strict=False)
    return next((f"{other}, where it has {one}" for one, other in lines if one != other), "one of them has more")
