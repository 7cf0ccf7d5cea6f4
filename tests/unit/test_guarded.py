"""Glossaries, placeholders and guards over a whole translator, and its alignments."""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from tests.errors import raises_error
from tests.unit.test_translator import LINES, MODEL, run  # noqa: F401 (a fixture)

from dragoman.alignment.attention import align
from dragoman.alignment.learnt_markup import without_tags
from dragoman.alignment.links import token_shares
from dragoman.alignment.term_placement import with_glossary
from dragoman.cli.main import app
from dragoman.decoding.search import DecodingConfig, Hypothesis
from dragoman.errors import Error
from dragoman.inference.loading import build_model
from dragoman.inference.mbr import expected_utility
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.models.families import TransformerConfig
from dragoman.pipeline import guarded as careful_module
from dragoman.pipeline.guarded import GuardedTranslator
from dragoman.pipeline.splitter import Splitter
from dragoman.quality.warnings import Warning, WarningKind
from dragoman.text.glossary import Glossary
from dragoman.text.message_format import parse
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.placeholders import _part_term, has_same_spans, keeps_part_numbers, mask_spans, without_spans
from dragoman.text.tokenizers.characters import CharactersConfig
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.text.tokenizers.whitespace import WhitespaceConfig
from dragoman.text.tokenizers.words import WordsConfig
from dragoman.text.words import Word, tells_words, words

BAD = Warning(WarningKind.REPETITION, "bad")

PLACEHOLDERS = ["%s", "%1$s", "{name}", "{{x}}", "<b>cat</b>", "https://x.org/a", "a@b.org", "😀", "${HOME}", "&amp;"]


