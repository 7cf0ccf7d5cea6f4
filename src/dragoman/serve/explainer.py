"""Explanations of translations for the page `/explain`: one at a time, by the textbook's modules on the CPU."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from dragoman.analysis.ways import continued, source_ids, way
from dragoman.cancellation import turn
from dragoman.errors import Error
from dragoman.inference.loading import load_parts
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.base import Seq2SeqModel
from dragoman.serve.service import ServedRun
from dragoman.special_tokens import EOS_ID, SPECIALS

MAX_BEGIN = 256
"""Tokens of a beginning that a reader chooses."""


class Explainer:
    """Explanations by models of their own, as attention is recorded inside of a model: that of the run that was asked
    for last stays in memory. It has no other run's adapters beside it, no datastore and no other engine."""

    def __init__(self) -> None:
        self._turns = threading.Semaphore(1)
        self._kept: tuple[str, Seq2SeqModel] | None = None

    def explain(self, run: ServedRun, text: str, beam_size: int | None) -> dict[str, Any]:
        """All that the page shows of a sentence, without other ways. Raises DragomanError for one that is blank or too
        long."""
        from dragoman.analysis.explain import explain  # matplotlib comes along: not before it is needed

        with self._translator(run, beam_size) as translator:
            return explain(translator, translator.model, text, run.path.name, alternatives=False)

    def way(self, run: ServedRun, text: str, begin: Sequence[int]) -> dict[str, Any]:
        """The way that begins with these tokens and goes on greedily. Raises DragomanError for tokens that no
        translation holds."""
        size = run.own.tokenizers.tgt.vocab_size
        for place, token in enumerate(begin):
            is_end = token == EOS_ID and place == len(begin) - 1
            if not (len(SPECIALS) <= token < size or is_end):
                raise Error.UNKNOWN_TOKEN(f"begin: token {token} at place {place + 1} cannot be written there")
        with self._translator(run, None) as translator:
            src_ids = source_ids(translator, text)
            if not src_ids:
                raise Error.BLANK("there is nothing to explain: the sentence is blank")
            [(ids, is_cut)] = continued(translator, src_ids, [list(begin)])
            made = way(translator, translator.model, src_ids, ids, is_cut=is_cut)
            made["attention"].pop("encoder.self", None)
            return made

    @contextmanager
    def _translator(self, run: ServedRun, beam_size: int | None) -> Iterator[SearchTranslator]:
        """A translator of a run that nobody else uses meanwhile."""
        with turn(self._turns):
            if self._kept is None or self._kept[0] != run.digest:
                self._kept = None  # two at a time would be one too many
                self._kept = run.digest, load_parts(run.path, "best").model.eval()
            changes = {} if beam_size is None else {"beam_size": beam_size}
            own = run.own.searched_by(None).with_decoding(**changes)
            own.model, own.device = self._kept[1], torch.device("cpu")
            own.glossary = own.apply_glossary = own.banned = own.reranker = None
            yield own
