"""Tokenizers that people bring along: ids as by the original library, what files of all programs have in them, and what
is said of files that cannot be taken in. Reports of other programs are rebuilt as small inputs."""

import io
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sentencepiece as spm
from tests.errors import raises_error
from tests.scripts import script

from dragoman.config import parse, to_dict
from dragoman.errors import DragomanError, Error
from dragoman.experiments.vocabulary import Changes, changed
from dragoman.export.huggingface_tokenizer import problems
from dragoman.special_tokens import SPECIALS
from dragoman.tasks.auto_recipe import check_changes
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.tokenizers.pair import (
    TokenizerPair,
    check_tokenizers,
    load_tokenizers,
    pieces_of,
    save_tokenizers,
    tokenizer_settings,
    train_tokenizers,
    with_symbols,
)
from dragoman.text.tokenizers.sentencepiece_model import parsed
from dragoman.text.tokenizers.subword_nmt import Codes
from dragoman.text.tokenizers.vocabulary_files import read_vocabulary

BENCHMARK = script("benchmarks/own_tokenizers.py")
SENTENCES = [
    "the dog runs over a wet street and a woman looks at the sea",
    "der Hund läuft über die nasse Straße und eine Frau sieht das Meer",
    "Le chien court dans la rue mouillée, une femme regarde l'océan",
    "कुत्ता गीली सड़क पर दौड़ता है और एक महिला समुद्र देखती है",
    "الكلب يركض في الشارع المبلل وامرأة تنظر إلى البحر",
    "สุนัข วิ่ง บน ถนน ที่เปียก และ ผู้หญิง มอง ทะเล",
    "犬は濡れた通りを走り女性が海を見る",
    "狗在潮湿的街上跑一个女人看着大海",
]
WORDS = [line.split() for line in SENTENCES]


def lines(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS[place % 8], k=rng.randrange(1, 9))) for place in range(count)]


TEXT = [*SENTENCES, *lines(120), "ｆｕｌｌ width ﬁne e\u0301 a\u00a0b", "a <br>b<b> ☃ 😀", "THE DOG", "x\u200by  two"]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = BENCHMARK.kinds(tmp_path_factory.mktemp("kinds"), TEXT, size=400)
    return found


def test_each_kind_of_file_gives_the_ids_of_its_own_library(kinds: dict[str, Any]) -> None:
    assert len(kinds) == 25
    more = [*TEXT, *lines(40, seed=2), "unseen Wörter ⟦1⟧ ЖЖ", "@@ a@@ b"]
    for name, kind in kinds.items():
        assert list(BENCHMARK.differences(kind, more)) == [], name


def test_other_ids_are_seen(kinds: dict[str, Any]) -> None:
    one, other = kinds["sentencepiece, unigram"], kinds["sentencepiece, bpe, bytes, as it is"]
    assert list(BENCHMARK.differences(one._replace(settings=other.settings), TEXT))


def taken(settings: dict[str, Any], text: list[str] = TEXT) -> TokenizerPair:
    found: TokenizerPair = BENCHMARK.taken_in(settings, text)
    return found


def test_what_is_kept_needs_no_file_and_names_none(kinds: dict[str, Any], tmp_path: Path) -> None:
    for place, (name, kind) in enumerate(kinds.items()):
        pair, folder = taken(kind.settings), tmp_path / str(place)
        save_tokenizers(pair, folder)
        found = load_tokenizers(folder)
        assert [found.src.encode(line) for line in TEXT] == [pair.src.encode(line) for line in TEXT], name
        assert pieces_of(found.src) == pieces_of(pair.src)
        assert pieces_of(found.src)[:4] == list(SPECIALS)
        file = next(value for key, value in kind.settings.items() if key in ("model", "codes", "vocab"))
        assert not any(str(Path(file).parent) in path.read_text("utf-8", "replace") for path in folder.rglob("*.json"))
        assert parse(TranslationRecipe, recipe(tokenizer_settings(found)))
        for line in ("THE DOG", SENTENCES[3]):
            assert sum(found.src.letters(line)) >= 5, name


