"""Engines of `translation.py`, each loaded to translate many sentences in one call, or one; and models to measure.

An engine is a function from a `Cell` to `Loaded`. It raises NotThere, ImportError or DragomanError where this machine
or this version has no such thing. What Dragoman sets in the environment for itself (`device.py`) holds for it alone.
"""

import hashlib
import itertools
import json
import os
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch

from dragoman import config, export
from dragoman.export import marian as marian_export
from dragoman.export import marian_weights
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.runs import checkpoint
from dragoman.runs.new_run import write_run
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.tokenizers.pair import pieces_of, save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.whitespace import WhitespaceConfig
from dragoman.version import __version__

PEERS = Path(__file__).parent / "peers"
BATCHES = (64, 16, 32, 128)
"""Sentences of a batch, sorted by length, of those who are told: the first of them, or what is the fastest before the
clock starts."""

Translate = Callable[[Sequence[str]], list[str]]


# -- what is measured ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One engine on one model with one search."""

    model: str
    """Its folder (`Model.folder`)."""
    engine: str
    precision: str
    rule: str
    """When a beam is done (`DecodingConfig.stopping`); empty: the engine's own rule."""
    beam: int
    threads: int
    forced: int = 0
    """Tokens of every translation; 0: as many as the model wants."""

    @property
    def run(self) -> Path:
        return Path(self.model, "run")

    def exported(self, kind: str) -> Path:
        """The run in another program's format: made by the first cell that asks for it."""
        folder = Path(self.model, kind)
        if not folder.exists():
            translator = SearchTranslator.load(self.run, device="cpu")
            target = export.target(kind)
            export.require_possible(target, translator, self.run, kind)
            building = folder.with_name(f"{kind}.part{os.getpid()}")
            building.mkdir()
            target.write(translator.with_decoding(**vars(target.nearest(translator.decoding))), building, None)
            building.rename(folder)
        return folder


@dataclass(frozen=True)
class Loaded:
    """An engine that is ready."""

    many: Translate
    versions: dict[str, str]
    one: Callable[[str], str] | None = None
    """A sentence alone, where that is not a call for many of them."""
    batches: dict[str, int] = field(default_factory=dict)
    """A setting of the engine's batches by its name, which `tune` changes."""
    elsewhere: list[float] = field(default_factory=list)
    """Processor seconds of another process, so far."""

    def alone(self, sentence: str) -> str:
        return self.one(sentence) if self.one else self.many([sentence])[0]

    def tune(self, sentences: Sequence[str]) -> None:
        """Let the engine have the batches that are the fastest for these sentences."""
        for name in self.batches:
            times = {}
            for size in [size for size in BATCHES if size <= max(len(sentences), BATCHES[0])]:
                self.batches[name] = size
                times[size] = seconds(lambda: self.many(sentences))
            self.batches[name] = min(times, key=lambda size: times[size])


def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class NotThere(Exception):
    """The engine cannot do this here; why."""


