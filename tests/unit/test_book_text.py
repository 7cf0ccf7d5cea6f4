"""The text of the book: every English text has its Chinese beside it, and every chapter has the same form."""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import dragoman.learn
from dragoman.learn import mini_solution
from dragoman.learn.book import CODE
from dragoman.learn.bugs import BUGS
from dragoman.learn.chapter import Cell, Chapter, chapters

BOOK = chapters()
BILINGUAL = [one for one in BOOK if any(cell.language == "zh" for cell in one.cells)]
NUMBERED = [one for one in BILINGUAL if one.number > 0]
"""Chapters of the usual form: chapter 0 has nothing to try and nothing to hunt."""
TERMS = yaml.safe_load((Path(dragoman.learn.__file__).parent / "terms.yaml").read_text(encoding="utf-8"))
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+?\$", re.DOTALL)
BACKTICKED = re.compile(r"`([^`]+)`")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
NUMBER = re.compile(r"(\d[\d.,]*\d|\d)\s*(million|thousand|百万|万|亿)?")
UNITS = {"": 1, "thousand": 1e3, "万": 1e4, "million": 1e6, "百万": 1e6, "亿": 1e8}
AMBIGUOUS = {
    "alignment", "average", "bias", "character", "context", "corpus", "feature", "function", "gate", "head", "id",
    "key", "layer", "length", "model", "position", "precision", "prefix", "reference", "score", "sentence", "shape",
    "shift", "source", "step", "target", "token", "training", "translation", "value", "weight",
}  # fmt: skip
"""Terms that are ordinary words too, or a part of many Chinese words: asked for in the chapter, not in each text."""
SHORTER = {"score": "分", "source": "源", "target": "目标"}
"""Where a shorter word is right too: the score of a search is 得分, of BLEU 分数; a target may be a distribution."""
QUOTED = re.compile(r'"[^"]*"|“[^”]*”|《[^》]*》')


def text_pairs(chapter: Chapter) -> Iterator[tuple[str, str]]:
    """Each English text of a chapter, and the Chinese one directly behind it ("" where there is none)."""
    for cell, after in zip(chapter.cells, [*chapter.cells[1:], Cell("", is_code=True)], strict=True):
        if not cell.is_code and cell.language == "en":
            yield cell.text, "" if after.is_code or after.language != "zh" else after.text


def prose(text: str) -> str:
    """A text without code, formulas and links to code."""
    return BACKTICKED.sub(" ", FORMULA.sub(" ", CODE.sub(" ", text)))


def numbers(text: str) -> set[float | str]:
    """The numbers of a text with more than one digit, whatever words they are written with: 44 million, 4400 万."""
    values: set[float | str] = set()
    for digits, unit in NUMBER.findall(prose(text)):
        plain = digits.replace(",", "")
        if len(digits) > 1 or unit:
            values.add(float(plain) * UNITS[unit] if plain.count(".") < 2 else plain)
    return values


def english_text(chapter: Chapter) -> str:
    return "\n\n".join(english for english, _ in text_pairs(chapter))


def by_name(chapter: Chapter) -> str:
    return chapter.name


def test_every_chapter_is_written_in_both_languages() -> None:
    assert [one.number for one in BILINGUAL] == list(range(15))


def differences(english: str, chinese: str) -> Iterator[str]:
    """What a Chinese text lacks of its English one, or has too much."""
    if not CHINESE.search(chinese):
        yield "no Chinese text follows"
        return
    parts = {
        "formulas": lambda text: sorted(FORMULA.findall(text)),
        "links to code": CODE.findall,
        "names in backticks": lambda text: set(BACKTICKED.findall(CODE.sub("", text))),
        "rows of tables": lambda text: [row.count("|") for row in re.findall(r"^\|.*", text, re.MULTILINE)],
        "headings": lambda text: re.findall(r"^#+ ", text, re.MULTILINE),
        "items of lists": lambda text: len(re.findall(r"^- ", text, re.MULTILINE)),
        "numbers": numbers,
    }
    for name, part in parts.items():
        if part(english) != part(chinese):
            yield f"{name}: {part(english)} and {part(chinese)}"


