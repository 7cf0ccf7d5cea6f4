"""Exports of a run that has learnt tags, terms and matches: plain libraries read pieces that are written by hand."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")
ctranslate2 = pytest.importorskip("ctranslate2")

from dragoman.alignment.learnt_memory import links_of_run  # noqa: E402
from dragoman.export import export  # noqa: E402
from dragoman.importing.import_run import import_model  # noqa: E402
from dragoman.inference.search_translator import SearchTranslator  # noqa: E402
from dragoman.pipeline.memory import TranslationMemory  # noqa: E402
from dragoman.pipeline.translator import Translator  # noqa: E402
from dragoman.text.annotations import PIECES, has_learnt  # noqa: E402
from dragoman.text.glossary import Glossary  # noqa: E402

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests" / "fixtures" / "run_learnt" / "run"
PAGE = (ROOT / "docs/importing.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Pieces that a model has learnt")[1].split("\n## ")[0]
TABLE = re.findall(r"^\| [^|]+ \| `([^`]*)` \|", SECTION, re.MULTILINE)
OTHERS = [
    "⟦1⟧ open⟦/1⟧ the file now.",
    "open the file now.⟦1/⟧",
    "open⟦1⟧⟦2⟧ the⟦/2⟧ file⟦/1⟧ now.",
    "⟦term⟧ open⟦as⟧ öffnen⟦/term⟧ the⟦16⟧ file⟦/16⟧ now.⟦memory⟧ jetzt die Datei.",
]
LEARNT = ("tags", "terms", "fuzzy")
CUT = [
    *OTHERS, "⟦1/⟧", "open,⟦1⟧ the file⟦/1⟧!", "打开⟦1⟧文件⟦/1⟧。", "open⟦1⟧file⟦/1⟧now", "  open ⟦1⟧  the ⟦/1⟧ file ",
    "⟦0⟧ open ⟦x⟧ ⟦17⟧", "open the <s> file⟦1⟧ </s>⟦/1⟧", "⟦ 1 ⟧ open", "⟦1⟧⟦1⟧⟦1⟧", "a⟦1⟧\u00a0b⟦/1⟧", "⟦⟦1⟧⟧ x",
    "«⟦2⟧ open⟦/2⟧»",
]  # fmt: skip
"""Sources whose pieces stand at the beginning, beside marks, letters without spaces, white space and each other."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("exports")
    for to, name in (("huggingface", "mine-hf"), ("ctranslate2", "mine-ct2")):
        export(RUN, to, made / name, verify=False)
    return made


@pytest.fixture(scope="module")
def run() -> SearchTranslator:
    return SearchTranslator.load(RUN, device="cpu")


@pytest.mark.parametrize("number", [0, 1])
def test_the_page_says_how(number: int, folder: Path, run: SearchTranslator, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(TABLE) == 5
    code = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)[number]
    monkeypatch.chdir(folder)
    found: dict[str, Any] = {}
    exec(code, found)  # noqa: S102 - what the page shows
    assert found["said"] == run.translate([TABLE[0]])[0]
    assert f"`{found['said']}`" in SECTION


def test_hugging_face_cuts_and_translates_sources_with_pieces_alike(folder: Path, run: SearchTranslator) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "mine-hf")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder / "mine-hf").eval()
    for text in (*TABLE, *CUT):
        assert tokenizer(text).input_ids == [*run.tokenizers.src.encode(run.normalize(text)), 3], text
    for beam_size in (1, 5):
        ours = run.with_decoding(beam_size=beam_size).translate([*TABLE, *OTHERS])
        for text, said in zip((*TABLE, *OTHERS), ours, strict=True):
            found = model.generate(**tokenizer(text, return_tensors="pt"), num_beams=beam_size, max_new_tokens=60)
            assert tokenizer.decode(found[0], skip_special_tokens=True) == said, (text, beam_size)


def test_ctranslate2_cuts_and_translates_sources_with_pieces_alike(folder: Path, run: SearchTranslator) -> None:
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(str(folder / "mine-ct2/tokenizer/shared/sentencepiece.model"))
    model = ctranslate2.Translator(str(folder / "mine-ct2"))
    known = set(json.loads((folder / "mine-ct2/shared_vocabulary.json").read_text(encoding="utf-8")))
    assert {piece for setting in LEARNT for piece in PIECES[setting]} < known
    for beam_size in (1, 5):
        sources = [*TABLE, *OTHERS]
        ours = run.with_decoding(beam_size=beam_size).translate(sources)
        for text, said in zip(sources, ours, strict=True):
            cut = pieces.encode(text, out_type=str)
            ours_cut = run.tokenizers.src.pieces(run.tokenizers.src.encode(text))
            assert [piece if piece in known else "<unk>" for piece in cut] == ours_cut
            [found] = model.translate_batch([cut], beam_size=beam_size, disable_unk=True)
            assert pieces.decode(found.hypotheses[0]) == said, (text, beam_size)


@pytest.mark.parametrize("name", ["mine-hf", "mine-ct2"])
def test_an_export_that_is_imported_has_learnt_what_the_run_had(
    name: str, folder: Path, run: SearchTranslator, tmp_path: Path
) -> None:
    back = import_model(folder / name, tmp_path / "back")
    search = SearchTranslator.load(back, device="cpu")
    assert all(has_learnt(setting, search.tokenizers) for setting in LEARNT)
    words = ["close", "the", "window", "now"], ["jetzt", "das", "Fenster", "schließen"]
    assert links_of_run(back)(*words) == links_of_run(RUN)(*words) != []
    assert search.translate([*TABLE, *OTHERS]) == run.translate([*TABLE, *OTHERS])
    card = (folder / name / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert all(piece in card for piece in ("⟦/1⟧", "⟦as⟧", "⟦memory⟧"))
    memory = TranslationMemory([("open the page now.", "jetzt die Seite auf.")], ("en", "de"))
    texts = ["print the <b>text</b> now.", "open the <b>text</b> now."]
    both = (Translator.load(one, device="cpu") for one in (RUN, back))
    ours, theirs = (one.with_terms(Glossary({"text": "Wortlaut"})).with_memory(memory).n_best(texts) for one in both)
    assert theirs == ours
