"""A GPU that is none: tensors that say they are on another device and keep their numbers in the memory of this one.

What a real one would refuse is refused, an operation whose tensors are on two devices; and what a real one would wait
for is counted, each time that a value goes back to Python, and each copy up that nobody asked to be done beside other
work. It knows nothing of kernels, precision and speed. To be used in a process of its own: PyTorch's backend for
Python (`PrivateUse1`) is there once and for all.
"""

import json
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

import dragoman

PACKAGE = f"{Path(dragoman.__file__).parent}/"
"""Whole, as a checkout may itself lie in a folder `dragoman`."""

DEVICE = torch.device("privateuseone", 0)

waits: Counter[str] = Counter()
"""Values that Python asked for, by the lines that did."""
slow_copies: Counter[str] = Counter()
"""Copies to the device for which everything waits."""

launches: Counter[str] = Counter()
"""Operations on the device that a GPU would be given, by name: all but views of a tensor."""

VIEWS = {
    "view", "_unsafe_view", "transpose", "t", "expand", "unsqueeze", "squeeze", "select", "slice", "permute", "detach",
    "alias", "split", "split_with_sizes", "unbind", "as_strided", "lift_fresh", "_reshape_alias",
    "diagonal",
}  # fmt: skip
ASKS = {"_local_scalar_dense", "equal", "is_nonzero", "nonzero", "masked_select", "unique_consecutive", "_unique2"}
"""Operations whose result, or its shape, the program needs at once."""
INDEXES = {"index", "index_put", "index_put_", "_index_put_impl_"}
"""Operations that copy an index from the CPU, and that ask how many are true where it is a mask."""


def line() -> str:
    """The innermost line of Dragoman that is being computed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.removeprefix(PACKAGE)}:{frame.f_lineno}"


class Pretended(torch.Tensor):
    """Its numbers are those of `held`."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> "Pretended":
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )
        made.held = held
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "tolist":
            waits[line()] += 1
            return args[0].held.tolist()
        if name == "numpy":
            raise TypeError(f"{line()}: numpy() of a tensor that is on a GPU")
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


class PretendedGpu(TorchDispatchMode):
    """Inside, `DEVICE` is one to make tensors on."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


def computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """`func` where its tensors are. Raises RuntimeError where they are on two devices."""
    name = func.overloadpacket.__name__
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, Pretended)]
    # A number by itself may be on the CPU.
    here = [tensor for tensor in tensors if not isinstance(tensor, Pretended) and tensor.dim()]
    result_there = torch.device(kwargs["device"]) == DEVICE if kwargs.get("device") is not None else bool(there)
    if name in ("_to_copy", "copy_"):
        source, copied_there = (args[1], isinstance(args[0], Pretended)) if name == "copy_" else (args[0], result_there)
        if copied_there and not isinstance(source, Pretended):
            slow_copies[line()] += not kwargs.get("non_blocking")
        elif isinstance(source, Pretended) and not copied_there:
            waits[line()] += 1
    elif there and here:
        if name not in INDEXES:
            raise RuntimeError(f"{line()}: {name} of tensors on two devices")
        slow_copies[line()] += 1
    elif name in ASKS and there:
        waits[line()] += 1
    if name in INDEXES and there:
        waits[line()] += sum(index is not None and index.dtype == torch.bool for index in args[1])
    if (there or result_there) and name not in VIEWS:
        launches[name] += 1
    if kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": "cpu"}
    kwargs.pop("pin_memory", None)
    found = func(*_real(args), **_real(kwargs))
    changed = {id(tensor.held): tensor for tensor in there} | {id(tensor): tensor for tensor in tensors}

    def wrapped(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return changed[id(value)] if id(value) in changed else Pretended(value) if result_there else value

    return tree_map(wrapped, found)


def _real(values: Any) -> Any:
    return tree_map(lambda value: value.held if isinstance(value, Pretended) else value, values)


class Module(backend_registration._DummyBackendModule):  # type: ignore[misc]
    """What PyTorch asks of `torch.pretended`."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


def set_up() -> None:
    backend_registration._setup_privateuseone_for_python_backend("pretended", Module())
    torch.__future__.set_swap_module_params_on_conversion(True)  # weights that are one stay one
    # Operations of inference mode, and a copy that `torch.tensor` makes by itself, do not come by `computed`.
    torch.inference_mode = lambda mode=True: torch.no_grad() if mode else nullcontext()
    tensor = torch.tensor
    torch.tensor = lambda data, *rest, device=None, **options: tensor(data, *rest, **options).to(device or "cpu")


def record(owner: Any, name: str, found: list[dict[str, Any]]) -> None:
    """Have every call of `owner.name` add to `found` what was waited for in it, by lines."""
    original = getattr(owner, name)

    def call(*arguments: Any, **keywords: Any) -> Any:
        before, launched = (waits.copy(), slow_copies.copy()), launches.total()
        result = original(*arguments, **keywords)
        found.append({"what": name, "waits": waits - before[0], "slow copies": slow_copies - before[1]})
        found[-1]["launches"] = launches.total() - launched
        return result

    setattr(owner, name, call)


def main(recipe: str, run: str, changes: list[str]) -> None:
    """Train as `recipe` says and print, as JSON, what was waited for in every step of the training (`take`), of
    a search (`close`, at its end) and in every translation (`n_best`), in their order."""
    set_up()
    from dragoman import device
    from dragoman.runs import atomic_io

    device.pick_device = lambda name="auto": DEVICE
    write = atomic_io.write_tensors
    atomic_io.write_tensors = lambda path, tensors: write(path, _real(dict(tensors)))
    from dragoman.decoding.rows import Slots
    from dragoman.inference.search_translator import SearchTranslator
    from dragoman.tasks import recipes
    from dragoman.training import preflight
    from dragoman.training.step import TrainingStep

    preflight.TRIAL_STEPS = 4
    found: list[dict[str, Any]] = []
    record(TrainingStep, "take", found)
    record(Slots, "close", found)
    record(SearchTranslator, "n_best", found)
    with PretendedGpu():
        recipes.job(recipes.load(recipe, [f"run_dir={run}", *changes])).run()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
