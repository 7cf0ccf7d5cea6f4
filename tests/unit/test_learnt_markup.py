"""Codes that a model carries over itself: pieces in training pairs, in sentences, and back from translations."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dragoman.alignment.learnt_markup import coded, has_markup, items_of_line, without_tags
from dragoman.alignment.markup import text_and_codes
from dragoman.alignment.phrases import WordLinks
from dragoman.formats.base import Options, joined
from dragoman.formats.document import FORMATS, Document
from dragoman.inference.translation import Translation
from dragoman.pipeline import document as document_module
from dragoman.pipeline.document import DocumentTranslator
from dragoman.pipeline.guarded import GuardedTranslator
from dragoman.pipeline.splitter import Splitter
from dragoman.text.annotations import (
    CODE_PIECES,
    MEMORY_PIECES,
    PIECE,
    TERM_PIECES,
    Placed,
    plain_text,
    with_pieces,
    without_pieces,
)
from dragoman.text.augment import TextAugmentConfig
from dragoman.text.glossary import Glossary
from dragoman.text.sources.base import Pair, files_of, fingerprint
from dragoman.text.sources.tsv import TsvSource
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.training.annotated_pairs import Annotator, changed_pairs

PAIRS = [
    ("open the file", "die datei öffnen"),
    ("close the file", "die datei schließen"),
    ("open the window", "das fenster öffnen"),
    ("close the window", "das fenster schließen"),
] * 3


def test_each_piece_is_told_from_text() -> None:
    assert all(PIECE.fullmatch(piece) for piece in (*CODE_PIECES, *TERM_PIECES, *MEMORY_PIECES))
    assert not any(map(PIECE.search, ("⟦0⟧", "⟦x⟧", "⟦123⟧", "⟦⟧", "[1]")))


@pytest.mark.parametrize("text", ["Click Open now.", "打开文件。", "a", "a  b", "(x)"])
def test_text_and_pieces_come_apart_again(text: str) -> None:
    for places in ([0], [len(text)], [0, len(text)], [1, 1]):
        pieces = [Placed(place, f"⟦{number}/⟧") for number, place in enumerate(places, start=1)]
        plain, placed = without_pieces(with_pieces(text, pieces))
        assert plain == text
        assert [piece for _, piece in placed] == [piece for _, piece in pieces]


def test_words_beside_a_piece_are_cut_as_without_it() -> None:
    config = SentencePieceConfig(vocab_size=120, user_defined_symbols=list(CODE_PIECES))
    lines = [side for pair in PAIRS for side in pair]
    tokenizer = train_tokenizers(config, lambda: iter(lines), lambda: iter(())).src
    text = "open the file"
    marked = tokenizer.pieces(tokenizer.encode(with_pieces(text, [Placed(5, "⟦1⟧"), Placed(8, "⟦/1⟧")])))
    assert [piece for piece in marked if piece not in CODE_PIECES] == tokenizer.pieces(tokenizer.encode(text))


@pytest.mark.parametrize(
    ("line", "translation", "expected"),
    [
        ("<b>Open</b> the file.", "⟦1⟧ Öffnen⟦/1⟧ der Datei.", "<b>Öffnen</b> der Datei."),
        ("<b>Open</b> the file.", "Datei⟦1⟧ öffnen⟦/1⟧.", "Datei <b>öffnen</b>."),
        ("Open <x/> now", "Jetzt⟦1/⟧ öffnen", "Jetzt <x/> öffnen"),
        ("Open %s now", "Jetzt öffnen:⟦1/⟧", "Jetzt öffnen: %s"),
        ("<i>All <b>of</b> it</i>", "⟦1⟧ Alles⟦/1⟧ davon", "<i><b>Alles</b> davon</i>"),
        ("<a><b>x</b> y</a> z", "z⟦1⟧⟦2⟧ x⟦/2⟧ y⟦/1⟧", "z <a><b>x</b> y</a>"),
        ("a ⟦1⟧ b", "b⟦1/⟧ a", "b ⟦1⟧ a"),
        ("<b>Open</b> it", "es öff⟦1⟧nen⟦/1⟧", "es <b>öffnen</b>"),  # no code parts a word
        ("<b>Open</b> it", "打⟦1⟧开⟦/1⟧它", "<b>打开</b>它"),
        ("O<sub>2</sub> now", "jetzt O⟦1⟧2⟦/1⟧", "jetzt O<sub>2</sub>"),
    ],
)
def test_codes_stand_where_the_model_put_their_pieces(line: str, translation: str, expected: str) -> None:
    assert restored(line, translation) == expected


@pytest.mark.parametrize(
    "translation",
    [
        "⟦1⟧⟦/1⟧ Öffnen der Datei.",
        "Öffnen der Datei⟦1⟧.⟦/1⟧",
        "Öffnen der Datei.",
        "⟦1⟧ Öffnen der Datei.",
        "⟦/1⟧ Öffnen⟦1⟧.",
        "⟦1⟧⟦1⟧ a⟦/1⟧⟦/1⟧",
        "⟦2⟧ a⟦/2⟧",
        "⟦1/⟧ a",
    ],
)
def test_a_translation_with_other_pieces_does_not_count(translation: str) -> None:
    assert restored("<b>Open</b> the file.", translation) is None


def test_codes_that_cross_in_the_source_are_not_carried() -> None:
    text, codes, _ = text_and_codes(items_of_line("<b>Open <i>the</b> file</i> now"))
    assert [code.kind for _, code in codes] == ["open", "alone", "close", "alone"]
    assert coded(text, codes) is not None  # what does not nest stands alone
    assert coded("x " * 20, [(2 * n + 1, codes[1][1]) for n in range(17)]) is None  # more than there are pieces


def test_markup_is_what_no_model_knows_as_it_is() -> None:
    assert [has_markup(text) for text in ("<b>x</b>", "a ⟦1⟧", "\ue100 x", "%s", "3 < 4", "[b]x[/b]")] == [
        True, True, True, False, False, True,
    ]  # fmt: skip


def restored(line: str, translation: str) -> str | None:
    model: Any = Fixed(translation)
    carried = GuardedTranslator(model, warn=False, guard=False)._carried([line])
    return carried[line][0].text if carried else None


class Fixed:
    """A model with pieces that always says the same."""

    join, languages, glossary = " ", ("en", "de"), None
    decoding = SimpleNamespace(num_candidates=1, n_best=1, beam_size=1)
    tokenizers = SimpleNamespace(src=SimpleNamespace(id_of=lambda piece: 9), tgt=SimpleNamespace(id_of=lambda piece: 9))

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def with_decoding(self, **changes: Any) -> "Fixed":
        return self

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        return [[Translation(self.answer, 0.0, 0.0)] for _ in sentences]


def links(pair: Any) -> np.ndarray:
    """Of a pair that `Backwards` has made."""
    marks = sum(not pair.src[word.start].isalnum() for word in pair.src_words)
    count = len(pair.src_words)
    return np.eye(count)[[*reversed(range(count - marks)), *range(count - marks, count)]]


class Backwards:
    """Puts the words of a sentence into the opposite order, with its pieces around them; its final mark stays."""

    def __init__(self, *, careless: bool = False) -> None:
        self.careless, self.asked = careless, list[str]()

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        self.asked += sentences
        return [[Translation(self.answer(text), 0.0, 0.0)] for text in sentences]

    def answer(self, text: str) -> str:
        mark = text[-1] if text[-1] in ".!?" else ""
        plain, placed = without_pieces(text.removesuffix(mark))
        parts = plain.split(" ")
        ends = [len(" ".join(parts[:count])) for count in range(len(parts) + 1)]
        size = len(" ".join(parts))
        turned = []
        for place, piece in placed:
            closes = piece.startswith("⟦/")
            kind = piece if piece.endswith("/⟧") else piece.replace("/", "") if closes else piece.replace("⟦", "⟦/")
            turned.append(Placed(size - max(end for end in ends if end <= place), kind))
        turned = [] if self.careless and placed else sorted(turned)
        return with_pieces(" ".join(reversed(parts)), turned) + mark


def document(model: Backwards, text: str, memory: Any = None, glossary: Any = None) -> str:
    pipeline: Any = SimpleNamespace(
        splitter=Splitter(("en", "de")),
        by_sentence=model.n_best,
        own=SimpleNamespace(glossary=glossary),
        carries_codes=True,
        context=(0, 0),
        memory=memory,
    )
    page = Document(text.encode(), FORMATS["html"], Options("x", ("en", "de")))
    return page.translated(DocumentTranslator(pipeline)).decode()


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        ("<p>one <b>two</b> three.</p>", "<p>three <b>two</b> one.</p>", ["one⟦1⟧ two⟦/1⟧ three."]),
        ("<p><b>one two</b></p>", "<p><b>two one</b></p>", ["one two"]),  # around all of it: no piece
        ("<p>One <b>two</b>. A b!</p>", "<p><b>two</b> One. b A!</p>", ["One⟦1⟧ two⟦/1⟧.", "A b!"]),
        ("<p><b>One two. Three four.</b></p>", "<p><b>two One. four Three.</b></p>", ["One two.", "Three four."]),
        ("<p>One.<img> A <i>b</i>!</p>", "<p>One.<img> <i>b</i> A!</p>", ["A⟦1⟧ b⟦/1⟧!", "One."]),
        ("<p>a <img> b c</p>", "<p>c b <img> a</p>", ["a⟦1/⟧ b c"]),
    ],
)
def test_codes_of_a_document_go_through_the_model(before: str, after: str, asked: list[str]) -> None:
    model = Backwards()
    assert document(model, before) == after
    assert model.asked == asked


TERM = Glossary({"two three": "three two"})


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        ("one <b>two</b> three.", "<b>three two</b> one.", "one⟦1⟧ two three⟦/1⟧."),
        ("one two <b>three four</b>.", "<b>four three two</b> one.", "one⟦1⟧ two three four⟦/1⟧."),
        ("a two <img>three b.", "b three two <img>a.", "a⟦1/⟧ two three b."),
        ("a <b>t</b>wo three.", "<b>three two</b> a.", "a⟦1⟧ two three⟦/1⟧."),
    ],
)
def test_no_code_parts_a_term(monkeypatch: pytest.MonkeyPatch, before: str, after: str, asked: str) -> None:
    monkeypatch.setattr(document_module, "word_links", lambda translator, pairs: [links(pair) for pair in pairs])
    model = Backwards()
    assert document(model, f"<p>{before}</p>", glossary=TERM) == f"<p>{after}</p>"
    assert model.asked == [asked]


def test_a_code_that_parts_a_term_stands_around_it_by_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "word_links", lambda translator, pairs: [links(pair) for pair in pairs])
    for before, after in (
        ("one <b>two</b> three.", "<b>three two</b> one."),
        ("one two <b>three</b>.", "<b>three two</b> one."),
        ("a <b>two</b> <i>three</i>.", "<i>three</i> <b>two</b> a."),
    ):
        found = document(Backwards(careless=True), f"<p>{before}</p>", glossary=TERM)
        assert sorted(re.findall("<[^p/]+>", found)) == sorted(re.findall("<[^p/]+>", before))
        assert found == f"<p>{after}</p>" or before.count("<") > 2


def test_codes_go_by_links_where_the_model_loses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "word_links", lambda translator, pairs: [links(pair) for pair in pairs])
    model = Backwards(careless=True)
    assert document(model, "<p>one <b>two</b> three.</p>") == "<p>three <b>two</b> one.</p>"
    assert model.asked == ["one⟦1⟧ two⟦/1⟧ three.", "one two three."]


def test_codes_that_reach_over_two_sentences_go_by_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "word_links", lambda translator, pairs: [links(pair) for pair in pairs])
    model = Backwards()
    assert document(model, "<p>One <b>two. Three</b> four.</p>") == "<p><b>two One. four Three</b>.</p>"
    assert not any(map(PIECE.search, model.asked))


def test_a_sentence_that_the_memory_has_is_asked_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "word_links", lambda translator, pairs: [links(pair) for pair in pairs])
    model = Backwards()
    assert document(model, "<p>one <b>two</b> three.</p>", {"one two three."}) == "<p>three <b>two</b> one.</p>"
    assert model.asked == ["one two three."]


# -- training pairs ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def annotator() -> Annotator:
    return Annotator.of_pairs(TextAugmentConfig(tags=1.0), PAIRS)


def test_drawn_codes_stand_around_words_that_translate_each_other(annotator: Annotator) -> None:
    content = {"open": "öffnen", "close": "schließen", "file": "datei", "window": "fenster"}
    around = 0
    for number in range(200):
        src, tgt = annotator("open the file", "die datei öffnen", random.Random(number))
        assert (plain_text(src), plain_text(tgt)) == ("open the file", "die datei öffnen")
        assert sorted(PIECE.findall(src)) == sorted(PIECE.findall(tgt))
        for piece in re.findall(r"⟦(\d+)⟧", src):
            inside = [re.search(rf"⟦{piece}⟧(.*?)⟦/{piece}⟧", plain)[1] for plain in (src, tgt)]  # type: ignore[index]
            said = [content[word] for word in without_pieces(inside[0])[0].split() if word in content]
            assert sorted(said) == sorted(set(without_pieces(inside[1])[0].split()) & set(content.values()))
            around += 1
    assert around > 100


def test_what_is_drawn_is_a_function_of_the_generator(annotator: Annotator) -> None:
    one, other = (annotator(*PAIRS[0], random.Random(5)) for _ in range(2))
    assert one == other
    assert annotator.annotated(*PAIRS[0], random.Random(1)) != PAIRS[0]
    none = Annotator(TextAugmentConfig(), annotator.aligner)
    assert none.annotated(*PAIRS[0], random.Random(1)) == PAIRS[0]


def test_tags_of_a_pair_become_pieces_with_the_numbers_of_their_words(annotator: Annotator) -> None:
    src, tgt = "<b>open</b> the <b>file</b>", "die <b>datei</b> <b>öffnen</b>"
    assert annotator.with_tags(src, tgt) == ("⟦1⟧ open⟦/1⟧ the⟦2⟧ file⟦/2⟧", "die⟦2⟧ datei⟦/2⟧⟦1⟧ öffnen⟦/1⟧")
    # Around all of it there is no piece at work either; tags that one side lacks are left out.
    assert annotator.with_tags("<p>open</p>", "<p>öffnen</p>") == ("open", "öffnen")
    assert annotator.with_tags("<b>open</b> the file", "die datei öffnen") == ("open the file", "die datei öffnen")
    assert annotator.with_tags("3 < 4", "3 < 4") == ("3 < 4", "3 < 4")


def test_entities_beside_tags_are_characters(annotator: Annotator) -> None:
    """Of a corpus with markup alone no model has seen a `<`: LibreOffice's help has `&lt;?&gt;` 119 times."""
    pair = annotator.with_tags("<b>open</b> &lt;?&gt; &amp; AT&T", "&lt;?&gt; <b>öffnen</b> &#38; AT&T")
    assert pair == ("⟦1⟧ open⟦/1⟧ <?> & AT&T", "<?>⟦1⟧ öffnen⟦/1⟧ & AT&T")
    assert annotator.with_tags("open &lt;?&gt;", "&lt;?&gt; öffnen") == ("open <?>", "<?> öffnen")
    assert replace(annotator, config=TextAugmentConfig()).with_tags("a &lt; b", "a &lt; b") == ("a &lt; b", "a &lt; b")
    assert [without_tags(text) for text in ("<b>a</b> &lt; b", "a &lt; b")] == ["a < b", "a < b"]


