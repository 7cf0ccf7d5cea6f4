"""Which device to compute on, and in which precision."""

import contextlib
import contextvars
import os
import platform
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import psutil
import torch

from dragoman.cores import CGROUP, usable_cores
from dragoman.errors import Error

with contextlib.suppress(ImportError):  # not on Windows
    import resource

Item = TypeVar("Item")
Result = TypeVar("Result")
DeviceName = Literal["auto", "cpu", "cuda", "mps"]
# A bf16 matrix product on the CPU is compiled for its shape, up to 0.6 MB, and kept in two caches of 1,024 places: one
# of oneDNN and one of PyTorch around it. Every batch brings new shapes, so little is hit after its own step, and all of
# it lies scattered where the next batch wants room. 64 places hold the shapes of a step, some 40; more are little
# faster and take memory that the pre-flight cannot foresee (benchmarks/log/2026-11.md, "what the kept kernels cost the
# pre-flight's word"). Read when the first product is computed.
for _cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_cache, "64")

PrecisionName = Literal["auto", "float32", "bfloat16", "float16"]
TENSOR_CORES = (7, 0)
"""The compute capability of the first GPUs on which products in float16 are worth it (Volta)."""
ONE_THREAD = 64 * 64
"""Positions times d_model of a batch that a second thread does not make faster (benchmarks/results.md)."""


if "OMP_NUM_THREADS" not in os.environ and usable_cores() < torch.get_num_threads():
    torch.set_num_threads(usable_cores())  # PyTorch knows `taskset`, and no container's share of time


def pick_device(name: str = "auto") -> torch.device:
    """The device called `name`; `auto` takes a GPU where there is one. Raises DragomanError where it is not there.

    On a GPU, cuDNN's attention is turned off for the process: it makes a plan for each new shape, and nearly every
    batch has a new one. A step of 60 million parameters took 92 ms on an H100 without it and 394 ms with it
    (docs/gpu.md).
    """
    device = _named_device(name)
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
        if device.index is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:  # each process has a GPU of its own
            device = own_gpu()
    return device


def own_gpu() -> torch.device:
    """The GPU of this process among those that torchrun has started on this machine."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def _named_device(name: str) -> torch.device:
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    if name.split(":")[0] not in available:
        raise Error.UNKNOWN_NAME(f"device {name!r}", "known are auto, cpu, cuda, mps")
    if not available[name.split(":")[0]]:
        raise Error.NO_DEVICE(f"device {name!r} is not available on this machine", "use `device` auto or cpu")
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise Error.WRONG_OPTION(f"device {name!r}", "write it as cuda or cuda:1") from error


def pick_precision(
    name: PrecisionName, device: torch.device, d_model: int
) -> Literal["float32", "bfloat16", "float16"]:
    """`auto`: bfloat16 matrix products where the hardware has them and gains by them, float16 on older GPUs with tensor
    cores, float32 otherwise.

    A CPU gains from d_model 128 on (1.5 times there; at 96 float32 is faster, benchmarks/log/2026-11.md, "the demo"):
    below, converting the operands costs more than the products save.
    """
    if name != "auto":
        return name
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bfloat16"
        return "float16" if torch.cuda.get_device_capability(device) >= TENSOR_CORES else "float32"
    return "bfloat16" if device.type == "cpu" and d_model >= 128 and cpu_has_bfloat16() else "float32"


def cpu_has_bfloat16() -> bool:
    """True if the processor has instructions for products in bfloat16."""
    capabilities = cpu_capabilities()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def cpu_capabilities() -> dict[str, Any]:
    """PyTorch's description of the processor (`cpu_name`, `avx512_bf16` ...); nothing where it is too old to say."""
    return dict(torch.cpu.get_capabilities()) if hasattr(torch.cpu, "get_capabilities") else {}