# -- models --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A Transformer of random weights that reads and writes `tokens` tokens, words of a vocabulary of its own.

    The rows of the special tokens are zeros, so that no search ever writes one: everybody does the same work.
    """

    sizes: dict[str, Any]
    vocabulary: int
    tokens: int

    def sentences(self, count: int) -> list[str]:
        rng = random.Random(1)
        return [" ".join(rng.choices(self._words(), k=self.tokens)) for _ in range(count)]

    def _words(self) -> list[str]:
        syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
        words = map("".join, itertools.product(syllables, repeat=3))
        return list(itertools.islice(words, self.vocabulary - len(SPECIALS)))

    def write(self, folder: Path) -> None:
        """The run directory."""
        text = " ".join(self._words())
        settings = WhitespaceConfig(vocab_size=self.vocabulary)
        tokenizers = train_tokenizers(settings, lambda: iter([text]), lambda: iter([text]))
        torch.manual_seed(1)
        shape = config.parse(TransformerConfig, self.sizes)
        model = build_model(shape, tokenizers).eval()
        with torch.no_grad():
            for module in (model.src_embedding.tokens.embedding, model.tgt_embedding.tokens.embedding, model.output):  # type: ignore[union-attr]
                module.weight[: len(SPECIALS)] = 0.0  # type: ignore[index]
        files = {"type": "demo", "pair": "de-en", "split": "train"}
        recipe = {
            "run_dir": str(folder),
            "corpus": {"src_lang": "de", "tgt_lang": "en", "train": files, "valid": files},
            "tokenizer": {"type": "whitespace", "vocab_size": self.vocabulary},
            "model": {"type": "transformer", **self.sizes},
            # The last of the tokens may be a </s>, which these weights never write.
            "decoding": {"min_length": self.tokens - 1, "max_length_ratio": 0.0, "max_length_extra": self.tokens},
        }
        write_run(
            folder, config.parse(TranslationRecipe, recipe), checkpoint.weights(model), "random", "translation.py"
        )
        save_tokenizers(tokenizers, folder / "tokenizer")


def _sizes(d_model: int, d_ff: int, layers: int, heads: int, tied: str = "all") -> dict[str, Any]:
    layered = {"num_encoder_layers": layers, "num_decoder_layers": layers}
    return {"d_model": d_model, "d_ff": d_ff, "num_heads": heads, "tie_embeddings": tied, **layered}


SHAPES = {
    "tiny": Shape(_sizes(16, 32, 1, 2), vocabulary=64, tokens=4),
    "demo": Shape(_sizes(96, 256, 2, 4, "output"), vocabulary=1_500, tokens=10),
    "7.6M": Shape(_sizes(256, 1024, 3, 4), vocabulary=8_000, tokens=20),
    "60M": Shape(_sizes(512, 2048, 6, 8), vocabulary=32_000, tokens=20),
}
"""`demo`: that of `dragoman demo`, whose sentences are short; `tiny` is for tests."""


def model_folder(root: Path, run: Path | None, shape: str) -> Path:
    """A folder with the `run`, under a name of its own: a link to a given one, or a shape's. Exports come beside."""
    if run is None:
        folder = root / shape
        if not (folder / "run").exists():
            building = folder / f"run.part{os.getpid()}"
            SHAPES[shape].write(building)
            building.rename(folder / "run")
        return folder
    state = [str(run.resolve()), *sorted(f"{file.name} {file.stat().st_mtime_ns}" for file in run.rglob("*"))]
    folder = root / f"{run.resolve().name}-{hashlib.sha256(repr(state).encode()).hexdigest()[:8]}"
    if not (folder / "run").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run").symlink_to(run.resolve(), target_is_directory=True)
    return folder


# -- engines -------------------------------------------------------------------------------------------------------


def dragoman(cell: Cell) -> Loaded:
    precision: Any = cell.precision
    translator = SearchTranslator.load(
        cell.run, device="cpu", precision=precision, beam_size=cell.beam, n_best=1, stopping=cell.rule or "exact"
    )
    return Loaded(translator.translate, {"Dragoman": __version__, "PyTorch": torch.__version__})


def pytorch(cell: Cell) -> Loaded:
    """Ours by PyTorch's operations, as where there is no C compiler."""
    os.environ["CC"] = "false"
    return dragoman(cell)


def engine(cell: Cell) -> Loaded:
    """Our `--engine ctranslate2`, which scores by our own formula what CTranslate2 finds."""
    import ctranslate2

    if cell.precision not in ctranslate2.get_supported_compute_types("cpu"):
        raise NotThere(f"CTranslate2 has no {cell.precision} on this processor")
    target = export.target("ctranslate2")
    translator = SearchTranslator.load(cell.run, device="cpu", beam_size=cell.beam, n_best=1)
    folder = Path(cell.model, f"engine-{cell.precision}")
    if not folder.exists():
        folder.mkdir()
        target.write(translator, folder, None if cell.precision == "float32" else cell.precision)
    loaded: Any = target.load(folder, translator)
    return Loaded(loaded.translate, {"Dragoman": __version__, "CTranslate2": ctranslate2.__version__})


