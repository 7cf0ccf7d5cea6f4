"""The glossary of a model that has learnt terms: in any form, and beside the words of a sentence."""

from dataclasses import replace

from dragoman.text.annotations import with_term_pieces, without_pieces
from dragoman.text.glossary import Glossary
from dragoman.text.inflection import Inflection


def inflected(glossary: Glossary, languages: tuple[str, str]) -> Glossary:
    """The glossary whose terms are found in any form of the source language, and their targets recognised in any."""
    return replace(glossary, inflections=(Inflection(languages[0]), Inflection(languages[1])))


def annotated(glossary: Glossary, text: str) -> str:
    """The text with its terms' targets behind them, as the model reads it.

    >>> annotated(Glossary({"spreadsheet": "Tabellenkalkulation"}), "Open the spreadsheet.")
    'Open the⟦term⟧ spreadsheet⟦as⟧ Tabellenkalkulation⟦/term⟧.'
    """
    plain, pieces = without_pieces(text)
    terms = glossary.find(plain)
    return with_term_pieces(plain, pieces, [term[:3] for term in terms]) if terms else text
