"""Text in, text out: the one inference path, under the command line, validation, evaluation and whatever serves."""

import copy
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch

from dragoman import checkpoint, config
from dragoman.data.batch import WIDTH_MULTIPLE, collate, collate_src
from dragoman.data.plan import BatchPlan
from dragoman.decoding.search import DecodingConfig, Hypothesis, search
from dragoman.device import pick_device
from dragoman.errors import DragomanError
from dragoman.models import ModelConfig, Seq2SeqModel
from dragoman.models.ensemble import Ensemble
from dragoman.text.corpus import CorpusConfig
from dragoman.text.languages import written_without_spaces
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers import TokenizerPair, load_tokenizers
from dragoman.text.tokenizers.base import EOS_ID, PAD_ID, SPECIALS

BATCH_TOKENS = 1024
"""Source positions of a batch in decoding, pads included (times beam_size rows in the decoder)."""

STREAM_LINES = 2048
"""Lines that `stream` reads ahead, to sort them by length."""

_SENTENCE_END = re.compile(r"(?<=[.!?])(?=\s)|(?<=[。！？])")


@dataclass(frozen=True)
class Translation:
    """One translation: its text, the score it was ranked by, its log-probability in nats."""

    text: str
    score: float
    log_prob: float


class Scored(NamedTuple):
    """How probable a model finds a given translation."""

    score: float
    """Its log probability under the length penalty: what a search would have ranked it by."""
    log_prob: float
    """In nats, `</s>` counted."""
    tokens: list[tuple[str, float]]
    """Each token and its log probability after those before it, `</s>` the last."""


