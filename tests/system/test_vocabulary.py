"""An imported run with a smaller vocabulary computes the same for what is left; new entries begin as they should."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")

from tests.errors import raises_error  # noqa: E402
from tests.system.hub_models import FAMILIES, sentences  # noqa: E402
from tests.unit.test_job import recipe as recipe  # noqa: E402 (a fixture)

from dragoman.cli import main as cli  # noqa: E402
from dragoman.config import parse  # noqa: E402
from dragoman.data.batch import collate  # noqa: E402
from dragoman.errors import Error  # noqa: E402
from dragoman.experiments.vocabulary import Changes, change_vocabulary  # noqa: E402
from dragoman.export import export  # noqa: E402
from dragoman.importing.import_run import import_model  # noqa: E402
from dragoman.inference.search_translator import SearchTranslator  # noqa: E402
from dragoman.special_tokens import UNK_ID  # noqa: E402
from dragoman.tasks import recipes  # noqa: E402
from dragoman.tasks.recipes import TranslationRecipe  # noqa: E402
from dragoman.text.annotations import Placed, has_learnt, with_pieces  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

LATIN = [line for line in sentences(400, seed=9) if line.isascii()]
FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"


@pytest.fixture(scope="module", params=list(FAMILIES))
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """A family, its run, and that run trimmed to the lines LATIN."""
    folder = tmp_path_factory.mktemp("trimmed")
    (folder / "theirs").mkdir()
    make, options, languages = FAMILIES[request.param]
    make(folder / "theirs", **options)
    import_model(folder / "theirs", folder / "run", *languages)
    (folder / "latin").write_text("".join(f"{line}\n" for line in LATIN), encoding="utf-8")
    sizes = change_vocabulary(folder / "run", folder / "small", Changes([folder / "latin"]))
    assert max(sizes.entries[1]) < 0.8 * max(sizes.entries[0])
    assert sizes.parameters[1] < sizes.parameters[0]
    return request.param, folder / "run", folder / "small"


def log_probs(translator: SearchTranslator, src: str, tgt: str) -> tuple[list[str], torch.Tensor]:
    """The pieces of the vocabulary, and the log probability of each at each place of a translation."""
    tokenizers = translator.tokenizers
    batch = collate([(tokenizers.src.encode(src), tokenizers.tgt.encode(tgt))])
    with torch.inference_mode():
        logits = translator.model.eval()(batch.src, batch.src_mask, batch.tgt_in)[0]
    return tokenizers.tgt.pieces(range(tokenizers.tgt.vocab_size)), logits


def test_the_text_is_cut_and_computed_as_before(runs: tuple[str, Path, Path]) -> None:
    _, run, small = runs
    before, after = (SearchTranslator.load(one, device="cpu") for one in (run, small))
    for line in LATIN:
        for side in ("src", "tgt"):
            old, new = (getattr(one.tokenizers, side) for one in (before, after))
            assert new.pieces(new.encode(line)) == old.pieces(old.encode(line))
            assert new.decode(new.encode(line)) == old.decode(old.encode(line))
    for src, tgt in zip(LATIN[:20], LATIN[20:40], strict=True):
        (old_names, old_logits), (new_names, new_logits) = (log_probs(one, src, tgt) for one in (before, after))
        place = {name: index for index, name in enumerate(old_names)}
        kept = old_logits[:, [place[name] for name in new_names]]
        torch.testing.assert_close(new_logits, kept, atol=1e-4, rtol=1e-5)


def test_other_text_is_cut_into_smaller_pieces(runs: tuple[str, Path, Path]) -> None:
    """Of ASCII nothing becomes unknown that was known; letters of other scripts may."""
    _, run, small = runs
    before, after = (SearchTranslator.load(one, device="cpu").tokenizers.src for one in (run, small))
    letters = sorted({letter for line in LATIN for letter in line if UNK_ID not in before.encode(letter)})
    rng = random.Random(3)
    for _ in range(100):
        word = "".join(rng.choices(letters, k=6))
        assert after.encode(word).count(UNK_ID) <= before.encode(word).count(UNK_ID)


@pytest.mark.parametrize("kind", ["sentencepiece", "cased"])
def test_a_run_of_ours_gets_pieces_to_learn_and_translates_as_before(
    kind: str, recipe: dict[str, Any], tmp_path: Path
) -> None:
    recipe["tokenizer"] = {"type": kind, "vocab_size": 60}
    run_dir = recipes.run(parse(TranslationRecipe, recipe)).run_dir
    change_vocabulary(run_dir, tmp_path / "taught", Changes(teach=["tags"]))
    before, after = (SearchTranslator.load(one, device="cpu") for one in (run_dir, tmp_path / "taught"))
    assert not has_learnt("tags", before.tokenizers)
    assert has_learnt("tags", after.tokenizers)
    lines = ["eins zwei", "drei Eins"]
    assert [after.tokenizers.src.encode(line) for line in lines] == [
        before.tokenizers.src.encode(line) for line in lines
    ]
    text = with_pieces("eins zwei", [Placed(5, "⟦1⟧")])
    assert after.tokenizers.src.decode(after.tokenizers.src.encode(text)) == text
    with raises_error(Error.UNKNOWN_NAME, "tags"):
        change_vocabulary(run_dir, tmp_path / "other", Changes(teach=["tag"]))
    # Neither is trained on without pieces, nor asked for what cannot be.
    reuse = {"type": "reuse", "run": str(run_dir)}
    changed = {"corpus": {**recipe["corpus"], "augment": {"tags": 0.5}}, "run_dir": str(tmp_path / "next")}
    with raises_error(Error.CONFLICT, "--teach tags"):
        recipes.run(parse(TranslationRecipe, {**recipe, **changed, "tokenizer": reuse}))
    reuse = {"type": "reuse", "run": str(tmp_path / "taught")}
    next_run = {**recipe, **changed, "tokenizer": reuse, "init_from": str(tmp_path / "taught")}
    assert recipes.run(parse(TranslationRecipe, next_run)).run_dir.is_dir()
    with raises_error(Error.UNSUPPORTED):
        change_vocabulary(run_dir, tmp_path / "trimmed", Changes([Path(__file__)]))


def test_it_goes_out_again(runs: tuple[str, Path, Path], tmp_path: Path) -> None:
    name, _, small = runs
    if name == "m2m100" or name.startswith("marian"):
        export(small, "huggingface", tmp_path / "hf")
        import_model(tmp_path / "hf", tmp_path / "back")
    pytest.importorskip("ctranslate2")
    export(small, "ctranslate2", tmp_path / "ct2", sentences=20)


@pytest.mark.parametrize("name", ["marian, several targets", "nllb", "bart", "mbart50"])
def test_new_entries_begin_as_what_spelt_them(name: str, tmp_path: Path) -> None:
    make, options, languages = FAMILIES[name]
    (tmp_path / "theirs").mkdir()
    make(tmp_path / "theirs", **options)
    import_model(tmp_path / "theirs", tmp_path / "run", *languages)
    like = {"marian, several targets": {"nds": "deu"}, "nllb": {"nds_Latn": "deu_Latn"}, "mbart50": {"nd_XX": "de_DE"}}
    added = like.get(name, {})
    change_vocabulary(tmp_path / "run", tmp_path / "more", Changes(symbols=["<term>", "ჵ"], languages=added))
    before, after = (SearchTranslator.load(one, device="cpu") for one in (tmp_path / "run", tmp_path / "more"))
    old, new = before.tokenizers.src, after.tokenizers.src
    assert [new.id_of(one) for one in ("<term>", "ჵ")] == [old.vocab_size, old.vocab_size + 1]
    text = "the <term> dogჵ runs"
    assert {"<term>", "ჵ"} < set(new.pieces(new.encode(text)))
    assert new.decode(new.encode(text)).replace(" ", "") == text.replace(" ", "")
    for text in ("<term>the dog", "the dog<term>", "the <term> dog", "the dog <term>", "<term> the"):
        if name != "marian, two tables":  # whose small tables have no pieces for the beginning of no word
            assert (text, new.decode(new.encode(text))) == (text, text)
    assert new.encode(LATIN[0]) == old.encode(LATIN[0])
    tables = [one.model.state_dict()["src_embedding.tokens.embedding.weight"] for one in (before, after)]
    inner: Any = getattr(old, "inner", old)
    spelt = [index for index in inner.encode("<term>") if index != UNK_ID] or [UNK_ID]
    torch.testing.assert_close(tables[1][old.vocab_size], tables[0][spelt].mean(dim=0))
    assert torch.equal(tables[1][: old.vocab_size], tables[0])
    for code, known in added.items():
        assert after.between(languages[0], code).tokenizers.languages is not None
        tag, its = (after.tokenizers.languages.tags[one] for one in (code, known))  # type: ignore[union-attr]
        assert torch.equal(tables[1][new.id_of(tag)], tables[0][old.id_of(its)])
        assert new.id_of(tag) not in new.encode(f"the {tag} dog")
        said = before.between(languages[0], known).translate(["the dog runs"])
        assert after.between(languages[0], code).translate(["the dog runs"])
        assert before.between(languages[0], known).translate(["the dog runs"]) == said


def test_what_cannot_be_changed_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with raises_error(Error.UNSUPPORTED):
        change_vocabulary(FIXTURE, tmp_path / "out", Changes([Path(__file__)]))
    with raises_error(Error.MISSING_OPTION):
        change_vocabulary(FIXTURE, tmp_path / "out", Changes())
    for symbol, code in (("two words", Error.WRONG_OPTION), ("the", Error.ALREADY_THERE)):
        make, options, languages = FAMILIES["bart"]
        if not (tmp_path / "theirs").exists():
            (tmp_path / "theirs").mkdir()
            make(tmp_path / "theirs", **options)
            import_model(tmp_path / "theirs", tmp_path / "run", *languages)
        with raises_error(code, symbol):
            change_vocabulary(tmp_path / "run", tmp_path / "out", Changes(symbols=[symbol]))
    with raises_error(Error.UNSUPPORTED):
        change_vocabulary(tmp_path / "run", tmp_path / "out", Changes(languages={"xx": "en"}))
    cli.sys.argv = ["dragoman", "vocabulary", str(tmp_path / "run"), str(tmp_path / "out"), "--add-language", "xx"]
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert "CODE=LIKE" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["marian", "marian, two tables", "m2m100", "nllb"])
def test_an_imported_model_is_taught_codes_and_goes_out_with_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also: huggingface/tokenizers issues 826, 959 and 1174, transformers issue 19873 (spaces beside added tokens),
    OpenNMT/CTranslate2 issues 1415 and 1618 (one token added, and a vocabulary of another size than the model)."""
    make, options, languages = FAMILIES[name]
    (tmp_path / "theirs").mkdir()
    make(tmp_path / "theirs", **options)
    import_model(tmp_path / "theirs", tmp_path / "run", *languages)
    change_vocabulary(tmp_path / "run", tmp_path / "taught", Changes(teach=["tags"]))
    before, after = (SearchTranslator.load(tmp_path / one, device="cpu") for one in ("run", "taught"))
    for text in LATIN[:50]:
        assert after.tokenizers.src.encode(text) == before.tokenizers.src.encode(text)
    for text in ("the dog runs", "der Hund läuft"):
        end = text.index(" ", 4)
        pieces = with_pieces(text, [Placed(4, "⟦1⟧"), Placed(end, "⟦/1⟧"), Placed(len(text), "⟦12/⟧")])
        cut = [piece for piece in after.tokenizers.src.pieces(after.tokenizers.src.encode(pieces)) if piece[0] != "⟦"]
        assert cut == before.tokenizers.src.pieces(before.tokenizers.src.encode(text))
        if name != "marian, two tables":  # whose small tables lack letters
            assert after.tokenizers.tgt.decode(after.tokenizers.tgt.encode(pieces)) == pieces
    monkeypatch.chdir(tmp_path)
    for side in ("src", "tgt"):
        lines = [line.replace("dog", "<b>dog</b>") for line in LATIN if line.islower()][:40]
        (tmp_path / f"own.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    cli.sys.argv = ["dragoman", "train", "--from", "taught", "--src", "own.src", "--tgt", "own.tgt", "--run", "next",
                    "--valid-src", "own.src", "--valid-tgt", "own.tgt",
                    "corpus.augment.tags=0.5", "training.max_steps=2", "training.validate_every=2", "device=cpu",
                    "training.samples=0", "corpus.doctor=skip"]  # fmt: skip
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    next_run = SearchTranslator.load(tmp_path / "next", device="cpu")
    assert has_learnt("tags", next_run.tokenizers)
    made = [f"the⟦1⟧ dog⟦/1⟧ {word}" for word in ("runs", "looks")]
    said = next_run.translate(made, beam_size=1)
    folders = {"ctranslate2": tmp_path / "ct2"} | ({"huggingface": tmp_path / "hf"} if name != "nllb" else {})
    for to, folder in folders.items():
        export(tmp_path / "next", to, folder, verify=False)
        back = SearchTranslator.load(import_model(folder, tmp_path / f"back-{to}"), device="cpu")
        assert has_learnt("tags", back.tokenizers)
        assert back.translate(made, beam_size=1) == said
