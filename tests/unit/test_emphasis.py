"""Emphasis of Markdown beside letters, as markdown-it, a parser of CommonMark, renders it."""

import random
from collections import Counter

import pytest
from markdown_it import MarkdownIt

from dragoman.formats.base import Code, Item, Options
from dragoman.formats.document import FORMATS, Document
from dragoman.formats.emphasis import APART, beside_letters

PARSER = MarkdownIt("commonmark").enable("strikethrough")
TAGS = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "s"}


def items_of(text: str) -> list[Item]:
    """The items of a text with `{` and `}` around words, and the mark behind each of them: `{**word}**`."""
    out: list[Item] = [""]
    at = 0
    while at < len(text):
        mark = next((mark for mark in ("**", "__", "~~", "*", "_") if text.startswith(mark, at + 1)), "")
        if text[at] in "{}":
            out += [Code(mark, "open" if text[at] == "{" else "close", 0, True), ""]
            at += 1 + len(mark)
        else:
            out[-1] = str(out[-1]) + text[at]
            at += 1
    return [item for item in out if item]


def written(items: list[Item]) -> str:
    return "".join(item if isinstance(item, str) else item.raw for item in items)


def rendered(text: str) -> str:
    return PARSER.renderInline(text).replace("\u200b", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{**真，}**她", "**真**，她"),
        ("{**真？！}**她", "**真**？！她"),
        ("{*今日は？}*皆さん", "*今日は*？皆さん"),
        ("含{**「重点」}**内容", "含「**重点**」内容"),
        ("日本語{**(強調)}**日本語", "日本語(**強調**)日本語"),
        ("{**彼は「字」}**と", "**彼は「字」**&#8203;と"),
        ("{**「字」と「名」}**は", "**「字」と「名」**&#8203;は"),
        ("{~~删除的文字（带括号）。}~~这个", "~~删除的文字（带括号）~~。这个"),
        ("字{_字}_字", "字*字*字"),
        ("字{__字}__。", "字**字**。"),
        ("{_{**字。}**}_字", "***字***。字"),
        ("字{*字{_字}_字}*字", "字*字&#8203;_字_&#8203;字*字"),
        ("{**字}**字{**字}**字", "**字**字**字**字"),
        ("{*字}*{**字}**", "*字*&#8203;**字**"),
        ('{**"dosya"}**yı aç', '"**dosya**"yı aç'),
        ("{**เปิด}** บันทึก", "**เปิด** บันทึก"),
        ("{**Note:}** text, {_so_it}_.", "**Note:** text, _so_it_."),
    ],
)
def test_emphasis_beside_letters(before: str, after: str) -> None:
    items = items_of(before)
    out = beside_letters(items)
    assert written(out) == after
    marks = Counter(item.raw for item in items if isinstance(item, Code) and item.kind == "open")
    assert all(rendered(after).count(f"<{TAGS[mark]}>") >= count for mark, count in marks.items())
    assert not set("*_~") & set(rendered(after).replace("so_it", ""))


def test_links_and_code_in_emphasis_stay_emphasis() -> None:
    link = [Code("[", "open", 1), "字", Code("](x)", "close", 1)]
    strong = Code("**", "open", 0, True), Code("**", "close", 0, True)
    for inside in (link, [Code("`x`", "protected")]):
        out = beside_letters(["字", strong[0], *inside, strong[1], "字"])
        assert written(out).count("&#8203;") == 2
        assert rendered(written(out)).startswith("字<strong>")
        assert rendered(written(out)).endswith("</strong>字")


def test_whatever_stands_beside_a_mark_it_is_rendered_and_no_text_is_lost() -> None:
    draw = random.Random(7)

    def text() -> str:
        return "".join(draw.choices('は字開A1。、！？「」（）…～“”:,-()①→％"ก์ह', k=draw.randint(1, 4)))

    broken = 0
    for _ in range(400):
        items: list[Item] = ["字" + text()]
        for mark in draw.sample([*TAGS], 2):
            inside: list[Item] = [text()]
            if draw.random() < 0.4 and mark != "~~":
                inside = [text(), Code("~~", "open", 1, True), text(), Code("~~", "close", 1, True), *inside]
            items += [Code(mark, "open", 0, True), *inside, Code(mark, "close", 0, True)]
            items += [text()] if draw.random() < 0.9 else []
        out = beside_letters(items)
        wanted = Counter(TAGS[item.raw] for item in items if isinstance(item, Code) and item.kind == "open")
        html = rendered(written(out).replace("<", "&lt;"))
        assert Counter({tag: html.count(f"<{tag}>") for tag in wanted}) == wanted, (written(items), written(out))
        assert written([item for item in out if isinstance(item, str)]) == written(
            [item for item in items if isinstance(item, str)]
        )
        html = rendered(written(items))
        broken += Counter({tag: html.count(f"<{tag}>") for tag in wanted}) != wanted
    assert broken > 100  # as they were
    assert APART.raw == "&#8203;"


def test_a_document_of_markdown_has_emphasis_beside_japanese_letters() -> None:
    said = {
        "Open the file.": "ファイルを開きます。", " Save it now.": "今すぐ保存してください。",
        "How are you?": "「調子」はどうですか？", " Good morning.": "おはようございます。",
    }  # fmt: skip
    text = "**Open the file.** Save it now.\n\n*How are you?* Good morning.\n"
    document = Document(text.encode(), FORMATS["md"], Options("b.md", ("en", "ja")))
    out = document.translated(
        lambda units: [tuple(said[item] if isinstance(item, str) else item for item in unit.items) for unit in units]
    ).decode()
    assert out == "**ファイルを開きます**。今すぐ保存してください。\n\n*「調子」はどうですか*？おはようございます。\n"
    assert PARSER.render(out).count("<strong>") == PARSER.render(out).count("<em>") == 1