class Translator:
    """A model with its tokenizers. `Translator.load(run)` or `dragoman.load(run)` makes one from a run directory."""

    def __init__(
        self,
        model: Seq2SeqModel,
        tokenizers: TokenizerPair,
        *,
        decoding: DecodingConfig,
        normalize: str = "none",
        max_src_tokens: int = 256,
        join: str = " ",
        device: torch.device | None = None,
    ) -> None:
        self.model, self.tokenizers, self.decoding = model, tokenizers, decoding
        self.normalize = NORMALIZERS[normalize]
        self.max_src_tokens, self.join = max_src_tokens, join
        self.device = device or torch.device("cpu")

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        which: str = "best",
        device: str = "auto",
        ensemble: Sequence[str | Path] = (),
        **decoding: Any,
    ) -> "Translator":
        """The translator of a run directory: checkpoint `best`, `last` or a step, decoding settings changed at will.

        `decoding` are fields of `DecodingConfig`; `alpha` changes that of the recipe's own length penalty. `ensemble`:
        further runs, of the same tokenizer, whose models (their `best`) translate together with this one.

        Raises DragomanError when a run holds no checkpoint that verifies or the parts do not fit together.
        """
        run_dir = Path(run)
        source = run_dir / "config.yaml"
        recipe = read_run(run_dir, "translation")
        settings = {**recipe.get("decoding", {}), **decoding}
        if "alpha" in decoding:  # of the recipe's own length penalty
            penalty = recipe.get("decoding", {}).get("length_penalty", {})
            kind = {} if penalty.get("type", "none") == "none" else penalty
            settings["length_penalty"] = {"type": "average", **kind, "alpha": settings.pop("alpha")}
        corpus = config.parse(CorpusConfig, recipe.get("corpus", {}), f"{source}: corpus")
        tokenizers = load_tokenizers(run_dir / "tokenizer")
        model = _model(run_dir, which, tokenizers)
        if ensemble:
            for other in map(Path, ensemble):
                _require_same_tokenizer(run_dir, other)
            model = Ensemble([model, *(_model(Path(other), "best", tokenizers) for other in ensemble)])
        chosen = pick_device(device)
        return cls(
            model.to(chosen).eval(),
            tokenizers,
            decoding=config.parse(DecodingConfig, settings, "decoding settings"),
            normalize=corpus.normalize,
            max_src_tokens=corpus.max_tokens,
            join="" if written_without_spaces(corpus.tgt_lang) else " ",
            device=chosen,
        )

    def with_decoding(self, **changes: Any) -> "Translator":
        """This translator, of the same model, with some fields of its `DecodingConfig` changed."""
        other = copy.copy(self)
        other.decoding = replace(self.decoding, **changes)
        return other

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """The best translation of each sentence, in order; blank sentences stay blank.

        Raises TypeError for a bare string, which would be taken for a list of one-letter sentences.
        """
        return [found[0].text for found in self.n_best(sentences)]

    def stream(self, lines: Iterable[str], buffer: int = STREAM_LINES) -> Iterator[list[Translation]]:
        """`n_best` for input of any length: reads `buffer` lines ahead and keeps the order."""
        source = iter(lines)
        while chunk := list(itertools.islice(source, buffer)):
            yield from self.n_best(chunk)

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """The `decoding.n_best` best translations of each sentence, best first; no text twice.

        A sentence of more than `max_src_tokens` tokens, longer than anything the model was trained on, is cut at the
        ends of sentences, or else between words; the best translations of its parts are joined, as one translation.

        Raises TypeError for a bare string.
        """
        if isinstance(sentences, str):
            raise TypeError(f"give a list of sentences, not one string: [{sentences!r}]")
        parts = [self._parts(self.normalize(sentence)) for sentence in sentences]
        found = iter(self._search([ids for of_sentence in parts for ids in of_sentence]))
        return [self._joined(list(itertools.islice(found, len(of_sentence)))) for of_sentence in parts]

    def _search(self, sentences: list[list[int]]) -> list[list[Translation]]:
        results: list[list[Translation]] = []
        for hypotheses in self._hypotheses(sentences):
            found: dict[str, Translation] = {}  # what is spelt with other tokens is the same translation
            for item in hypotheses:
                text = self.tokenizers.tgt.decode(item.ids)
                found.setdefault(text, Translation(text, item.score, item.log_prob))
            results.append(list(found.values()))
        return results

    def _hypotheses(self, sentences: list[list[int]]) -> list[list[Hypothesis]]:
        """What a search finds for each sentence, best first. Another engine takes the place of this method alone."""
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        # Batches of one width, a multiple of 8: a translation and its scores shall not depend, even in the last bit, on
        # what is translated beside it. A few sentences of unlike lengths are searched in several small batches then.
        for rows in BatchPlan.even_batches([len(ids) for ids in sentences], BATCH_TOKENS, WIDTH_MULTIPLE):
            src, src_mask = collate_src([sentences[row] for row in rows], WIDTH_MULTIPLE, self.max_src_tokens)
            found = search(self.model, src.to(self.device), src_mask.to(self.device), self.decoding)
            for row, hypotheses in zip(rows, found, strict=True):
                results[row] = hypotheses
        return results

    @torch.inference_mode()
    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Scored]:
        """How probable the model finds given translations: of (source, translation) pairs, in order.

        Nothing is cut or left out. Raises DragomanError, naming the pair, for a blank side or a source of more tokens
        than are translated at once (`max_src_tokens`).
        """
        encoded = []
        for number, (src, tgt) in enumerate(pairs, start=1):
            ids = self.tokenizers.src.encode(self.normalize(src)), self.tokenizers.tgt.encode(self.normalize(tgt))
            for side, found in zip(("source", "translation"), ids, strict=True):
                if not found:
                    raise DragomanError(f"pair {number:,}: the {side} is blank: it has no probability")
            if len(ids[0]) > self.max_src_tokens:
                raise DragomanError(
                    f"pair {number:,}: the source has {len(ids[0])} tokens; a translator reads up to "
                    f"{self.max_src_tokens} at once: cut it"
                )
            encoded.append(ids)
        results: list[Scored | None] = [None] * len(pairs)
        widths = [max(len(src), len(tgt)) for src, tgt in encoded]
        self.model.eval()
        for rows in BatchPlan.even_batches(widths, BATCH_TOKENS, WIDTH_MULTIPLE):
            batch = collate([encoded[row] for row in rows]).to(self.device)
            log_probs = self.model(batch.src, batch.src_mask, batch.tgt_in).log_softmax(dim=-1, dtype=torch.float32)
            found = log_probs.gather(2, batch.tgt_out[:, :, None])[:, :, 0]  # (batch, tgt_len)
            for row, values in zip(rows, found.tolist(), strict=True):
                ids = encoded[row][1]
                pieces = [*self.tokenizers.tgt.pieces(ids), SPECIALS[EOS_ID]]
                tokens = list(zip(pieces, values, strict=False))  # what comes after </s> is padding
                total = sum(value for _, value in tokens)
                divisor = self.decoding.length_penalty.divisor(len(tokens))
                results[row] = Scored(total / divisor, total, tokens)
        return [result for result in results if result is not None]

    def _parts(self, sentence: str) -> list[list[int]]:
        """The ids of a sentence: none for a blank one, one list, or several for one that is too long."""
        if not sentence.strip():
            return []
        ids = self.tokenizers.src.encode(sentence)
        if len(ids) <= self.max_src_tokens:
            return [ids]
        encode = self.tokenizers.src.encode
        return [encode(part) for part in split_long(sentence, lambda text: len(encode(text)), self.max_src_tokens)]

    def _joined(self, parts: list[list[Translation]]) -> list[Translation]:
        if not parts:
            return [Translation("", 0.0, 0.0)]
        if len(parts) == 1:
            return parts[0]
        best = [translations[0] for translations in parts]
        log_prob = sum(item.log_prob for item in best)
        score = sum(item.score for item in best) / len(best)
        return [Translation(self.join.join(item.text for item in best), score, log_prob)]


