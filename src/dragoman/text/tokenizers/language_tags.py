"""Languages of a model that knows several: told by a piece of their own before or after the text.

`<2de>` before an English sentence asks for German (Johnson et al. 2017, section 3). Models differ in where the tags
stand: OPUS-MT has the target's before the source (`>>deu<<`), M2M100 and NLLB have the source's there and begin the
target with its own, which the search then has to begin with.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path

from dragoman.config import settings
from dragoman.errors import Error
from dragoman.languages.codes import closest, language_of
from dragoman.special_tokens import UNK_ID
from dragoman.text.tokenizers.base import Tokenizer
from dragoman.text.tokenizers.wrapped import WrappedTokenizer

SRC, TGT = "{src}", "{tgt}"
"""Stand in a frame for the tags of the two languages."""


def tag_of(language: str) -> str:
    """The piece that asks for a language, before the source (Johnson et al. 2017, section 3)."""
    return f"<2{language}>"


@settings
class LanguageTags:
    """The tags of a model's languages, and the frame in which a text stands; other words in it are pieces."""

    tags: dict[str, str]  #: The piece of each language, by its code.
    src_before: list[str] = field(default_factory=list)  #: Pieces before a source.
    src_after: list[str] = field(default_factory=list)  #: Pieces after a source.
    tgt_before: list[str] = field(default_factory=list)  #: Pieces before a target, which the search begins with.

    @property
    def names_target(self) -> bool:
        """True if the frame says the target language: the model writes several."""
        return TGT in (*self.src_before, *self.src_after, *self.tgt_before)

    def code(self, language: str) -> str:
        """The code that a language goes by here: `zho_Hans` for `zh`, `de` for `de_DE`.

        Raises DragomanError, with the codes that there are, for a language that is not there.
        """
        if language in self.tags:
            return language
        if (code := closest(language, self.tags)) is not None:
            return code
        near = [code for code in self.tags if language_of(code) == language_of(language)]
        near = near or [code for code in self.tags if code[:2] == language[:2].lower()] or list(self.tags)
        shown = ", ".join(near[:12]) + (f" and {len(near) - 12} more" if len(near) > 12 else "")
        raise Error.NO_SUCH_LANGUAGE(f"no language {language!r} in this model; it has {shown}")

    def codes(self, src_lang: str, tgt_lang: str) -> tuple[str, str]:
        """The codes of two languages; one that the frame does not say (the source's in OPUS-MT) may be any. Raises
        DragomanError for a language that is not there."""
        framed = (*self.src_before, *self.src_after, *self.tgt_before)
        src, tgt = (self.code(one) if side in framed else one for side, one in ((SRC, src_lang), (TGT, tgt_lang)))
        return src, tgt

    def framed(self, frame: Iterable[str], src_lang: str, tgt_lang: str) -> list[str]:
        """The pieces of a frame. Raises DragomanError for a language that is not there."""
        languages = {SRC: src_lang, TGT: tgt_lang}
        return [self.tags[self.code(languages[piece])] if piece in languages else piece for piece in frame]

    def between(self, src: Tokenizer, tgt: Tokenizer, src_lang: str, tgt_lang: str) -> tuple[Tokenizer, Tokenizer]:
        """Both sides' tokenizers for texts of these languages; raises DragomanError as `framed`, and for a tag that is
        in no vocabulary."""
        frames = [
            self.framed(frame, src_lang, tgt_lang) for frame in (self.src_before, self.src_after, self.tgt_before)
        ]
        tags = list(self.tags.values())
        return (
            FramedTokenizer(bare(src), frames[0], frames[1], tags),
            FramedTokenizer(bare(tgt), frames[2], [], tags),
        )


def bare(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer without anything around its texts."""
    return tokenizer.inner if isinstance(tokenizer, FramedTokenizer) else tokenizer


class FramedTokenizer(WrappedTokenizer):
    """A tokenizer whose texts have the same pieces before and after them."""

    def __init__(self, inner: Tokenizer, before: Sequence[str], after: Sequence[str], hidden: Sequence[str]) -> None:
        """`hidden`: further pieces that `decode` leaves out. Raises DragomanError for a piece that is not there."""
        super().__init__(inner.config, inner)
        for piece in (*before, *after):
            if inner.id_of(piece) == UNK_ID:
                raise Error.UNKNOWN_TOKEN(f"the vocabulary has no {piece!r}, which tells the model a language")
        self.before, self.after = [*map(inner.id_of, before)], [*map(inner.id_of, after)]
        self._hidden = {*self.before, *self.after, *map(inner.id_of, hidden)} - {UNK_ID}

    def encode(self, text: str) -> list[int]:
        ids = self.inner.encode(text)
        return [*self.before, *ids, *self.after] if ids else []

    def encode_part(self, text: str) -> list[int]:
        return self.inner.encode(text)

    def encode_like(self, ids: list[int], text: str) -> list[int]:
        inner = self.inner.encode(text)
        return [*ids[: len(self.before)], *inner, *ids[len(ids) - len(self.after) :]] if inner else []

    def letters(self, text: str) -> list[int]:
        letters = self.inner.letters(text)
        return [*[0] * len(self.before), *letters, *[0] * len(self.after)] if letters else []

    def decode(self, ids: Iterable[int]) -> str:
        return self.inner.decode(index for index in ids if index not in self._hidden)

    def sample_segmentation(self, ids: list[int], rng: random.Random) -> list[int]:
        first, last = len(self.before), len(ids) - len(self.after)
        return [*ids[:first], *self.inner.sample_segmentation(ids[first:last], rng), *ids[last:]]

    def save(self, directory: Path) -> None:
        self.inner.save(directory)
