"""Text in, text out: the one inference path, under the command line, validation, evaluation and whatever serves."""

import copy
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import torch
from torch.nn import functional

from dragoman import config
from dragoman.backends.accelerate import accelerate_inference
from dragoman.data.batch import WIDTH_MULTIPLE, collate, collate_src
from dragoman.data.batching import BatchPlan
from dragoman.decoding.base import ROW_MULTIPLE, FoundNothing
from dragoman.decoding.constrained import Terms
from dragoman.decoding.continuous_batching import Search
from dragoman.decoding.rules import Ban, BeginWith
from dragoman.decoding.search import DecodingConfig, Hypothesis, begin, default_max_lengths, search_together
from dragoman.device import pick_device, side_by_side
from dragoman.errors import DragomanError
from dragoman.inference.banned_phrases import Avoid
from dragoman.inference.glossary import HELD, Glossary
from dragoman.inference.mbr import expected_utility
from dragoman.models.ensemble import Ensemble
from dragoman.models.families import ModelConfig, Seq2SeqModel
from dragoman.runs import checkpoint
from dragoman.runs.directory import read_run, require_alike
from dragoman.text.corpus import CorpusConfig
from dragoman.text.languages import written_without_spaces
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers import TokenizerPair, load_tokenizers
from dragoman.text.tokenizers.base import EOS_ID, PAD_ID, SPECIALS

BATCH_TOKENS = 2048
"""Source positions of a batch in decoding, pads included (times beam_size rows in the decoder)."""

STREAM_LINES = 2048
"""Lines that `stream` reads ahead, to sort them by length."""

SPELLINGS = 100
"""A sentence is searched at most so often for a translation without a phrase that is to be avoided."""

_SENTENCE_END = re.compile(r"(?<=[.!?])(?=\s)|(?<=[。！？])")


@dataclass(frozen=True)
class Translation:
    """One translation: its text, the score it was ranked by, its log-probability in nats."""

    text: str
    score: float
    log_prob: float
    warnings: tuple[str, ...] = ()
    """What is visibly wrong with it (`inference/warnings.py`), where that was asked for."""


Reranker = Callable[[Sequence[str], Sequence[list[Translation]]], list[list[Translation]]]
"""Puts the translations of each source, all of them, into another order, with scores that say why."""


