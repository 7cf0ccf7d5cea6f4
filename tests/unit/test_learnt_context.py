"""Sentences before each one that a model has learnt to read: in training rows, in documents, at each door."""

import asyncio
import functools
import itertools
import random
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.errors import raises_error
from tests.scripts import script
from typer.testing import CliRunner

import dragoman
from dragoman.alignment.lexicon import WordAligner
from dragoman.cli.main import app
from dragoman.config import parse
from dragoman.data.context import CorpusInContext, places
from dragoman.data.store import prepare
from dragoman.errors import DragomanError, Error
from dragoman.experiments.vocabulary import Changes, change_vocabulary
from dragoman.export.model_card import card
from dragoman.formats.base import Options
from dragoman.formats.document import FORMATS, Document
from dragoman.inference.translation import NBest
from dragoman.pipeline.document import DocumentTranslator
from dragoman.pipeline.files import FileOptions, _Journal, run_on_files
from dragoman.pipeline.in_context import Meeting, ReadingContext, Said
from dragoman.pipeline.memory import TranslationMemory
from dragoman.pipeline.options import TranslateOptions
from dragoman.pipeline.translator import Translator
from dragoman.serve.app import create_app
from dragoman.serve.settings import Settings
from dragoman.tasks.fine_tuning import fine_tuning_recipe
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.tasks.translation.job import TranslationJob
from dragoman.text.annotations import BREAK
from dragoman.text.augment import ContextConfig, TextAugmentConfig
from dragoman.text.corpus import FilesSource, MixSource
from dragoman.text.glossary import Glossary
from dragoman.text.sources.exchange import TmxSource
from dragoman.text.sources.tsv import TsvSource
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.training.annotated_pairs import Annotator, changed_pairs

THINGS = {"motor": "Der Motor", "filter": "Der Filter", "pump": "Die Pumpe", "lamp": "Die Lampe"}
DOES = {"runs": "läuft", "stops": "hält"}
IS = {"red": "rot", "new": "neu", "old": "alt"}
PRONOUN = {"Der": "Er", "Die": "Sie"}


def document(things: Sequence[str], rng: random.Random) -> list[tuple[str, str]]:
    """What each thing does, and what it is."""
    pairs = []
    for thing in things:
        (does, tut), (what, ist) = rng.choice([*DOES.items()]), rng.choice([*IS.items()])
        pairs.append((f"The {thing} {does}.", f"{THINGS[thing]} {tut}."))
        pairs.append((f"It is {what}.", f"{PRONOUN[THINGS[thing][:3]]} ist {ist}."))
    return pairs


DOCUMENTS = [
    document(things, random.Random(number)) for number, things in enumerate([*itertools.permutations(THINGS, 2)] * 2)
]


def recipe(folder: Path, **context: Any) -> dict[str, Any]:
    """Settings to train on the documents, with blank lines between them."""
    for side, name in enumerate(("en", "de")):
        text = "\n".join("".join(f"{pair[side]}\n" for pair in document) for document in DOCUMENTS)
        (folder / f"train.{name}").write_text(text, encoding="utf-8")
        (folder / f"valid.{name}").write_text("".join(text.splitlines(keepends=True)[:2]), encoding="utf-8")
    files = {
        split: {"type": "files", "src": str(folder / f"{split}.en"), "tgt": str(folder / f"{split}.de")}
        for split in ("train", "valid")
    }
    return {
        "run_dir": str(folder / "run"),
        "workers": 1,
        "device": "cpu",
        "corpus": {
            "src_lang": "en",
            "tgt_lang": "de",
            **files,
            "doctor": "skip",
            "max_tokens": 64,
            "context": {"src": 1, "tgt": 1, **context},
        },
        "tokenizer": {"type": "sentencepiece", "vocab_size": 90},
        "model": {"type": "transformer", "d_model": 32, "num_heads": 2, "d_ff": 64, "num_encoder_layers": 1,
                  "num_decoder_layers": 1, "dropout": 0.0},
        "training": {"max_steps": 120, "validate_every": 120, "batch_tokens": 1024, "label_smoothing": 0.0,
                     "schedule": {"type": "constant", "lr": 0.01, "warmup_steps": 20},
                     "optimizer": {"type": "adamw"}},
        "decoding": {"beam_size": 2},
    }  # fmt: skip