@pytest.mark.parametrize("chapter", BILINGUAL, ids=by_name)
def test_an_english_text_is_followed_by_the_same_in_chinese(chapter: Chapter) -> None:
    pairs = list(text_pairs(chapter))
    assert not [f"{text[:60]!r}: {problem}" for text, chinese in pairs for problem in differences(text, chinese)]
    assert sum(cell.language == "zh" for cell in chapter.cells) == len(pairs)


@pytest.mark.parametrize("chapter", BILINGUAL, ids=by_name)
def test_no_english_sentence_is_left_in_the_chinese(chapter: Chapter) -> None:
    for _, chinese in text_pairs(chapter):
        kept = re.sub(r"<[^>]*>", "。", QUOTED.sub("。", prose(chinese)))  # titles and examples
        assert not re.findall(r"(?:[A-Za-z]+[ ,]+){5}[A-Za-z]+", kept)
        assert not re.findall(r".{9}[\u4e00-\u9fff][,;:?!]", kept), "marks of the other script"


@pytest.mark.parametrize("chapter", BILINGUAL, ids=by_name)
def test_chinese_texts_use_the_terms_of_the_table(chapter: Chapter) -> None:
    """Longer terms go first: "attention weight" is one term and not two."""
    names = re.compile(rf"\b({'|'.join(sorted(map(re.escape, TERMS), key=len, reverse=True))})(?:e?s)?\b(?!/)", re.I)
    pairs = [(english, chinese.replace(" ", "")) for english, chinese in text_pairs(chapter)]
    whole = "".join(chinese for _, chinese in pairs)
    missing = [
        f"{name}, {TERMS[name]}: {english[:60]!r}"
        for english, chinese in pairs
        for name in sorted({match.lower() for match in names.findall(QUOTED.sub(" ", prose(english)))})
        if SHORTER.get(name, TERMS[name]).lower() not in (whole if name in AMBIGUOUS else chinese).lower()
    ]
    assert not missing


def test_the_table_of_terms_is_sorted() -> None:
    assert sorted(TERMS) == list(TERMS)
    assert set(TERMS) >= AMBIGUOUS


@pytest.mark.parametrize("chapter", BILINGUAL, ids=by_name)
def test_a_chapter_begins_with_its_question_and_its_times(chapter: Chapter) -> None:
    english, chinese = next(text_pairs(chapter))
    assert re.match(rf"# {chapter.number}\. [^(]+ \([^)]+\)\n", english)
    assert re.match(rf"# {chapter.number}\. .*[\u4e00-\u9fff]", chinese)
    for text, mark in ((english, "?"), (chinese, "？")):
        questions = re.findall(r"^\*[^*\n]+\*$", text, re.MULTILINE)
        assert [question[-2] for question in questions] == [mark]
    minutes, seconds = chapter.times()
    assert 5 <= minutes <= 240
    assert 0 < seconds <= 120


@pytest.mark.parametrize("chapter", BILINGUAL, ids=by_name)
def test_a_chapter_speaks_plainly_and_names_its_sources(chapter: Chapter) -> None:
    text = QUOTED.sub(" ", prose(english_text(chapter)))
    assert not re.findall(r"\b(?:the|other|these|those) notes\b|annotated notebook", text, re.I)
    assert not re.findall(r".*\b(?:obviously|simply|just)\b.*", text, re.I)
    for cell in chapter.cells:
        if cell.is_code and not cell.is_check:
            lines = [line for line in cell.text.splitlines() if not re.match(r'\s*f?"', line)]
            assert max(map(len, lines)) <= 100, max(lines, key=len)


@pytest.mark.parametrize("chapter", NUMBERED, ids=by_name)
def test_a_chapter_has_the_form_of_all_chapters(chapter: Chapter) -> None:
    text = english_text(chapter)
    assert re.search(r"(?:\n\n|^)\*\*[^*]+\*\*(?:\n\n|$)", text), "the idea, a paragraph in bold"
    assert re.search(r"^## What the output says", text, re.MULTILINE)
    three = re.search(r"^## Three lines to keep\n\n((?:.+\n?)+)", text, re.MULTILINE)
    assert three
    assert len(re.findall(r"^(?:- |\d\. )", three[1], re.MULTILINE)) == 3
    assert f"`dragoman learn check {chapter.number}`" in text
    read_on = re.search(r"^## Read on\n\n(.+)", text, re.MULTILINE | re.DOTALL)
    assert read_on
    assert len(re.findall(r"^- ", read_on[1], re.MULTILINE)) == 2
    assert any("allclose" in cell.text or "equal" in cell.text for cell in chapter.cells if cell.is_code)


