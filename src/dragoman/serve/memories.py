"""The memories of corrections that texts are translated with: everybody's, and over it an author's own."""

import threading
import time

from dragoman.errors import DragomanError, Error
from dragoman.pipeline.memory import LayeredMemory, Memory, TranslationMemory
from dragoman.serve.corrections import Corrections, KeptCorrection
from dragoman.serve.service import Languages

CORRECTION = "a correction"
"""Where an entry is from, as its match is told."""

LOOK_SECONDS = 1.0
"""Seconds between two looks at whether another process has changed corrections."""


class CorrectionMemories:
    """The memories of the corrections in a store. Threads may share them."""

    def __init__(self, corrections: Corrections) -> None:
        self.corrections = corrections
        self._memories: dict[tuple[Languages, str | None], TranslationMemory] = {}
        self._revision = 0
        self._lock = threading.Lock()
        self._seen: int | None = None
        self._looks_at = 0.0

    def memory(self, languages: Languages, author: str | None) -> Memory | None:
        """The memory that an author's texts are translated with; None where nothing is kept."""
        self._look()
        layers = [self._memories.get((languages, one)) for one in ((None,) if author is None else (author, None))]
        filled = [layer for layer in layers if layer is not None and len(layer)]
        return LayeredMemory(filled) if len(filled) > 1 else filled[0] if filled else None

    def _look(self) -> None:
        """Take over what another process has changed, if it is time to look; who cannot read now does later."""
        now = time.monotonic()
        if now < self._looks_at:
            return
        self._looks_at = now + LOOK_SECONDS
        version = self.corrections.database.changed_elsewhere()
        if version is None or version == self._seen:
            return
        try:
            self.read()
        except DragomanError as error:
            if error.code != Error.IN_USE:
                raise
        else:
            self._seen = version

    def read(self) -> None:
        """Take over what has changed in the store."""
        with self._lock:
            first = not self._revision
            pairs: dict[tuple[Languages, str | None], dict[str, str]] = {}
            for revision, one in self.corrections.since(self._revision):
                if first:
                    pairs.setdefault(_layer(one), {})[one.correction.src] = one.correction.tgt
                else:
                    self._apply(one)
                self._revision = revision
            self._memories |= {
                layer: TranslationMemory(list(by_src.items()), layer[0], CORRECTION) for layer, by_src in pairs.items()
            }

    def _apply(self, one: KeptCorrection) -> None:
        languages, author = _layer(one)
        own = self._memories.get((languages, one.author)) if one.state == "shared" else None
        if own is not None and self.corrections.find(*one.correction[:3], author=one.author) is None:
            own.remove(one.correction.src)  # it was the author's own until it was approved
        memory = self._memories.setdefault((languages, author), TranslationMemory([], languages, CORRECTION))
        if one.in_force:
            memory.add(one.correction.src, one.correction.tgt)
        else:
            memory.remove(one.correction.src)


def _layer(one: KeptCorrection) -> tuple[Languages, str | None]:
    return (one.correction.src_lang, one.correction.tgt_lang), None if one.state == "shared" else one.author