def test_a_source_with_tags_is_told_from_the_one_without(annotator: Annotator, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("<b>open</b> the file\tdie datei <b>öffnen</b>\n", encoding="utf-8")
    plain = TsvSource(path=str(path))
    source = changed_pairs(plain, annotator.with_tags)
    assert [*source.pairs()] == [Pair(1, "⟦1⟧ open⟦/1⟧ the file", "die datei⟦1⟧ öffnen⟦/1⟧")]
    assert fingerprint(source) == fingerprint(changed_pairs(plain, annotator.with_tags)) != fingerprint(plain)
    assert files_of(source) == [path]
    scored = changed_pairs(plain, annotator.without_tags)
    assert [*scored.pairs()] == [Pair(1, "open the file", "die datei öffnen")]
    assert fingerprint(scored) != fingerprint(source)


def test_a_pair_with_codes_of_its_own_is_read_without_them_in_some_epochs(annotator: Annotator) -> None:
    pair = annotator.with_tags("<b>open</b> the file", "die datei <b>öffnen</b>")
    read = {annotator.annotated(*pair, random.Random(number)) for number in range(50)}
    assert read == {pair, ("open the file", "die datei öffnen")}


def test_pieces_that_no_source_has_are_left_out() -> None:
    model: Any = Fixed("die⟦3/⟧ datei⟦/1⟧ öffnen")
    [[result]] = GuardedTranslator(model, warn=False, guard=False).n_best(["open the file"])
    assert result.text == "die datei öffnen"


def test_a_phrase_has_no_link_to_what_is_outside() -> None:
    links = WordLinks([(0, 1), (1, 0), (2, 2), (2, 4)])
    assert links.phrase(0, 1) is not None
    assert links.phrase(2, 3) == (2, 3, 2, 5)
    assert links.phrase(3, 4) is None  # nothing is linked to it
    assert WordLinks([(0, 0), (1, 1), (0, 2)]).phrase(0, 1) is None


# -- inputs of public bug reports, rebuilt (benchmarks/log/2026-11.md) -----------------------------------------------

STRANGERS = [
    "<b id=1a style='color:red'>1<i id=1b> inside b</i></b> <i id=1c>italic</i>",  # all tags but one were wiped out
    "<b>d</b><i>o</i><a id=1>g</a> barks",  # tags inside of a word
    "I <b>like</b> to <u>drive</u> this car.",  # an empty pair, and one inside of a word
    "<span id=0>c</span><span id=1>h</span><span id=2>i</span> is a dog",
    "<a href='#'>\n  <em>\n  <span>\n View the range of\n  </span>\n </em>\n <em><span>drawers here!</span></em>\n</a>",
    'Hi <a href="javascript:void">this is test 2</a> ready',
    "one<x1/>Par<x2/>nature ,<x3/>l'atteinte<x4/>de<x5/>ces<x6/>objectifs<x7/>est<x8/>soumise<x9/>.",
    "say <g id=29>hello<g id=35></g> world<g id=50></g></g> now",
    "<a href=1>Wikipedia</a> is a <a href=2>project</a> of <a href=3>free</a> <a href=4>content</a>, <a>2001</a>.",
    "This <br/> and <img src=x> that <wbr>word",
    "<p>A <b><i><u>deep</u></i></b> <s>nest</s> of <q>marks</q></p>",
    "Press <kbd>Ctrl</kbd>+<kbd>C</kbd> to copy (<em>all</em>).",
]


@pytest.mark.parametrize("line", STRANGERS)
@pytest.mark.parametrize("careless", [False, True])
def test_tags_of_strangers_come_once_and_nested(line: str, careless: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        document_module,
        "word_links",
        lambda translator, pairs: [np.ones((len(pair.tgt_words), len(pair.src_words))) for pair in pairs],
    )
    page = document(Backwards(careless=careless), f"<div>{line}</div>")
    tags = re.findall(r"<[^>]*>", f"<div>{line}</div>")
    assert sorted(re.findall(r"<[^>]*>", page)) == sorted(tags)
    assert not PIECE.search(page)
    opened = []
    for tag in re.findall(r"<(/?\w+)[^>/]*(?<!/)>", page):
        if tag in ("img", "wbr", "br"):
            continue
        if tag.startswith("/"):
            assert opened.pop() == tag[1:]
        else:
            opened.append(tag)


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("Hello %1$s, good to see you again!", "Hello⟦1/⟧, good to see you again!"),
        ('rendre <span style="color:%2$s;">%1$s</span> dabbas', "rendre⟦1⟧⟦2/⟧⟦/1⟧ dabbas"),
        ("Le </t0><t1>Premier <v/>Secrétaire</t1> a dit", "Le⟦1/⟧⟦2⟧ Premier⟦3/⟧ Secrétaire⟦/2⟧ a dit"),
        ("<0>Read</0> the <1>terms</1> <2/>", "⟦1⟧ Read⟦/1⟧ the⟦2⟧ terms⟦/2⟧"),
        ("[b]Bold[/b] text", "⟦1⟧ Bold⟦/1⟧ text"),
        ("remove <userID>_<workstationName>.xml from it", "remove⟦1/⟧ _⟦2/⟧.xml from it"),  # modernmt issue 96
        ("The post-<b>substitution line</b> is open.", "The post-⟦1⟧substitution line⟦/1⟧ is open."),  # issue 529
        ('Use the "<b>O</b>pen File" command.', 'Use the "⟦1⟧O⟦/1⟧pen File" command.'),
        ("accounts <financialstart>payable<financialend> now", "accounts⟦1/⟧ payable⟦2/⟧ now"),
    ],
)
def test_lines_of_strangers_with_pieces(line: str, pieces: str) -> None:
    text, codes, _ = text_and_codes(items_of_line(line))
    sentence = coded(text, codes)
    assert sentence is not None
    assert sentence.text.strip() == pieces
    items = sentence.items(pieces)
    assert items is not None
    assert re.sub(r"\s", "", joined(items)) == re.sub(r"\s", "", line)
