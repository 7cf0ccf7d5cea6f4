"""Words that say no, by language."""

import re

from dragoman.languages.codes import language_of

_WORDS = {
    "en": "no not n't never none nobody nothing nowhere neither nor cannot without non-*",
    "de": "nicht nichts nie niemals niemand* nirgends nirgendwo kein* weder ohne",
    "fr": "ne n' pas jamais aucun* rien sans nul* ni non guère personne",
    "es": "no nunca jamás nada nadie ningún ninguna* ninguno* sin tampoco ni",
    "it": "non no mai nessun* niente nulla senza né neanche nemmeno",
    "pt": "não nunca jamais nada ninguém nenhum* sem tampouco nem",
    "nl": "niet niets nooit niemand nergens geen zonder noch nee",
    "cs": "ne ani nikdy nikdo nikoho nic ničeho nikde žádn* bez beze není nejsou nemá nemají nemohou nemůže nelze "
    "nebyl* nesmí nechce nechtěj* nevid* nevíd* nedrž* nenos* nepřít*",
    "pl": "nie nigdy nikt nikogo nic niczego nigdzie żad* bez ani brak",
    "ru": "не нет ни никогда никто никого ничего ничто нигде нельзя без",
    "sv": "inte ej aldrig ingen inget inga ingenting utan varken",
    "zh": "不 没 沒 无 無 非 未 别 別 勿 莫",
    "ja": "ない なかっ ません ず ぬ 無 不",
}
"""Whole words; with a star, all words that begin so. Chinese and Japanese: signs anywhere. "n't" and "n'" are ends and
beginnings of words."""


def _pattern(code: str, words: str) -> re.Pattern[str]:
    if code in ("zh", "ja"):
        return re.compile("|".join(map(re.escape, words.split())))
    parts = []
    for word in words.split():
        stem = re.escape(word.rstrip("*"))
        if word == "n't":
            parts.append(r"(?<=\w)n['’]t\b")
        elif word == "n'":
            parts.append(r"\bn['’](?=\w)")
        else:
            parts.append(rf"\b{stem}" + ("" if word.endswith("*") else r"\b"))
    return re.compile("|".join(parts), re.IGNORECASE)


_PATTERNS = {code: _pattern(code, words) for code, words in _WORDS.items()}


def negations(text: str, code: str) -> int:
    """The number of words that say no; 0 in a language whose words are not known here.

    >>> negations("It isn't here, and never was.", "en"), negations("Er hat keine Zeit.", "de")
    (2, 1)
    """
    pattern = _PATTERNS.get(language_of(code)) if code else None
    return len(pattern.findall(text)) if pattern else 0
