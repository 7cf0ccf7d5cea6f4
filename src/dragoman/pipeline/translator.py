"""The translator that `dragoman.load(run)` gives: the pipeline, as people ask it from Python."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.alignment.attention import align
from dragoman.decoding.base import DecodingConfig
from dragoman.errors import Error, WrongType
from dragoman.inference import scoring
from dragoman.inference.attention_maps import attention_arrays, attention_of
from dragoman.inference.banned_phrases import BannedPhrases
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Reranker, Scored, Translation
from dragoman.models.base import Seq2SeqModel
from dragoman.pipeline.in_context import Before
from dragoman.pipeline.memory import Memory
from dragoman.pipeline.pipeline import Pipeline, Translated, learnt_from
from dragoman.text.glossary import Glossary
from dragoman.text.lines import STREAM_LINES, in_chunks
from dragoman.text.tokenizers.pair import TokenizerPair


class Translator:
    """A trained model with everything around it, which translates: made by `dragoman.load(run)`.

        translator = dragoman.load("runs/mine")
        translator.translate(["ein hund", "eine katze"])                    # the best translation of each text
        translator.translate(lines, guard=True, beam_size=1)                # faults avoided, a quick search
        translator.n_best(["ein hund"], n_best=3)                           # with scores and warnings
        translator.with_terms(Glossary({"hund": "hound"})).translate(lines)
        translator.score([("ein hund", "a dog")])                           # how probable a translation is
        translator.align("ein hund", "a dog"), translator.attention("ein hund")
        for found in translator.stream(open("long.txt")): ...               # input of any length, in order

    It answers what `dragoman translate` answers. What a text's translation is does not depend on the others. Threads
    may share a translator: nothing in it changes when it translates; `with_terms` and `with_decoding` give another one,
    of the same model.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        glossary: Glossary | None = None,
        banned: BannedPhrases | None = None,
        **options: Any,
    ) -> "Translator":
        """Load a run directory; `glossary` and `banned` as in `with_terms`, the other options as in
        `SearchTranslator.load`: `which`, `device`, `precision`, `ensemble`, `datastores`, `changes`, `languages`, and
        fields of `DecodingConfig`.

        Raises DragomanError when a run holds no checkpoint that verifies or the parts do not fit together.
        """
        search, learnt = SearchTranslator.load(run, **options), learnt_from(Path(run))
        pipeline = Pipeline(search, search, run=Path(run), **learnt._asdict())
        return cls(pipeline.with_terms(glossary, banned))

    @property
    def search(self) -> SearchTranslator:
        """The search for the translation of a sentence, without the stages around it."""
        return self.pipeline.search

    @property
    def model(self) -> Seq2SeqModel:
        """The network."""
        return self.search.model

    @property
    def tokenizers(self) -> TokenizerPair:
        """Tokenizers of the source and of the target."""
        return self.search.tokenizers

    @property
    def decoding(self) -> DecodingConfig:
        """The settings of the search."""
        return self.search.decoding

    @property
    def languages(self) -> tuple[str, str] | None:
        """Codes, from and to."""
        return self.search.languages

    def with_terms(self, glossary: Glossary | None = None, banned: BannedPhrases | None = None) -> "Translator":
        """This translator, of the same model, whose translations hold the target terms of the terms of `glossary` that
        stand in their source, and no phrase of `banned`.

        Raises DragomanError for a term that is banned.
        """
        return Translator(self.pipeline.with_terms(glossary, banned))

    def with_memory(self, memory: Memory | None) -> "Translator":
        """This translator, which takes translations from a memory (`pipeline/memory.py`) and translates the rest."""
        return Translator(replace(self.pipeline, memory=memory))

    def with_decoding(self, **changes: Any) -> "Translator":
        """This translator, of the same model, with some fields of its `DecodingConfig` changed."""
        return Translator(self.pipeline.with_decoding(**changes))

    def between(self, src_lang: str, tgt_lang: str) -> "Translator":
        """This translator, of the same model, between two other languages of those that the model knows.

        Raises DragomanError for a language that it does not know, and for a model that knows but two.
        """
        return Translator(self.pipeline.between(src_lang, tgt_lang))

    def reranked_by(self, reranker: Reranker) -> "Translator":
        """This translator, of the same model, whose n best are the best by `reranker` of all that its search holds.

        Raises DragomanError where settings rank translations by another measure already, or a search holds but one.
        """
        return Translator(self.pipeline.with_search(lambda search: search.reranked_by(reranker)))

    def translate(
        self,
        sentences: Sequence[str],
        *,
        keep: bool = True,
        guard: bool = False,
        context: str = "auto",
        **decoding: Any,
    ) -> list[str]:
        """The best translation of each text, in order; blank texts stay blank.

        `keep`: placeholders, tags, URLs and the like survive. `guard`: translations that look wrong are avoided
        (`pipeline/guarded.py`). `context`, of a run that has learnt to read the sentences before each: `auto`: those of
        the same text; `previous`: the texts are one document, in order; `none`. `decoding`: fields of `DecodingConfig`
        for this call (`beam_size=1`).

        Raises DragomanError for anything but a list of strings (a TypeError, too), for other options, another context.
        """
        _require_strings(sentences)
        changed = replace(self.pipeline.with_decoding(**decoding), keep=keep, guard=guard, warn=False)
        return [translated.items[0].text for translated in _texts(changed, sentences, context)]

    def stream(self, lines: Iterable[str], buffer: int = STREAM_LINES) -> Iterator[list[Translation]]:
        """`n_best` for input of any length: reads `buffer` lines ahead and keeps the order."""
        for chunk in in_chunks(lines, buffer):
            yield from self.n_best(chunk)

    def n_best(
        self,
        sentences: Sequence[str],
        prefixes: Sequence[str] | None = None,
        *,
        keep: bool = True,
        guard: bool = False,
        context: str = "auto",
        **decoding: Any,
    ) -> list[list[Translation]]:
        """The `n_best` best translations of each text, best first; no text twice.

        Of a text of several sentences they differ in one sentence each. `prefixes`: how each translation begins; an
        empty one leaves it free, and a text with one is translated as a whole. Options as in `translate`.

        Raises DragomanError for anything but a list of strings (a TypeError, too).
        """
        _require_strings(sentences)
        if guard and prefixes is not None:
            raise Error.CONFLICT("prefixes: with guard a translation cannot be held to its beginning")
        changed = replace(self.pipeline.with_decoding(**decoding), keep=keep, guard=guard)
        return [translated.items for translated in _texts(changed, sentences, context, prefixes)]

    def score(self, pairs: Sequence[tuple[str, str]], first: int = 1) -> list[Scored]:
        """The probability of each translation of (source, translation) pairs: `inference.scoring.score`."""
        return scoring.score(self.search, pairs, first)

    def align(self, src: str, tgt: str | None = None) -> list[tuple[int, int]]:
        """(source word, target word) of each word of a translation, its own where `tgt` is not given; from 0.

        Raises DragomanError for a model without attention.
        """
        return align(self.search, src, self.translate([src])[0] if tgt is None else tgt)

    def attention(self, src: str, tgt: str | None = None) -> dict[str, np.ndarray]:
        """Attention weights of a pair, its own translation where `tgt` is not given, as arrays.

        `decoder.0.cross` is (num_heads, tgt_len, src_len), and so for each layer and kind of attention; tokens stand in
        `decoder.cross.queries` and `decoder.cross.keys`. Raises DragomanError for a model without attention.
        """
        return attention_arrays(attention_of(self.search, src, tgt))

    def __repr__(self) -> str:
        return f"<Translator {', '.join(f'{name} {value}' for name, value in self._facts().items())}>"

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in self._facts().items())
        return f"<table><caption>Translator</caption>{rows}</table>"

    def _facts(self) -> dict[str, str]:
        model = self.model
        parameters = sum(parameter.numel() for parameter in model.parameters())
        return {
            "languages": " to ".join(self.languages or ("?", "?")),
            "model": f"{type(model).__name__}, {parameters:,} parameters",
            "beam size": str(self.decoding.beam_size),
            "device": str(self.search.device),
        }


def _texts(
    pipeline: Pipeline, texts: Sequence[str], context: str, prefixes: Sequence[str] | None = None
) -> list[Translated]:
    """The translations of texts with what stands before their sentences, as `context` has it."""
    if context == "previous":
        return pipeline.reading(context).texts(texts, prefixes, [Before()] * len(texts))
    return pipeline.reading(context).texts(texts, prefixes)


def _require_strings(sentences: Sequence[str]) -> None:
    """Raises TypeError for anything but a list of strings."""
    if isinstance(sentences, str):
        raise WrongType(f"give a list of sentences, not one string: [{sentences!r}]")
    for number, sentence in enumerate(sentences, start=1):
        if not isinstance(sentence, str):
            raise WrongType(f"sentence {number} is {type(sentence).__name__} {sentence!r:.80}: give strings")
