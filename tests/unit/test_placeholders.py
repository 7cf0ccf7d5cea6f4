"""What must survive a translation."""

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.pipeline.splitter import Splitter
from dragoman.text.placeholders import (
    SYSTEMS,
    has_same_spans,
    mask_spans,
    restore_spans,
    span_pattern,
    spans,
    without_spans,
)
from dragoman.text.words import words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello %s, you have %1$d new messages in %(folder)s.", ["%s", "%1$d", "%(folder)s"]),
        ("50% of {count} files, {{user.name}} and ${HOME}", ["{count}", "{{user.name}}", "${HOME}"]),
        (
            "see https://example.org/a_b?c=1&d=2, or www.example.com.",
            ["https://example.org/a_b?c=1&d=2", "www.example.com"],
        ),
        ("(http://x.org/y)", ["http://x.org/y"]),
        ("write to a.b+c@example.co.uk!", ["a.b+c@example.co.uk"]),
        (
            'a <b>bold</b> word<br/>&amp; <a href="x y">link</a>',
            ["<b>", "</b>", "<br/>", "&amp;", '<a href="x y">', "</a>"],
        ),
        ("nice 👍🏽 day 👩‍👩‍👧 in 🇩🇪 ☀️", ["👍🏽", "👩‍👩‍👧", "🇩🇪", "☀️"]),
        ("%.2f%% of %5d at %-10s", ["%.2f", "%%", "%5d", "%-10s"]),
        ("%d個のファイル、%s你好", ["%d", "%s"]),
        ("请看https://x.org。谢谢你，联系admin@x.org获取", ["https://x.org", "admin@x.org"]),
        ("at ⏰ 1️⃣ ™ ▶️ %ld and %dkm", ["⏰", "1️⃣", "™", "▶️", "%ld", "%d"]),
        ("%" + "0" * 50_000 + "a" * 50_000, []),
        ("100 % sure, 3 < 4 and 5 > 4; a@b; {", []),
    ],
)
def test_spans(text: str, found: list[str]) -> None:
    assert spans(text) == found


@pytest.mark.parametrize(
    ("src", "translation", "links", "expected"),
    [
        # Each target word looks at the source word of the same place, unless said otherwise.
        ("Click {name} now.", "Klicke jetzt.", None, "Klicke {name} jetzt."),
        ("Click {name}.", "Klicke.", None, "Klicke {name}."),
        ("%d files (%s)", "Dateien ()", None, "%d Dateien (%s)"),
        ("a <b>red</b> car", "ein rotes Auto", None, "ein <b>rotes</b> Auto"),
        ("a <b>red</b> car", "une voiture rouge", [0, 2, 1], "une voiture <b>rouge</b>"),
        ("{a}{b} word", "Wort", None, "{a}{b} Wort"),
        ("word %s", "Wort", None, "Wort %s"),
        ("{x}", "", None, "{x}"),
        ("line one<br>line two", "zeile eins zeile zwei", None, "zeile eins<br>zeile zwei"),
        ("the grass %s .", "das gras .", None, "das gras %s ."),
        ("Hi {name}, see {url}.", "Hallo, siehe.", None, "Hallo {name}, siehe {url}."),
        ("“{title}” is new", "„“ ist neu", None, "„{title}“ ist neu"),
        ("Hello {name} my friend", "Hallo.", None, "Hallo {name}."),
        ("a <b>red</b> car", "ein (rotes Auto)", [0, 0, 1, 2, 2], "ein (<b>rotes</b> Auto)"),
    ],
)
def test_they_go_back_where_their_neighbours_went(
    src: str, translation: str, links: list[int] | None, expected: str
) -> None:
    bare, removed = without_spans(src)
    src_words, tgt_words = words(bare), words(translation)
    looks = np.zeros((len(tgt_words), len(src_words)))
    for place in range(len(tgt_words)):
        looks[place, min((links or range(len(tgt_words)))[place], len(src_words) - 1)] = 1
    found = restore_spans(translation, removed, src_words, looks)
    assert found == expected
    assert has_same_spans(src, found)


