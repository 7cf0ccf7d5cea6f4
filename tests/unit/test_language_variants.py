"""Variants are languages: regions and scripts in memories, glossaries, tables and corpora; rows of public reports."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.corpora.libreoffice_help import codes_of
from dragoman.doctor.collection import collect
from dragoman.errors import Error
from dragoman.formats.base import Options
from dragoman.formats.table import columns_of, named_columns, tables
from dragoman.formats.xliff import tmx_units
from dragoman.languages.codes import closest, nearness
from dragoman.languages.identification import identify, language_or_recognised, likely_languages, source_language
from dragoman.languages.scripts import best_variant, written_in
from dragoman.pipeline.memory import TranslationMemory
from dragoman.serve.requests import served_pair
from dragoman.text.corpus import CollectionConfig
from dragoman.text.glossary import Glossary

SERVED = [
    ("zh-TW", "en zh-Hans zh-Hant", "zh-Hant"),
    ("zh-HK", "en zh-Hans zh-Hant", "zh-Hant"),
    ("zh-MO", "zh-CN zh-TW zh-HK", "zh-HK"),
    ("zh-SG", "zh-TW zh-CN", "zh-CN"),
    ("zh-TW", "en zh-Hans", None),
    ("zh-Hans", "en zh-TW", None),
    ("zh_Hant_TW", "zh-CN zh-TW", "zh-TW"),  # LibreTranslate's zt, Weblate's zh_Hant
    ("zt", "zh-CN zh-TW", "zh-TW"),
    ("yue", "zh-Hant zh-Hans", None),
    ("iw", "en he", "he"),
    ("he", "en iw", "iw"),
    ("in", "en id", "id"),
    ("id", "en in", "in"),
    ("ji", "en yi", "yi"),
    ("yi", "en ji", "ji"),
    ("jw", "en jv", "jv"),
    ("mo", "en ro", "ro"),
    ("no", "en nb", "nb"),
    ("nb", "en no", "no"),
    ("nb-NO", "en nn no", "no"),
    ("no", "nn nb", "nb"),
    ("nn", "en nb", None),
    ("nb", "en nn da", None),
    ("tl", "en fil", "fil"),
    ("fil", "en tl", "tl"),
    ("sr-Cyrl", "en sr-Latn", None),
    ("sr-Latn", "en sr-Cyrl", None),
    ("sr_RS@latin", "sr-Cyrl sr-Latn", "sr-Latn"),
    ("sr", "sr-Latn sr-Cyrl", "sr-Cyrl"),
    ("sr-ME", "sr-Cyrl sr-Latn", "sr-Latn"),
    ("sh", "sr-Cyrl sr-Latn", "sr-Latn"),
    ("pt", "pt-PT pt-BR", "pt-BR"),
    ("pt-AO", "pt-BR pt-PT", "pt-PT"),
    ("pt-BR", "en pt-PT", "pt-PT"),  # the only one that there is
    ("es-MX", "es-ES es-419", "es-419"),
    ("es-AR", "es-ES es-MX", "es-MX"),
    ("en-AU", "en-US en-GB", "en-GB"),
    ("en-CA", "en-US en-GB", "en-US"),
    ("en", "en-GB en-US", "en-US"),
    ("fr-CA", "fr-FR de", "fr-FR"),
    ("de-AT", "de-CH de-DE", "de-DE"),
    ("uz-Cyrl", "uz-Latn en", None),
    ("az-Arab", "az en", "az"),
    ("ca-valencia", "ca en", "ca"),
    ("ku", "ckb kmr", "kmr"),
    ("hr", "sr-Latn bs", None),
]


@pytest.mark.parametrize(("code", "served", "answer"), SERVED)
def test_a_language_is_answered_by_the_nearest_variant(code: str, served: str, answer: str | None) -> None:
    assert closest(code, served.split()) == answer


NEAR = """
3 pt-BR pt_BR | 3 b+sr+Latn sr@latin | 3 zho_Hant zh-Hant | 3 iw he | 3 nob nb | 3 nb no | 2 zh-TW zho_Hant
2 zh-Hant-TW zt | 2 pt-AO pt-PT | 2 pt pt-PT | 2 de-AT de-DE | 2 en-AU en-GB | 2 es-MX es-419 | 2 zh-SG zh-CN
2 fr-CA fr-FR | 2 zh-MO zh-HK | 1 pt-PT pt-BR | 1 en-US en-GB | 1 es-ES es-MX | 1 zh-TW zh-HK | 1 ca-valencia ca
0 zh-CN zh-TW | 0 zh zh-TW | 0 sr-Latn sr-Cyrl | 0 nn nb | 0 da no | 0 hr sr-Latn | 0 yue zh-Hant | 0 uz-Cyrl uz-Latn
"""


def test_nearness_of_variants() -> None:
    for row in NEAR.replace("|", "\n").strip().splitlines():
        degree, code, wanted = row.split()
        assert nearness(code, wanted) == int(degree), row


def tmx(path: Path, *units: dict[str, str]) -> Path:
    variants = (
        "".join(f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>' for code, text in unit.items())
        for unit in units
    )
    body = "".join(f"<tu>{unit}</tu>" for unit in variants)
    path.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{body}</body></tmx>', encoding="utf-8")
    return path


XLIFF = (
    '<xliff version="1.2"><file source-language="en" target-language="pt-PT"><body><trans-unit id="1">{}</trans-unit>'
    "</body></file></xliff>"
)


def test_a_memory_answers_in_the_variant_that_is_wanted_and_in_no_other(tmp_path: Path) -> None:
    """OmegaT (fr-CA beside fr-FR in one memory) and Pontoon (pt-PT suggested for pt-BR)."""
    path = tmx(
        tmp_path / "m.tmx",
        {"en-GB": "Colour", "pt-PT": "Ecrã", "pt-BR": "Tela"},
        {"en": "Bus", "pt-PT": "Autocarro"},
        {"en": "Open the file.", "sr-Cyrl": "Отвори датотеку.", "sr-Latn": "Otvori datoteku."},
        {"en": "Settings", "sr-Cyrl": "Поставке"},
        {"en": "File", "zh-CN": "文件", "zh-TW": "檔案"},
        {"en": "Save", "zh-CN": "保存"},
    )
    answers = {
        ("en", "pt-BR"): {"Colour": "Tela", "Bus": None},
        ("en-US", "pt-PT"): {"Colour": "Ecrã", "Bus": "Autocarro"},
        ("en", "pt"): {"Colour": "Tela", "Bus": "Autocarro"},
        ("en", "pt-AO"): {"Colour": "Ecrã", "Bus": "Autocarro"},
        ("en", "sr-Latn"): {"Open the file.": "Otvori datoteku.", "Settings": None},
        ("en", "sr"): {"Open the file.": "Отвори датотеку.", "Settings": "Поставке"},
        ("en", "zh-Hant"): {"File": "檔案", "Save": None},
        ("en", "zh"): {"File": "文件", "Save": "保存"},
        ("zh-Hans", "zh-Hant"): {"文件": "檔案", "保存": None},
        ("pt-BR", "pt-PT"): {"Tela": "Ecrã", "Autocarro": None},
    }
    for languages, texts in answers.items():
        memory = TranslationMemory.load(path, languages)
        assert {text: memory.exact(text) for text in texts} == texts, languages
    for name, text in (
        ("x.xlf", XLIFF.format("<source>Screen</source><target>Ecrã</target>")),
        ("c.po", 'msgid ""\nmsgstr "Language: pt_PT\\n"\n\nmsgid "Screen"\nmsgstr "Ecrã"\n'),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert TranslationMemory.load(tmp_path / name, ("en", "pt-AO")).exact("Screen") == "Ecrã"
        assert TranslationMemory.load(tmp_path / name, ("src", "tgt")).exact("Screen") == "Ecrã"
        with raises_error(Error.EMPTY, name, "pt-BR"):
            TranslationMemory.load(tmp_path / name, ("en", "pt-BR"))
    with raises_error(Error.EMPTY, "fr", "it has en-GB, pt-PT, pt-BR, en, sr-Cyrl"):
        TranslationMemory.load(path, ("en", "fr"))


def test_a_bare_code_is_of_the_script_of_its_text(tmp_path: Path) -> None:
    path = tmx(
        tmp_path / "m.tmx",
        {"en": "Open", "sr": "Otvori datoteku."},
        {"en": "Close", "sr": "Затвори"},
        {"en": "Acme", "sr": "Acme"},
    )
    assert TranslationMemory.load(path, ("en", "sr-Latn")).exact("Open") == "Otvori datoteku."
    cyrillic = TranslationMemory.load(path, ("en", "sr-Cyrl"))
    assert [cyrillic.exact(text) for text in ("Open", "Close", "Acme")] == [None, "Затвори", "Acme"]
    path = tmx(tmp_path / "z.tmx", {"en": "File", "zh": "檔案"}, {"en": "Save", "zh": "保存设置"})
    assert TranslationMemory.load(path, ("en", "zh-TW")).exact("File") == "檔案"
    assert TranslationMemory.load(path, ("en", "zh-CN")).exact("File") is None
    assert TranslationMemory.load(path, ("en", "zh")).exact("File") == "檔案"  # the memory's own word for it
    assert written_in("ja", "東京都") == "ja"
    assert written_in("zh-CN", "檔案") == "zh-CN"


def test_the_other_variant_of_a_memory_is_no_translation(tmp_path: Path) -> None:
    path = tmx(tmp_path / "m.tmx", {"zh-Hans": "打开文件。"}, {"zh-Hans": "设置", "zh-Hant": "設定"}, {"en": "Open"})
    units = list(tmx_units(path.read_text(encoding="utf-8"), Options("m.tmx", ("zh-Hans", "zh-Hant"))))
    assert [unit.kept for unit in units] == ["", "translated already"]
    assert 'xml:lang="zh-Hant"' in units[0].render(units[0].items)
    path = tmx(tmp_path / "e.tmx", {"en-US": "Color"}, {"en-US": "Gray", "en-GB": "Grey"})
    units = list(tmx_units(path.read_text(encoding="utf-8"), Options("e.tmx", ("en-US", "en-GB"))))
    assert [unit.kept for unit in units] == ["", "translated already"]


HEADINGS = [
    ("English|Chinese (Simplified)|Chinese (Traditional)", ("en", "zh-TW"), (0, 2)),
    ("en|zh_CN|zh_TW", ("en", "zh-Hant"), (0, 2)),
    ("pt-PT|pt-BR|en", ("en", "pt-BR"), (2, 1)),
    ("en-GB|pt", ("en-US", "pt-BR"), (0, 1)),
    ("Portuguese|Portuguese (Brazil)|English", ("en", "pt_BR"), (2, 1)),
    ("English|Serbian (Latin)|Serbian", ("en", "sr@latin"), (0, 1)),
    ("Norwegian Nynorsk|Norwegian Bokmål|English", ("en", "nb"), (2, 1)),
    ("source|target", ("en", "pt-BR"), (0, 1)),
    ("English|Indonesian", ("en", "in"), (0, 1)),
]


@pytest.mark.parametrize(("heading", "languages", "places"), HEADINGS)
def test_the_column_of_a_variant(heading: str, languages: tuple[str, str], places: tuple[int, int]) -> None:
    [rows] = tables(f"{heading.replace('|', ';')}\na;b;c\n".encode(), "t.csv", languages)
    columns = named_columns(list(rows), languages)
    assert columns is not None
    assert columns[:2] == places


def test_columns_without_a_heading_are_told_by_their_script() -> None:
    lines = [
        f"Close the window and open file {number}.;请打开文件{number}，然后保存设置。;請開啟檔案{number}，然後儲存。"
        for number in range(30)
    ]
    [rows] = tables("\n".join(lines).encode(), "t.csv", ("en", "zh-TW"))
    table = list(rows)
    assert columns_of(table, ("en", "zh-TW"), None, "t.csv")[:2] == (0, 2)
    assert columns_of(table, ("zh-CN", "en"), None, "t.csv")[:2] == (1, 0)


def test_a_glossary_of_another_variant_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("en,pt-PT,pt-BR\nscreen,ecrã,tela\n", encoding="utf-8")
    assert Glossary.load(path, ("en", "pt-BR")).targets == {"screen": "tela"}
    path.write_text("en,pt-PT\nscreen,ecrã\n", encoding="utf-8")
    with raises_error(Error.NO_SUCH_LANGUAGE, "pt-pt", "pt-BR", "g.csv"):
        Glossary.load(path, ("en", "pt-BR"))


def test_two_variants_are_written_to_two_files() -> None:
    assert codes_of("zh-CN", "zh-TW") == ("zh", "zh-TW")
    assert codes_of("pt-BR", "pt") == ("pt-BR", "pt")
    with raises_error(Error.WRONG_OPTION):
        codes_of("de", "deu_Latn")
    assert best_variant({"en": "a"}, "de") is None


DETECTED = [
    ("请打开这个文件并保存设置", "zh-Hans zh-Hant en", "zh-Hans"),
    ("請開啟這個檔案並儲存設定", "zh-Hant zh-Hans en", "zh-Hant"),
    ("請開啟這個檔案並儲存設定", "zh-CN zh-TW en", "zh-TW"),
    ("請開啟這個檔案並儲存設定", "zh zh-TW en", "zh-TW"),
    ("请打开这个文件并保存设置", "zh-TW zh en", "zh"),
    ("請開啟這個檔案並儲存設定", "zh en", "zh"),
    ("Ovo je dobar dan", "sr-Latn sr-Cyrl en", "sr-Latn"),
    ("Ово је добар дан", "sr-Latn sr-Cyrl en", "sr-Cyrl"),
    ("Ovo je dobar dan", "sr sr-Latn en", "sr-Latn"),
    ("Отвори LibreOffice и сачувај датотеку", "sr-Latn sr-Cyrl en", "sr-Cyrl"),
    ("God morgen, hvordan har du det?", "nb da sv", "nb"),
    ("God morgen, jeg hedder Jens og kommer fra København.", "nb da sv", "da"),
    ("Åpne fila og lagre innstillingane.", "nb nn en", "nn"),
    ("Magandang umaga", "fil en", "fil"),
    ("Magandang umaga", "tl en", "tl"),
    ("שלום, מה שלומך?", "iw en", "iw"),
    ("Selamat pagi, apa kabar?", "in en", "in"),
    ("Onde fica a estação?", "pt-BR es", "pt-BR"),
    ("佢哋喺邊度呀？", "zh-Hant yue en", "yue"),
]


@pytest.mark.parametrize(("text", "candidates", "first"), DETECTED)
def test_a_variant_is_detected_by_its_script(text: str, candidates: str, first: str) -> None:
    ranked = likely_languages(text, candidates.split())
    assert ranked[0][0] == first
    assert set(candidates.split()) <= {code for code, _ in ranked}  # all are listed
    assert sum(share for _, share in ranked) == pytest.approx(1)


def test_text_in_the_other_script_is_not_in_the_target_language() -> None:
    """It came back untranslated, as "zh-Hant, 100 %"."""
    simplified, traditional = "请打开这个文件并保存设置", "請開啟這個檔案並儲存設定"
    assert source_language(simplified, ["en"], "zh-Hant", ["en", "zh-Hant"])[0] == "zh-Hans"
    assert source_language(traditional, ["en"], "zh-Hant", ["en", "zh-Hant"])[0] == "zh-Hant"
    assert source_language(simplified, ["zh-Hans", "en"], "zh-Hant")[0] == "zh-Hans"
    assert source_language("文件", ["en"], "zh-Hant", ["en", "zh-Hant"])[0] == "zh-Hant"
    assert source_language(simplified, ["zh-Hant"], "en", ["en", "zh-Hant"])[0] == "zh-Hans"  # and is not served
    assert source_language("Otvori datoteku i sačuvaj je.", ["en"], "sr-Cyrl", ["en", "sr-Cyrl"])[0] == "sr-Latn"


def test_text_of_a_region_is_in_the_target_language_if_no_other_region_is_a_source() -> None:
    text, served = "Onde fica a estação de comboios?", ["en", "pt-BR", "pt-PT"]
    assert source_language(text, ["en"], "pt-PT", served)[0] == "pt-PT"
    assert source_language(text, ["en", "pt-BR"], "pt-PT", served)[0] == "pt-BR"


def test_chinese_without_letters_of_a_dialect_is_no_dialect() -> None:
    """py3langid has 449 of 1,500 lines of LibreOffice's interface in Taiwan as Cantonese, 96 as Wu."""
    assert [identify(text)[0] for text in ("請開啟檔案", "佢哋喺邊度呀？")] == ["zh", "yue"]


