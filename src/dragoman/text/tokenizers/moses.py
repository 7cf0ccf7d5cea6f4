"""Moses' scripts before a tokenizer, and undone behind it, by the library sacremoses (Koehn et al. 2007, "Moses: Open
Source Toolkit for Statistical Machine Translation"): normalize-punctuation, tokenizer, truecase."""

import html
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from rapidfuzz.distance import Indel

from dragoman.errors import Error, not_installed
from dragoman.runs.atomic_io import read_bytes
from dragoman.text.lines import find

MAX_BYTES = 2**28
"""Of a truecase model, at most."""

_WRITTEN = re.compile(r"&(?:apos|quot|amp|lt|gt|#124|#91|#93);|@-@|\S")
"""A letter as `tokenizer.perl` writes it."""


def library() -> Any:
    """The module sacremoses. Raises DragomanError where it is not installed."""
    try:
        import sacremoses
    except ImportError as error:
        raise not_installed("tokenizer {type: moses} needs sacremoses", "moses") from error
    return sacremoses


class Moses:
    """A text as Moses' scripts leave it, and a translation as it is read. `config`: of `tokenizer {type: moses}`."""

    def __init__(self, config: Any, truecase_model: bytes | None = None) -> None:
        moses, language = library(), config.language
        self.config, self.truecase_model = config, truecase_model
        self._punctuation = moses.MosesPunctNormalizer(lang=language).normalize
        self._tokenize, self._detokenize = moses.MosesTokenizer(lang=language), moses.MosesDetokenizer(lang=language)
        self._capitals = moses.MosesDetruecaser()
        if truecase_model is not None:
            with tempfile.NamedTemporaryFile(prefix="dragoman-") as file:
                file.write(truecase_model)
                file.flush()
                self._truecase = moses.MosesTruecaser(load_from=file.name)

    @classmethod
    def of(cls, config: Any, lines: Callable[[], Iterator[str]]) -> "Moses":
        """With the truecase model that the settings name, or learnt from lines. Raises DragomanError without it."""
        plain = cls(config)
        if not config.truecase:
            return plain
        if isinstance(config.truecase, str):
            model = read_bytes(find(config.truecase), MAX_BYTES)
            if b" (" not in model:
                raise Error.WRONG_FILE_TYPE("no truecase model of Moses", "a line is `the (90/100) The (10)`",
                                            file=find(config.truecase))  # fmt: skip
            return cls(config, model)
        with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
            path = Path(folder) / "truecase"
            learnt = library().MosesTruecaser()
            learnt.train((plain.before(line).split() for line in lines()), save_to=str(path))
            return cls(config, read_bytes(path, MAX_BYTES))

    def before(self, text: str) -> str:
        """The text that the inner tokenizer reads, its tokens between spaces."""
        text = self._punctuation(text) if self.config.punctuation else text
        options = {"escape": self.config.escape, "aggressive_dash_splits": self.config.aggressive}
        text = text.lower() if self.config.lowercase else text
        text = self._tokenize.tokenize(text, return_str=True, **options)
        return text if self.truecase_model is None else str(self._truecase.truecase(text, return_str=True))

    @staticmethod
    def letters(text: str, before: str) -> Int[np.ndarray, " letters_before_plus_1"]:
        """Counts of the letters of a text, spaces aside, that the first n letters of `before(text)` stand for."""
        written = _WRITTEN.findall(before)
        ours, theirs = "".join(text.split()), "".join(html.unescape(one).strip("@") or one for one in written)
        # What the scripts leave as it is keeps its place; what they write otherwise is spread over what was there.
        blocks = Indel.opcodes(ours, theirs).as_matching_blocks()
        places = [0, *(block.b + more for block in blocks for more in (0, block.size))]
        ends = [0, *(block.a + more for block in blocks for more in (0, block.size))]
        read = np.repeat(np.arange(len(written)), [len(one) for one in written])  # an entity counts at its end
        return np.interp(np.append(read, len(written)), places, ends).round().astype(int)

    def after(self, text: str) -> str:
        """The text of what it writes."""
        words = text.split() if self.truecase_model is None else self._capitals.detruecase(text)
        return str(self._detokenize.detokenize(words, return_str=True))
