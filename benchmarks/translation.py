"""Sentences per second of translation engines on the same model, sentences and search, in turn on one machine.

    python benchmarks/translation.py --run RUN --src test.en [--forced] [--beam-size 5] [--passes 3] ENGINE ...

ENGINE is NAME or NAME:PRECISION: `dragoman` (PyTorch; float32, bfloat16), `engine` (our `--engine ctranslate2`),
`direct` (CTranslate2 called directly; float32, int8, ...), `exact` (the same, asked for all hypotheses that our search
would have looked at, so that the output is ours), `huggingface` (transformers' `generate` on our export;
float32, bfloat16), `marian` (pymarian of the Python that DRAGOMAN_MARIAN names, on our export; float32, int8). Each
pass of each engine is a process of its own, the engines alternating; what is timed is text to text, after 256 sentences
that do not count, without loading the model. What Dragoman sets in the environment for itself (`device.py`) holds for
`dragoman` and `engine` alone.

`--forced`: not the run's model but random weights of the shape that other toolkits were measured with (3+3 layers,
d_model 256, d_ff 1024, 4 heads), every translation of exactly 20 tokens. The tokenizer is the run's either way.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peers.untouched import ENVIRONMENT

from dragoman import export
from dragoman.backends.packed_linear import pack
from dragoman.data.batch import WIDTH_MULTIPLE
from dragoman.data.eval_batches import even_batches
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.transformer import TransformerConfig
from dragoman.text.lines import read_lines
from dragoman.text.tokenizers.base import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID

FORCED_TOKENS = 20
SHAPE = TransformerConfig(d_model=256, d_ff=1024, num_heads=4, num_encoder_layers=3, num_decoder_layers=3)
HUGGINGFACE_BATCH = 64
MARIAN = Path(__file__).parent / "peers" / "translate_marian.py"
WARM_UP = 256
"""Sentences that do not count: the memory of batches as large as any is there when the clock starts."""


def translator_of(options: argparse.Namespace, precision: str) -> SearchTranslator:
    changes: dict[str, Any] = {"beam_size": options.beam_size}
    if options.forced:
        # As many steps as the others take: the last token may be a </s>, which random weights hardly ever write.
        changes |= {"min_length": FORCED_TOKENS - 1, "max_length_ratio": 0.0, "max_length_extra": FORCED_TOKENS}
    translator = SearchTranslator.load(options.run, precision=precision, **changes)  # type: ignore[arg-type]
    if options.forced:
        torch.manual_seed(1)
        model = build_model(SHAPE, translator.tokenizers).eval()
        # No special is ever among the best, as in a trained model: ours are banned from being written, with searches
        # that go another way for it, and what the others do with them would not be the same work.
        with torch.no_grad():
            for module in (model.tgt_embedding.tokens.embedding, model.output):  # type: ignore[union-attr]
                module.weight[: len(SPECIALS)] = 0.0  # type: ignore[index]
        translator.model = model.to(next(translator.model.parameters()).dtype)
        pack(translator.model)
    return translator


def dragoman(options: argparse.Namespace, precision: str, folder: Path) -> Callable[[Sequence[str]], list[str]]:
    return translator_of(options, precision).translate


def engine(options: argparse.Namespace, precision: str, folder: Path) -> Callable[[Sequence[str]], list[str]]:
    translator = translator_of(options, "float32")
    target = export.target("ctranslate2")
    target.write(translator, folder, None if precision == "float32" else precision)
    return target.load(folder, translator).translate


def direct(options: argparse.Namespace, precision: str, folder: Path) -> Callable[[Sequence[str]], list[str]]:
    import ctranslate2

    translator = translator_of(options, "float32")
    export.target("ctranslate2").write(translator, folder, None if precision == "float32" else precision)
    runtime = ctranslate2.Translator(str(folder), inter_threads=torch.get_num_threads(), intra_threads=1)
    tokenizer = translator.tokenizers
    search: dict[str, Any] = {"beam_size": options.beam_size, "max_batch_size": 64, "length_penalty": 1.0}
    if options.forced:
        search |= {"min_decoding_length": FORCED_TOKENS, "max_decoding_length": FORCED_TOKENS}

    def translate(sentences: Sequence[str]) -> list[str]:
        pieces = [tokenizer.src.pieces(tokenizer.src.encode(sentence)) for sentence in sentences]
        found = runtime.translate_batch(pieces, **search)
        return [tokenizer.tgt.decode([ids[piece] for piece in item.hypotheses[0]]) for item in found]

    ids = {piece: i for i, piece in enumerate(tokenizer.tgt.pieces(range(tokenizer.tgt.vocab_size)))}
    return translate


def exact(options: argparse.Namespace, precision: str, folder: Path) -> Callable[[Sequence[str]], list[str]]:
    """CTranslate2's `translate_batch` on batches of one width, on to the longest length that is allowed: nothing that
    it has not looked at can score better. What one would write by hand for our output."""
    import ctranslate2

    translator = translator_of(options, "float32")
    export.target("ctranslate2").write(translator, folder, None if precision == "float32" else precision)
    runtime = ctranslate2.Translator(str(folder), inter_threads=torch.get_num_threads(), intra_threads=1)
    tokenizer, decoding = translator.tokenizers, translator.decoding
    pieces_of = tokenizer.tgt.pieces(range(tokenizer.tgt.vocab_size))
    ids = {piece: i for i, piece in enumerate(pieces_of)}
    banned = [PAD_ID, BOS_ID, UNK_ID]

    def best(answer: Any, limit: int) -> list[int]:
        scored = [
            (log_prob / decoding.length_penalty.divisor(len(pieces)), [ids[piece] for piece in pieces])
            for pieces, log_prob in zip(answer.hypotheses, answer.scores, strict=True)
            if len(pieces) <= limit
        ]
        if not scored:  # greedy search that went on beyond what this sentence may have
            return [ids[piece] for piece in answer.hypotheses[0]][:limit]
        ended = [item for item in scored if item[1][-1] == EOS_ID and not set(banned) & set(item[1])]
        return max(ended or scored)[1]

    def translate(sentences: Sequence[str]) -> list[str]:
        encoded = [tokenizer.src.encode(sentence) for sentence in sentences]
        limits = [int(decoding.max_length_ratio * (len(row) + 1) + decoding.max_length_extra) for row in encoded]
        jobs = []
        for rows in even_batches([len(row) for row in encoded], 1024, WIDTH_MULTIPLE):
            longest = max(limits[row] for row in rows)
            answers = runtime.translate_batch(
                [tokenizer.src.pieces(encoded[row]) for row in rows],
                asynchronous=True,
                beam_size=decoding.beam_size,
                num_hypotheses=decoding.beam_size * longest if decoding.beam_size > 1 else 1,
                patience=longest,
                length_penalty=1e-30,  # scores are bare log probabilities
                end_token=[EOS_ID, *banned],
                return_end_token=True,
                max_input_length=0,
                max_decoding_length=longest,
                min_decoding_length=decoding.min_length,
                return_scores=True,
            )
            jobs.append((rows, answers))
        results = [""] * len(sentences)
        for rows, answers in jobs:
            for row, answer in zip(rows, answers, strict=True):
                written = [i for i in best(answer.result(), limits[row]) if i != EOS_ID]
                results[row] = tokenizer.tgt.decode(written)
        return results

    return translate


def huggingface(options: argparse.Namespace, precision: str, folder: Path) -> Callable[[Sequence[str]], list[str]]:
    from transformers import AutoModelForSeq2SeqLM

    translator = translator_of(options, "float32")
    export.target("huggingface").write(translator, folder, None)
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=dtype).eval()
    tokenizer = translator.tokenizers
    lengths = {"min_new_tokens": FORCED_TOKENS, "max_new_tokens": FORCED_TOKENS} if options.forced else {}

    @torch.inference_mode()
    def translate(sentences: Sequence[str]) -> list[str]:
        encoded = [[*tokenizer.src.encode(sentence), EOS_ID] for sentence in sentences]
        order = sorted(range(len(encoded)), key=lambda row: -len(encoded[row]))
        results = [""] * len(encoded)
        for start in range(0, len(order), HUGGINGFACE_BATCH):
            rows = order[start : start + HUGGINGFACE_BATCH]
            src = torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(encoded[row]) for row in rows], batch_first=True, padding_value=PAD_ID
            )
            found = model.generate(
                input_ids=src,
                attention_mask=(src != PAD_ID).long(),
                num_beams=options.beam_size,
                do_sample=False,
                decoder_start_token_id=BOS_ID,
                eos_token_id=EOS_ID,
                pad_token_id=PAD_ID,
                length_penalty=1.0,
                **(lengths or {"max_new_tokens": 2 * src.size(1) + 20}),
            )
            for row, ids in zip(rows, found.tolist(), strict=True):
                results[row] = tokenizer.tgt.decode([i for i in ids if i not in (PAD_ID, BOS_ID, EOS_ID)])
        return results

    return translate


class Marian:
    """Marian in a process of its own, text to text there as well: its vocabularies cut and join."""

    def __init__(self, options: argparse.Namespace, precision: str, folder: Path) -> None:
        """In int8 Marian packs the matrices when it has loaded the model."""
        from dragoman.export import marian as target

        if options.forced:
            raise SystemExit("marian: its own search has no least length, so --forced is not for it")
        translator = translator_of(options, "float32")
        translator = translator.with_decoding(**vars(target.nearest(translator.decoding)))
        target.write(translator, folder)
        python, _, _, *settings = target.command(folder, translator.decoding, torch.get_num_threads())
        settings += ["--skip-cost"] if options.beam_size == 1 else []
        settings += ["--optimize", "true", "--gemm-type", "packed8"] if precision == "int8" else []
        command = [python, str(MARIAN), *settings]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.cpu_seconds = 0.0

    def __call__(self, sentences: Sequence[str]) -> list[str]:
        print(json.dumps(sentences), file=self.process.stdin, flush=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args}: ended with {self.process.wait()}")
        answer = json.loads(line)
        self.cpu_seconds += answer["cpu_seconds"]
        translations: list[str] = answer["translations"]
        return translations


def cpu_seconds(translate: Callable[[Sequence[str]], list[str]]) -> float:
    """The processor time of this process, and of the one in which an engine translates."""
    return time.process_time() + getattr(translate, "cpu_seconds", 0.0)


@contextmanager
def loaded(options: argparse.Namespace) -> Iterator[tuple[Callable[[Sequence[str]], list[str]], list[str]]]:
    """The first of the engines, warm, and the sentences."""
    name, _, precision = options.engines[0].partition(":")
    if name not in ("dragoman", "engine"):  # the limits are read when the first product is computed
        os.environ.clear()
        os.environ.update(ENVIRONMENT)
    sentences = list(read_lines(options.src))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "export"
        target.mkdir()
        translate = ENGINES[name](options, precision or "float32", target)
        translate(sentences[:WARM_UP])
        yield translate, sentences


def one_pass(options: argparse.Namespace) -> None:
    """Time one engine; a line of JSON."""
    with loaded(options) as (translate, sentences):
        wall, cpu = time.perf_counter(), cpu_seconds(translate)
        found = translate(sentences)
        wall, cpu = time.perf_counter() - wall, cpu_seconds(translate) - cpu
    print(json.dumps({"sentences": len(found), "seconds": wall, "cpu_seconds": cpu, "text": found}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path)
    parser.add_argument("--tokenize", default="none", help="sacreBLEU's tokenizer for --ref")
    parser.add_argument("--forced", action="store_true")
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--one-pass", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("engines", nargs="+", metavar="ENGINE")
    options = parser.parse_args()
    if options.one_pass:
        one_pass(options)
        return
    timed: dict[str, list[dict[str, Any]]] = {name: [] for name in options.engines}
    shared = ["--run", str(options.run), "--src", str(options.src), "--beam-size", str(options.beam_size)]
    for number in range(options.passes):
        for name in options.engines:
            command = [sys.executable, __file__, *shared, *["--forced"] * options.forced, "--one-pass", name]
            answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=ENVIRONMENT).stdout
            timed[name].append(json.loads(answer.splitlines()[-1]))
            print(f"pass {number + 1} {name}: {timed[name][-1]['seconds']:.2f} s", file=sys.stderr, flush=True)
    kind = f"forced to {FORCED_TOKENS} tokens" if options.forced else str(options.run)
    print(f"{kind}, beam {options.beam_size}, {torch.get_num_threads()} threads, PyTorch {torch.__version__}")
    print("| engine | sentences/s, best of passes (median) | processor seconds | BLEU |")
    print("|---|---|---|---|")
    for name, passes in timed.items():
        rates = sorted(item["sentences"] / item["seconds"] for item in passes)
        bleu = _bleu(passes[0]["text"], options)
        cpu = min(item["cpu_seconds"] for item in passes)
        print(f"| {name} | {rates[-1]:.0f} ({statistics.median(rates):.0f}) | {cpu:.1f} | {bleu} |")


def _bleu(found: list[str], options: argparse.Namespace) -> str:
    if options.ref is None or options.forced:
        return "-"
    import sacrebleu

    metric = sacrebleu.BLEU(tokenize=options.tokenize, force=True)
    return f"{metric.corpus_score(found, [list(read_lines(options.ref))]).score:.2f}"


ENGINES: dict[str, Callable[[argparse.Namespace, str, Path], Callable[[Sequence[str]], list[str]]]] = {
    "dragoman": dragoman,
    "engine": engine,
    "direct": direct,
    "exact": exact,
    "huggingface": huggingface,
    "marian": Marian,
}

if __name__ == "__main__":
    main()