WAYS = {"en": ["zh-Hans", "pt-BR"], "zh-Hant": ["en", "pt-BR"], "zh-Hans": [], "pt-PT": ["en"], "pt-BR": []}
PAIRS = [
    ("zh", "en", ("zh-Hant", "en")),  # the only Chinese that is translated from
    ("en", "zh", ("en", "zh-Hans")),
    ("en-GB", "zh-CN", ("en", "zh-Hans")),
    ("auto", "pt", ("auto", "pt-BR")),
    ("pt-BR", "en", ("pt-PT", "en")),
    ("zh-CN", "en", ("zh-Hans", "en")),  # and there is no way, which is said
    ("zh_HK", "pt", ("zh-Hant", "pt-BR")),
    ("de", "en", (None, "en")),
    ("en", "de", ("en", None)),
    ("en", "en", ("en", "en")),
]


@pytest.mark.parametrize(("source", "target", "pair"), PAIRS)
def test_variants_of_a_request_are_those_between_which_there_is_a_way(
    source: str, target: str, pair: tuple[str | None, str | None]
) -> None:
    server: Any = SimpleNamespace(service=SimpleNamespace(languages=lambda: WAYS))
    assert served_pair(server, source, target) == pair


REPORTS = [
    ("zh_CMN_HANT", "zh-Hant", 3),  # WeblateOrg/weblate#2072
    ("ro_MD", "mo", 2),
    ("bo_BT", "bo", 2),
    ("tt@iqtelif", "tt", 1),
    ("sr_CS", "sr", 2),
    ("ca_ES@valencia", "ca-valencia", 2),
    ("sr@ijekavianlatin", "sr-Latn", 3),  # WeblateOrg/language-data#127
    ("sr_LAT", "sr@latin", 3),  # enricocid/Music-Player-GO#514
    ("sr_CYR", "sr", 3),
    ("sr_CYRL-ME", "sr-Cyrl", 2),
    ("kor_Hang", "ko-KR", 2),  # rspeer/langcodes#59
    ("ko", "kor_Hang", 3),
    ("pa-PK", "pa", 1),
    ("zh-CN", "zh-Hans-CN", 3),  # stefalda/ReactNativeLocalization#19
    ("zh_HK", "zh_Hant", 2),  # cloudfoundry/cli#297
    ("zh-yue-HK", "yue", 2),  # sky-map-team/stardroid#1040
    ("EN-US", "en_us", 3),  # translate/virtaal#750: upper-case codes of a TMX
    ("English (United Kingdom)", "en-GB", 3),  # Helsinki-NLP/OPUS-CAT#22
    ("iw_IL", "he", 2),  # osmandapp/OsmAnd#15776
    ("in", "id-ID", 2),
    ("ji", "yi", 3),
    ("pb", "pt-BR", 3),  # SubtitleEdit/subtitleedit#9576
    ("zt", "zh-TW", 2),
    ("zh-hans", "zh", 3),
    ("cht", "zh-TW", 2),
    ("no-nyn", "nn", 3),
    ("nb_NO", "no", 2),
    ("zh_Hani", "zh-TW", 2),
]