def ctranslate2(cell: Cell) -> Loaded:
    """Many sentences: workers of one thread each, sorted batches. One: all threads inside of its products, or one."""
    import ctranslate2

    if cell.precision not in ctranslate2.get_supported_compute_types("cpu"):
        raise NotThere(f"CTranslate2 has no {cell.precision} on this processor")
    if cell.rule not in ("", "full"):
        raise NotThere("CTranslate2 stops when as many are finished as the beam is wide (`full`)")
    translator = SearchTranslator.load(cell.run, device="cpu")
    tokenizers, decoding, folder = translator.tokenizers, translator.decoding, str(cell.exported("ctranslate2"))
    kind = {"compute_type": cell.precision}
    workers = ctranslate2.Translator(folder, inter_threads=cell.threads, intra_threads=1, **kind)
    singles = [ctranslate2.Translator(folder, inter_threads=1, intra_threads=cell.threads, **kind), workers]
    ids = {piece: i for i, piece in enumerate(pieces_of(tokenizers.tgt))}
    source_pieces = pieces_of(tokenizers.src)
    search: dict[str, Any] = {
        "beam_size": cell.beam, "length_penalty": 1.0, "disable_unk": True,
        "min_decoding_length": cell.forced,
    }  # fmt: skip

    batches = {"max_batch_size": BATCHES[0]}

    def translate(runtime: Any, sentences: Sequence[str]) -> list[str]:
        encoded = [tokenizers.src.encode(sentence) for sentence in sentences]
        longest = int(decoding.max_length_ratio * (1 + max(map(len, encoded))) + decoding.max_length_extra)
        given = [[source_pieces[i] for i in row] for row in encoded]
        results = runtime.translate_batch(given, max_decoding_length=longest, **batches, **search)
        return [tokenizers.tgt.decode([ids[piece] for piece in item.hypotheses[0]]) for item in results]

    def alone(sentence: str) -> str:
        """The first sentence tells which way is the faster one: threads that wait for each other may be slow."""
        if len(singles) > 1:
            times = [
                seconds(lambda runtime=runtime: [translate(runtime, [sentence]) for _ in range(5)])
                for runtime in singles
            ]  # type: ignore[misc]
            singles[:] = [singles[times.index(min(times))]]
        return translate(singles[0], [sentence])[0]

    versions = {"CTranslate2": ctranslate2.__version__}
    return Loaded(lambda sentences: translate(workers, sentences), versions, alone, batches)


def huggingface(cell: Cell) -> Loaded:
    import transformers

    rules = {"": False, "likely": False, "full": True, "exact": "never"}
    if cell.rule not in rules:
        raise NotThere(f"transformers has no rule {cell.rule}")
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if cell.precision not in dtypes:
        raise NotThere(f"`generate` has no {cell.precision} on a CPU without another library")
    transformers.logging.set_verbosity_error()
    translator = SearchTranslator.load(cell.run, device="cpu")
    tokenizers, decoding = translator.tokenizers, translator.decoding
    folder, dtype = cell.exported("huggingface"), dtypes[cell.precision]
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=dtype).eval()
    batches = {"batch": BATCHES[0]}
    least = {"min_new_tokens": cell.forced} if cell.forced else {}

    @torch.inference_mode()
    def translate(sentences: Sequence[str]) -> list[str]:
        encoded = [[*tokenizers.src.encode(sentence), EOS_ID] for sentence in sentences]
        order = sorted(range(len(encoded)), key=lambda row: -len(encoded[row]))
        results = [""] * len(encoded)
        for start in range(0, len(order), batches["batch"]):
            rows = order[start : start + batches["batch"]]
            src = torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(encoded[row]) for row in rows], batch_first=True, padding_value=PAD_ID
            )
            written = model.generate(
                input_ids=src,
                attention_mask=(src != PAD_ID).long(),
                num_beams=cell.beam,
                early_stopping=rules[cell.rule] if cell.beam > 1 else False,
                do_sample=False,
                decoder_start_token_id=BOS_ID,
                eos_token_id=EOS_ID,
                pad_token_id=PAD_ID,
                length_penalty=1.0,
                max_new_tokens=int(decoding.max_length_ratio * src.size(1) + decoding.max_length_extra),
                **least,
            )
            for row, ids in zip(rows, written.tolist(), strict=True):
                results[row] = tokenizers.tgt.decode([i for i in ids if i not in (PAD_ID, BOS_ID, EOS_ID)])
        return results

    versions = {"transformers": transformers.__version__, "PyTorch": torch.__version__}
    return Loaded(translate, versions, batches=batches)