LINES = ["The pump runs.", "It is red.", "The motor stops.", "It is red."]
EXPECTED = ["Die Pumpe läuft.", "Sie ist rot.", "Der Motor hält.", "Er ist rot."]
WITHOUT = [
    " ".join([EXPECTED[0], f"{pronoun} ist rot.", EXPECTED[2], f"{pronoun} ist rot."]) for pronoun in ("Er", "Sie")
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learnt by heart whether a thing is `er` or `sie`, which the sentence before says."""
    folder = tmp_path_factory.mktemp("context")
    TranslationJob(parse(TranslationRecipe, recipe(folder))).run()
    return folder / "run"


@pytest.fixture(scope="module")
def translator(run: Path) -> Translator:
    return dragoman.load(run)


def test_a_pronoun_is_that_of_the_sentence_before(translator: Translator) -> None:
    assert translator.translate(LINES, context="previous") == EXPECTED
    assert translator.translate([" ".join(LINES)]) == [" ".join(EXPECTED)]
    assert translator.translate([" ".join(LINES)], context="none")[0] in WITHOUT
    assert [" ".join(translator.translate(LINES))] == translator.translate([" ".join(LINES)], context="none")


@pytest.mark.parametrize("size", [1, 3])
def test_batches_make_no_difference(translator: Translator, size: int) -> None:
    """Each text is a document, whatever stands beside it."""
    rng = random.Random(7)
    documents = [document(rng.sample([*THINGS], 2), rng) for _ in range(7)]
    texts = [" ".join(src for src, _ in pairs) for pairs in documents]
    expected = [" ".join(tgt for _, tgt in pairs) for pairs in documents]
    together = translator.translate(texts)
    assert together == expected
    parts = (translator.translate(texts[at : at + size]) for at in range(0, len(texts), size))
    assert list(itertools.chain.from_iterable(parts)) == together


def test_documents_are_read_in_order(run: Path, translator: Translator, tmp_path: Path) -> None:
    """A page, subtitles and a catalogue by the command; each unit is read with what stands before it."""
    files = {
        "page.html": "<body><p>The pump runs.</p>\n<p>It is red. The motor stops.</p><p>It is red.</p></body>",
        "film.srt": "".join(
            f"{number}\n00:00:0{number},000 --> 00:00:0{number},900\n{line}\n\n" for number, line in enumerate(LINES, 1)
        ),
        "app.po": "".join(f'msgid "{line}"\nmsgstr ""\nmsgctxt\n'.replace("msgctxt\n", "\n") for line in LINES[:2]),
        "lines.txt": "\n".join(LINES) + "\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    run_on_files(TranslateOptions(run), [tmp_path / name for name in files], FileOptions(tmp_path / "out"))
    said = {name: (tmp_path / "out" / name).read_text(encoding="utf-8") for name in files}
    assert re.findall(r"<p>(.*?)</p>", said["page.html"]) == [EXPECTED[0], " ".join(EXPECTED[1:3]), EXPECTED[3]]
    assert said["film.srt"].splitlines()[2::4] == EXPECTED
    assert re.findall(r'msgstr "(.+)"', said["app.po"]) == EXPECTED[:2]
    assert said["lines.txt"].splitlines() == EXPECTED
    run_on_files(TranslateOptions(run, context="none"), [tmp_path / "page.html"], FileOptions(tmp_path / "plain.html"))
    assert len(set(re.findall(r"(?:Sie|Er) ist rot", (tmp_path / "plain.html").read_text(encoding="utf-8")))) == 1


def test_the_command_reads_lines_in_order_if_it_is_told_to(run: Path, tmp_path: Path) -> None:
    def translated(*options: str, text: str = "\n".join(LINES)) -> list[str]:
        (tmp_path / "lines").write_text(text + "\n", encoding="utf-8")
        arguments = ["translate", str(run), "-i", str(tmp_path / "lines"), "-o", str(tmp_path / "out"), *options]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        return (tmp_path / "out").read_text(encoding="utf-8").splitlines()

    assert translated("--context", "previous") == EXPECTED
    assert " ".join(translated()) in WITHOUT
    assert translated(text=" ".join(LINES)) == [" ".join(EXPECTED)]
    assert translated("--context", "none", text=" ".join(LINES))[0] in WITHOUT
    pytest.importorskip("ctranslate2")
    assert translated("--context", "previous", "--engine", "ctranslate2") == EXPECTED
    for options, code in (
        ({"context": "all"}, Error.WRONG_OPTION),
        ({"context": "previous", "prefix": Path("x")}, Error.CONFLICT),
    ):
        with raises_error(code):
            TranslateOptions(run, **options)  # type: ignore[arg-type]


def test_the_server_reads_what_stands_before(run: Path) -> None:
    """In a text, in a page, and in DeepL's `context`, of which the last sentences count (zeeguu 9)."""

    async def answers() -> None:
        server = create_app(Settings(runs=[run], device="cpu", threads=1, load_first=True, local=True))
        transport = httpx.ASGITransport(app=server)
        async with (
            server.router.lifespan_context(server),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):

            async def said(**fields: Any) -> tuple[list[str], str | None]:
                asked = {"source_lang": "EN", "target_lang": "DE", **fields}
                answer = await client.post("/v2/translate", json=asked)
                texts = [one["text"] for one in answer.json()["translations"]]
                return texts, answer.headers.get("X-Ignored-Parameters")

            assert await said(text=[" ".join(LINES)]) == ([" ".join(EXPECTED)], None)
            assert await said(text=["\n".join(LINES)]) == (["\n".join(EXPECTED)], None)  # DeepL/deepl-python 76
            for number, line in ((0, EXPECTED[1]), (2, EXPECTED[3])):
                long = "It is new. " * 200 + LINES[number]
                assert await said(text=["It is red.", "It is red."], context=long) == ([line, line], None)
            html = {"text": ["<p>It is <b>red</b>.</p>"], "tag_handling": "html", "context": LINES[0]}
            assert re.sub("<.*?>", "", (await said(**html))[0][0]) == EXPECTED[1]

    asyncio.run(answers())


def test_a_context_that_nothing_reads_is_named() -> None:
    run = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
    pipeline = dragoman.load(run, device="cpu").pipeline
    assert pipeline.before("a dog. a king.") == []
    with raises_error(Error.UNSUPPORTED):
        dragoman.load(run, device="cpu").translate(["a dog"], context="previous")


def test_nothing_goes_from_one_file_into_another(run: Path, tmp_path: Path) -> None:
    names = ["1.txt", "2.txt"]
    for name, line in zip(names, ("The pump runs.", "It is red."), strict=True):
        (tmp_path / name).write_text(line + "\n", encoding="utf-8")
    alone = dragoman.load(run).translate(["It is red."])
    run_on_files(TranslateOptions(run), [tmp_path / name for name in names], FileOptions(tmp_path / "out"))
    assert (tmp_path / "out" / "2.txt").read_text(encoding="utf-8").splitlines() == alone


def test_a_journal_keeps_sentences_with_what_stands_before(translator: Translator, tmp_path: Path) -> None:
    """An identical sentence elsewhere is another one (diplodoc-platform/cli 2134, tolgee-platform 3723)."""
    document = Document("\n".join(LINES).encode(), FORMATS["txt"], Options("a.txt", ("en", "de")))
    units, asked = list(document.texts()), list[str]()

    def counted(stage: NBest) -> NBest:
        return lambda sentences: (asked.extend(sentences), stage(sentences))[1]

    for _ in range(2):
        with _Journal(tmp_path / "a.txt", "x", resume=True) as journal:
            translate = DocumentTranslator(
                translator.pipeline, lambda stage: functools.partial(journal.n_best, counted(stage))
            )
            assert translate(units) == [(line,) for line in EXPECTED]
            journal.__exit__(KeyboardInterrupt)  # it is kept
            (tmp_path / "kept").write_bytes(journal.path.read_bytes())
        (tmp_path / "a.txt.partial").write_bytes((tmp_path / "kept").read_bytes())
    assert len(asked) == len(set(asked)) == 4


def test_cues_keep_their_number_and_their_times(run: Path, tmp_path: Path) -> None:
    """A sentence over two cues is one; none is merged into another (llm-subtrans 6, subtitleedit 8682, 10632)."""
    cues = ["The pump", "runs.", "It is", "red.", "The motor stops.", "It is red."]
    text = "".join(f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{cue}\n\n" for n, cue in enumerate(cues, 1))
    (tmp_path / "a.srt").write_text(text, encoding="utf-8")
    run_on_files(TranslateOptions(run), [tmp_path / "a.srt"], FileOptions(tmp_path / "b.srt"))
    said = (tmp_path / "b.srt").read_text(encoding="utf-8").split("\n\n")
    assert [block.splitlines()[:2] for block in said] == [block.splitlines()[:2] for block in text.split("\n\n")]
    assert " ".join(line for block in said for line in block.splitlines()[2:]) == " ".join(EXPECTED)


def test_a_run_is_taught_context_and_goes_on_with_it(run: Path, tmp_path: Path) -> None:
    plain = recipe(tmp_path)
    del plain["corpus"]["context"]
    plain["training"].update(max_steps=2, validate_every=2)
    TranslationJob(parse(TranslationRecipe, plain)).run()
    old, new = tmp_path / "run", tmp_path / "new"
    again = {**recipe(tmp_path), "init_from": str(old), "tokenizer": {"type": "reuse", "run": str(old)}}
    again["corpus"]["augment"] = {"tags": 0.1}
    again |= {"run_dir": str(tmp_path / "again")}
    with raises_error(Error.CONFLICT) as raised:
        TranslationJob(parse(TranslationRecipe, again)).prepare()
    assert raised.value.hint.count("tags (and context)") + raised.value.hint.count("--teach tags` (and context)") == 1
    del again["corpus"]["augment"]
    with raises_error(Error.CONFLICT) as raised:
        TranslationJob(parse(TranslationRecipe, again)).prepare()
    assert "--teach context`" in raised.value.hint
    change_vocabulary(old, new, Changes(teach=["context"]))
    again |= {"init_from": str(new), "tokenizer": {"type": "reuse", "run": str(new)}}
    TranslationJob(parse(TranslationRecipe, again)).prepare()
    files = [str(tmp_path / f"train.{name}") for name in ("en", "de")]
    kept = fine_tuning_recipe(str(run), *files, str(tmp_path / "tuned"), languages=("en", "de"))
    assert parse(TranslationRecipe, kept).corpus.context == ContextConfig(src=1, tgt=1)


def test_the_model_card_says_what_is_read(run: Path) -> None:
    assert "`The pump runs.⟦break⟧ It is red.`, in a share of 0.8 of the training pairs (`corpus.context`)" in card(run)


def test_a_document_is_translated_in_steps_as_at_once(translator: Translator) -> None:
    document = Document("\n".join(LINES).encode(), FORMATS["txt"], Options("a.txt", ("en", "de")))
    units = list(document.texts())
    one, other = DocumentTranslator(translator.pipeline), DocumentTranslator(translator.pipeline)
    assert [other([unit])[0] for unit in units] == one(units) == [(line,) for line in EXPECTED]


def test_codes_terms_and_the_memory_go_with_it(translator: Translator) -> None:
    """What stands before a sentence is read without codes; what a sentence has of its own stays."""
    html = b"<p>The <b>pump</b> runs.</p><p>It is <i>red</i>.</p><p>The motor stops. It is red.</p>"
    document = Document(html, FORMATS["html"], Options("a.html", ("en", "de")))
    said = document.translated(DocumentTranslator(translator.pipeline)).decode()
    assert re.sub("<.*?>", "", said) == "Die Pumpe läuft.Sie ist rot.Der Motor hält. Er ist rot."
    assert all(said.count(tag) == 1 for tag in ("<b>", "</b>", "<i>", "</i>"))
    remembering = translator.with_memory(TranslationMemory([("The thing is on.", "Die Lampe läuft.")]))
    assert remembering.translate(["The thing is on. It is red."]) == ["Die Lampe läuft. Sie ist rot."]
    bound = translator.with_terms(Glossary({"red": "neu"}))
    assert bound.translate(["The pump runs. It is red."]) == ["Die Pumpe läuft. Sie ist neu."]
    assert translator.translate(["<b>The pump runs.</b> It is red."]) == ["<b>Die Pumpe läuft.</b> Sie ist rot."]


@pytest.mark.parametrize(
    "decoding",
    [
        {"no_repeat_ngram": 2},
        {"repetition_penalty": 1.2},
        {"coverage_penalty": 0.2},
        {"beam_size": 1},
        {"beam_size": 9},
        {"sampling": {"samples": 2, "temperature": 0.01}},
    ],
    ids=str,
)
def test_every_search_goes_on_from_what_was_read(translator: Translator, decoding: dict[str, Any]) -> None:
    """Rules against repetition look at the sentence alone: the words of those before may come again."""
    for before, expected in (
        (Said("The pump is new.", "Die Pumpe ist neu."), "Sie ist neu."),
        (Said("The motor is new.", "Der Motor ist neu."), "Er ist neu."),
    ):
        search = translator.search.searched_by(ReadingContext((before,), (1, 1), None))
        found = search.n_best(["It is new."] * 3, **decoding)
        assert [items[0].text for items in found] == [expected] * 3


def test_only_what_fits_is_read(translator: Translator) -> None:
    before = (Said("The motor runs. " * 20, "Der Motor läuft. " * 20), Said("The pump runs.", "Die Pumpe läuft."))
    parts = translator.search.parts("It is red.")
    reading = ReadingContext(before, (2, 1), None)
    [part] = [reading._part(translator.search, one) for one in parts]
    assert translator.tokenizers.src.decode(part.ids) == "The pump runs.⟦break⟧ It is red."
    assert translator.tokenizers.tgt.decode(part.read) == "Die Pumpe läuft.⟦break⟧"
    assert part.ids == translator.tokenizers.src.encode("The pump runs.⟦break⟧ It is red.")
    strange = ReadingContext((Said("The pump runs.", "Die Pumpe läuft 水."),), (1, 1), None)
    assert [strange._part(translator.search, one).ids for one in parts] == [one.ids for one in parts]
    only_src = ReadingContext((Said("The pump runs.", "Die Pumpe läuft 水."),), (1, 0), None)
    [part] = [only_src._part(translator.search, one) for one in parts]
    assert translator.tokenizers.src.decode(part.ids) == "The pump runs.⟦break⟧ It is red."
    assert not part.read
    assert not part.prefix


def test_a_score_is_that_of_the_sentence_alone(translator: Translator) -> None:
    """What is given costs nothing, and has no part in the length."""
    [before] = [Said("The pump runs.", "Die Pumpe läuft.")]
    search = translator.search.searched_by(ReadingContext((before,), (1, 1), None))
    [[found]] = search.n_best(["It is red."])
    whole = [("The pump runs.⟦break⟧ It is red.", "Die Pumpe läuft.⟦break⟧ Sie ist rot.")]
    tokens = translator.score(whole)[0].tokens
    own = [value for _, value in tokens[[piece for piece, _ in tokens].index(BREAK) + 1 :]]
    assert found.log_prob == pytest.approx(sum(own), abs=1e-3)
    assert found.score == pytest.approx(sum(own) / len(own), abs=1e-3)


def test_one_search_that_fails_takes_no_other_with_it() -> None:
    class Failing:
        engine = None
        decoding = ""

        def hypotheses(self, parts: Sequence[Any]) -> list[Any]:
            if "bad" in parts:
                raise ValueError("bad")
            return [[part] for part in parts]

    meeting, results = Meeting(3), dict[str, Any]()

    def work(name: str) -> None:
        try:
            results[name] = meeting.hypotheses(Failing(), [name])  # type: ignore[arg-type]
        except ValueError as error:
            results[name] = str(error)
        finally:
            meeting.leave()

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "bad", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"one": [["one"]], "bad": "bad", "two": [["two"]]}


# -- training rows -------------------------------------------------------------------------------------------------


def files(folder: Path, src: str, tgt: str | None = None) -> FilesSource:
    for name, text in (("a.en", src), ("a.de", src.upper() if tgt is None else tgt)):
        (folder / name).write_text(text, encoding="utf-8")
    return FilesSource(src=str(folder / "a.en"), tgt=str(folder / "a.de"))


def rows(folder: Path, source: Any, context: ContextConfig, longest: int = 40, **options: Any) -> list[tuple[str, str]]:
    """The pairs of a corpus in context, as text."""
    config = SentencePieceConfig(vocab_size=60, user_defined_symbols=[BREAK])
    letters = ["a b c d e f g h i j k", "A B C D E F G H I J K"]
    tokenizers = train_tokenizers(config, lambda: iter(letters), lambda: iter(letters))
    numbered = changed_pairs(source, lambda src, tgt: (src, tgt), numbered=True)
    plain, _ = prepare(numbered, tokenizers, folder / "ids", normalize="nfc", max_tokens=longest, workers=1)  # type: ignore[arg-type]
    where = np.array(list(places(source, **options)), dtype=np.int64)
    corpus = CorpusInContext(plain, where[plain.lines - 1], context, tokenizers, longest)
    pairs = corpus.pairs(range(len(corpus)))
    assert [len(src) for src, _ in pairs] == corpus.src_lengths.tolist()
    assert [len(tgt) for _, tgt in pairs] == corpus.tgt_lengths.tolist()
    assert all(corpus.src(row).tolist() == src.tolist() for row, (src, _) in enumerate(pairs))
    texts = [(tokenizers.src.decode(src), tokenizers.tgt.decode(tgt)) for src, tgt in pairs]
    assert [tokenizers.src.encode(src) for src, _ in texts] == [src.tolist() for src, _ in pairs]
    return [(src.replace(BREAK, "|"), tgt.replace(BREAK, "|")) for src, tgt in texts]


def test_rows_have_the_sentences_before_them(tmp_path: Path) -> None:
    found = rows(tmp_path, files(tmp_path, "a\nb\nc\n\nd\ne\n"), ContextConfig(src=2, tgt=1))
    assert found == [("a", "A"), ("a| b", "A| B"), ("a| b| c", "B| C"), ("d", "D"), ("d| e", "D| E")]


def test_a_window_has_as_many_as_fit(tmp_path: Path) -> None:
    found = rows(tmp_path, files(tmp_path, "a\nb\nc\nd d d d\ne\n"), ContextConfig(src=9, tgt=9), longest=5)
    assert [src for src, _ in found] == ["a", "a| b", "a| b| c", "d d d d", "e"]


def test_a_sentence_that_is_left_out_ends_a_document(tmp_path: Path) -> None:
    found = rows(tmp_path, files(tmp_path, "a\nb b b b b b\nc\nd\n"), ContextConfig(src=1), longest=5)
    assert found == [("a", "A"), ("c", "C"), ("c| d", "D")]


def test_a_file_may_name_the_documents(tmp_path: Path) -> None:
    (tmp_path / "ids").mkdir()
    (tmp_path / "names").write_text("x\t1\nx\t2\ny\t1\ny\n", encoding="utf-8")
    found = rows(tmp_path, files(tmp_path, "a\nb\nc\nd\n"), ContextConfig(src=1), documents=str(tmp_path / "names"))
    assert [src for src, _ in found] == ["a", "a| b", "c", "c| d"]
    (tmp_path / "names").write_text("x\nx\ny\n", encoding="utf-8")
    with raises_error(Error.UNEQUAL_COUNTS):
        list(places(files(tmp_path, "a\nb\nc\nd\n"), str(tmp_path / "names")))


@pytest.mark.parametrize("weight", [0.5, 1.0, 2.0])
def test_weights_change_no_document(tmp_path: Path, weight: float) -> None:
    source = MixSource(sources=[files(tmp_path, "a\nb\nc\nd\n")], weights=[weight])
    found = rows(tmp_path, source, ContextConfig(src=1))
    expected = {"a": "a", "b": "a| b", "c": "b| c", "d": "c| d"} if weight >= 1 else {"b": "b", "d": "d"}
    assert [src for src, _ in found] == [expected[one] for one in expected for _ in range(max(1, int(weight)))]


def test_corpora_of_a_mixture_are_documents_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "b.tsv").write_text("c\tC\nd\tD\n", encoding="utf-8")
    unit = '<tu><tuv xml:lang="en"><seg>{0}</seg></tuv><tuv xml:lang="de"><seg>{1}</seg></tuv></tu>'
    body = "".join(unit.format(one, one.upper()) for one in ("e", "f", "", "g"))
    (tmp_path / "c.tmx").write_text(f'<tmx version="1.4"><header/><body>{body}</body></tmx>', encoding="utf-8")
    source = MixSource(
        sources=[
            files(tmp_path, "a\nb\n"),
            TsvSource(path=str(tmp_path / "b.tsv")),
            TmxSource(path=str(tmp_path / "c.tmx"), src_lang="en", tgt_lang="de"),
        ]
    )
    found = [src for src, _ in rows(tmp_path, source, ContextConfig(src=1))]
    assert found[:6] == ["a", "a| b", "c", "c| d", "e", "e| f"]
    with raises_error(Error.CONFLICT):
        list(places(source, "names"))


