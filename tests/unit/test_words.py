"""Where a text may be parted: placeholders, tags, URLs and emoji never stand inside of a letter."""

import numpy as np
import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.scripts import script

from dragoman.alignment.links import aligned_pair
from dragoman.alignment.markup import SentenceSpans, transfer_markup
from dragoman.formats.accelerators import with_accelerator
from dragoman.formats.base import Code
from dragoman.text.placeholders import has_same_spans, restore_spans, spans, without_spans
from dragoman.text.segment import Span
from dragoman.text.words import borders, is_alone, places, split_words, words

TEXTS = {
    "hi": "विधि के क्रियान्वयन में त्रुटि, करें।",
    "bn": "একটি চলকের মান নির্ধারণ করে।",
    "ta": "தமிழ் மொழியில் எழுதுகிறது.",
    "th": "ที่นี้กำลังเปิดไฟล์อยู่",
    "lo": "ທີ່ນີ້ກຳລັງເປີດ",
    "km": "ខ្ញុំកំពុងបើកឯកសារ។",
    "my": "ကျွန်တော် စက္ကူ ဖွင့်သည်။",
    "ar": "مُحَمَّدٌ يُنَفِّذُ الطَّريقة، ثم",
    "fa": "می‌خواهم نامه‌ها را ببینم",
    "he": "שָׁלוֹם לְכֻלָּם, צה״ל",
    "vi": "Tiếng Việt có dấu",
    "ko": "한국어를 쓴다",
    "si": "ක්‍රියාව කරන්න",
    "ccp": "𑄌𑄋𑄴𑄟𑄳𑄦 𑄃𑄪𑄃𑄨",
    "hy": "Ինչպե՞ս ես",
    "de": "Donau\u00addampf fa\u0308hrt",
    "emoji": "👨‍👩‍👧‍👦 🇩🇪🇫🇷 👍🏽 1️⃣ ❤️‍🔥 🏴\U000e0067\U000e0062\U000e007f",
}
PARTS = st.lists(
    st.sampled_from([part for text in TEXTS.values() for part in [*regex.findall(r"\X", text), " ", ".", "a", "7"]]),
    max_size=12,
).map("".join)
CODES = ("{name}", "%s", "<b>", "https://example.com/a", "😀", "🇫🇷")


def letters_parted(text: str, original: str, codes: tuple[str, ...] = CODES) -> list[str]:
    """Pieces of a text between codes that do not begin or end where a cluster of the original does."""
    pieces = regex.split("|".join(map(regex.escape, codes)), text)
    bare, ends = regex.sub(r"\s", "", original), {0}
    for match in regex.finditer(r"\X", original):
        if match[0].isspace() or not regex.match(r"[\p{M}\u200c\u200d]", original[match.end() :]):
            ends.add(len(regex.sub(r"\s", "", original[: match.end()])))
    faults, done = [], 0
    for piece in pieces[:-1]:
        done += len(regex.sub(r"\s", "", piece))
        if done not in ends:
            faults.append(bare[done:])
    return faults


def put(src: str, translation: str, seed: int, between: str = " ") -> str:
    bare, removed = without_spans(src)
    links = np.random.default_rng(seed).random((len(words(translation)), len(words(bare))))
    return restore_spans(translation, removed, words(bare), links, between)


@settings(max_examples=300)
@given(PARTS, st.sampled_from(CODES), st.integers(0, 3), st.integers(0, 99), st.booleans())
@example("करता है", "{name}", 1, 0, True)
def test_nothing_is_put_into_a_letter(text: str, code: str, at: int, seed: int, spaced: bool) -> None:
    text = " ".join(text.split())
    if spans(text):
        return
    src = ["one", "two", "three", "four"]
    src.insert(at, code)
    found = put(" ".join(src), text, seed, " " if spaced else "")
    assert not letters_parted(found, text)
    assert regex.sub(r"\s", "", found.replace(code, "", 1)) == regex.sub(r"\s", "", text)


