"""Sentences in, translations out: parts, their search, their ranking. Validation, evaluation and exports use it as it
is; `pipeline/pipeline.py` puts what people want around it."""

import copy
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch

from dragoman import config
from dragoman.backends.accelerate import accelerate_inference
from dragoman.backends.cpu_search.fast_transformer import FastTransformer
from dragoman.data.batch import WIDTH_MULTIPLE, collate_src
from dragoman.data.eval_batches import BATCH_TOKENS, even_batches
from dragoman.decoding.beam import BeamStep
from dragoman.decoding.continuous_batching import Search
from dragoman.decoding.rows import FoundNothing
from dragoman.decoding.rules import Ban, BeginWith, Rule, ngrams
from dragoman.decoding.search import DecodingConfig, Hypothesis, default_max_lengths, search_steps, search_together
from dragoman.device import pick_device
from dragoman.errors import DragomanError, Error
from dragoman.inference.banned_phrases import BannedPhrases
from dragoman.inference.loading import decoding_settings, load_parts
from dragoman.inference.long_input import split_long
from dragoman.inference.mbr import expected_utility
from dragoman.inference.nearest_neighbours import load_all, looking_up
from dragoman.inference.translation import ApplyGlossary, Reranker, Searcher, Segment, Translation
from dragoman.inference.unknown_words import without_unknown
from dragoman.languages.codes import fits, is_known, written_without_spaces
from dragoman.languages.punctuation import joined_by
from dragoman.models.base import Seq2SeqModel
from dragoman.special_tokens import BOS_ID, EOS_ID
from dragoman.text.glossary import TERM_SPACE, Glossary
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.pair import TokenizerPair

MAX_PREFIX_TOKENS = 256
"""Tokens that a prefix may have, even of a model that writes shorter translations."""
MAX_SEARCHES_FOR_BANNED = 100
"""Searches of a sentence for a translation without banned phrases, at most."""