def recipe(tokenizer: dict[str, Any], **corpus: Any) -> dict[str, Any]:
    files = {"type": "files", "src": "a.de", "tgt": "a.en"}
    corpus = {"src_lang": "de", "tgt_lang": "en", "train": files, "valid": files, **corpus}
    return {"run_dir": "run", "corpus": corpus, "tokenizer": tokenizer}


GROWING = [
    "sentencepiece, unigram", "sentencepiece, symbols, no <s>", "tokenizer.json, pairs of bytes",
    "tokenizer.json, unigram", "subword-nmt with vocab.yml", "pieces of subword-nmt with dict.txt",
]  # fmt: skip


def test_learnt_pieces_are_added_behind_and_never_cut(kinds: dict[str, Any]) -> None:
    for name in GROWING:
        kind = kinds[name]
        plain = taken(kind.settings).src
        config = with_symbols(parse(BENCHMARK._Recipe, {"tokenizer": kind.settings}).tokenizer, ["⟦1⟧", "⟦term⟧"])
        found = taken(to_dict(config)).src
        assert pieces_of(found) == [*pieces_of(plain), "⟦1⟧", "⟦term⟧"], name
        assert [found.encode(line) for line in TEXT] == [plain.encode(line) for line in TEXT], name
        ids = found.encode("the ⟦1⟧ dog ⟦term⟧")
        assert [index for index in ids if index >= plain.vocab_size] == [found.id_of("⟦1⟧"), found.id_of("⟦term⟧")]
    text = recipe(kinds["sentencepiece, unigram"].settings, augment={"tags": 0.5})
    assert parse(TranslationRecipe, text).corpus.augment.tags == 0.5


def test_a_symbol_that_the_model_has_as_a_piece_becomes_one(kinds: dict[str, Any]) -> None:
    settings = kinds["sentencepiece, unigram"].settings
    before = taken(settings).src
    piece = next(piece for piece in pieces_of(before)[4:] if len(piece) == 1 and piece.isalpha())
    after = taken({**settings, "user_defined_symbols": [piece]}).src
    assert pieces_of(after) == pieces_of(before)
    assert piece in after.pieces(after.encode(f"the{piece}the"))


def test_the_vocabulary_of_a_run_with_such_a_tokenizer_grows(kinds: dict[str, Any]) -> None:
    for name in ("sentencepiece, unigram", "tokenizer.json, unigram"):
        pair, rows = changed(taken(kinds[name].settings), Changes(teach=["context"]), "none")
        assert pieces_of(pair.src)[-1] == "⟦break⟧"
        assert len(rows[0]) == pair.src.vocab_size


@pytest.mark.parametrize("name", ["sentencepiece, unigram", "sentencepiece, bpe, bytes, as it is", "codes"])
def test_other_segmentations_of_the_same_text(kinds: dict[str, Any], name: str, tmp_path: Path) -> None:
    codes = {"type": "subword_nmt", "codes": kinds["subword-nmt with vocab.yml"].settings["codes"]}
    settings = codes if name == "codes" else kinds[name].settings
    save_tokenizers(taken({**settings, "sampling": 0.3}), tmp_path / "saved")
    tokenizer = load_tokenizers(tmp_path / "saved").src
    assert tokenizer.sampling
    ids = [tokenizer.encode(line) for line in SENTENCES]
    drawn = [tokenizer.sample_segmentation(one, random.Random(3)) for one in ids]
    assert drawn != ids
    assert [tokenizer.decode(one) for one in drawn] == [tokenizer.decode(one) for one in ids]


def test_dropout_of_codes_is_drawn_as_often_as_it_says() -> None:
    codes = Codes({("a", "b"): 1, ("ab", "c</w>"): 2})
    rng = random.Random(1)
    whole = sum(codes.cut("abc", rng, 0.5) == ["abc"] for _ in range(4000)) / 4000
    assert whole == pytest.approx(0.25, abs=0.03)
    assert codes.cut("ababab") == ["ab", "ab", "a", "b"]