def test_a_share_is_trained_without_and_the_rest_stays_plain() -> None:
    pair = "open⟦1⟧ it⟦/1⟧.⟦break⟧ Close it.", "öffne⟦1⟧ es⟦/1⟧.⟦break⟧ Schließ es."
    annotator = Annotator(TextAugmentConfig(unpunctuated=1.0), WordAligner([]), context=ContextConfig(src=1, share=0.5))
    drawn = [annotator(*pair, random.Random(number)) for number in range(40)]
    assert set(drawn) == {("Close it", "Schließ es"), ("open it.⟦break⟧ Close it", "öffne es.⟦break⟧ Schließ es")}
    assert [annotator(*pair, random.Random(number)) for number in range(40)] == drawn
    tight = replace(annotator, context=ContextConfig(src=1, share=1.0), fits=lambda src: len(src) < 15)
    assert tight(*pair, random.Random(1)) == ("Close it", "Schließ es")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"corpus.context.tgt": 2}, "src is 1"),
        ({"corpus.train": {"type": "stream", "path": "x"}}, "stream"),
        ({"tokenizer.languages": ["en", "de"]}, "two languages"),
        ({"guided_alignment": {"type": "lexical"}, "model.alignment_head": [0, 0]}, "guided_alignment"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path: Path, change: dict[str, Any], word: str) -> None:
    settings = recipe(tmp_path)
    for name, value in change.items():
        *outer, last = name.split(".")
        inner = settings
        for key in outer:
            inner = inner[key]
        inner[last] = value
    with pytest.raises(DragomanError, match=word):
        parse(TranslationRecipe, settings)