class Part(NamedTuple):
    """What is searched at once: a sentence, or a part of one that is too long."""

    ids: list[int]
    terms: Terms
    """What its translation must hold."""
    prefix: list[int]
    """What its translation begins with."""
    banned: tuple[tuple[int, ...], ...] = ()
    """Sequences of tokens that its translation does not hold."""


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
        glossary: Glossary | None = None,
        avoid: Avoid | None = None,
        device: torch.device | None = None,
        languages: tuple[str, str] | None = None,
    ) -> None:
        self.model, self.tokenizers, self.decoding = model, tokenizers, decoding
        self.normalize = NORMALIZERS[normalize]
        self.max_src_tokens, self.join = max_src_tokens, join
        self.glossary = None if glossary is None else glossary.normalized(self.normalize)
        self.avoid = None if avoid is None else avoid.normalized(self.normalize)
        if self.glossary:
            self._require_writable(self.glossary)
        if self.glossary and self.avoid:
            for term in self.glossary.targets.values():
                self._require_free(f"{self.glossary.place(term)}term {term!r}", term)
        self.device = device or torch.device("cpu")
        self.languages = languages  # codes, from and to
        self.reranker: Reranker | None = None

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        which: str = "best",
        device: str = "auto",
        ensemble: Sequence[str | Path] = (),
        glossary: Glossary | None = None,
        avoid: Avoid | None = None,
        precision: Literal["float32", "bfloat16"] = "float32",
        packed: bool = True,
        changes: Sequence[str] = (),
        **decoding: Any,
    ) -> "Translator":
        """The translator of a run directory: checkpoint `best`, `last` or a step, decoding settings changed at will.

        `decoding` are fields of `DecodingConfig`, `changes` the same as text ("decoding.sampling.samples=8"); `alpha`
        changes that of the recipe's own length penalty. `ensemble`:
        further runs, of the same tokenizer, whose models (their `best`) translate together with this one. Translations
        hold the target terms of the terms of `glossary` that stand in their source, and no phrase of `avoid`. In
        `precision` bfloat16 weights and hidden states have half the bits: faster where the processor has such products;
        scores are a little rougher. `packed=False` leaves linear layers as they are trained, which is slower.

        Raises DragomanError when a run holds no checkpoint that verifies or the parts do not fit together.
        """
        run_dir = Path(run)
        source = run_dir / "config.yaml"
        recipe = read_run(run_dir, "translation")
        changed = config.override({"decoding": recipe.get("decoding", {})}, changes)
        if not isinstance(changed["decoding"], dict) or len(changed) > 1:
            raise DragomanError(f"{' '.join(changes)}: a run is made; only decoding.SETTING=VALUE can be changed here")
        given = {"decoding.length_penalty" if name == "alpha" else f"decoding.{name}" for name in decoding}
        for change in changes:
            key = change.partition("=")[0].strip()
            if any(f"{key}.".startswith(f"{name}.") for name in given):
                raise DragomanError(f"{change}: an option says it, too: give one of both")
        settings = {**changed["decoding"], **decoding}
        if "alpha" in decoding:  # of the length penalty that is set
            penalty = changed["decoding"].get("length_penalty", {})
            kind = {} if penalty.get("type", "none") == "none" else penalty
            settings["length_penalty"] = {"type": "average", **kind, "alpha": settings.pop("alpha")}
        corpus = config.parse(CorpusConfig, recipe.get("corpus", {}), f"{source}: corpus")
        tokenizers = load_tokenizers(run_dir / "tokenizer")
        model, longest = _model(run_dir, which, tokenizers), [corpus.max_tokens]
        if ensemble:
            for other in map(Path, ensemble):
                require_alike(run_dir, other)
                theirs = read_run(other, "translation").get("corpus", {})
                longest.append(config.parse(CorpusConfig, theirs, f"{other / 'config.yaml'}: corpus").max_tokens)
            model = Ensemble([model, *(_model(Path(other), "best", tokenizers) for other in ensemble)])
        chosen = pick_device(device)
        model = model.to(chosen, {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]).eval()
        accelerate_inference(model, packed=packed and chosen.type == "cpu")
        return cls(
            model,
            tokenizers,
            decoding=config.parse(DecodingConfig, settings, "decoding settings"),
            normalize=corpus.normalize,
            max_src_tokens=min(longest),
            join="" if written_without_spaces(corpus.tgt_lang) else " ",
            glossary=glossary,
            avoid=avoid,
            device=chosen,
            languages=(corpus.src_lang, corpus.tgt_lang),
        )

    def with_decoding(self, **changes: Any) -> "Translator":
        """This translator, of the same model, with some fields of its `DecodingConfig` changed."""
        other = copy.copy(self)
        other.decoding = replace(self.decoding, **changes)
        return other

    def reranked_by(self, reranker: "Reranker") -> "Translator":
        """This translator, of the same model, whose n best are the best by `reranker` of all that its search holds.

        Of a sentence that is translated in parts there is one translation, which nothing ranks.

        Raises DragomanError where settings rank translations by another measure already, or a search holds but one.
        """
        if self.decoding.mbr != "none":
            raise DragomanError("decoding.mbr ranks translations already: leave it, or the other ranking")
        if self.decoding.num_candidates == 1:
            raise DragomanError("a search with one hypothesis leaves nothing to rank: raise the beam size")
        if self.glossary is not None:
            _ = self._glue  # kept by each translator; `n_best` makes one that is thrown away
        other = copy.copy(self)
        other.reranker = reranker
        return other

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """The best translation of each sentence, in order; blank sentences stay blank.

        Raises TypeError for a bare string, which would be taken for a list of one-letter sentences.
        """
        return [found[0].text for found in self.n_best(sentences)]

    def stream(self, lines: Iterable[str], buffer: int = STREAM_LINES) -> Iterator[list[Translation]]:
        """`n_best` for input of any length: reads `buffer` lines ahead and keeps the order."""
        for chunk in in_chunks(lines, buffer):
            yield from self.n_best(chunk)

    def n_best(self, sentences: Sequence[str], prefixes: Sequence[str] | None = None) -> list[list[Translation]]:
        """The `decoding.n_best` best translations of each sentence, best first; no text twice.

        A sentence of more than `max_src_tokens` tokens, longer than anything the model was trained on, is cut at the
        ends of sentences, or else between words; the best translations of its parts are joined, as one translation.
        `prefixes`: how the translation of each sentence begins; an empty one leaves it free.

        Raises TypeError for a bare string.
        """
        if isinstance(sentences, str):
            raise TypeError(f"give a list of sentences, not one string: [{sentences!r}]")
        if self.reranker is not None:
            wide = self.with_decoding(n_best=self.decoding.num_candidates)
            wide.reranker = None
            return [best[: self.decoding.n_best] for best in self.reranker(sentences, wide.n_best(sentences, prefixes))]
        begin = prefixes if prefixes is not None else [""] * len(sentences)
        parts = [
            self._parts(self.normalize(sentence), self.normalize(prefix))
            for sentence, prefix in zip(sentences, begin, strict=True)
        ]
        searched = self._free_hypotheses([part for of_sentence in parts for part in of_sentence])
        found = map(self.ranked, searched)
        return [self._joined(list(itertools.islice(found, len(of_sentence)))) for of_sentence in parts]

    def _free_hypotheses(self, parts: Sequence[Part]) -> list[list[Hypothesis]]:
        """What a search finds for each part, none of it with anything of `avoid`.

        What holds nothing of it stays as it is; other parts are searched again without the tokens that spelled it, as
        often as they find another spelling. Raises DragomanError for one that always does.
        """
        results = self._hypotheses(parts)
        if self.avoid is None:
            return results
        searched = dict(enumerate(parts))
        for _ in range(SPELLINGS):
            again = {}
            for row, part in searched.items():
                spelled = {s for item in results[row] for s in self.avoid.spelled(item.ids, self.tokenizers.tgt.decode)}
                if spelled:
                    again[row] = part._replace(banned=(*part.banned, *sorted(spelled)))
            if not again:
                return results
            for row, found in zip(again, self._hypotheses(list(again.values())), strict=True):
                results[row] = found
            searched = again
        source = self.tokenizers.src.decode(next(iter(searched.values())).ids)
        raise DragomanError(f"nothing is found for {source!r} without the phrases that are to be avoided")

    def _hypotheses(self, parts: Sequence[Part]) -> list[list[Hypothesis]]:
        """What a search finds for each part. Another engine takes the place of this method alone."""
        results: list[list[Hypothesis]] = [[] for _ in parts]
        # Batches of one width, a multiple of 8: a translation and its scores shall not depend, even in the last bit, on
        # what is translated beside it. A few sentences of unlike lengths are searched in several small batches then.
        # So too do only sentences with equally many tokens of terms go together: their beams are equally wide.
        counts = [sum(map(len, part.terms)) for part in parts]
        batches = []
        for count in sorted(set(counts), reverse=True):
            chosen = [row for row in range(len(parts)) if counts[row] == count]
            for places in BatchPlan.even_batches([len(parts[row].ids) for row in chosen], BATCH_TOKENS, WIDTH_MULTIPLE):
                batches.append([chosen[place] for place in places])
        # They begin in this order, the longest sentences first, so that no thread is left with them at the end.
        searches = [self._begin([parts[row] for row in rows]) for rows in batches]
        searched = search_together(self.model, searches, self.device)
        for rows, of_batch in zip(batches, searched, strict=True):
            for row, found in zip(rows, of_batch, strict=True):
                results[row] = found
        return results

    def _begin(self, parts: Sequence[Part]) -> Search:
        """The search of a batch. Raises DragomanError, with the source, where it finds nothing."""
        try:
            return (yield from self._search_of(parts))
        except FoundNothing as error:
            source = self.tokenizers.src.decode(parts[error.sentence].ids)
            raise DragomanError(f"{source!r}: {error.why}") from error

    def _search_of(self, parts: Sequence[Part]) -> Search:
        src, src_mask = collate_src([part.ids for part in parts], WIDTH_MULTIPLE, self.max_src_tokens)
        prefixes = {row: part.prefix for row, part in enumerate(parts) if part.prefix}
        bans = [Ban(part.banned, sentence=row) for row, part in enumerate(parts) if part.banned]
        decoding = self.decoding
        if decoding.mbr != "none":
            decoding = replace(decoding, n_best=decoding.num_candidates)
        return begin(
            self.model,
            src.to(self.device),
            src_mask.to(self.device),
            decoding,
            rules=[*([BeginWith(prefixes)] if prefixes else []), *bans],
            max_lengths=default_max_lengths(src_mask, decoding).to(self.device)
            + torch.tensor([len(part.prefix) for part in parts], device=self.device),
            terms=[part.terms for part in parts] if parts[0].terms else None,
            glue=self._glue.to(self.device) if parts[0].terms else None,
        )

    def ranked(self, hypotheses: Sequence[Hypothesis]) -> list[Translation]:
        """The `n_best` best of a sentence's hypotheses as texts, each once, whatever tokens spell it."""
        texts = [self.tokenizers.tgt.decode(item.ids) for item in hypotheses]
        found: dict[str, Translation] = {}
        for text, item in sorted(zip(texts, hypotheses, strict=True), key=lambda pair: -pair[1].score):
            found.setdefault(text, Translation(text, item.score, item.log_prob))
        best = list(found.values())
        if self.decoding.mbr != "none":
            utility = expected_utility(texts, self.decoding.mbr, "char" if self.join == "" else "13a")
            best = sorted((replace(item, score=utility[item.text]) for item in best), key=lambda item: -item.score)
        return best[: self.decoding.n_best]

    def score(self, pairs: Sequence[tuple[str, str]], first: int = 1) -> list[Scored]:
        """How probable the model finds given translations: of (source, translation) pairs, in order.

        Nothing is cut or left out. `first` is the number of the first pair. Raises DragomanError, naming the pair, for
        a blank side or a source of more tokens than are translated at once (`max_src_tokens`).
        """
        encoded = []
        for number, (src, tgt) in enumerate(pairs, start=first):
            ids = self.tokenizers.src.encode(self.normalize(src)), self.tokenizers.tgt.encode(self.normalize(tgt))
            for side, found in zip(("source", "translation"), ids, strict=True):
                if not found:
                    raise DragomanError(f"pair {number:,}: the {side} is blank: it has no probability")
            if len(ids[0]) > self.max_src_tokens:
                raise DragomanError(
                    f"pair {number:,}: the source has {len(ids[0])} tokens; a translator reads up to "
                    f"{self.max_src_tokens} at once: cut it"
                )
            limit = self.model.max_target_length
            if limit is not None and len(ids[1]) + 1 > limit:
                raise DragomanError(
                    f"pair {number:,}: the translation has {len(ids[1])} tokens; this model writes up to {limit - 1}"
                )
            encoded.append(ids)
        results: list[Scored | None] = [None] * len(pairs)
        self.model.eval()
        # Of the same size in every batch, as in `_hypotheses`: pads go up to the next multiple of 8 on both sides, and
        # rows repeat the last one.
        widths = [tuple(-(-(1 + len(ids)) // WIDTH_MULTIPLE) for ids in pair) for pair in encoded]
        batches = []
        for width in sorted(set(widths), reverse=True):
            chosen = [row for row in range(len(pairs)) if widths[row] == width]
            size = max(1, BATCH_TOKENS // (WIDTH_MULTIPLE * max(width)))
            batches += [chosen[start : start + size] for start in range(0, len(chosen), size)]
        computed = side_by_side(lambda rows: self._log_probs([encoded[row] for row in rows]), batches, self.device)
        for rows, of_batch in zip(batches, computed, strict=True):
            for row, values in zip(rows, of_batch, strict=False):
                pieces = [*self.tokenizers.tgt.pieces(encoded[row][1]), SPECIALS[EOS_ID]]
                tokens = list(zip(pieces, values, strict=False))  # what comes after </s> is padding
                total = sum(value for _, value in tokens)
                divisor = self.decoding.length_penalty.divisor(len(tokens))
                results[row] = Scored(total / divisor, total, tokens)
        return [result for result in results if result is not None]

    @torch.inference_mode()
    def _log_probs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Of each token of translations of one padded width, `</s>` and what stands at pads among them."""
        rows = [*pairs, *[pairs[-1]] * (-len(pairs) % ROW_MULTIPLE)]
        batch = collate(rows).to(self.device)
        src, src_mask = collate_src([src for src, _ in rows], WIDTH_MULTIPLE, self.max_src_tokens)
        extra = -batch.tgt_in.size(1) % WIDTH_MULTIPLE
        if (limit := self.model.max_target_length) is not None:
            extra = max(0, min(extra, limit - batch.tgt_in.size(1)))
        tgt_in, tgt_out = (functional.pad(ids, (0, extra), value=PAD_ID) for ids in (batch.tgt_in, batch.tgt_out))
        logits = self.model(src.to(self.device), src_mask.to(self.device), tgt_in)
        log_probs = logits.log_softmax(dim=-1, dtype=torch.float32)
        found: list[list[float]] = log_probs.gather(2, tgt_out[:, :, None])[:, :, 0].tolist()
        return found

    def _parts(self, sentence: str, prefix: str) -> list[Part]:
        """A sentence as what is searched at once: nothing for a blank one, itself, or parts of one that is too long."""
        ids = self.tokenizers.src.encode(sentence) if sentence.strip() else []
        if not ids:  # or of characters that the tokenizer takes for spaces
            return []
        begin = self._beginning(prefix) if prefix.strip() else []
        if len(ids) <= self.max_src_tokens:
            return [Part(ids, self._terms(sentence), begin)]
        encode = self.tokenizers.src.encode
        held = self.glossary.held_together(sentence) if self.glossary else sentence  # a term is not to be cut
        texts = [
            text.replace(HELD, " ")
            for text in split_long(held, lambda text: len(encode(text.replace(HELD, " "))), self.max_src_tokens)
        ]
        parts = [Part(encode(text), self._terms(text), [] if number else begin) for number, text in enumerate(texts)]
        return [part for part in parts if part.ids]

    def check_prefix(self, prefix: str) -> None:
        """Raises DragomanError for a prefix that the tokenizer cannot write or that is to be avoided."""
        if prefix.strip():
            self._beginning(self.normalize(prefix))

    def _beginning(self, prefix: str) -> list[int]:
        """Its tokens. Raises DragomanError as `check_prefix` does."""
        self._require_free(f"prefix {prefix!r}", prefix)
        ids = self.tokenizers.tgt.encode(prefix)
        if (written := self.tokenizers.tgt.decode(ids)).split() != prefix.split():
            raise DragomanError(
                f"prefix {prefix!r}: this model's vocabulary cannot write it (it would come out as {written!r})"
            )
        return ids

    def _require_free(self, what: str, text: str) -> None:
        if self.avoid is not None and (held := self.avoid.held(text)):
            raise DragomanError(f"{what}: it holds {held[0]!r}, which is to be avoided: choose one of both")

    def _require_writable(self, glossary: Glossary) -> None:
        """Raises DragomanError for terms that the tokenizer cannot write, whatever text they will stand in."""
        tokenizer = self.tokenizers.tgt
        written = {target: tokenizer.decode(tokenizer.encode(target)) for target in glossary.targets.values()}
        wrong = {target: text for target, text in written.items() if text != target}
        if wrong:
            named = [f"{target!r} (it would come out as {text!r})" for target, text in wrong.items()]
            more = f" and {len(named) - 5:,} more" if len(named) > 5 else ""
            raise DragomanError(
                f"{glossary.place(next(iter(wrong)))}term {', '.join(named[:5])}{more}: this model's vocabulary cannot "
                "write it: choose another term, or train with it"
            )

    def _terms(self, text: str) -> Terms:
        """The tokens of each term that the translation of a text must hold."""
        if self.glossary is None:
            return ()
        return tuple(tuple(self.tokenizers.tgt.encode(term.target)) for term in self.glossary.find(text))

    @functools.cached_property
    def _glue(self) -> torch.Tensor:
        """Which tokens would go on with the word before them: (vocab,), bool. None where words have no spaces."""
        tokenizer = self.tokenizers.tgt
        if self.join == "":
            return torch.zeros(tokenizer.vocab_size, dtype=torch.bool)
        # After a token that is a word by itself, what is decoded without a space before it.
        word = next((i for i in range(len(SPECIALS), tokenizer.vocab_size) if tokenizer.decode([i]).isalpha()), None)
        if word is None:
            return torch.zeros(tokenizer.vocab_size, dtype=torch.bool)
        length = len(tokenizer.decode([word]))
        following = [tokenizer.decode([word, i])[length : length + 1] for i in range(tokenizer.vocab_size)]
        return torch.tensor([letter.isalnum() for letter in following])

    def _joined(self, parts: list[list[Translation]]) -> list[Translation]:
        if not parts:
            return [Translation("", 0.0, 0.0)]
        if len(parts) == 1:
            return parts[0]
        best = [translations[0] for translations in parts]
        log_prob = sum(item.log_prob for item in best)
        score = sum(item.score for item in best) / len(best)
        return [Translation(self.join.join(item.text for item in best), score, log_prob)]


def in_chunks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Lists of `size` lines; the last may be shorter."""
    source = iter(lines)
    while chunk := list(itertools.islice(source, size)):
        yield chunk


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


def model_settings(run_dir: Path) -> Any:
    """The `ModelConfig` of a run."""
    recipe = read_run(run_dir, "translation")
    union = cast(Any, ModelConfig)  # which mypy does not take for a type
    return config.parse(union, recipe.get("model", {}), f"{run_dir / 'config.yaml'}: model")


def _model(run_dir: Path, which: str, tokenizers: TokenizerPair) -> Seq2SeqModel:
    """The model of a run with the weights of a checkpoint."""
    settings = model_settings(run_dir)
    return checkpoint.restored(checkpoint.select(run_dir, which), lambda: build_model(settings, tokenizers))