class SearchTranslator:
    """A model with its tokenizers, which searches for the translation of each sentence.

    The translation of a sentence does not depend on the other sentences. Threads may share a translator: nothing in it
    changes when it translates; `with_terms` and `with_decoding` give another one, of the same model.
    """

    def __init__(
        self,
        model: Seq2SeqModel,
        tokenizers: TokenizerPair,
        *,
        decoding: DecodingConfig,
        normalize: str = "none",
        max_src_tokens: int = 256,
        device: torch.device | None = None,
        languages: tuple[str, str] | None = None,
    ) -> None:
        """`languages`: codes, from and to."""
        self.model, self.tokenizers, self.decoding = model, tokenizers, decoding
        self.normalize = NORMALIZERS[normalize]
        self.max_src_tokens = max_src_tokens
        self.device = device or torch.device("cpu")
        self.languages = languages
        self.join = "" if languages is not None and written_without_spaces(languages[1]) else " "
        """The text between two sentences."""
        self.glossary: Glossary | None = None
        self.apply_glossary: ApplyGlossary | None = None
        self.annotate: Callable[[str], str] = str  # puts pieces in that the model alone reads (text/annotations.py)
        self.banned: BannedPhrases | None = None
        self.reranker: Reranker | None = None
        self.engine: Searcher | None = None

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        which: str = "best",
        device: str = "auto",
        precision: Literal["float32", "bfloat16", "int8"] = "float32",
        ensemble: Sequence[str | Path] = (),
        datastores: Sequence[str | Path] = (),
        changes: Sequence[str] = (),
        languages: tuple[str | None, str | None] = (None, None),
        base: Seq2SeqModel | None = None,
        **decoding: Any,
    ) -> "SearchTranslator":
        """The translator of a run directory: checkpoint `best`, `last` or a step, decoding settings changed at will.

        `decoding` are fields of `DecodingConfig`, `changes` the same as text ("decoding.sampling.samples=8"). `alpha`
        is set in the recipe's own length penalty. `ensemble`: further runs, of the same tokenizer, whose models (their
        `best`) translate together with this one. `datastores`: folders of `dragoman datastore`, one for each model at
        most, to look up each token in. `languages`, from and to, are for a model that knows several; None: the run's
        own. `precision`: weights have half the bits in bfloat16 and a quarter in int8 (in a Transformer's search on a
        CPU): faster, and scores are rougher. `base`: the model that the run is an adapter of, on the device and in the
        precision, whose tensors are shared; None: an adapter and its base become one model.

        Raises DragomanError when a run holds no checkpoint that verifies or the parts do not fit together.
        """
        formats = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.float32}
        if precision not in formats:
            raise Error.WRONG_OPTION(f"`precision` {precision}: {', '.join(formats)}")
        settings = decoding_settings(Path(run), changes, decoding)
        parts, chosen = load_parts(Path(run), which, ensemble, base), pick_device(device)
        model = parts.model.eval()
        if base is None:
            model = model.to(chosen, formats[precision])
        accelerate_inference(model, packed=chosen.type == "cpu", precision=precision)
        if datastores:
            model = looking_up(model, load_all(datastores, Path(run), which, ensemble))
        translator = cls(
            model,
            parts.tokenizers,
            decoding=settings,
            normalize=parts.corpus.normalize,
            max_src_tokens=parts.max_src_tokens,
            device=chosen,
            languages=(parts.corpus.src_lang, parts.corpus.tgt_lang),
        )
        spoken = languages[0] or parts.corpus.src_lang, languages[1] or parts.corpus.tgt_lang
        return translator.between(*spoken)

    @property
    def max_tgt_tokens(self) -> int:
        """The most tokens of a given translation that are read at once: what a batch has room for, if the model takes
        it."""
        return min(BATCH_TOKENS, self.model.max_target_length or BATCH_TOKENS) - 1  # <s>, too

    def with_terms(
        self,
        glossary: Glossary | None = None,
        banned: BannedPhrases | None = None,
        *,
        apply_glossary: ApplyGlossary | None = None,
    ) -> "SearchTranslator":
        """This translator, of the same model, whose translations hold the target terms of the terms of `glossary` that
        stand in their source, put there by `apply_glossary`, and no phrase of `banned`.

        Raises DragomanError for a term that is banned.
        """
        assert (glossary is None) == (apply_glossary is None)
        other = copy.copy(self)
        other.glossary = None if glossary is None else glossary.normalized(self.normalize)
        other.apply_glossary = apply_glossary
        other.banned = None if banned is None else banned.normalized(self.normalize)
        if other.glossary and other.banned:
            for term in other.glossary.targets.values():
                other._require_free(f"{other.glossary.place(term)}term {term!r}", term)
        return other

    def between(self, src_lang: str, tgt_lang: str) -> "SearchTranslator":
        """This translator, of the same model, between two other languages of those that the model knows.

        A model of two languages may be asked for them by other codes. Raises DragomanError for a language that the
        model does not know.
        """
        own = self.languages or ("", "")
        if own == (src_lang, tgt_lang):
            return self
        other = copy.copy(self)
        if (known := self.tokenizers.languages) is not None:
            other.languages = known.codes(src_lang, tgt_lang)
            other.tokenizers = self.tokenizers.between(*other.languages)
        elif all(fits(code, one) or not is_known(one) for code, one in zip((src_lang, tgt_lang), own, strict=True)):
            other.languages = src_lang, tgt_lang  # the model's own by other names, or its recipe called them `src`
        else:
            raise Error.UNSUPPORTED(f"this model translates from {own[0]} to {own[1]} and is not told languages")
        other.join = "" if written_without_spaces(tgt_lang) else " "
        return other

    def searched_by(self, engine: Searcher | None) -> "SearchTranslator":
        """This translator, with the search of `engine`; None: PyTorch's own."""
        other = copy.copy(self)
        other.engine = engine
        return other

    def with_decoding(self, **changes: Any) -> "SearchTranslator":
        """This translator, of the same model, with some fields of its `DecodingConfig` changed."""
        other = copy.copy(self)
        other.decoding = config.changed(self.decoding, changes, "decoding")
        return other

    def reranked_by(self, reranker: "Reranker") -> "SearchTranslator":
        """This translator, of the same model, whose n best are the best by `reranker` of all that its search holds.

        Of a sentence that is translated in parts there is one translation, which nothing ranks.

        Raises DragomanError where settings rank translations by another measure already, or a search holds but one.
        """
        if self.decoding.mbr != "none":
            raise Error.CONFLICT("decoding.mbr ranks translations already", "leave it, or the other ranking")
        if self.decoding.num_candidates == 1:
            raise Error.CONFLICT("a search with one hypothesis leaves nothing to rank", "raise the beam size")
        other = copy.copy(self)
        other.reranker = reranker
        return other

    def translate(self, sentences: Sequence[str], **decoding: Any) -> list[str]:
        """The best translation of each sentence, in order; of a blank one nothing. `decoding` as in `n_best`."""
        return [best[0].text for best in self.n_best(sentences, **decoding)]

    def n_best(
        self, sentences: Sequence[str], prefixes: Sequence[str] | None = None, **decoding: Any
    ) -> list[list[Translation]]:
        """The `n_best` best translations of each sentence, best first; no text twice.

        A sentence of more than `max_src_tokens` tokens, longer than anything the model was trained on, is cut at the
        ends of sentences, or else between words; the best translations of its parts are joined, as one translation.
        `prefixes`: how the translation of each sentence begins; an empty one leaves it free. `decoding`: fields of
        `DecodingConfig` for this call (`beam_size=1`).
        """
        if decoding:
            return self.with_decoding(**decoding).n_best(sentences, prefixes)
        if self.reranker is not None:
            wide = self.with_decoding(n_best=self.decoding.num_candidates)
            reranked = self.reranker(sentences, wide._n_best_of_search(sentences, prefixes))
            return [best[: self.decoding.n_best] for best in reranked]
        return self._n_best_of_search(sentences, prefixes)

    def _n_best_of_search(self, sentences: Sequence[str], prefixes: Sequence[str] | None) -> list[list[Translation]]:
        """`n_best` by the score of the search."""
        begin = prefixes if prefixes is not None else [""] * len(sentences)
        parts = [self.parts(sentence, prefix) for sentence, prefix in zip(sentences, begin, strict=True)]
        whole = [part for of_sentence in parts for part in of_sentence]
        ranked = list(map(self.ranked, self.hypotheses_without_banned(whole), whole))
        if self.glossary is not None and self.apply_glossary is not None:
            ranked = self.apply_glossary(self, self.glossary, whole, ranked)
        results = iter(ranked)
        return [self._joined(list(itertools.islice(results, len(of_sentence)))) for of_sentence in parts]

    def hypotheses_without_banned(self, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
        """`hypotheses` without any banned phrase.

        A part whose hypotheses hold one is searched again without the tokens that spelled it, as often as another
        spelling comes up. Raises DragomanError for one that always has another.
        """
        results = self.hypotheses(parts)
        if self.banned is None:
            return results
        searched = dict(enumerate(parts))
        for _ in range(MAX_SEARCHES_FOR_BANNED):
            again = {}
            for row, part in searched.items():
                spelled = {
                    s for item in results[row] for s in self.banned.spelled(item.ids, self.tokenizers.tgt.decode)
                }
                if spelled:
                    again[row] = part._replace(banned=(*part.banned, *sorted(spelled)))
            if not again:
                return results
            for row, hypotheses in zip(again, self.hypotheses(list(again.values())), strict=True):
                results[row] = hypotheses
            searched = again
        source = self.tokenizers.src.decode(next(iter(searched.values())).ids)
        raise Error.SEARCH_FAILED(f"nothing is found for {source!r} without the phrases that are to be avoided")

    def hypotheses(self, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
        """The hypotheses that the search, or another engine, finds for each part."""
        if self.engine is not None:
            return self.engine.hypotheses(self, parts)
        if isinstance(self.model, FastTransformer) and self.model.can_search(self.decoding, parts):
            try:
                return self.model.search([[*part.ids, EOS_ID] for part in parts], self.search_settings)
            except FoundNothing as error:
                raise self._named(error, parts) from error
        results: list[list[Hypothesis]] = [[] for _ in parts]
        # Batches of one width, a multiple of 8: a translation and its scores shall not depend, even in the last bit, on
        # what is translated beside it. The longest sentences begin first: no thread is left with them at the end.
        forms = [part.form(self.decoding) for part in parts]
        batches = []
        for form in sorted(set(forms), reverse=True):
            chosen = [row for row in range(len(parts)) if forms[row] == form]
            for places in even_batches([len(parts[row].ids) for row in chosen], BATCH_TOKENS, WIDTH_MULTIPLE):
                batches.append([chosen[place] for place in places])
        searches = [self.search_steps([parts[row] for row in rows]) for rows in batches]
        searched = search_together(self.model, searches, self.device)
        for rows, of_batch in zip(batches, searched, strict=True):
            for row, hypotheses in zip(rows, of_batch, strict=True):
                results[row] = hypotheses
        return results

    @property
    def search_settings(self) -> DecodingConfig:
        """The settings of the search itself: it keeps all hypotheses where `mbr` ranks them."""
        own = self.decoding
        return own if own.mbr == "none" else replace(own, n_best=own.num_candidates)

    def search_steps(
        self, parts: Sequence[Segment], rules: Sequence[Rule] = (), watch: Callable[[BeamStep], None] | None = None
    ) -> Search:
        """The search of a batch of parts of one width, for whoever steps it; `rules` come after the translator's own,
        and `watch` is shown the steps of a beam.

        Raises DragomanError, with the source, where it finds nothing.
        """
        try:
            return (yield from self._search_of(parts, rules, watch))
        except FoundNothing as error:
            raise self._named(error, parts) from error

    def _named(self, error: FoundNothing, parts: Sequence[Segment]) -> DragomanError:
        """The error with the source in the place of its number."""
        source = self.tokenizers.src.decode(parts[error.sentence].ids)
        return error.code(f"{source!r}: {error.why}")

    def _search_of(
        self, parts: Sequence[Segment], rules: Sequence[Rule], watch: Callable[[BeamStep], None] | None
    ) -> Search:
        src, src_mask = collate_src([part.ids for part in parts], WIDTH_MULTIPLE, self.max_src_tokens)
        prefixes = {row: part.prefix for row, part in enumerate(parts) if part.prefix}
        given = dict.fromkeys(range(len(parts)), 0 if parts[0].read else len(self.tokenizers.tgt.before))
        read = torch.tensor([[BOS_ID, *part.read] for part in parts], device=self.device)
        bans = [Ban(part.banned, sentence=row) for row, part in enumerate(parts) if part.banned]
        own = self.decoding
        if own.no_source_ngram:
            if not self.tokenizers.shared:
                raise Error.CONFLICT("decoding.no_source_ngram is for a joint vocabulary", "set it to 0")
            bans += [Ban(ngrams(part.ids, own.no_source_ngram), sentence=row) for row, part in enumerate(parts)]
        return search_steps(
            self.model,
            src.to(self.device),
            src_mask.to(self.device),
            self.search_settings,
            rules=[*([BeginWith(prefixes, given)] if prefixes else []), *bans, *rules],
            max_lengths=default_max_lengths(src_mask, own).to(self.device)
            + torch.tensor([len(part.prefix) for part in parts], device=self.device),
            terms=[part.terms for part in parts] if parts[0].terms else None,
            glue=torch.from_numpy(self.tokenizers.continuations).to(self.device)
            if parts[0].terms and self.join
            else None,
            watch=watch,
            read=read if parts[0].read else None,
        )

    def ranked(self, hypotheses: Sequence[Hypothesis], part: Segment | None = None) -> list[Translation]:
        """The `n_best` best of a sentence's hypotheses as texts, each once, whatever tokens spell it. `part`: their
        source, where unknown words are to be replaced."""
        if part is not None and self.decoding.replace_unk:
            read, table = part._replace(text=self.annotate(part.text)), self.decoding.phrase_table
            texts = [without_unknown(self.model, self.tokenizers, read, item, table) for item in hypotheses]
        else:
            texts = [self.tokenizers.tgt.decode(item.ids) for item in hypotheses]
        by_text: dict[str, Translation] = {}
        for text, item in sorted(zip(texts, hypotheses, strict=True), key=lambda pair: -pair[1].score):
            by_text.setdefault(text, Translation(text, item.score, item.log_prob))
        best = list(by_text.values())
        if self.decoding.mbr != "none":
            utility = expected_utility(texts, self.decoding.mbr, "char" if self.join == "" else "13a")
            best = sorted((replace(item, score=utility[item.text]) for item in best), key=lambda item: -item.score)
        return best[: self.decoding.n_best]

    def parts(self, sentence: str, prefix: str = "") -> list[Segment]:
        """The parts of a sentence that are searched for: no part for a blank sentence, several parts for a sentence
        that is too long. `prefix` is the beginning of its translation.
        """
        sentence, prefix = self.normalize(sentence), self.normalize(prefix)
        ids = self.source_ids(sentence) if sentence.strip() else []
        if not ids:  # or of characters that the tokenizer takes for spaces
            return []
        free = list(self.tokenizers.tgt.before)
        begin = self._beginning(prefix) if prefix.strip() else free
        if len(ids) <= self.max_src_tokens:
            return [Segment(ids, begin, sentence)]
        joined = self.glossary.protect_terms(sentence) if self.glossary else sentence  # a term is not to be cut
        cut = split_long(joined, lambda text: len(self.source_ids(text.replace(TERM_SPACE, " "))), self.max_src_tokens)
        texts = [text.replace(TERM_SPACE, " ") for text in cut]
        parts = [Segment(self.source_ids(text), free if number else begin, text) for number, text in enumerate(texts)]
        return [part for part in parts if part.ids]

    def source_ids(self, text: str) -> list[int]:
        """The tokens of a normalised text as the model reads it."""
        return self.tokenizers.src.encode(self.annotate(text))

    def check_prefix(self, prefix: str) -> None:
        """Raises DragomanError for a prefix that the tokenizer cannot write or that is to be avoided."""
        if prefix.strip():
            self._beginning(self.normalize(prefix))

    def _beginning(self, prefix: str) -> list[int]:
        """The tokens of a prefix. Raises DragomanError as `check_prefix` does."""
        self._require_free(f"prefix {prefix!r}", prefix)
        ids = self.tokenizers.tgt.encode(prefix)
        longest = int(self.decoding.max_length_ratio * (1 + self.max_src_tokens) + self.decoding.max_length_extra)
        if len(ids) > (longest := max(longest, MAX_PREFIX_TOKENS)):
            raise Error.TOO_LONG(
                f"prefix {prefix[:20]!r}...: it has {len(ids)} tokens; a translation has up to {longest}", "shorten it"
            )
        if (written := self.tokenizers.tgt.decode(ids)).split() != prefix.split():
            raise Error.UNKNOWN_TOKEN(
                f"prefix {prefix!r}: this model's vocabulary cannot write it (it would come out as {written!r})"
            )
        return ids

    def _require_free(self, what: str, text: str) -> None:
        if self.banned is not None and (held := self.banned.held(text)):
            raise Error.CONFLICT(f"{what}: it holds {held[0]!r}, which is to be avoided", "choose one of both")

    def _joined(self, parts: list[list[Translation]]) -> list[Translation]:
        if not parts:
            return [Translation("", 0.0, 0.0)]
        if len(parts) == 1:
            return parts[0]
        best = [translations[0] for translations in parts]
        text = joined_by(self.languages[1] if self.languages else "").join(item.text for item in best)
        return [Translation(text, sum(item.score for item in best) / len(best), sum(item.log_prob for item in best))]