def test_the_tables_of_what_the_sentences_before_decide(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = script("benchmarks/context.py")
    files = [str(tmp_path / name) for name in ("test.en", "test.de", "test.ids")]
    columns = zip(*((*pair, f"page {n}\tline") for n, page in enumerate(DOCUMENTS[:6]) for pair in page), strict=True)
    for file, lines in zip(files, columns, strict=True):
        Path(file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    cases = str(tmp_path / "cases.jsonl")
    benchmark.main(["make", *files, cases])
    benchmark.main(["score", str(run), cases])
    benchmark.main(["pages", str(run), *files])
    made, *rows = [line for line in capsys.readouterr().out.splitlines() if "---" not in line]
    assert made == f"{cases}: {{'pronoun': 12}} in 6 pages"
    _, pronouns, head, *pages = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert pronouns[:2] == ["pronoun", "12"]
    assert pronouns[3] == "100.0 %"
    assert float(pronouns[2].split()[0]) < 100
    assert head[1:3] == ["BLEU", "chrF"]
    assert [row[0] for row in pages] == ["the translators", "none", "previous"]
    assert float(pages[0][1]) == float(pages[2][1]) == 100 > float(pages[1][1])


def test_a_term_is_that_of_the_sentence_before() -> None:
    benchmark = script("benchmarks/context.py")
    train = [("the array is long", "das Feld ist lang"), ("the array is short", "die Matrix ist kurz")] * 20
    train += [("the is", "das ist"), ("the is", "die ist")] * 20
    benchmark.USUAL = 0
    known = benchmark.Words(train)
    assert sorted(known.two("array")) == ["Feld", "Matrix"]
    pages = [[("the array is long", "das Feld ist lang"), ("the array is long", "das Feld ist lang")]]
    [case] = benchmark.cases_of(pages, known, ("en", "de"), 2)
    assert (case.kind, case.others) == ("term", ["das Matrix ist lang"])
    assert benchmark.alike(pages, known) == (2, 2)


def test_texts_whose_model_reads_no_translations_are_searched_for_at_once(translator: Translator) -> None:
    pipeline = replace(translator.pipeline, context=(1, 0))
    alone = [
        pipeline.texts([text], documents=[[Said(before, "")] if before else []])[0].items
        for before, text in itertools.pairwise(["", *LINES])
    ]
    document: list[Said] = []
    together = pipeline.texts(LINES, documents=[document] * len(LINES))
    assert [one.items for one in together] == alone
    assert [one.src for one in document] == LINES
    asked: list[int] = []

    def counted(stage: NBest) -> NBest:
        return lambda sentences: (asked.append(len(sentences)), stage(sentences))[1]

    units = list(Document("\n".join(LINES).encode(), FORMATS["txt"], Options("a.txt", ("en", "de"))).texts())
    translate = DocumentTranslator(pipeline, counted)
    translated = [*translate(units[:1]), *translate(units[1:])]
    assert translated == [(items[0].text,) for items in alone]
    assert asked == [1, len(LINES) - 1]