@pytest.mark.parametrize("chapter", NUMBERED, ids=by_name)
def test_a_picture_is_followed_by_where_to_look(chapter: Chapter) -> None:
    seen = [cell for cell in chapter.in_language("en").cells if not cell.is_check]
    after = [after for cell, after in itertools.pairwise(seen) if cell.is_code and "show(" in cell.text]
    assert after
    assert all(cell.text.startswith("Look at") for cell in after)


@pytest.mark.parametrize("chapter", BILINGUAL, ids=by_name)
def test_a_chapter_asserts_its_sentences_and_describes_its_figures(chapter: Chapter) -> None:
    assert any(cell.is_check for cell in chapter.cells)
    calls = [
        node
        for cell in chapter.cells
        if cell.is_code
        for node in ast.walk(ast.parse(cell.text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "show"
    ]
    assert all(len(call.args) == 3 and len(ast.literal_eval(call.args[2])) > 40 for call in calls)


def names_bound(tree: ast.Module) -> set[str]:
    """What a cell defines: variables, functions, classes, arguments, imports."""
    bound = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add((other or name).split(".")[0])
    return bound


@pytest.mark.parametrize("chapter", BOOK, ids=by_name)
def test_a_shown_cell_needs_no_hidden_one(chapter: Chapter) -> None:
    """A notebook has no checks: what only they define, or define last, is missing or another there."""
    by_a_check: set[str] = set()
    for cell in chapter.cells:
        if not cell.is_code:
            continue
        tree = ast.parse(cell.text)
        if cell.is_check:
            by_a_check |= names_bound(tree)
            continue
        by_a_check -= names_bound(tree)
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        assert not read & by_a_check, cell.text


def plain(node: ast.AST) -> str:
    """The code of a function or class, without what types and docstrings say of it."""
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part) is not None:
            del part.body[0]
        if isinstance(part, ast.FunctionDef):
            part.returns = None
        if isinstance(part, ast.arg):
            part.annotation = None
        if isinstance(part, ast.AnnAssign) and part.value is not None:
            part.annotation = ast.Constant(None)
    return ast.unparse(node).replace(": None =", " =").replace("math.inf", "torch.inf")


@pytest.mark.parametrize("chapter", NUMBERED, ids=by_name)
def test_a_chapter_shows_its_pieces_as_the_reference_has_them(chapter: Chapter) -> None:
    """The reader of a chapter and of `mini_solution.py` sees the same code."""
    whole = Path(mini_solution.__file__).read_text(encoding="utf-8")
    starts = re.split(r"^# Chapter (\d+): .*$", whole, flags=re.MULTILINE)
    pieces = ast.parse(dict(zip(starts[1::2], starts[2::2], strict=True)).get(str(chapter.number), "")).body
    shown = [
        node
        for cell in chapter.cells
        if cell.is_code and not cell.is_check
        for node in ast.parse(cell.text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    for piece in pieces:
        assert isinstance(piece, ast.FunctionDef | ast.ClassDef)
        assert f"`{piece.name}`" in english_text(chapter)
        assert plain(piece) in [plain(node) for node in shown if node.name == piece.name]


@pytest.mark.parametrize("chapter", BILINGUAL, ids=by_name)
def test_bugs_are_named_by_their_numbers_alone(chapter: Chapter) -> None:
    """Who reads the cause before the hunt has nothing to hunt."""
    for line in re.findall(r"^.*\b[Bb]ugs? to hunt.*$", english_text(chapter), re.MULTILINE):
        assert re.fullmatch(r"Bugs? to hunt: (?:`dragoman learn bug \d+`|`\d+`|, | and )+\.", line)
    assert not re.search(r"`?\d+`? \([^)]*\)", " ".join(re.findall(r"[Bb]ugs? .*", english_text(chapter))))


@pytest.mark.skipif(len(BILINGUAL) < len(BOOK), reason="chapters are missing")
def test_every_bug_of_the_laboratory_is_named_by_a_chapter() -> None:
    lines = re.findall(r"^Bugs? to hunt: (.*)$", "\n".join(map(english_text, BOOK)), re.MULTILINE)
    assert {int(number) for line in lines for number in re.findall(r"\d+", line)} == set(range(1, len(BUGS) + 1))