@pytest.mark.parametrize(("code", "wanted", "degree"), REPORTS)
def test_codes_of_public_reports(code: str, wanted: str, degree: int) -> None:
    assert nearness(code, wanted) == degree


def test_texts_of_public_reports() -> None:
    """google/cld3#34 and ssut/py-googletrans#87 (both scripts were `zh`), validator/validator#473 (traditional text
    with a few simplified letters), Helsinki-NLP/Tatoeba-Challenge#37 (one letter), translate-shell#392 (zh-TW)."""
    served = ["en", "zh-Hans", "zh-Hant"]
    assert likely_languages("把中坛元帅固定在神轿", served)[0][0] == "zh-Hans"
    assert likely_languages("親愛的牽起你的手 並將他們放在我手中", served)[0][0] == "zh-Hant"
    assert likely_languages("這個頁面是用繁體中文寫的，只有一篇文章是简体", served)[0][0] == "zh-Hant"
    assert [written_in("zh", text) for text in ("請。", "请。", "行。")] == ["zh-Hant", "zh", "zh"]
    assert closest("zh-tw", ["zh-cn"]) is None
    traditional = ["請開啟這個檔案並儲存設定", "對話方塊裡的選項", "這個頁面是用繁體中文寫的"]
    assert language_or_recognised("tgt", traditional) == "zh-Hant"