def build_model(model: Any, tokenizers: TokenizerPair) -> Seq2SeqModel:
    """The model of a recipe's `model:` for these vocabularies, freshly initialised."""
    built: Seq2SeqModel = model.build(
        src_vocab_size=tokenizers.src.vocab_size,
        tgt_vocab_size=tokenizers.tgt.vocab_size,
        shared_vocab=tokenizers.shared,
        pad_id=PAD_ID,
    )
    return built


def split_long(text: str, count: Callable[[str], int], limit: int) -> list[str]:
    """Cut `text` into parts of at most `limit` tokens: between sentences, or else between words, or else anywhere.

    >>> split_long("One two. Three four five. Six.", lambda part: len(part.split()), limit=4)
    ['One two.', 'Three four five. Six.']
    """
    pieces = [piece for piece in _SENTENCE_END.split(text) if piece.strip()]  # each with the spaces before it
    if len(pieces) == 1:
        pieces = re.findall(r"\s*\S+", text)
    if len(pieces) == 1:
        middle = len(text) // 2
        if middle == 0:
            return [text]
        pieces = [text[:middle], text[middle:]]
    parts: list[str] = []
    held = ""
    for piece in pieces:
        if count(held + piece) <= limit:
            held += piece
            continue
        parts.append(held)
        held = piece
        if count(piece) > limit:
            parts += split_long(piece.strip(), count, limit)
            held = ""
    return [part.strip() for part in [*parts, held] if part.strip()]


def _model(run_dir: Path, which: str, tokenizers: TokenizerPair) -> Seq2SeqModel:
    """The model of a run with the weights of a checkpoint."""
    recipe = read_run(run_dir, "translation")
    union = cast(Any, ModelConfig)  # which mypy does not take for a type
    settings = config.parse(union, recipe.get("model", {}), f"{run_dir / 'config.yaml'}: model")
    return checkpoint.restored(checkpoint.select(run_dir, which), lambda: build_model(settings, tokenizers))


def _require_same_tokenizer(run_dir: Path, other: Path) -> None:
    """Raises DragomanError unless two runs have the same tokenizer, byte for byte."""
    read_run(other, "translation")
    first, second = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.suffix in (".json", ".model")
        }
        for folder in (run_dir / "tokenizer", other / "tokenizer")
    )
    if first != second:
        raise DragomanError(
            f"{other}: its tokenizer is another one than that of {run_dir}: the models of an ensemble need one; train "
            "them on the same corpus with the same `tokenizer:`"
        )


def check_run_dir(run: str | Path) -> Path:
    """The run directory as a path. Raises DragomanError when there is none."""
    path = Path(run)
    if not (path / "config.yaml").is_file():
        raise DragomanError(f"{path}: not a run directory (it has no config.yaml)")
    return path


COMMANDS = {
    "translation": "translate",
    "classification": "predict",
    "image_classification": "predict",
    "language_modelling": "generate",
}
"""What each task's runs are used with on the command line."""


def read_run(run: str | Path, *tasks: str) -> dict[str, Any]:
    """The recipe of a run directory, as plain data. Raises DragomanError unless its task is one of `tasks`."""
    path = check_run_dir(run)
    recipe = config.read_yaml(path / "config.yaml")
    task = recipe.setdefault("task", "translation")
    if task not in tasks:
        hint = f"use it with `dragoman {COMMANDS[task]} {path}`" if task in COMMANDS else "it is of another version"
        raise DragomanError(f"{path}: a run for {task.replace('_', ' ')}, not for {tasks[0].replace('_', ' ')}: {hint}")
    return recipe
