"""What a GPU does to our training and translation: is it right, does it repeat, what does a step consist of.

    python benchmarks/gpu.py equal shapes repeat step attention batches translate [--device cuda] [--run RUN --src FILE]

`equal`: loss and gradients of every kind of model in float32, by the GPU and by the CPU, and again with bfloat16.
`shapes`: two hundred batches of other shapes through compiled layers; compilations and graph breaks.
`repeat`: the same step twice, is it the same to the last bit.
`step`: a step of `recipes/base-gpu.yaml` (60 million parameters): milliseconds, launches, waits of the program for the
GPU, memory.
`attention`: the same step with and without cuDNN's attention, with widths as they are and multiples of eight.
`batches`: tokens a second that the making of batches alone keeps up with, on one core.
`translate`: RUN's translations of FILE by GPU and CPU, one sentence at a time and all at once.

On a CPU (`--device cpu`) all of it runs in small, to see that it does. `gpu.sh` runs it with the other measurements.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor
from torch._dynamo.utils import counters
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from dragoman.data.batch import Batch, collate
from dragoman.device import autocast, peak_bytes, reset_peak
from dragoman.experiments.bench.batches import RandomPairs, subject
from dragoman.experiments.bench.parts import synchronize
from dragoman.inference.search_translator import SearchTranslator
from dragoman.tasks import recipes
from dragoman.text.lines import read_lines

SMALL = ["model.d_model=64", "model.num_heads=4", "model.d_ff=128", "training.batch_tokens=1024", "model.dropout=0"]
PARTS = ("equal", "shapes", "repeat", "step", "attention", "batches", "translate")
TRANSFORMER = "recipes/multi30k-en-de.yaml"
VARIANTS: dict[str, tuple[str, list[str]]] = {
    "transformer, pre-norm": (TRANSFORMER, SMALL),
    "transformer, post-norm": (TRANSFORMER, [*SMALL, "model.norm_placement=post"]),
    "rotary": (TRANSFORMER, [*SMALL, "model.position={type: rotary}"]),
    "ALiBi": (TRANSFORMER, [*SMALL, "model.position={type: alibi}"]),
    "learned positions": (TRANSFORMER, [*SMALL, "model.position={type: learned}"]),
    "RMS, SwiGLU, 1 key-value head": (
        TRANSFORMER,
        [*SMALL, "model.norm=rms", "model.activation=swiglu", "model.num_kv_heads=1"],
    ),
    "LSTM, additive": ("recipes/multi30k-en-de-lstm-additive.yaml", ["training.batch_tokens=1024", "model.dropout=0"]),
    "LSTM, dot": ("recipes/multi30k-en-de-lstm-dot.yaml", ["training.batch_tokens=1024", "model.dropout=0"]),
}


def gradients(trainer: Any, device: torch.device, precision: str, batches: list[Batch]) -> tuple[float, Tensor]:
    """Loss a token and all gradients of some batches, on `device`."""
    model = trainer.model.to(device).train()
    model.zero_grad()
    total, count = 0.0, 0
    for batch in batches:
        with autocast(device, precision):
            loss, tokens, _ = trainer.task.loss(model, batch.to(device), 0.1)
        loss.backward()
        total, count = total + float(loss.detach()), count + tokens
    found = [one.grad.detach().double().cpu().flatten() for one in model.parameters() if one.grad is not None]
    return total / count, torch.cat(found) / count


def equal(device: torch.device) -> None:
    """Each kind of model, textbook layers and fast ones, against the textbook in float32 on the CPU."""
    cpu = torch.device("cpu")
    print(f"{'model':<32} {'backend':<9} {'precision':<9} {'loss':>9} {'gradient':>9}   (relative differences)")
    for name, (recipe, changes) in VARIANTS.items():
        reference: tuple[float, Tensor] | None = None
        for backend, where, precision in (
            ("textbook", cpu, "float32"),
            ("textbook", device, "float32"),
            ("auto", device, "float32"),
            ("auto", device, "bfloat16"),
        ):
            own = [*changes, f"device={where.type}", f"training.backend={backend}", f"training.precision={precision}"]
            with subject(recipes.load(recipe, [*own, "training.compile=none"]), synthetic=True) as trainer:
                loss, gradient = gradients(trainer, where, precision, list(trainer.task.batches(1)))
            if reference is None:
                reference = loss, gradient
                continue
            off = float((gradient - reference[1]).norm() / reference[1].norm())
            print(f"{name:<32} {backend:<9} {precision:<9} {abs(loss / reference[0] - 1):9.1e} {off:9.1e}")


def shapes(device: torch.device, count: int) -> None:
    """Batches of many shapes through compiled layers: does each run, and how much is compiled again."""
    for name, (recipe, changes) in VARIANTS.items():
        if "LSTM" in name:
            continue
        own = [*changes, "model.d_model=128", "model.dropout=0.1", f"device={device.type}", "training.compile=layers"]
        counters.clear()
        torch._dynamo.reset()
        failed: dict[str, int] = {}
        last_new, before = 0, 0
        with subject(recipes.load(recipe, own), synthetic=True) as trainer:
            draw = torch.Generator().manual_seed(1)
            for turn in range(1, count + 1):
                rows, src, tgt = (int(torch.randint(1, top, (), generator=draw)) for top in (40, 90, 90))
                pairs = [(ids(max(1, src - row)), ids(max(1, tgt - row))) for row in range(rows)]
                try:
                    gradients_of_one(trainer, device, collate(pairs))
                except RuntimeError as error:
                    why = str(error).splitlines()[0][:90]
                    failed[why] = failed.get(why, 0) + 1
                if counters["stats"]["unique_graphs"] != before:
                    last_new, before = turn, counters["stats"]["unique_graphs"]
        breaks = sum(counters["graph_break"].values())
        print(
            f"{name:<32} {count} shapes: {before} graphs, the last at shape {last_new}, {breaks} breaks, "
            f"{sum(failed.values())} failed {failed or ''}"
        )


def ids(length: int) -> Any:
    return torch.randint(4, 900, (length,)).numpy()


def gradients_of_one(trainer: Any, device: torch.device, batch: Batch) -> None:
    with autocast(device, trainer.precision):
        loss, _, _ = trainer.task.loss(trainer.model.train(), batch.to(device), 0.1)
    loss.backward()
    assert bool(loss.isfinite())


def repeat(device: torch.device) -> None:
    """The same step three times over: are loss and gradients the same to the last bit."""
    for name, (recipe, changes) in VARIANTS.items():
        for compiled in ("none", "layers"):
            for precision in ("float32", "bfloat16") if compiled == "none" else ("bfloat16",):
                own = [*changes, "model.dropout=0.1", f"device={device.type}", f"training.compile={compiled}"]
                recipe_of = recipes.load(recipe, [*own, f"training.precision={precision}"])
                with subject(recipe_of, synthetic=True) as trainer:
                    step = trainer.training_step
                    seen = []
                    for _ in range(3):
                        loss = step.gradients(1)[0]
                        seen.append(
                            torch.cat(
                                [
                                    loss.flatten(),
                                    *(one.grad.flatten() for one in step.parameters if one.grad is not None),
                                ]
                            )
                        )
                    same = all(torch.equal(one, two) for one, two in pairwise(seen))
                print(f"{name:<32} compile={compiled:<7} {precision:<9} {'equal' if same else 'DIFFERENT'}")


def step(device: torch.device, changes: list[str], steps: int) -> None:
    """A step of the paper's base model, plain and compiled."""
    for compiled in ("none", "layers"):
        own = [*changes, f"device={device.type}", f"training.compile={compiled}"]
        with subject(recipes.load("recipes/base-gpu.yaml", own), synthetic=True) as trainer:
            start = time.perf_counter()
            for number in range(1, 6):
                trainer.train_step(number)
            synchronize(device)
            warm_up = time.perf_counter() - start
            reset_peak(device)
            start = time.perf_counter()
            tokens = sum(trainer.train_step(number)[2] for number in range(6, 6 + steps))
            synchronize(device)
            took = time.perf_counter() - start
            peak = peak_bytes(device)
            activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
            with profile(activities=activities) as profiled:
                for number in range(6 + steps, 9 + steps):
                    trainer.train_step(number)
                synchronize(device)
            print(
                f"{trainer.precision}, compile={compiled}: {1000 * took / steps:.1f} ms a step, {tokens / took:,.0f} "
                f"tokens/s, first five steps {warm_up:.1f} s, peak {peak / 2**30:.2f} GiB; "
                f"a step has {events(profiled, 3)}"
            )
            print("\n".join(heaviest(profiled, device)))


