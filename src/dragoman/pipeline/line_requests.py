"""Lines that are JSON objects: a text with what its own translation must hold, avoid or begin with.

    {"text": "Turn the pump on.", "constraints": ["Pumpe"], "avoid": ["drehen"]}
    {"text": "Turn the pump on.", "terms": {"pump": "Förderpumpe"}, "prefix": "Schalten Sie"}

The keys are Sockeye's; its `target_prefix` is `prefix` here. `constraints` stand in the translation whatever is in the
source (`decoding/constrained.py`); `terms` are a glossary of the line, beside no other one.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.config import parse, settings
from dragoman.decoding.base import Hypothesis
from dragoman.errors import DragomanError, Error
from dragoman.inference.banned_phrases import BannedPhrases
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Searcher, Segment
from dragoman.pipeline.pipeline import Pipeline, Translated
from dragoman.text.glossary import Glossary


@settings
class LineRequest:
    """A text and the requirements for its translation."""

    text: str
    constraints: list[str] = field(default_factory=list)
    avoid: list[str] = field(default_factory=list)
    terms: dict[str, str] = field(default_factory=dict)
    prefix: str = ""

    @property
    def is_plain(self) -> bool:
        """True if nothing is asked of the translation but its beginning."""
        return not (self.constraints or self.avoid or self.terms)


def read_request(line: str, number: int, file: str) -> LineRequest:
    """The request of a line, from 1, of a file. Raises DragomanError, naming both, for a line that is none."""
    if not line.strip():
        return LineRequest(text=line)
    try:
        fields = json.loads(line)
    except ValueError as error:
        fields = error
    if not isinstance(fields, dict):
        hint = 'a line is like {"text": "...", "constraints": ["..."]}'
        raise Error.WRONG_SHAPE("no JSON object", hint, file=file, line=number)
    if "target_prefix" in fields:
        fields["prefix"] = fields.pop("target_prefix")
    return parse(LineRequest, fields, f"{file}, line {number}")


def translate_objects(
    pipeline: Pipeline, chunks: Iterable[list[str]], path: Path | None = None
) -> Iterator[list[tuple[str, Translated]]]:
    """(text, its translations) for the objects of each chunk of lines. One with constraints is searched for as a whole,
    and goes through no stage.

    Raises DragomanError, naming file and line, for a line that is no object and for what cannot be written.
    """
    done, file = 0, str(path or "standard input")
    for lines in chunks:
        requests = [read_request(line, done + place, file) for place, line in enumerate(lines, start=1)]
        own: dict[int, Translated] = {}
        for place, one in enumerate(requests):
            try:
                pipeline.own.check_prefix(one.prefix)
                if not one.is_plain:
                    own[place] = _translated(pipeline, one)
            except DragomanError as error:
                raise error.code(str(error), file=file, line=done + place + 1) from error
        plain = [one for one in requests if one.is_plain]
        together = iter(pipeline.texts([one.text for one in plain], [one.prefix for one in plain]))
        done += len(lines)
        yield [(one.text, own[place] if place in own else next(together)) for place, one in enumerate(requests)]


def _translated(pipeline: Pipeline, request: LineRequest) -> Translated:
    banned = BannedPhrases(tuple(request.avoid)) if request.avoid else None
    glossary = Glossary(dict(request.terms)) if request.terms else None
    if not request.constraints:
        return pipeline.with_terms(glossary, banned).texts([request.text], [request.prefix])[0]
    of_source = glossary.find(pipeline.own.normalize(request.text)) if glossary else []
    phrases = dict.fromkeys([*request.constraints, *(term.target for term in of_source)])
    search = pipeline.own.with_terms(banned=banned)
    holding = search.searched_by(_Holding(tuple(phrases), search.engine))
    return Translated(holding.n_best([request.text], [request.prefix])[0])


@dataclass(frozen=True)
class _Holding:
    """A search for translations that hold phrases (a `Searcher`)."""

    phrases: tuple[str, ...]
    engine: Searcher | None

    def hypotheses(self, translator: SearchTranslator, parts: Sequence[Segment]) -> list[list[Hypothesis]]:
        """Raises DragomanError for a phrase that the vocabulary cannot write."""
        tokenizer = translator.tokenizers.tgt
        phrases = [translator.normalize(phrase) for phrase in self.phrases]
        terms = tuple(tuple(tokenizer.encode_part(phrase)) for phrase in phrases)
        for phrase, ids in zip(phrases, terms, strict=True):
            if not ids or tokenizer.decode(ids) != phrase:
                raise Error.UNKNOWN_TOKEN(f"constraint {phrase!r}: this model's vocabulary cannot write it")
        search = translator.searched_by(self.engine)
        return search.hypotheses([part._replace(terms=terms) for part in parts])