@settings(max_examples=300)
@given(PARTS, PARTS, st.data())
def test_no_tag_is_put_into_a_letter(src: str, tgt: str, data: st.DataObject) -> None:
    begin, end = sorted(data.draw(st.integers(0, len(src))) for _ in range(2))
    codes = [(begin, Code("<b>", "open", 1)), (end, Code("</b>", "close", 1)), (end, Code("<br>", "alone"))]
    pair = aligned_pair(src, tgt)
    seed = data.draw(st.integers(0, 99))
    links = np.random.default_rng(seed).random((len(pair.tgt_words), len(pair.src_words)))
    items = transfer_markup(pair, codes, links)
    text = "".join(item if isinstance(item, str) else item.raw for item in items)
    # where a source of the very same word is parted inside of a letter, that is the writer's wish
    if begin in borders(src) and end in borders(src):
        assert not letters_parted(text, tgt, ("<b>", "</b>", "<br>"))


def test_a_code_between_sentences_stays_out_of_the_one_before() -> None:
    src, tgt = "One. Two.", "ที่นี่ที่นี้"
    half = len(tgt) // 2
    pieces = [SentenceSpans(Span(0, 4), Span(0, half)), SentenceSpans(Span(5, 9), Span(half, len(tgt)))]
    pair = aligned_pair(src, tgt)
    links = np.ones((len(pair.tgt_words), len(pair.src_words)))
    items = transfer_markup(pair, [(4, Code("<br>", "alone"))], links, pieces)
    assert items == [tgt[:half], Code("<br>", "alone"), tgt[half:]]


@pytest.mark.parametrize("language", [code for code in TEXTS if code not in ("th", "lo", "km", "my", "emoji")])
def test_no_word_is_parted_where_words_have_spaces(language: str) -> None:
    text = TEXTS[language]
    for word in text.split():
        assert len([part for part in split_words(word) if part[0].isalpha()]) == 1, split_words(word)


@pytest.mark.parametrize("language", TEXTS)
def test_words_and_marks_are_all_of_a_text(language: str) -> None:
    text = TEXTS[language]
    assert "".join(split_words(text)) == regex.sub(r"\s", "", text)
    assert all(place in borders(text) for word in words(text) for place in word)


@pytest.mark.parametrize("mark", ["\u200b", "\ufeff", "\u200e", "\u202b", "\u2060\u2060", "\u00ad", "\u200f\u200c"])
@pytest.mark.parametrize(("before", "after"), [("ដោយ", "យោង"), ("ที่", "นี้"), ("one ", " two"), ("करें ", " है")])
def test_a_mark_that_shows_nothing_is_no_word(before: str, mark: str, after: str) -> None:
    """A code would be around nothing."""
    text = before + mark + after
    assert [text[slice(*word)] for word in words(text)] == split_words(f"{before} {after}") == split_words(text)