def attention(device: torch.device, changes: list[str], steps: int) -> None:
    """Steps of the base model with and without cuDNN's attention, and with widths as they are or multiples of eight.

    cuDNN makes a plan for each new shape of a batch: the slowest steps show it.
    """
    for compiled, cudnn, multiple in (
        ("none", True, 1),
        ("none", False, 1),
        ("none", True, 8),
        ("none", False, 8),
        ("layers", False, 8),
        ("layers", True, 8),
    ):
        own = [*changes, f"device={device.type}", f"training.compile={compiled}"]
        with subject(recipes.load("recipes/base-gpu.yaml", own), synthetic=True) as trainer:
            torch.backends.cuda.enable_cudnn_sdp(cudnn)  # which `pick_device` has turned off
            task = trainer.task
            task.micro_batch = partial(widened_batches, task.micro_batch, multiple)  # type: ignore[method-assign]
            took, tokens = [], 0
            for number in range(1, 6 + steps):
                start = time.perf_counter()
                count = trainer.train_step(number)[2]
                synchronize(device)
                if number > 5:
                    tokens += count
                    took.append(time.perf_counter() - start)
            took.sort()
            print(
                f"compile={compiled:<7} cuDNN={cudnn!s:<5} widths x{multiple}: {1000 * sum(took) / steps:6.1f} ms "
                f"a step ({1000 * took[0]:.1f} to {1000 * took[-1]:.1f}, median {1000 * took[steps // 2]:.1f}), "
                f"{tokens / sum(took):,.0f} tokens/s, median {tokens / steps / took[steps // 2]:,.0f}",
                flush=True,
            )


