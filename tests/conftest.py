"""Shapes in signatures are checked here (jaxtyping with beartype) and cost nothing elsewhere."""

import gc
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import hypothesis
import jaxtyping
import pytest

if TYPE_CHECKING:
    from dragoman.inference.search_translator import SearchTranslator

# The models of tests are so small that a second thread only waits for the first; the tests themselves run side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Containers often forbid to keep compiled modules. Tests start hundreds of processes, and each would compile Dragoman
# again: 5 s.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell starts a job in the background with Ctrl-C ignored, and all its children inherit that: no test of Ctrl-C could
# pass. With a handler of our own here, the processes that tests start have the usual one again.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What collecting makes stays to the end: a million objects, through which each full collection would go again.
gc.disable()

# A busy machine takes longer for an example and finds fewer of them in time: that is no fault.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

SYSTEM = Path(__file__).parent / "system"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of tests/system where its tests do not run: these modules take seconds, in each process."""
    return True if collection_path == SYSTEM and "not system" in config.option.markexpr else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in tests/system belong to `make test-system`, as those do that say so themselves."""
    for item in items:
        if item.path.is_relative_to(SYSTEM):
            item.add_marker(pytest.mark.system)


def pytest_collection_finish(session: pytest.Session) -> None:
    """No module of a test has a write to a closed connection end the process: the test that runs then is blamed."""
    if hasattr(signal, "SIGPIPE") and signal.getsignal(signal.SIGPIPE) is not signal.SIG_IGN:
        raise pytest.UsageError("a module that was imported has changed the handler of SIGPIPE")
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _no_collection_by_servers() -> Iterator[None]:
    """A server goes through all objects once when it has loaded, and gives them back to the collector at its end.

    The objects of all tests are millions: that would take a second for each of some hundred servers.
    """
    with pytest.MonkeyPatch.context() as patch:
        if (state := sys.modules.get("dragoman.serve.state")) is not None:
            idle = SimpleNamespace(collect=lambda: 0, freeze=lambda: None, unfreeze=lambda: None)
            patch.setattr(state, "gc", idle)
        yield


HOOKED = ["nn", "models", "decoding", "data.batch", "training.loss"]
with jaxtyping.install_import_hook([f"dragoman.{module}" for module in HOOKED], "beartype.beartype"):
    import dragoman.data.batch
    import dragoman.decoding.search
    import dragoman.models
    import dragoman.training.loss  # noqa: F401


@pytest.fixture(scope="session")
def trained() -> Callable[[str, Mapping[str, Any]], tuple["SearchTranslator", list[str]]]:
    """Models that have learnt their 64 sentences by heart, each trained once: what is lost by rounding is seen in them.

    Given the family's name and settings: a translator that answers words in reverse, and the sentences.
    """
    done: dict[str, SearchTranslator] = {}
    words = random.Random(1)
    lines = [" ".join(f"w{words.randrange(40)}" for _ in range(words.randint(3, 7))) for _ in range(64)]

    def train(family: str, settings: Mapping[str, Any]) -> tuple["SearchTranslator", list[str]]:
        if (key := f"{family}{settings}") not in done:
            done[key] = _learn_by_heart(family, settings, lines)
        return done[key], lines

    return train


def _learn_by_heart(family: str, settings: Mapping[str, Any], lines: list[str]) -> "SearchTranslator":
    import torch

    from dragoman.data.batch import collate
    from dragoman.decoding.base import DecodingConfig
    from dragoman.inference.loading import build_model
    from dragoman.inference.search_translator import SearchTranslator
    from dragoman.models.families import MODELS
    from dragoman.text.tokenizers.pair import train_tokenizers
    from dragoman.text.tokenizers.words import WordsConfig
    from dragoman.training.loss import token_loss

    tokenizers = train_tokenizers(WordsConfig(), lambda: iter(lines), lambda: iter(lines))
    torch.manual_seed(1)
    model = build_model(MODELS[family](**{"dropout": 0.0, **settings}), tokenizers).train()
    batch = collate([(tokenizers.src.encode(line), tokenizers.src.encode(line)[::-1]) for line in lines])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(1000):
        logits = model(batch.src, batch.src_mask, batch.tgt_in)
        loss = token_loss(logits, batch.tgt_out, batch.tgt_mask, label_smoothing=0.1) / batch.num_tokens
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if bool((logits.argmax(dim=-1) == batch.tgt_out)[batch.tgt_mask].all()):
            break
    return SearchTranslator(model.eval(), tokenizers, decoding=DecodingConfig())


@pytest.fixture(scope="session")
def same_quality() -> Callable[["SearchTranslator", "SearchTranslator", list[str]], None]:
    """Hold an export with rounded weights to what users get of it: BLEU, and how many translations are the same.

    The model is one of `trained`. A processor without instructions for 8-bit products (VNNI) rounds more, as its sums
    of products have 16 bits, so logits are no measure: those of an untrained model may be anywhere.
    """
    from dragoman.quality.scores import EvaluationConfig, score

    def check(original: "SearchTranslator", other: "SearchTranslator", lines: list[str]) -> None:
        references = [" ".join(line.split()[::-1]) for line in lines]
        ours, theirs = original.translate(lines), other.translate(lines)
        bleu = [score(texts, references, EvaluationConfig(), with_ter=False).bleu for texts in (ours, theirs)]
        assert bleu[0] > 98
        assert bleu[1] > bleu[0] - 0.5
        assert sum(one == another for one, another in zip(ours, theirs, strict=True)) >= 0.95 * len(lines)

    return check