def test_joint_and_separate(kinds: dict[str, Any], tmp_path: Path) -> None:
    unigram, table = kinds["sentencepiece, unigram"].settings, kinds["sentencepiece with vocab.yml"].settings
    other = kinds["sentencepiece, bpe, bytes, as it is"].settings
    apart = taken({"type": "separate", "src": unigram, "tgt": {"type": "words"}})
    assert (apart.shared, apart.src.config.type, apart.tgt.config.type) == (False, "pieces", "words")
    sides = {"src": table, "tgt": {**other, "vocab": table["vocab"]}}  # OPUS-MT: two models, one table
    joint = taken({"type": "separate", "joint": True, **sides})
    assert joint.shared
    assert joint.src is not joint.tgt
    with raises_error(Error.MISMATCH, "the two have other entries: give both the same `vocab`"):
        taken({"type": "separate", "joint": True, "src": unigram, "tgt": other})
    one = kinds["tokenizer.json, unigram"].settings
    two = taken({"type": "separate", "src": one, "tgt": kinds["tokenizer.json, pairs of bytes"].settings})
    assert "two tokenizer.json files" in problems(two)[0]


def test_several_languages_of_one_model(kinds: dict[str, Any]) -> None:
    settings = {**kinds["sentencepiece, unigram"].settings, "languages": ["de", "fr"]}
    pair = taken(settings).between("de", "fr")
    assert pair.src.pieces(pair.src.encode("the dog"))[0] == "<2fr>"
    assert "<2de>" not in taken(settings).src.pieces(taken(settings).src.encode("a <2de> dog"))


# -- public reports ------------------------------------------------------------------------------------------------