def widened_batches(made: Callable[[int, int], Any], multiple: int, step: int, number: int) -> list[Batch]:
    return [widened(batch, multiple) for batch in made(step, number)]


def widened(batch: Batch, multiple: int) -> Batch:
    """The same batch with each side padded to a multiple of some positions."""
    wide: dict[str, Any] = {
        name: F.pad(value, (0, -value.size(1) % multiple))
        for name, value in vars(batch).items()
        if isinstance(value, Tensor)
    }
    return replace(batch, **wide)


def heaviest(profiled: Any, device: torch.device) -> list[str]:
    """The kernels (on a CPU: operations) that take most of the time, with their shares and how often they run."""
    on_gpu = device.type == "cuda"
    time_of = (lambda one: one.self_device_time_total) if on_gpu else (lambda one: one.self_cpu_time_total)
    kernels = [
        one for one in profiled.key_averages() if not on_gpu or one.device_type == torch.autograd.DeviceType.CUDA
    ]
    whole = sum(time_of(one) for one in kernels) or 1
    return [
        f"    {100 * time_of(one) / whole:5.1f} %  {one.count:>5} x  {one.key[:100]}"
        for one in sorted(kernels, key=time_of, reverse=True)[:18]
    ]


def events(profiled: Any, steps: int) -> str:
    """Launches and waits of a step, by the driver's calls."""
    counted = {
        "launches": ("cudaLaunchKernel", "cuLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernelEx"),
        "waits": ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"),
        "copies": ("cudaMemcpyAsync",),
    }
    by_name = {one.key: one.count for one in profiled.key_averages()}
    return ", ".join(
        f"{sum(by_name.get(name, 0) for name in names) / steps:.0f} {kind}" for kind, names in counted.items()
    )


def batches(changes: list[str]) -> None:
    """The making of batches alone, on one core."""
    torch.set_num_threads(1)
    for name, more in (("plain", []), ("subwords drawn anew", ["tokenizer.sampling=0.1"])):
        own = [*changes, *more, "device=cpu", "corpus.doctor=skip"]
        recipe = recipes.load("recipes/multi30k-en-de.yaml", own)
        with subject(recipe) as trainer:
            if isinstance(trainer.task, RandomPairs):
                print(f"{name}: the recipe's corpus is not here")
                continue
            task, tokens, start = trainer.task, 0, time.perf_counter()
            for number in range(1, 31):
                tokens += sum(one.num_tokens + one.num_src_tokens for one in task.batches(number))
            print(f"{name}: {tokens / (time.perf_counter() - start):,.0f} tokens/s")


def translate(device: torch.device, run: str, src: str, lines: int) -> None:
    """A run's translations by both devices, in batches and one by one."""
    sentences = list(read_lines(src))[:lines]
    found: dict[str, list[str]] = {}
    cases: tuple[tuple[str, Literal["float32", "bfloat16"]], ...]
    cases = ("cpu", "float32"), (device.type, "float32"), (device.type, "bfloat16")
    for where, precision in cases:
        translator = SearchTranslator.load(run, device=where, precision=precision)
        translator.translate(sentences[:64])
        for name, work in ways(translator, sentences):
            start = time.perf_counter()
            found[f"{where} {precision} {name}"] = work()
            took = time.perf_counter() - start
            print(f"{where} {precision}, {name}: {len(found[f'{where} {precision} {name}']) / took:,.1f} lines/s")
    first = next(iter(found.values()))
    for name, one in found.items():
        print(f"{name}: {sum(a == b for a, b in zip(first, one, strict=False))} of {len(one)} as the first")


def ways(translator: SearchTranslator, sentences: list[str]) -> list[tuple[str, Callable[[], list[str]]]]:
    few = sentences[: 1 + len(sentences) // 15]
    return [
        ("all at once", lambda: translator.translate(sentences)),
        ("one by one", lambda: [translator.translate([sentence])[0] for sentence in few]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts", nargs="+", choices=("equal", "shapes", "repeat", "step", "attention", "batches", "translate")
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--run")
    parser.add_argument("--src")
    parser.add_argument("--only", default="", help="kinds of models whose name has this in it")
    parser.add_argument("--small", action="store_true", help="to see that it runs, where there is no GPU")
    options = parser.parse_args()
    device, small = torch.device(options.device), options.small
    for name in [name for name in VARIANTS if options.only not in name]:
        del VARIANTS[name]
    for part in options.parts:
        start = time.perf_counter()
        print(f"\n== {part}", flush=True)
        if part == "equal":
            equal(device)
        elif part == "shapes":
            shapes(device, 10 if small else 200)
        elif part == "repeat":
            repeat(device)
        elif part in ("step", "attention"):
            tiny = ["model.d_model=64", "model.d_ff=128", "training.batch_tokens=512"]
            measure = step if part == "step" else attention
            measure(device, tiny if small else [], 2 if small else 20)
        elif part == "batches":
            batches([])
        else:
            translate(device, options.run, options.src, 20 if small else 1000)
        print(f"-- {part}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