@pytest.mark.parametrize(
    ("src", "expected"),
    [("ein roter <b> Hund", "a red hound <b>"), ("ein <b>roter</b> Hund da", "a <b>red hound</b>")],
)
def test_none_is_put_into_what_is_to_stay_whole(src: str, expected: str) -> None:
    bare, removed = without_spans(src)
    looks = np.eye(3, len(words(bare)))
    assert restore_spans("a red hound", removed, words(bare), looks, whole=[(2, 11)]) == expected
    assert restore_spans("a red hound", removed, words(bare), looks) != expected


def test_they_survive_whatever_the_translation_is() -> None:
    rng = random.Random(1)
    things = [
        "%s",
        "%1$s",
        "{name}",
        "{{x}}",
        "<b>",
        "</b>",
        "https://x.org/a?b",
        "a@b.org",
        "😀",
        "👍🏽",
        "&lt;",
        "🇫🇷",
    ]
    plain = ["click", "here", "now", ",", ".", "(", ")", "the", "red", "car"]
    for _ in range(2000):
        src = "".join(rng.choice(things + plain * 2) + rng.choice([" ", " ", ""]) for _ in range(rng.randint(1, 12)))
        bare, removed = without_spans(src)
        if spans(bare):
            continue  # what stood on both sides of a span has become one: a source that no one writes
        translation = " ".join(rng.choice(plain) for _ in range(rng.randint(0, 8)))
        looks = np.random.default_rng(rng.randint(0, 10**9)).random((len(words(translation)), len(words(bare))))
        found = restore_spans(translation, removed, words(bare), looks)
        assert sorted(item.span for item in removed) == sorted(spans(src))
        for item in removed:
            assert found.count(item.span) >= spans(src).count(item.span), (src, translation, found)


def test_a_span_that_is_lost_or_made_up_does_not_survive() -> None:
    src = "Hi {name}, see <b>%1$s</b>"
    assert has_same_spans(src, "Siehe <b>%1$s</b>, {name}")
    assert not has_same_spans(src, "Siehe <b>%1$s</b>")
    assert not has_same_spans(src, "Siehe <b>%1$s</b>, {name} {name}")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("Edit /etc/pam.d/login, then ~/.config/x.toml or ../a/b.", ["/etc/pam.d/login", "~/.config/x.toml", "../a/b"]),
        (r"It is in C:\Windows\System32\drivers.", [r"C:\Windows\System32\drivers"]),
        ("km/h and/or 24/7, on 24/12/2024, a//b", []),
        ("Version 2.3.1 of ABC-123.", ["2.3.1", "ABC-123"]),
        ("PX200/B, SKU, TRUE, A4, UTF-8, v2.3.1-beta, 10.0.0.1", ["PX200/B", "A4", "UTF-8", "v2.3.1-beta", "10.0.0.1"]),
        ("版本2.3.1的ABC-123", ["2.3.1", "ABC-123"]),
        ("जैसे १९२.१६८.०.० या ٢.٣.١", ["१९२.१६८.०.०", "٢.٣.١"]),
        ("at 5PM on 12.03.2024, 1.234.567 or 3.5 of 24/7, MP3s, I/O, THE-KING, 1.2.24", []),
        ("https://example.org/ABC-123 {X-1} `B-2`", []),
    ],
)
def test_codes_are_told_from_dates_and_numbers(text: str, codes: list[str]) -> None:
    assert [span for span in span_pattern(codes=True).findall(text) if span not in spans(text)] == codes