def test_a_catalogue_says_serbian_and_is_in_latin_letters(tmp_path: Path) -> None:
    """mozilla/fxa-content-server-l10n#44: the folder sr_Latn has `Language: sr`; gitextensions#13144: the memory of the
    other Chinese filled strings."""
    head = 'msgid ""\nmsgstr "Language: {}\\nContent-Type: text/plain; charset=UTF-8\\n"\n\n'
    (tmp_path / "a.po").write_text(head.format("sr") + 'msgid "Open"\nmsgstr "Otvori datoteku"\n', encoding="utf-8")
    config = CollectionConfig(paths=[str(tmp_path)])
    [(_, entries)] = collect(config, ("en", "sr-Latn"))
    assert [entry.tgt for entry in entries] == ["Otvori datoteku"]
    (tmp_path / "a.po").write_text(head.format("zh_Hant") + 'msgid "Default"\nmsgstr "預設"\n', encoding="utf-8")
    [(record, entries)] = collect(config, ("en", "zh-Hans"))
    assert not entries
    assert "zh_Hant" in record.note


@pytest.mark.parametrize(
    ("wanted", "kept"), [("de-DE", "de-DE"), ("de-AT", "de-AT"), ("de", "de"), ("de-CH", "de"), ("de_LU", "de")]
)
def test_of_several_files_beside_the_source_the_nearest_is_its_translation(
    tmp_path: Path, wanted: str, kept: str
) -> None:
    for code in ("en", "de-AT", "de", "de-DE"):
        (tmp_path / f"app.{code}.json").write_text(f'{{"a": "text {code}", "b": "other"}}', encoding="utf-8")
    found = [
        entry for _, entries in collect(CollectionConfig(paths=[str(tmp_path)]), ("en", wanted)) for entry in entries
    ]
    assert found[0].tgt == f"text {kept}"