def machine_name(device: torch.device) -> str:
    """The name of the processor with its cores and system, or of the GPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cores = os.cpu_count()
    name = cpu_capabilities().get("cpu_name") or platform.processor() or platform.machine()
    return f"{name}, {cores} cores, {platform.system()}"


if "intel" in str(cpu_capabilities().get("cpu_name")).lower():
    # On processors of its maker, MKL adds up in another order for eight rows than for sixteen, unless it is told to be
    # reproducible: then a row's sums do not depend on the others, at no cost that could be measured
    # (benchmarks/log/2026-11.md, "the same bytes on Intel's processors"). Read when the first product is computed.
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")


def has_onednn() -> bool:
    """True if this build of PyTorch has oneDNN's own kernels for this processor."""
    return platform.machine() in ("x86_64", "AMD64") and torch.backends.mkldnn.is_available()


@cache
def has_onednn_bf16() -> bool:
    """True if those multiply bfloat16 on this processor. Where not, PyTorch finds another way."""
    return has_onednn() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def side_by_side(
    work: Callable[[Item], Result], jobs: Sequence[Item], device: torch.device, stop: Callable[[], None] = lambda: None
) -> list[Result]:
    """`[work(job) for job in jobs]`; on a CPU as many at a time as PyTorch has threads, each job on one thread.

    Small tensors gain little from several threads and wait for each other in every operation; whole jobs need not. And
    the last bits of a result cannot depend on how many threads there are. `work` has to be safe to call from several.
    When a job fails, or Ctrl-C comes, those under way are waited for: `stop` is called first, to make them end soon.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        return [work(job) for job in jobs]
    pool = ThreadPoolExecutor(
        max_workers=min(threads, max(1, len(jobs))), initializer=torch.set_num_threads, initargs=(1,)
    )
    try:
        contexts = [contextvars.copy_context() for _ in jobs]  # what cancels this work cancels theirs
        return list(pool.map(lambda context, job: context.run(work, job), contexts, jobs))
    except BaseException:
        stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        # What a worker sets is also what threads that PyTorch sees for the first time later would begin with.
        torch.set_num_threads(threads)


@contextlib.contextmanager
def threads_for(hidden_numbers: int) -> Iterator[None]:
    """Compute on one thread within, where batches are small: its sums then do not depend on the number of cores.

    `OMP_NUM_THREADS`, if set, has the last word.
    """
    threads = torch.get_num_threads()
    if hidden_numbers <= ONE_THREAD and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leave the process's random numbers, filters of warnings and choice of attention kernels as they were, whatever is
    done within: other libraries draw names of files, and add filters when they are imported."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    attention, drawn = torch.backends.cuda.cudnn_sdp_enabled(), random.getstate()
    with torch.random.fork_rng(devices=devices), warnings.catch_warnings():
        try:
            yield
        finally:
            torch.backends.cuda.enable_cudnn_sdp(attention)
            random.setstate(drawn)


def available_bytes(device: torch.device) -> int | None:
    """Memory that is free for this process, None where the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    free = []
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # no /proc there
        free.append(psutil.virtual_memory().available)
    with contextlib.suppress(OSError, ValueError):  # "max" is no limit
        limit, used, parts = (
            (CGROUP / f"memory.{name}").read_text(encoding="ascii") for name in ("max", "current", "stat")
        )
        # Files that the system remembers count as used, though it forgets them as soon as memory is asked for.
        files = [
            int(line.split()[1]) for line in parts.splitlines() if line.startswith(("active_file ", "inactive_file "))
        ]
        free.append(int(limit) - int(used) + sum(files))
    return min(free, default=None)


def float64_device(device: torch.device) -> torch.device:
    """Where to compute in float64 what is on `device`: MPS does not have it."""
    return torch.device("cpu") if device.type == "mps" else device


def reset_peak(device: torch.device) -> None:
    """Have `peak_bytes` count from now on, where the system can do that."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif sys.platform == "linux":
        with contextlib.suppress(OSError):  # forbidden in some containers: then it is the peak since the process began
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes(device: torch.device) -> int:
    """The most memory that was in use since `reset_peak`: by the process on a CPU, by PyTorch on a GPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    except NameError:  # Windows counts it from the beginning of the process
        info = psutil.Process().memory_info()
        return int(getattr(info, "peak_wset", info.rss))


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Matrix products in `precision`; weights, sums and norms stay in float32."""
    dtype = torch.float16 if precision == "float16" else torch.bfloat16
    return torch.autocast(device.type, dtype, enabled=precision != "float32")
