"""Texts that are a term of the glossary and nothing else: they are what the glossary says."""

from collections.abc import Sequence

from dragoman.inference.translation import NBest, Translation
from dragoman.text.glossary import Glossary


class WholeTermsTranslator:
    """A translator that says what the glossary says of a text that is a term and nothing else."""

    def __init__(self, translator: NBest, glossary: Glossary) -> None:
        self.translator, self.glossary = translator, glossary

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """The term's translation alone of a text that is a term; of others those of the translator."""
        terms = [self._as_term(text.strip()) for text in sentences]
        wanted = [text for text, term in zip(sentences, terms, strict=True) if term is None]
        made = iter(self.translator.n_best(wanted))
        return [next(made) if term is None else [Translation(term, 0.0, 0.0)] for term in terms]

    def _as_term(self, text: str) -> str | None:
        found = self.glossary.find(text)
        return found[0].target if found and (found[0].start, found[0].end) == (0, len(text)) else None