@pytest.mark.slow
@pytest.mark.system
def test_300_strings_keep_their_placeholders(run: Path) -> None:  # noqa: F811
    translator = SearchTranslator.load(run, device="cpu")
    lines = [
        LINES[number % 4]
        .replace("dog", PLACEHOLDERS[number % 10] + " dog")
        .replace("cat", PLACEHOLDERS[number // 10 % 10])
        if number % 3
        else f"{PLACEHOLDERS[number % 10]} {LINES[number % 4]}"
        for number in range(300)
    ]
    for guard in (False, True):
        found = [item[0].text for item in GuardedTranslator(translator, guard=guard).n_best(lines)]
        assert [line for line, text in zip(lines, found, strict=True) if not has_same_spans(line, text)] == []


def test_lines_without_placeholders_are_translated_as_ever(run: Path) -> None:  # noqa: F811
    translator = SearchTranslator.load(run, device="cpu")
    mixed = [LINES[0], "the {x} dog runs .", LINES[1], "", LINES[2]]
    found = GuardedTranslator(translator, guard=False).n_best(mixed)
    plain = translator.n_best(mixed)
    for row in (0, 2, 3, 4):
        assert [replace(item, warnings=()) for item in found[row]] == plain[row]


def test_terms_of_a_glossary_are_said_and_other_lines_stay_as_they_are(run: Path) -> None:  # noqa: F811
    glossary = Glossary({"dog": "bird", "cat": "today", "a cat": "and a dog"})
    plain, termed = (with_glossary(SearchTranslator.load(run, device="cpu"), g) for g in (None, glossary))
    lines = [*LINES, "we see a bird .", "", "the dog sees a dog and a cat ."]
    for line, before, after in zip(lines, plain.n_best(lines), termed.n_best(lines), strict=True):
        for term in glossary.find(line):
            assert term.target in after[0].text
        if not glossary.find(line):
            assert after == before
    assert termed.n_best(lines[::-1])[::-1] == [termed.n_best([line])[0] for line in lines]
    assert termed.translate(["the dog sees a dog ."])[0].split().count("bird") >= 2
    line = "the dog sees a dog ."
    for target, settings in (("Hündchen", {}), ("bird bird bird", {"no_repeat_ngram": 1})):
        deaf = with_glossary(SearchTranslator.load(run, device="cpu", **settings), Glossary({"dog": target}))  # type: ignore[arg-type]
        [found] = deaf.n_best([line])
        assert target in found[0].text or Warning(WarningKind.TERM_LEFT_OUT, repr(target)) in found[0].warnings


def test_no_placeholder_parts_a_term(run: Path) -> None:  # noqa: F811
    glossary = Glossary({"dog": "and a dog", "cat": "today a bird"})
    translator = with_glossary(
        SearchTranslator.load(run, device="cpu", max_length_ratio=1.0, max_length_extra=5), glossary
    )
    each = ["the", "cat", "sees", "the", "dog", "."]
    lines = [" ".join([*each[:place], "{name}", *each[place:]]) for place in range(len(each) + 1)]
    for line, found in zip(lines, GuardedTranslator(translator, guard=False).n_best(lines), strict=True):
        assert has_same_spans(line, found[0].text)
        for term in glossary.find(line):
            assert term.target in found[0].text, (line, found[0].text)


def test_no_tag_parts_a_term(run: Path) -> None:  # noqa: F811
    glossary = Glossary({"the dog": "today a bird"})
    translator = with_glossary(
        SearchTranslator.load(run, device="cpu", max_length_ratio=1.0, max_length_extra=5), glossary
    )
    lines = ["<b>the</b> dog sees the cat .", "we see the <i>dog</i> .", "<b>we see the</b> <i>dog sees</i> the cat ."]
    lines += ["we see <b>the</b> <i>dog</i> .", "we see the<br/> dog .", "we see <b>the <i>dog</i> sees</b> the cat ."]
    for line, found in zip(lines, GuardedTranslator(translator, guard=False).n_best(lines), strict=True):
        assert has_same_spans(line, found[0].text)
        assert "today a bird" in " ".join(without_tags(found[0].text).split()), found[0].text


def test_spans_that_would_cross_around_a_term_part_it() -> None:
    for term, expected in (((Word(2, 9), Word(10, 15)), [0, 2, 9, 10, 15]), ((Word(2, 15),), [0, 2, 15, 15, 15])):
        offsets = [0, 2, 15, 2, 15]  # <b>crimson <i>hound</b></i>
        _part_term(offsets, 2, 15, term)
        assert offsets == expected


def test_codes_are_whole_in_every_translation(run: Path) -> None:  # noqa: F811
    lines = ["the dog sees ABC-123", "the dog 2.3.1 sees the cat PX200/B and 10.0.0.1 .", "A-1 A-1 the dog sees A-1"]
    for guard in (False, True):
        translator = GuardedTranslator(SearchTranslator.load(run, device="cpu"), guard=guard)
        for line, found in zip(lines, translator.n_best(lines), strict=True):
            assert keeps_part_numbers(line, found[0].text), (line, found[0].text)


def test_a_glossary_file(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(
        "# terms\nHund\thound\nroter Hund\tred hound\nstraße\tstreet\n\nPyTorch\n狗\tdog\n", encoding="utf-8"
    )
    found = Glossary.load(path)
    assert [term.target for term in found.find("Ein roter Hund und ein Hund; Hunde, hund")] == ["red hound", "hound"]
    assert [term.target for term in found.find("Straße, STRASSE, Straßen, PyTorch")] == [
        "street", "street", "PyTorch"
    ]  # fmt: skip
    assert [term.target for term in found.find("一只狗在跑")] == ["dog"]
    for text, error in [
        ("a\tb\n\na\tc\n", (Error.CONFLICT, "terms.tsv:3")),
        ("a\t\n", (Error.WRONG_SHAPE, "terms.tsv:1")),
        ("#\n", (Error.EMPTY, "terms.tsv")),
    ]:
        path.write_text(text, encoding="utf-8")
        with raises_error(*error):
            Glossary.load(path)


@pytest.mark.parametrize(
    ("terms", "text", "found"),
    [
        (
            ["istanbul", "straße", "σοφος"],
            "İSTANBUL ıstanbul ISTANBUL Straße ΣΟΦΟΣ",
            None,
        ),  # no crash, whatever is found
        (["AI", "iphone"], "我用AI翻译、iPhoneを買う、AIX", ["AI", "iphone"]),
        (["कि", "cafe"], "किताब cafe\u0301 café", []),
        (["狗"], "一只狗在跑", ["狗"]),
        (["red", "red hound"], "a red hound", ["red hound"]),
        (["hund", "name"], "https://x.org/hund {name} <b name=1> hund", ["hund"]),
        (["c++", "a.b", "(x)"], "C++ a.b axb (x)", ["c++", "a.b", "(x)"]),
        ([], "anything", []),
    ],
)
def test_where_terms_are_found(terms: list[str], text: str, found: list[str] | None) -> None:
    targets = [term.target for term in Glossary({term: term for term in terms}).find(text)]
    assert targets == found or found is None


@cache
def character_classes() -> tuple[str, str]:
    """The characters of words and the combining marks, as ranges of a regular expression: the alphabet up to U+3000."""
    characters = [chr(code) for code in range(0x3000)]
    words = [tells_words(one) for one in characters]
    marks = [unicodedata.category(one)[0] == "M" or one in "\u200c\u200d" for one in characters]
    return ranges(words), ranges(marks)


def ranges(members: list[bool]) -> str:
    """The code points at which `members` is true, each run of them as its first and its last."""
    edges = np.flatnonzero(np.diff([False, *members, False]))
    return "".join(f"{chr(first)}-{chr(after - 1)}" for first, after in edges.reshape(-1, 2))


def by_one_expression(terms: list[str], text: str) -> list[str]:
    """What a single regular expression of all terms finds: the readable, slow twin of `Glossary.find`."""
    words, marks = character_classes()

    def pattern(term: str) -> str:
        body = f"(?i:{re.escape(term)})" if term == term.lower() else re.escape(term)
        before = f"(?<![_{words}])" if tells_words(term[0]) else ""
        return f"{before}{body}(?![{'_' + words if tells_words(term[-1]) else marks}])"

    ordered = sorted(terms, key=len, reverse=True)
    return [found.group() for found in re.finditer("|".join(map(pattern, ordered)), text)]


@hypothesis.settings(max_examples=200)
@hypothesis.given(
    st.lists(
        st.from_regex("\\A[abA.狗_-][abA .狗_\u0301-]{0,3}\\Z").filter(lambda term: term.strip() == term), max_size=6
    ),
    st.text("abAB .-狗_\u0301", max_size=20),
)
def test_terms_are_those_of_one_expression(terms: list[str], text: str) -> None:
    unique = sorted(set(terms))
    found = [text[term.start : term.end] for term in Glossary({term: term for term in unique}).find(text)]
    assert found == (by_one_expression(unique, text) if unique else [])


def test_terms_are_normalised_as_the_text_is() -> None:
    assert Glossary({"cafe\u0301": "a"}).normalized(NORMALIZERS["nfc"]).targets == {"café": "a"}
    with raises_error(Error.CONFLICT):
        Glossary({"x": "m²"}).normalized(NORMALIZERS["nfkc"])
    with raises_error(Error.CONFLICT):
        Glossary({"cafe\u0301": "a", "café": "b"}).normalized(NORMALIZERS["nfc"])


def test_a_long_line_is_not_cut_inside_of_a_term(run: Path) -> None:  # noqa: F811
    glossary = Glossary({"bird . today": "a cat"})
    translator = with_glossary(SearchTranslator.load(run, device="cpu"), glossary)
    line = " ".join(["the cat sees the dog", "bird . today", *["we see a dog ."] * 4])
    assert len(translator.tokenizers.src.encode(line)) > translator.max_src_tokens
    assert "a cat" in translator.translate([line])[0]


def test_a_term_ends_a_word() -> None:
    """Of the pieces of one word none follows a term, though the model would say so."""
    text = ["the hound s hounds dog dogs a b c"] * 3
    tokenizers = train_tokenizers(CharactersConfig(), lambda: iter(text), lambda: iter(text))
    torch.manual_seed(2)
    model = build_model(TransformerConfig(**{**MODEL, "dropout": 0.0}), tokenizers).eval()  # type: ignore[arg-type]
    plain = SearchTranslator(model, tokenizers, decoding=DecodingConfig(max_length_extra=20))
    translator = with_glossary(plain, Glossary({"dog": "hound"}))
    for found in translator.translate(["the dog", "a dog", "dog dogs", "b c dog a"]):
        after = found.split("hound")[1:]
        assert after
        assert all(not rest[:1].isalnum() for rest in after)


def test_prefixes(run: Path) -> None:  # noqa: F811
    translator = SearchTranslator.load(run, device="cpu")
    starts = ["we see", "", "a bird sings", "today"]
    found = translator.n_best(LINES, starts)
    assert all(item[0].text.startswith(start) for item, start in zip(found, starts, strict=True))
    assert found[1] == translator.n_best(LINES[1:2])[0]
    long = " ".join(["we see a cat"] * 12)
    assert translator.n_best(LINES[:1], [long])[0][0].text.startswith(long)
    with raises_error(Error.UNKNOWN_TOKEN):
        translator.n_best(LINES[:1], ["Hündchen"])


def test_spans_that_the_model_makes_up_are_left_out(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    translator = SearchTranslator.load(run, device="cpu")
    said = [[Translation("Hello {you} 😀 😀", -1.0, -1.0)]]
    monkeypatch.setattr(translator, "n_best", lambda sentences: said * len(sentences))
    found = GuardedTranslator(translator, guard=False).n_best(["the cat 😀", "{name}", "dog"])
    assert [
        has_same_spans(src, item[0].text) for src, item in zip(["the cat 😀", "{name}"], found[:2], strict=True)
    ] == [True] * 2
    assert found[0][0].warnings == (Warning(WarningKind.PLACEHOLDERS_PUT_BACK),)
    assert found[2][0].text == said[0][0].text


def test_guards_go_with_every_search(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(careful_module, "warnings_of", lambda src, text, *_: [BAD])
    for settings in (
        {"sampling": {"samples": 8}, "n_best": 7},
        {"sampling": {"samples": 2}, "mbr": "chrf"},
        {"beam_size": 2, "coverage_penalty": 0.1},
        {"beam_size": 1},
        {"beam_size": 3, "n_best": 3, "mbr": "bleu"},
    ):
        translator = SearchTranslator.load(run, device="cpu", **settings)
        found = GuardedTranslator(translator, keep=False).n_best(LINES)
        assert [bool(item[0].warnings) for item in found] == [True] * len(LINES)
    terms = Glossary({"dog": "a cat and a bird"})
    translator = with_glossary(SearchTranslator.load(run, device="cpu"), terms)
    found = GuardedTranslator(translator, keep=False).n_best(["the dog sees the dog ."])
    assert found[0][0].text.count("a cat and a bird") == 2


def test_scores_do_not_depend_on_their_batch(run: Path) -> None:  # noqa: F811
    translator = SearchTranslator.load(run, device="cpu")
    pairs = [(src, tgt) for src in LINES for tgt in LINES] + [(LINES[0], " ".join(LINES))]
    assert score(translator, pairs) == [score(translator, [pair])[0] for pair in pairs]


def test_a_guard_takes_the_best_translation_without_a_warning(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    translator = SearchTranslator.load(run, device="cpu", sampling={"samples": 12})
    every = translator.with_decoding(n_best=12).n_best(LINES[:1])[0]
    bad = {item.text for item in every[:2]}
    monkeypatch.setattr(careful_module, "warnings_of", lambda src, text, *_: [BAD] if text in bad else [])
    taken = GuardedTranslator(translator).n_best(LINES[:1])[0][0]
    assert (taken.text, taken.warnings) == (every[2].text, (Warning(WarningKind.NOT_THE_FIRST),))
    monkeypatch.setattr(careful_module, "warnings_of", lambda src, text, *_: [BAD])
    assert GuardedTranslator(translator).n_best(LINES[:1])[0][0].text == every[0].text
    assert GuardedTranslator(translator).n_best(LINES[:1])[0][0].warnings == (BAD,)


@pytest.mark.parametrize(
    "settings",
    [{"sampling": {"samples": 12}, "mbr": "chrf", "n_best": 3}, {"mbr": "bleu", "n_best": 3}],
    ids=["drawn", "beam"],
)
def test_minimum_bayes_risk_takes_what_all_that_was_found_agrees_on(
    run: Path,  # noqa: F811
    settings: dict[str, Any],
) -> None:
    translator = SearchTranslator.load(run, device="cpu", **settings)
    results = translator.n_best(LINES)
    assert max(map(len, results)) > 1
    # The same samples, by the same seed.
    every = translator.with_decoding(mbr="none", n_best=translator.decoding.num_candidates)
    for line, found in zip(LINES, results, strict=True):
        (hypotheses,) = every.hypotheses(every.parts(line))
        texts = [translator.tokenizers.tgt.decode(item.ids) for item in hypotheses]
        utility = expected_utility(texts, translator.decoding.mbr)
        assert [item.score for item in found] == sorted(utility.values(), reverse=True)[:3]
        assert [item.score for item in found] == [utility[item.text] for item in found]


@pytest.mark.parametrize(
    ("texts", "languages", "tokenize"),
    [(["a b", "c d", "c d"], ("de", "en"), "13a"), (["他在家", "我们在家", "我们在家", "我们"], ("en", "zh"), "char")],
    ids=["words", "characters"],
)
def test_what_was_found_several_times_counts_several_times(texts: list[str], languages: Any, tokenize: str) -> None:
    tokenizers = train_tokenizers(CharactersConfig(), lambda: iter(texts), lambda: iter(texts))
    decoding = DecodingConfig(beam_size=9, n_best=9, mbr="bleu")
    translator = SearchTranslator(torch.nn.Identity(), tokenizers, decoding=decoding, languages=languages)  # type: ignore[arg-type]
    found = translator.ranked([Hypothesis(tokenizers.tgt.encode(text), 0.0, 0.0) for text in texts])
    expected = expected_utility(texts, "bleu", tokenize)
    assert {item.text: item.score for item in found} == expected
    assert found[0].text == texts[1]
    assert expected != expected_utility(list(expected), "bleu", tokenize)


@pytest.mark.parametrize(
    "config",
    [
        WordsConfig(),
        CharactersConfig(),
        SentencePieceConfig(vocab_size=40),
        SentencePieceConfig(algorithm="unigram", vocab_size=34),
    ],
    ids=["words", "characters", "bpe", "unigram"],
)
def test_the_word_of_each_token(config: object) -> None:
    tokenizer = train_tokenizers(config, lambda: iter(LINES), lambda: iter(LINES)).src  # type: ignore[arg-type]
    text = LINES[3]
    ids = tokenizer.encode(text)
    found = token_shares(tokenizer, text, words(text))
    spelt = [""] * len(words(text))
    for token, row in zip(ids, found, strict=True):
        if row.any():
            assert row.max() == 1.0
            spelt[int(row.argmax())] += tokenizer.decode([token]).strip()
    assert spelt == [text[word.start : word.end] for word in words(text)]


@pytest.mark.parametrize(
    "config",
    [
        WordsConfig(),
        WhitespaceConfig(),
        CharactersConfig(),
        SentencePieceConfig(vocab_size=40),
        SentencePieceConfig(vocab_size=300, byte_fallback=True),
    ],
    ids=["words", "whitespace", "characters", "bpe", "bytes"],
)
def test_the_word_of_each_token_beside_what_is_unknown_or_not_normalised(config: object) -> None:
    tokenizer = train_tokenizers(config, lambda: iter(LINES), lambda: iter(LINES)).src  # type: ignore[arg-type]
    text = "the Žluťoučký kuň sees u\u0308ber the dog"  # the umlaut in two characters, and one letter for the tokenizer
    spans, normalize = [Word(*match.span()) for match in re.finditer(r"\S+", text)], NORMALIZERS["nfc"]
    ids, found = tokenizer.encode(normalize(text)), token_shares(tokenizer, text, spans, normalize)
    pieces: list[list[int]] = [[] for _ in spans]
    for token, row in zip(ids, found, strict=True):
        if row.any():
            assert row.max() == 1.0
            pieces[int(row.argmax())].append(token)
    assert all(pieces)
    assert [tokenizer.decode(pieces[number]).strip() for number in (0, 3, 5, 6)] == ["the", "sees", "the", "dog"]


def test_alignment(run: Path) -> None:  # noqa: F811
    translator = SearchTranslator.load(run, device="cpu")
    found = align(translator, LINES[0], LINES[1])
    assert sorted(tgt for _, tgt in found) == [0, 1, 2, 3]
    assert all(0 <= src < 6 for src, _ in found)
    assert align(translator, "", "a") == []
    assert np.isfinite([src for src, _ in found]).all()
    for limit, count in ((len(LINES[1].split()) + 1, len(found)), (len(LINES[1].split()), 0)):  # <s> is read, too
        translator.model.max_target_length = limit
        assert len(align(translator, LINES[0], LINES[1])) == count


def test_the_command_line(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    text, terms, begin = tmp_path / "text", tmp_path / "terms.tsv", tmp_path / "begin"
    text.write_text("the dog runs .\n\nthe {x} cat .\n", encoding="utf-8")
    terms.write_text("dog\tbird\n", encoding="utf-8")
    begin.write_text("we\n\ntoday\n", encoding="utf-8")

    def call(*arguments: str) -> list[str]:
        app(["translate", str(run), "-i", str(text), "--device", "cpu", *arguments], standalone_mode=False)
        return capfd.readouterr().out.splitlines()

    plain = call()
    found = call("--glossary", str(terms), "--keep")
    assert "bird" in found[0]
    assert found[1] == ""
    assert found[2].count("{x}") == 1
    records = [json.loads(line) for line in call("--json", "--alignments", "--keep")]
    assert [record["line"] for record in records] == [1, 2, 3]
    assert records[0]["translations"][0]["text"] == plain[0]
    assert set(records[0]["translations"][0]) == {"text", "score", "log_prob", "warnings", "alignment"}
    assert [line.split()[:1] for line in call("--prefix", str(begin))] == [["we"], [], ["today"]]
    assert len(call("decoding.sampling.samples=4", "decoding.mbr=chrf")) == 3
    assert all(" ||| " in line for line in call("--alignments") if line)
    assert len(call("--precision", "bfloat16")) == 3
    with raises_error(Error.WRONG_OPTION):
        call("--precision", "int4")
    begin.write_text("we\nHündchen\n\n", encoding="utf-8")
    with raises_error(Error.UNKNOWN_TOKEN, "begin:2"):
        call("--prefix", str(begin))
    begin.write_text("we\n", encoding="utf-8")
    with raises_error(Error.UNEQUAL_COUNTS, "begin"):
        call("--prefix", str(begin))
    begin.write_text("we\n" * 9, encoding="utf-8")
    out = text.with_name("out.txt")
    out.write_text("precious\n", encoding="utf-8")
    with raises_error(Error.UNEQUAL_COUNTS, "begin"):
        call("--prefix", str(begin), "-o", str(out))
    assert out.read_text(encoding="utf-8") == "precious\n"
    with raises_error(Error.WRONG_OPTION):
        call("--rerank", str(run), "--rerank-weight", "inf")
    with raises_error(Error.UNKNOWN_SETTING):
        call("training.max_steps=3")
    with raises_error(Error.UNKNOWN_SETTING, "decoding settings", "no_repeat_ngram"):
        call("decoding.no_repeat_ngrams=3")
    with raises_error(Error.CONFLICT):
        call("--length-penalty", "0", "decoding.length_penalty.alpha=2")
    for change, name in (("decoding=5", "decoding=5"), ("decoding=", "decoding"), ("decoding.which=last", "which")):
        with raises_error(Error.UNKNOWN_SETTING, name):
            call(change)
    with raises_error(Error.UNSUPPORTED):
        call("--engine", "ctranslate2", "--prefix", str(begin))


def test_placeholders_survive_in_each_of_the_best(run: Path) -> None:  # noqa: F811
    translator = SearchTranslator.load(run, device="cpu", n_best=3)
    lines = ["the {name} cat sees %d dogs .", "we see `a b` and $HOME .", "today <b>the cat</b> sings ."]
    for line, found in zip(lines, GuardedTranslator(translator, guard=False).n_best(lines), strict=True):
        assert 1 <= len(found) <= 3
        assert all(has_same_spans(line, item.text) for item in found)
        assert len({item.text for item in found}) == len(found)


def test_a_message_with_arms_is_translated_arm_by_arm(run: Path) -> None:  # noqa: F811
    translator = GuardedTranslator(SearchTranslator.load(run, device="cpu"), guard=False)
    message = "we see {n, plural, =0 {no dog} one {# dog} other {# dogs}} today ."
    [[found], [other]] = translator.n_best([message, "we see a dog ."])
    assert found.text.startswith("{n, plural, =0 {")
    assert found.text.endswith("}}")
    parsed = parse(found.text)
    assert parsed is not None
    assert [key for key, _ in parsed.arms] == ["=0", "one", "other"]
    assert [text.count("{#}") for text in parsed.sentences()] == [0, 1, 1]
    assert other == translator.n_best(["we see a dog ."])[0][0]
    assert not any("plural" in str(warning) or "other" in str(warning) for warning in found.warnings)


@pytest.mark.parametrize(
    ("tgt", "text", "wanted"),
    [
        ("de", "{n, plural, one {A dog. Go?} other {# dogs. Go?}}",
         "{n, plural, one {a DOG. gO?} other {# DOGS. gO?}}"),
        ("ru", "{n, plural, one {A dog.} other {# dogs.}}", "{n, plural, =1 {a DOG.} other {# DOGS.}}"),
        ("ru", "{n, plural, one {# dog} other {# dogs}}", "{n, plural, one {# DOG} other {# DOGS}}"),
        ("de", "{n, plural, one {#} other {# dogs}}", "{n, plural, one {#} other {# DOGS}}"),
        ("de", "{n, plural, one {#} other {#}}", "{n, plural, one {#} other {#}}"),
    ],
)  # fmt: skip
def test_an_arm_is_translated_sentence_by_sentence(
    run: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    tgt: str,
    text: str,
    wanted: str,
) -> None:
    asked: list[str] = []

    def shouted(sentences: Sequence[str]) -> list[list[Translation]]:
        asked.extend(sentences)
        return [[Translation(text.swapcase(), 0.0, 0.0)] for text in sentences]

    translator = GuardedTranslator(SearchTranslator.load(run, device="cpu"), splitter=Splitter(("en", tgt)), warn=False)
    monkeypatch.setattr(translator, "_with_spans", shouted)
    assert translator.n_best([text])[0][0].text == wanted
    assert not any(". G" in sentence for sentence in asked)


def test_a_message_of_which_no_sentence_changes_stays(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    translator = GuardedTranslator(
        SearchTranslator.load(run, device="cpu"), splitter=Splitter(("en", "ru")), warn=False
    )
    monkeypatch.setattr(translator, "_with_spans", lambda texts: [[Translation(text, 0.0, 0.0)] for text in texts])
    for text in (
        "The {0,choice,0#File|1#Network} operation is forbidden: {1,choice,0#Accept|1#Connect}.",
        "Take {n, plural, one {a dog} other {# dogs}} and {m, plural, one {a cat} other {# cats}}. Go.",
    ):
        assert translator.n_best([text])[0][0].text == text


@pytest.mark.parametrize(
    "text",
    [
        "{n, plural, offset:1 one {# x {m, plural, other {#}}} other {y}}",
        "{a, select, other {1}}" * 8 + "{a, select, b {1} c {2} d {3} e {4} other {5}}" * 4,
        "{n, plural, one {a",
        "{name} and {n, number}",
        "no arms",
    ],
)
def test_messages_that_are_not_taken_apart(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    "text",
    ["see module.py$method or a.py$method", "SO_4^{2-{}} or SO_4^{2}", "x{a}y {b}", "{a}{b} c", "{{a}} {a{b}}", "%d%d"],
)
def test_words_for_placeholders_are_found_again(text: str) -> None:
    """No word for a span is a part of another word, nor of another span."""
    changed, pairs = mask_spans(text)
    bare, _ = without_spans(changed)
    for word, _ in pairs:
        assert len(re.findall(rf"(?<!\w){word}(?!\w)", bare)) == 1


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("{n, plural, one {a {m, select, x {b #} other {c}}} other {d #}}", ["a b {n, number}", "a c", "d {#}"]),
        (
            "{n, plural, one {# cat} other {# cats}} of {m, plural, one {# man} other {# men}}",
            [f"{{n, number}} {cat} of {{#}} {man}" for cat in ("cat", "cats") for man in ("man", "men")],
        ),
        ("{g, select, a {She {n, plural, one {is} other {are}}} other {He}}.", ["She is.", "She are.", "He."]),
        ("{n, plural, one {a '{' <b>#</b>} other {c}}", ["a '{' <b>{#}</b>", "c"]),
        ("In {item.minutes(), plural, one {# minute} other {# minutes}}.", ["In {#} minute.", "In {#} minutes."]),
        (
            "{user-name, select, a {She} other {They}} {x?.y[0], plural, =1 {is} other {are}}",
            ["She is", "She are", "They is", "They are"],
        ),
    ],
)
def test_arms_in_arms_are_whole_sentences(text: str, sentences: list[str]) -> None:
    message = parse(text)
    assert message is not None
    assert list(message.sentences()) == sentences
    again = parse(message.with_texts(iter(sentences)))
    assert again is not None
    assert list(again.sentences()) == sentences


def test_sentences_around_an_argument_with_arms_are_pieces_of_their_own() -> None:
    pieces = Splitter(("en", "de")).pieces
    argument = "{n, plural, one {It is.} other {They are.}}"
    assert [piece.text for piece in pieces(f"One two. {argument} Three four.")] == ["One two.", argument, "Three four."]
    argument = "{n, plural, one {cat} other {cats}}"
    text = f"# {argument} are here. Three four."
    assert [piece.text for piece in pieces(text)] == [f"# {argument} are here.", "Three four."]


@pytest.mark.parametrize(
    ("line", "translation", "expected"),
    [
        ("<b>Open</b> the file.", "The file unfold it.", "The file <b>unfold it</b>."),
        ("The <i>file</i> <b>open</b>.", "Unfold it the file.", "<b>Unfold it</b> the <i>file</i>."),
        ("Click the %s open now.", "Now unfold it.", "Now %s unfold it."),
        ('This is the <font color="#007af2">file</font>!', "It is file!", 'It is <font color="#007af2">file</font>!'),
        ("The file: <b>open</b>", "Unfold it: the file", "<b>Unfold it</b>: the file"),
    ],
)
def test_tags_of_a_line_stand_around_its_terms(
    line: str, translation: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attention, as it is of no use for words that a term has replaced: all of it is at the final mark."""

    def of_no_use(_: Any, pair: Any) -> np.ndarray:
        links = np.zeros((len(pair.tgt_words), len(pair.src_words)))
        links[-1, :] = 1 / len(pair.src_words)
        return links

    monkeypatch.setattr(careful_module, "attention_links_if_any", of_no_use)
    monkeypatch.setattr(careful_module, "place_terms", lambda *args: [SimpleNamespace(text=translation)])
    model: Any = SimpleNamespace(
        glossary=Glossary({"open": "unfold it", "file": "file"}), normalize=str, join=" ", languages=("en", "en"),
        decoding=DecodingConfig(beam_size=1),
        tokenizers=train_tokenizers(WordsConfig(), lambda: iter("a"), lambda: iter("a")),
        n_best=lambda sentences: [[Translation(translation, 0.0, 0.0)] for _ in sentences],
    )  # fmt: skip
    model.with_decoding = lambda **changes: model
    [[item]] = GuardedTranslator(model, guard=False, warn=False).n_best([line])
    assert item.text == expected