EXAMPLES = {
    "URL": ("https://x.org/a|b", "www.x.org"),
    "e-mail address": ("a.b@x.org",),
    "blocks of Jinja, Django, Twig, Liquid": ("{% if a %}", "{# a note #}"),
    "blocks of ERB, EJS, PHP": ("<%= a > b %>", "<?php a ?>"),
    "FreeMarker": ("<#if a>", "</#if>", "[#if a > b]", "[/#list]"),
    "Mustache, Handlebars, Jinja, Angular, Vue, Go, Hugo": ("{{a}}", "{{{a}}}", "{{ a | upper }}", "{{< a \"b\" >}}"),
    "i18next's nesting": ("$t(a.b)", '$t(a, {"count": 2})'),
    "shell, JavaScript, Kotlin": ("${a}", "$(date)"),
    "C's <inttypes.h>": ("%<PRIu64>", "%08<PRIx32>"),
    "Ruby": ("%{count}", "%<price>.2f", "%<name>"),
    "ICU's quoted marks": ("'<strong>'", "'</a>'", "'<'a href=\"{url}\"'>'", "'{'", "'}'"),
    "Java's MessageFormat, .NET, Python's format, ICU, Fluent": ("{0}", "{0:N2}", "{n, number}", "{ $a }", "{}"),
    "Vue I18n's links": ("@:hemd", "@.lower:a.b", "@:(a.b)"),
    "Chrome's messages": ("$USER$",),
    "variables of shell, PHP, Perl": ("$HOME", "$a_b"),
    "i18next's older form": ("__count__", "__a_b__"),
    "MediaWiki, WebExtensions": ("$1",),
    "Sphinx's roles and reStructuredText": (":ref:`a <b>`", ":py:func:`a`", "[#a]_", "|version|"),
    "code": ("`a b`", "``a``", "`a`_"),
    "BBCode": ("[b]", "[url=x]", "[/b]"),
    "Maketext": ("[_1]", "[quant,_1,file,files]"),
    "Apple's plurals": ("%#@files@", "%1$#@a@", "%arg", "%1$arg"),
    "Symfony, Windows' variables": ("%name%", "%APP_DATA%"),
    "printf of C, Python, PHP, Java, Objective-C": (
        "%s", "%1$s", "%-5.2f", "%(name)s", "%'010d", "%*d", "%.*s", "%lld", "%@", "%1$@", "%%", "%I64d",
    ),
    "strftime": ("%Y", "%-H"),
    "GCC's quotes": ("%<", "%>"),
    "Boost, Windows' FormatMessage": ("%1%", "%1!s!"),
    "Qt": ("%1", "%L1", "%n", "%Ln"),
    "Laravel, short names of emoji": (":count", ":smile:"),
    "Drupal, Razor, mentions": ("@count", "@Model.Name", "!link", "%user"),
    "tags, those of React by number": ("<b>", "</a>", "<0>", "</0>", "<1/>", "<br/>"),
    "entities": ("&nbsp;", "&#160;", "&brandShortName;"),
    "flags, keycaps, marks shown as emoji": ("🇩🇪", "1️⃣", "↔️"),
    "emoji with joiners": ("👩‍💻", "😀"),
}  # fmt: skip


SINGLE = "|".join(f"(?:{system.pattern})" for system in SYSTEMS)
PARTS = [part for examples in EXAMPLES.values() for part in examples] + [
    *'aäж日ไ1२１ .,:/_-+@#<()"’。\n\u3000',
    "www.",
    "x@y.de",
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PARTS), max_size=8).map("".join))
def test_spans_are_those_of_every_kind_tried_at_every_place(text: str) -> None:
    assert spans(text) == re.findall(SINGLE, text)


def test_every_system_of_placeholders_has_examples() -> None:
    others = {"the two halves around a Markdown link's text", "a piece of a document that is not translated"}
    assert EXAMPLES.keys() == {system.name for system in SYSTEMS} - others
    assert all(system.specified for system in SYSTEMS)


@pytest.mark.parametrize("text", [text for texts in EXAMPLES.values() for text in texts])
def test_a_placeholder_of_any_system_is_one_span_and_no_text(text: str) -> None:
    assert spans(text) == [text]
    assert spans(f"One {text} two.") == [text]
    assert spans(f"One two {text}.") == [text]
    assert not Splitter(("en", "de")).is_text(text)
    changed, _ = mask_spans(f"One {text} two.")
    assert without_spans(changed)[0].split()[0] == "One"


@pytest.mark.parametrize(
    "text",
    [
        "100%ige Wolle",
        "20 % des Preises",
        "20 %ige Lauge",
        "Achtung! nicht!",
        "Um 10:30 Uhr",
        "Siehe: das da",
        "for $5.50",
        "a < b und c > d",
        "R&D",
        "10:5",
    ],
)
def test_words_and_numbers_are_no_placeholders(text: str) -> None:
    assert spans(text) == []
