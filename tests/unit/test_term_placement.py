"""Terms of a glossary in the place of the words that a model wrote for them."""

from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.alignment import erasure, term_placement
from dragoman.alignment.term_placement import place_terms, without, words_of
from dragoman.errors import Error
from dragoman.inference.translation import Scored
from dragoman.text.glossary import Glossary, TermMatch
from dragoman.text.tokenizers.pair import CharactersConfig, WordsConfig, train_tokenizers

RENDERED = {"polizist": "police officer", "hund": "dog", "sieht": "sees", "ein": "a", "der": "the", "katze": "cat"}
FOLLOWS = {("police", "officer")}
SOURCES = ["Der Polizist sieht ein Hund .", "Ein Hund sieht ein Hund .", "Der Hund .", "Hund"]


class Dictionary:
    """A model that expects the words of its dictionary for the words of the source, in any order."""

    join, languages, max_src_tokens, max_tgt_tokens = " ", ("de", "en"), 100, 99
    model = SimpleNamespace(max_target_length=None)
    normalize = staticmethod(str)

    def __init__(self) -> None:
        text = [*SOURCES, "a an the dog Dog sees police officer cat"]
        self.tokenizers = train_tokenizers(WordsConfig(), lambda: iter(text), lambda: iter(text))

    def score(self, pairs: list[tuple[str, str]]) -> list[Scored]:
        return [self._score(src.lower(), tgt.lower()) for src, tgt in pairs]

    def _score(self, src: str, tgt: str) -> Scored:
        expected = " ".join(RENDERED.get(word, word) for word in src.split()).split()
        tokens, words = [], tgt.replace(".", " . ").split()
        for place, word in enumerate(words):
            previous, following = ["", *words][place], [*words, ""][place + 1]
            sure = word in ("the", ".") or (previous, word) in FOLLOWS
            if word in ("a", "an"):
                sure = (word == "an") == (following[:1] in "aeiou")
            tokens.append((word, -0.1 if sure else -0.5 if word in expected else -7.0))
        tokens.append(("</s>", -0.1))
        total = sum(value for _, value in tokens)
        return Scored(total, total, tokens)


@pytest.fixture
def dictionary(monkeypatch: pytest.MonkeyPatch) -> Any:
    def no_attention(*_: Any) -> None:
        raise Error.UNSUPPORTED("no attention")

    def token_log_probs(translator: Any, pairs: Any) -> list[list[float]]:
        sides = translator.tokenizers.src, translator.tokenizers.tgt
        texts = [tuple(" ".join(side.pieces(ids)) for side, ids in zip(sides, pair, strict=True)) for pair in pairs]
        return [[value for _, value in scored.tokens] for scored in translator.score(texts)]

    monkeypatch.setattr(term_placement, "attention_links", no_attention)
    monkeypatch.setattr(term_placement, "score", lambda translator, pairs, **_: translator.score(pairs))
    monkeypatch.setattr(erasure, "token_log_probs", token_log_probs)
    return Dictionary()


@pytest.mark.parametrize(
    ("terms", "source", "translation", "expected"),
    [
        ({"Hund": "cat"}, SOURCES[0], "The police officer sees a dog.", "The police officer sees a cat."),
        ({"Hund": "owl"}, SOURCES[0], "The police officer sees a dog.", "The police officer sees an owl."),
        ({"Polizist": "constable"}, SOURCES[0], "The police officer sees a dog.", "The constable sees a dog."),
        ({"Polizist": "cat", "Hund": "owl"}, SOURCES[0], "The police officer sees a dog.", "The cat sees an owl."),
        ({"Hund": "dog"}, SOURCES[0], "The police officer sees a dog.", "The police officer sees a dog."),
        ({"Hund": "owl"}, SOURCES[2], "Dog.", "Owl."),
        ({"Hund": "owl"}, SOURCES[3], "dog", "owl"),
    ],
)
def test_a_term_takes_the_place_of_its_words(
    dictionary: Any, terms: dict[str, str], source: str, translation: str, expected: str
) -> None:
    [placed] = place_terms(dictionary, [source], [translation], [Glossary(terms).find(source)])
    assert placed.text == expected
    assert sorted(placed.text[start:end].lower() for start, end in placed.spans) == sorted(terms.values())
    assert placed.without_place == ()


def test_a_term_that_is_not_rendered_has_no_place(dictionary: Any) -> None:
    sources = [SOURCES[0], SOURCES[2]]
    terms = [Glossary({"Hund": "cat"}).find(source) for source in sources]
    placed = place_terms(dictionary, sources, ["The police officer sees.", "The dog."], terms)
    assert [item.text for item in placed] == ["The police officer sees.", "The cat."]
    assert [[term.target for term in item.without_place] for item in placed] == [["cat"], []]


def test_a_source_without_a_term() -> None:
    assert without("Ein Hund , ein Pferd", TermMatch(4, 8, "dog")) == "Ein, ein Pferd"
    assert without("Hund und Pferd", TermMatch(0, 4, "dog")) == "und Pferd"
    assert without("我看见狗了", TermMatch(3, 4, "dog")) == "我看见了"


def test_words_of_a_script_without_spaces_are_tokens() -> None:
    lines = ["我看见狗了。"]
    tokenizers = train_tokenizers(CharactersConfig(), lambda: iter(lines), lambda: iter(lines))
    translator: Any = SimpleNamespace(join="", tokenizers=tokenizers)
    assert [lines[0][start:end] for start, end in words_of(translator, lines[0])] == ["我", "看", "见", "狗", "了"]