def marian(cell: Cell) -> Loaded:
    """Marian in a process of its own, of the Python that DRAGOMAN_MARIAN names: its vocabularies cut and join.

    A `transformer-new` translates wrongly what stands beside a longer sentence: it gets those of one width at a time.
    In int8 it packs the matrices when it has loaded the model. Its search has no least length: in a model that never
    ends, the longest one, a multiple of the source's, is as good.
    """
    if cell.rule:
        raise NotThere("Marian's beam loses a place with each that is finished, and ends when none is left")
    if cell.precision not in ("float32", "int8"):
        raise NotThere(f"Marian has no {cell.precision} on a CPU")
    translator = SearchTranslator.load(cell.run, device="cpu", beam_size=cell.beam, n_best=1)
    decoding = marian_export.nearest(translator.decoding)
    if cell.forced:
        # A source has a </s>; Marian ends with the first length above its bound.
        decoding = replace(decoding, max_length_ratio=(cell.forced - 0.5) / (1 + cell.forced))
    python, _, _, *settings = marian_export.command(cell.exported("marian"), decoding, cell.threads)
    settings += ["--skip-cost"] if cell.beam == 1 else []
    settings += ["--optimize", "true", "--gemm-type", "packed8"] if cell.precision == "int8" else []
    process = subprocess.Popen(
        [python, str(PEERS / "translate_marian.py"), *settings],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    elsewhere, batches = [0.0], {"mini-batch": BATCHES[0]}

    def answer(sentences: Sequence[str]) -> Any:
        try:
            print(json.dumps({"sentences": sentences, **batches}), file=process.stdin, flush=True)
            assert process.stdout is not None
            if line := process.stdout.readline():
                return json.loads(line)
        except BrokenPipeError:
            pass
        errors = process.communicate()[1].strip().splitlines()
        if any("No module named" in line for line in errors):
            raise NotThere("not installed: pip install pymarian, and name its Python in DRAGOMAN_MARIAN")
        raise NotThere(f"Marian ended with {process.returncode} {' '.join(errors[-1:])}".strip())

    def together(sentences: Sequence[str]) -> list[str]:
        reply = answer(sentences)
        elsewhere[0] += reply["cpu_seconds"]
        translations: list[str] = reply["translations"]
        return translations

    def by_width(sentences: Sequence[str]) -> list[str]:
        results = [""] * len(sentences)
        for rows in marian_export.by_width([len(tokenizer.encode(sentence)) for sentence in sentences]):
            for row, translation in zip(rows, together([sentences[row] for row in rows]), strict=True):
                results[row] = translation
        return results

    tokenizer = translator.tokenizers.src
    is_new = not cell.forced and marian_weights.kind_of(cast(Transformer, translator.model)) == marian_weights.NEW
    translate = by_width if is_new else together

    return Loaded(translate, {"pymarian": answer([])["version"]}, batches=batches, elsewhere=elsewhere)


ENGINES: dict[str, Callable[[Cell], Loaded]] = {
    "dragoman": dragoman,
    "pytorch": pytorch,
    "engine": engine,
    "ctranslate2": ctranslate2,
    "marian": marian,
    "huggingface": huggingface,
}
NAMES = {
    "dragoman": "Dragoman",
    "pytorch": "Dragoman without a compiler",
    "engine": "Dragoman, `--engine ctranslate2`",
    "ctranslate2": "CTranslate2",
    "marian": "Marian",
    "huggingface": "Hugging Face",
}
OWN_RULE = {"dragoman": "exact", "pytorch": "exact", "ctranslate2": "full", "engine": "full", "marian": "Marian's",
            "huggingface": "likely"}  # fmt: skip
"""When a beam is done, if nothing else is asked for (`DecodingConfig.stopping`)."""