Write = Callable[[str, str | bytes], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file; its path."""

    def file(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return file


@pytest.mark.parametrize(
    ("name", "content", "tokens"),
    [
        pytest.param("v.txt", "the 9\nof 8\n", ["the", "of"], id="counts-behind-a-space"),
        pytest.param("v.txt", "the\t9\nof\t8\n", ["the", "of"], id="counts-behind-a-tab"),  # OpenNMT-py 1953
        pytest.param("v.vocab", "<unk>\t0\n<s>\t0\n</s>\t0\n▁\t-2.5\n", ["▁"], id="scores-of-sentencepiece"),
        pytest.param("v.txt", "<blank>\n<s>\n</s>\nder\nu\n", ["der", "u"], id="a-token-a-line"),  # joeynmt 68
        pytest.param("v.txt", "<unk>\n7\n8\n", ["7", "8"], id="numbers-as-tokens"),
        pytest.param("dict.txt", "▁a 999\n▁b 999\n", ["▁a", "▁b"], id="camembert"),  # fairseq 1490
        pytest.param("dict.txt", "a 1 #fairseq:overwrite\n<s> 1\nb 1\n", ["a", "b"], id="overwrite"),
        pytest.param("v.txt", "a 3\r\nb 2\r\n", ["a", "b"], id="windows"),  # marian-dev 445
        pytest.param("v.txt", "\ufeffa 3\nb 2\n", ["a", "b"], id="byte-order-mark"),
        pytest.param("v.txt", "a\n\n", ["a"], id="an-empty-last-line"),  # google-research 85
        pytest.param("v.txt", "✓\t117\n\x85\t117\n\u2028\t3\n", ["✓", "\x85", "\u2028"], id="OpenNMT-py-2243"),
        pytest.param("v.txt", "a\u00a0b 3\n\u3000 2\n", ["a\u00a0b", "\u3000"], id="other-spaces"),
        pytest.param("v.yml", '</s>: 0\n<unk>: 1\nno: 3\n"1": 2\n~: 4\n', ["1", "no", "~"], id="yaml-words"),
        pytest.param("v.json", '{"<unk>": 1, "b": 3, "a": 2, "<pad>": 0}', ["a", "b"], id="sockeye"),
        pytest.param("v.json", '{"eos": 0, "UNK": 1, "a": 2}', ["a"], id="nematus"),
        pytest.param("v.json", '["<blank>", "<unk>", "a"]', ["a"], id="ctranslate2"),
        pytest.param("v.wl", "<unk/>\n<s>\n</s>\na\n", ["a"], id="marian-words"),
    ],
)  # fmt: skip
def test_vocabularies(write: Write, name: str, content: str, tokens: list[str]) -> None:
    assert [entry.token for entry in read_vocabulary(Path(write(name, content)))] == tokens


MERGES = "#version: 0.2\nt h\nth e</w>\n"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            {"type": "whitespace", "vocab": ("v.txt", "a 1\nb 1\na 2\n")},
            "v.txt:3: 'a' is there twice (first on line 1): take one",
            id="fairseq-4660",
        ),
        pytest.param(
            {"type": "whitespace", "vocab": ("v.txt", "a 1\n 2439\n")},
            "v.txt:2: ' 2439' is none: each line is a token",
            id="fastbpe-30",
        ),
        pytest.param(
            {"type": "whitespace", "vocab": ("v.txt", "a\t1\n\nb\t-12\n")},
            "v.txt:2: '' is none: each line",
            id="sentencepiece-647",
        ),
        pytest.param({"type": "whitespace", "vocab": ("v.txt", "")}, "v.txt is empty", id="empty"),
        pytest.param(
            {"type": "whitespace", "vocab": ("v.yml", "</s>: 0\n<unk>: 1\n`: 2\n`@@: 3\n")},
            "v.yml: is no list of tokens and numbers: ",
            id="marian-dev-445",
        ),
        pytest.param({"type": "whitespace", "vocab": ("v.json", '{"a": 0}')}, "v.json: has no <unk>", id="no-unk"),
        pytest.param(
            {"type": "whitespace", "vocab": ("v.json", '{"<unk>": 0, "<b>": 0}')},
            "v.json: has two tokens with the same id",
            id="mt-preparation-6",
        ),
        pytest.param(
            {"type": "whitespace", "vocab": ("v.json", '{"model": {}, "added_tokens": []}')},
            "a tokenizer.json is the `model` of tokenizer {type: hub}",
            id="tokenizer-json",
        ),
        pytest.param(
            {"type": "whitespace", "vocab": ("vocab.spm", b"\n\x0e\n\x05<unk>")},
            "vocab.spm: a SentencePiece model, no list of tokens: name it as `model`",
            id="bea2019-8",
        ),
        pytest.param(
            {"type": "whitespace", "vocab": ("bpe.32000", MERGES)},
            "bpe.32000: codes of subword-nmt, no list of tokens: name it as `codes`",
            id="codes-for-a-vocabulary",
        ),
        pytest.param(
            {"type": "whitespace", "vocab": "none.yml"}, "none.yml: no such file; looked for", id="marian-dev-282"
        ),
        pytest.param(
            {"type": "whitespace", "vocab": ("v.txt", "a\nb\n"), "vocab_size": 9},
            "v.txt: tokenizer.vocab_size is 9, and it has 6 entries: leave",
            id="size",
        ),
        pytest.param(
            {"type": "subword_nmt", "codes": ("c", "the 9\nof 8\n")},
            "c: no pair ends a word (</w>): codes of subword-nmt or fastBPE have one",
            id="i6-core-342",
        ),
        pytest.param(
            {"type": "subword_nmt", "codes": ("c", "the\nof\n")}, "c:1: no codes of subword-nmt: ", id="no-codes"
        ),
        pytest.param(
            {"type": "subword_nmt", "codes": ("merges.txt", "#version: 0.2\nĠ t\nh e\n")},
            "merges.txt: merges of pairs of bytes, no codes of subword-nmt: take its tokenizer.json",
            id="gpt2-merges",
        ),
        pytest.param(
            {"type": "subword_nmt", "codes": ("c", MERGES), "vocab": ("v", "the 9\ndog 2\n")},
            "v: no piece in it ends in @@, as those that ",
            id="words-beside-codes",
        ),
        pytest.param(
            {"type": "subword_nmt", "codes": ("c", MERGES), "threshold": 50},
            "tokenizer.threshold is of counts: name their file as tokenizer.filter",
            id="subword-nmt-76",
        ),
        pytest.param(
            {"type": "sentencepiece", "model": ("m", "the 9\n")},
            "m: no SentencePiece model, or damaged: SentencePiece models are",
            id="no-model",
        ),
        pytest.param(
            {"type": "sentencepiece", "model": ("m.json", '{"model": {}}')},
            "a tokenizer.json of {type: hub}",
            id="json-for-a-model",
        ),
        pytest.param(
            {"type": "hub", "model": ("m.json", '{"<unk>": 0}')},
            "m.json: no tokenizer.json: ",
            id="table-for-a-tokenizer",
        ),
        pytest.param(
            {"type": "hub", "model": ("m.json", '{"model": {"type": "BPE", "vocab": 3}, "added_tokens": []}')},
            "m.json is damaged: ",
            id="damaged-tokenizer",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(write: Write, settings: dict[str, Any], message: str) -> None:
    named = {key: write(*value) if isinstance(value, tuple) else value for key, value in settings.items()}
    with pytest.raises(DragomanError) as error:
        taken(named)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_recipe_says_what_does_not_go_together(kinds: dict[str, Any]) -> None:
    settings = kinds["sentencepiece, unigram"].settings
    with raises_error(Error.UNKNOWN_SETTING, "unknown key `tokenizer.algorithm`: known keys here: type, model, vocab"):
        parse(TranslationRecipe, recipe({**settings, "algorithm": "bpe"}))
    with raises_error(Error.WRONG_SETTING, "`tokenizer.model` is missing"):
        parse(TranslationRecipe, recipe({"type": "hub"}))
    with raises_error(
        Error.CONFLICT, "tokenizer.model normalises texts itself, as it was learnt: set corpus.normalize=none"
    ):
        check_changes([f"tokenizer.model={settings['model']}"], "run")
    changes = [f"tokenizer.model={settings['model']}", "corpus.normalize=none"]
    check_changes(changes, "run")
    with raises_error(Error.CONFLICT, "tokenizer.vocab_size is 32,000, and it has"):
        check_changes(
            [f"tokenizer.model={settings['model']}", "corpus.normalize=none", "tokenizer.vocab_size=32000"], "run"
        )


def test_pieces_that_the_dictionary_lacks_are_unknown_and_bytes_stay_bytes(kinds: dict[str, Any]) -> None:
    # fairseq 3463; sentencepiece with byte_fallback has no unknown letter
    tokenizer = taken(kinds["sentencepiece with dict.txt"].settings).src
    assert "<unk>" in tokenizer.pieces(tokenizer.encode("☃"))
    by_bytes = taken(kinds["sentencepiece, bpe, bytes, as it is"].settings).src
    assert by_bytes.pieces(by_bytes.encode("☕"))[-3:] == ["<0xE2>", "<0x98>", "<0x95>"]
    assert by_bytes.decode(by_bytes.encode("☕ a  b")) == "☕ a  b"


def test_a_text_that_spells_a_special_is_a_text(kinds: dict[str, Any]) -> None:
    for name, kind in kinds.items():
        tokenizer = taken(kind.settings).src
        for spelt in ("<s>", "</s> a", "<pad>", "[BOS]", "<unk>", "[CLS]", "<|endoftext|>"):
            assert not {0, 2, 3} & {*tokenizer.encode(spelt)}, (name, spelt)


def test_specials_of_a_model_are_told_by_their_parts(kinds: dict[str, Any]) -> None:  # syntaxdot 215: ids shifted
    settings = kinds["sentencepiece, lower case, specials elsewhere"].settings
    tokenizer: Any = taken(settings).src
    there = [piece.piece for piece in parsed(Path(settings["model"]).read_bytes()).pieces]
    assert there[:4] == ["[EOS]", "[UNK]", "[BOS]", "[PAD]"]
    assert pieces_of(tokenizer) == [*SPECIALS, *there[4:]]
    assert tokenizer.model_pieces() == pieces_of(tokenizer)
    assert tokenizer.decode(tokenizer.encode("THE DOG")) == "the dog"


def test_a_tokenizer_with_dropout_draws_nothing_here(
    kinds: dict[str, Any], write: Write
) -> None:  # tokenizers 201, 536
    described = json.loads(Path(kinds["tokenizer.json, pairs of bytes"].settings["model"]).read_text("utf-8"))
    described["model"]["dropout"] = 0.5
    plain = taken(kinds["tokenizer.json, pairs of bytes"].settings).src
    found = taken({"type": "hub", "model": write("t.json", json.dumps(described))}).src
    assert [found.encode(line) for line in TEXT] == [plain.encode(line) for line in TEXT]


def test_letters_that_would_be_lost_are_a_reason_to_refuse(write: Write) -> None:
    content = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
    with raises_error(Error.WRONG_SHAPE, "has no <unk>: letters that it does not know are lost"):
        taken({"type": "hub", "model": write("t.json", json.dumps({**empty, **content}))})


def test_a_vocabulary_of_another_model(kinds: dict[str, Any], write: Write) -> None:
    settings = kinds["sentencepiece, unigram"].settings
    with raises_error(Error.MISMATCH, "has no piece of "):
        taken({**settings, "vocab": write("v.txt", "q@@ 3\nxyzzy 2\n")})


def test_codes_without_a_vocabulary_learn_it_from_the_text(kinds: dict[str, Any]) -> None:
    settings = {key: value for key, value in kinds["subword-nmt with vocab.yml"].settings.items() if key != "vocab"}
    tokenizer = taken(settings).src
    assert not any(1 in tokenizer.encode(line) for line in TEXT)
    assert taken({**settings, "vocab_size": 50}).src.vocab_size == 50


def test_lines_of_both_sides_are_compared(kinds: dict[str, Any]) -> None:
    recipe = parse(BENCHMARK._Recipe, {"tokenizer": kinds["sentencepiece, unigram"].settings})
    numbers: list[int] = []

    def lines_of_target() -> Iterator[str]:
        for number in range(2000):
            numbers.append(number)
            yield "b"

    train_tokenizers(recipe.tokenizer, lambda: iter(["a"] * 2000), lines_of_target)
    assert numbers == list(range(500))


def test_a_cut_that_differs_is_refused(kinds: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import subword_nmt.apply_bpe

    monkeypatch.setattr(subword_nmt.apply_bpe.BPE, "segment_tokens", lambda self, words: ["t@@", "he"])
    with raises_error(Error.MISMATCH, "and by subword-nmt into"):
        taken(kinds["subword-nmt with vocab.yml"].settings, ["the dog"])


def test_a_model_of_no_unknown_piece_is_refused(write: Write) -> None:
    made = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_writer=made, vocab_size=200, hard_vocab_limit=False, minloglevel=2
    )
    content = parsed(made.getvalue())
    content.pieces[0].type = 3
    with pytest.raises(DragomanError, match=r"is damaged|no pieces of the kind <unk>"):
        taken({"type": "sentencepiece", "model": write("m.model", content.SerializeToString())})


def test_vocabularies_of_cut_text_grow_and_shrink(write: Write) -> None:
    """They are not learnt here; whitespace loses entries as well, and codes would make pieces that are gone."""
    vocab, codes = write("dict.txt", "a 9\nb@@ 5\nb 2\n"), write("codes.txt", "a b</w>\nb a</w>\n")
    cut = {"whitespace": {"vocab": vocab}, "subword_nmt": {"codes": codes, "vocab": vocab}}
    made = {kind: taken({"type": kind, **files}) for kind, files in cut.items()}
    for kind, pair in made.items():
        more, (rows, _) = changed(pair, Changes(symbols=["<x>"]), "none")
        assert pieces_of(more.src) == [*pieces_of(pair.src), "<x>"], kind
        assert more.src.encode("a <x>") == [*pair.src.encode("a"), pair.src.vocab_size]
        assert rows[:-1] == [[index] for index in range(pair.src.vocab_size)]
    fewer, (rows, _) = changed(made["whitespace"], Changes(text=[Path(write("text", "b@@ a\n"))]), "none")
    assert (pieces_of(fewer.src)[4:], rows[4:]) == (["a", "b@@", "b"], [[4], [5], [6]])  # one letter stays, too
    with raises_error(Error.UNSUPPORTED, "new entries alone"):
        changed(made["subword_nmt"], Changes(text=[Path(write("text", "b a\n"))]), "none")


@pytest.mark.parametrize(
    ("library", "settings"),
    [
        ("sacremoses", {"type": "moses", "inner": {"type": "subword_nmt", "codes": "nowhere"}}),
        ("tokenizers", {"type": "hub", "model": "nowhere"}),
    ],
)
def test_a_library_that_is_not_there_is_told_before_files_are_read(
    library: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(library)
    made = parse(BENCHMARK._Recipe, {"tokenizer": settings}).tokenizer
    with raises_error(Error.MISSING_FILE, "nowhere"):
        check_tokenizers(made, str)
    monkeypatch.setitem(sys.modules, library, None)
    with raises_error(Error.NOT_INSTALLED, library):
        check_tokenizers(made, str)