def test_a_word_is_alone_only_as_a_whole() -> None:
    assert not places("कर", "करें")
    assert places("करें", "वह करें।")
    assert not places("می", "می‌خواهم")
    assert places("Tom", "我是Tom吗")
    assert not places("ก", "กำลัง")  # Thai's sara am is a letter by its category
    assert not places("ខ", "ខ្ញុំ")
    assert not is_alone("한국어", 0, 2)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("زوروا https://example.com/a، ثم", "https://example.com/a"),
        ("هل رأيت https://example.com/a؟", "https://example.com/a"),
        ("देखें https://example.com/a। फिर", "https://example.com/a"),
        ("ดูที่https://example.com/aครับ", "https://example.com/a"),
        ("បើក https://example.com/a។", "https://example.com/a"),
        ("ဖွင့် https://example.com/a။", "https://example.com/a"),
        ("see https://example.com/a՝ and", "https://example.com/a"),
        ("ይመልከቱ https://example.com/a። ", "https://example.com/a"),
        ("https://ja.wikipedia.org/wiki/日本語 を見る", "https://ja.wikipedia.org/wiki/日本語"),
        ("https://ja.wikipedia.org/wiki/C言語", "https://ja.wikipedia.org/wiki/C言語"),
        ("https://ja.wikipedia.org/wiki/C言語を見る", "https://ja.wikipedia.org/wiki/C言語"),
        ("https://zh.wikipedia.org/wiki/T恤/历史。", "https://zh.wikipedia.org/wiki/T恤/历史"),
        ("https://语c.com。", "https://语c.com"),  # linkify-urls 23
        ("链接http://t.cn/RcPQ214，", "http://t.cn/RcPQ214"),  # react-linkify 34
        ("http://テスト/ を", "http://テスト/"),  # cyclone 105
        ("www.bücher.de", "www.bücher.de"),  # autolink-java 22
        ("https://example.com/aを見る", "https://example.com/a"),
        ("https://example.com/をご覧ください", "https://example.com/"),
        ("请访问https://example.com/获取更多信息。", "https://example.com/"),
        ("https://example.com/a에서 보세요", "https://example.com/a"),
        ("http://例え.テスト/図/1.png。", "http://例え.テスト/図/1.png"),
        ("https://a.org/c?q=日本語&x=1を", "https://a.org/c?q=日本語&x=1"),
        ("https://пример.рф/путь.", "https://пример.рф/путь"),
        ("当当网http://t.cn/RUy3HJN《一尺闲梦》", "http://t.cn/RUy3HJN"),
        ("- https://github.com/org/repo/pull/12345（作成済み）", "https://github.com/org/repo/pull/12345"),
        (
            "https://www.gallerieswest.ca/manitoba’s-métis-history/",
            "https://www.gallerieswest.ca/manitoba’s-métis-history/",
        ),
        ("(https://en.wikipedia.org/wiki/A_(b))", "https://en.wikipedia.org/wiki/A_(b)"),
        ("https://ja.wikipedia.org/wiki/サクラ_(曖昧さ回避)。", "https://ja.wikipedia.org/wiki/サクラ_(曖昧さ回避)"),
        ("https://example.com/search?q=a,b,c, then", "https://example.com/search?q=a,b,c"),
        ("(https://x.org:8080/a/b/?q=1,2#f.)", "https://x.org:8080/a/b/?q=1,2#f"),
    ],
)
def test_where_a_url_ends(text: str, url: str) -> None:
    assert spans(text) == [url]


@pytest.mark.parametrize(
    ("src", "translation", "between", "expected"),
    [
        ("Assigns a value to {name} a variable.", "करता है", " ", "करता है {name}"),
        ("(https://example.com/a)", "(देखें)", " ", "(देखें https://example.com/a)"),
        ("https://example.com/wiki/ here", "日本語です", "", "https://example.com/wiki/ 日本語です"),
        ("Go https://example.com/a.", "जाएं।", " ", "जाएं https://example.com/a।"),
    ],
)
def test_what_stands_around_a_placeholder(src: str, translation: str, between: str, expected: str) -> None:
    bare, removed = without_spans(src)
    links = np.zeros((len(words(translation)), len(words(bare))))
    links[min(1, len(links) - 1) if translation[0] == "(" or (len(links) > 1 and " " in translation) else 0] = 1
    found = restore_spans(translation, removed, words(bare), links, between)
    assert found == expected
    assert has_same_spans(src, found)


def test_the_benchmark_counts_what_stands_in_letters() -> None:
    benchmark = script("benchmarks/clusters.py")
    bad = [("करता ह {name} ै", "करता है"), ("ก{name}ำ", "กำ"), ("วิธี {name}", "วิธี"), ("क{name}र", "कर")]
    assert benchmark.count(bad, ["{name}"]) == (4, 2, 1)
    pairs = [("one two three four five", text) for text in TEXTS.values()] * 5
    for counted in benchmark.placed(pairs):
        assert counted.placed >= len(pairs)
        assert (counted.in_letters, counted.in_words) == (0, 0)


def test_an_accelerator_is_put_before_a_whole_word() -> None:
    assert with_accelerator("e\u0301tat", "_Tat", "_") == "_e\u0301tat"
