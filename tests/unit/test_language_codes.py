"""Language codes as people write them: each spelling of a language is the same language everywhere."""

from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman.config import from_yaml, override, parse
from dragoman.errors import Error
from dragoman.export.argos import _code as argos_code
from dragoman.formats.encoding import code_page
from dragoman.formats.po import header_of
from dragoman.languages.codes import (
    articles,
    closest,
    facts,
    fits,
    is_known,
    language_of,
    locale_of,
    name_of,
    names_of,
    parsed,
    same_languages,
    script_of,
    tag_of,
    written_without_spaces,
)
from dragoman.languages.identification import _labels
from dragoman.languages.plurals import plurals_of
from dragoman.quality.faults import Line, negation_lost
from dragoman.quality.metrics import bleu_tokenizer, metric, unsplit
from dragoman.quality.scores import EvaluationConfig, score
from dragoman.quality.test_set import TestSet
from dragoman.text.lines import language_of_file
from dragoman.text.negation import negations
from dragoman.text.segment import sentences
from dragoman.text.tokenizers.language_tags import LanguageTags

SPELLINGS = {
    "af": "af afr afr_Latn af_ZA",
    "ar": "ar ara arb arb_Arab ar_AR ar_EG ar_SA.UTF-8",
    "az": "az aze azj azj_Latn az_AZ",
    "be": "be bel bel_Cyrl be@tarask be-BY",
    "bg": "bg bul bul_Cyrl bg_BG",
    "bn": "bn ben ben_Beng bn_IN bn_BD",
    "bs": "bs bos bos_Latn bs_BA",
    "ca": "ca cat cat_Latn ca@valencia ca_ES",
    "cs": "cs ces cze ces_Latn cs_CZ cz",
    "cy": "cy cym wel cym_Latn cy-GB",
    "da": "da dan dan_Latn da_DK dk",
    "de": "de deu ger deu_Latn de_DE de-AT de_DE.UTF-8 de_AT@euro DE __de__ >>deu<< German german_germany.1252",
    "el": "el ell gre ell_Grek el_GR gr",
    "en": "en eng eng_Latn en_XX en_US EN-GB eng_USA en_GB.utf8 English",
    "eo": "eo epo epo_Latn",
    "es": "es spa spa_Latn es_XX es-419 es_MX b+es+419 Castilian",
    "et": "et est ekk est_Latn et_EE",
    "eu": "eu eus baq eus_Latn eu_ES",
    "fa": "fa fas per pes pes_Arab fa_IR Farsi",
    "fi": "fi fin fin_Latn fi_FI",
    "fr": "fr fra fre fra_Latn fr_XX fr-CA French",
    "fy": "fy fry fy_NL",
    "ga": "ga gle gle_Latn ga-IE",
    "gl": "gl glg glg_Latn gl_ES",
    "gu": "gu guj guj_Gujr gu_IN",
    "he": "he heb iw iw_IL heb_Hebr he_IL",
    "hi": "hi hin hin_Deva hi_IN",
    "hr": "hr hrv scr hrv_Latn hr_HR",
    "hu": "hu hun hun_Latn hu_HU",
    "hy": "hy hye arm hye_Armn",
    "id": "id ind in in_ID ind_Latn id_ID",
    "is": "is isl ice isl_Latn",
    "it": "it ita ita_Latn it_IT",
    "ja": "ja jpn jp jpn_Jpan ja_XX ja_JP ja_JP.UTF-8 jpn_Hira",
    "jv": "jv jav jw jav_Latn",
    "ka": "ka kat geo kat_Geor ka_GE",
    "kk": "kk kaz kaz_Cyrl kk_KZ",
    "km": "km khm khm_Khmr km_KH",
    "ko": "ko kor kor_Hang ko_KR",
    "ku": "ku kur kmr kmr_Latn",
    "lo": "lo lao lao_Laoo lo_LA",
    "lt": "lt lit lit_Latn lt_LT",
    "lv": "lv lav lvs lvs_Latn lv_LV",
    "mg": "mg mlg plt plt_Latn",
    "mk": "mk mkd mac mkd_Cyrl mk_MK",
    "ml": "ml mal mal_Mlym ml_IN",
    "mn": "mn mon khk khk_Cyrl mn_MN",
    "mr": "mr mar mar_Deva mr_IN",
    "ms": "ms msa may zsm zsm_Latn ms_MY",
    "my": "my mya bur mya_Mymr my_MM Burmese",
    "ne": "ne nep npi npi_Deva ne_NP",
    "nl": "nl nld dut nld_Latn nl_XX nl_BE Flemish",
    "nn": "nn nno nno_Latn nn_NO",
    "no": "no nor nb nob nob_Latn nb_NO nb-NO no_NO Norwegian",
    "nso": "nso ns nso_Latn",
    "pa": "pa pan pan_Guru",
    "pl": "pl pol pol_Latn pl_PL",
    "pt": "pt por pb por_Latn pt_XX pt-BR pt_PT pt_BR.UTF-8 pt-rBR por-BRA Portuguese",
    "ro": "ro ron rum mo ron_Latn ro_RO",
    "ru": "ru rus rus_Cyrl ru_RU",
    "si": "si sin sin_Sinh si_LK",
    "sk": "sk slk slo slk_Latn sk_SK",
    "sl": "sl slv slv_Latn sl_SI",
    "sq": "sq sqi alb als als_Latn",
    "sr": "sr srp scc srp_Cyrl srp_Latn sr-Latn sr@latin sr_RS sr_RS.UTF-8@latin b+sr+Latn sh",
    "sv": "sv swe swe_Latn sv_SE",
    "sw": "sw swa swh swh_Latn sw_KE",
    "ta": "ta tam tam_Taml ta_IN",
    "te": "te tel tel_Telu te_IN",
    "th": "th tha tha_Thai th_TH",
    "tl": "tl tgl fil tgl_Latn tl_XX fil_PH Tagalog",
    "tr": "tr tur tur_Latn tr_TR",
    "uk": "uk ukr ukr_Cyrl uk_UA ua",
    "ur": "ur urd urd_Arab ur_PK",
    "uz": "uz uzb uzn uzn_Latn uzb_Cyrl",
    "vi": "vi vie vie_Latn vi_VN vn",
    "yi": "yi yid ydd ji ydd_Hebr",
    "yue": "yue yue_Hant zh-yue zh_yue",
    "zh": "zh zho chi cmn zh_CN zh-Hans zh-Hans-CN zho_Hans zho_Hant cmn_Hans cmn_Hant zh_TW zh-HK zt zh_CN.UTF-8 "
    "zh-CHS zh_cht cn b+zh+Hans ZH-HANT zh-Hans-u-co-pinyin Chinese zh_SIMPLIFIED Mandarin >>cmn_Hans<<",
}  # fmt: skip
"""Codes of ISO 639-1, -2/B, -2/T and -3, of NLLB, M2M100 and mBART, names of OPUS's files, of locales, of Android."""
EACH = [(code, spelling) for code, spellings in SPELLINGS.items() for spelling in spellings.split()]


@pytest.mark.parametrize(("code", "spelling"), EACH)
def test_each_spelling_is_the_same_language_for_all_uses(code: str, spelling: str) -> None:
    assert language_of(spelling) == code
    other = "de" if code == "en" else "en"
    if script_of(spelling) == script_of(code):  # so a server, a memory and a file of one are of the other
        assert (closest(spelling, [other, code]), closest(code, [other, spelling])) == (code, spelling)
        assert fits(spelling, code) >= (not parsed(spelling).variant)
    assert is_known(spelling)
    assert name_of(spelling) == name_of(code) != code
    assert articles(spelling) == articles(code)
    assert is_known(tag_of(spelling))
    assert language_of(tag_of(spelling)) == code
    assert language_of(locale_of(spelling)) == code
    assert written_without_spaces(spelling) == (code in ("zh", "yue", "ja", "th", "km", "lo", "my"))
    expected = "zh" if code in ("zh", "yue") else "char" if written_without_spaces(code) else "13a"
    assert bleu_tokenizer("auto", spelling) == expected
    assert negations("not no nicht 不 ない не ne", spelling) == negations("not no nicht 不 ない не ne", code)
    assert sentences("Der 3. Mann kam. Er ging. 好。好。", spelling) == sentences(
        "Der 3. Mann kam. Er ging. 好。好。", code
    )
    assert (plurals_of(spelling) is None) == (plurals_of(code) is None)
    if len(spelling.partition("_")[0]) <= 3 and spelling[0].isalpha() and "." not in spelling and spelling != "in":
        assert language_of_file(f"train.{spelling}") == language_of_file(f"train.{spelling}.gz") == spelling


def test_tables_are_keyed_by_the_codes_that_are_looked_up() -> None:
    keys = {
        code for kind in ("name", "script", "articles", "negation", "numbers", "abbreviations") for code in facts(kind)
    }
    assert {code for code in keys - {"any"} if language_of(code) != code} == set()
    assert {language: label for language, label in _labels().items() if language_of(label) != language} == {}


@pytest.mark.parametrize(
    "word", ["src", "tgt", "ref", "hyp", "out", "txt", "raw", "tsv", "gz", "de-en", "x", "", "test2014"]
)
def test_what_is_no_language(word: str) -> None:
    assert not is_known(word)
    assert language_of_file(f"train.{word}") == ""


def test_a_served_language_is_the_nearest_one() -> None:
    nllb = ["deu_Latn", "zho_Hant", "zho_Hans", "nob_Latn", "por_Latn", "srp_Cyrl", "heb_Hebr"]
    asked = {
        "de": "deu_Latn", "zh": "zho_Hans", "zh-TW": "zho_Hant", "zt": "zho_Hant", "no": "nob_Latn", "nb": "nob_Latn",
        "pt-BR": "por_Latn", "pb": "por_Latn", "iw": "heb_Hebr", "sr": "srp_Cyrl", "sr-Latn": None, "fr": None,
    }  # fmt: skip
    assert {code: closest(code, nllb) for code in asked} == asked
    assert closest("pt-PT", ["pt_BR", "pt-PT"]) == "pt-PT"
    assert closest("pt", ["pt_PT", "pt_BR"]) == "pt_BR"
    assert closest("zh-Hans", ["zh"]) == closest("zh-CN", ["zh"]) == closest("zho", ["zh"]) == "zh"
    assert closest("zh-Hant", ["zh"]) is closest("zh_TW", ["zh-CN"]) is None
    assert closest("no", ["nn", "nb"]) == "nb"
    assert closest("nb", ["no", "nb"]) == "nb"
    tags = LanguageTags(tags={code: f"<2{code}>" for code in nllb})
    assert tags.code("zh-Hant") == "zho_Hant"
    with raises_error(Error.NO_SUCH_LANGUAGE):
        tags.code("sr-Latn")


def test_pairs_of_the_same_languages() -> None:
    assert same_languages(("de", "nb"), ("deu_Latn", "no"))
    assert not same_languages(("de", "zh-TW"), ("de", "zh"))
    assert fits("zho_Hans", "zh_CN") == fits("zh-Hant", "zh_TW") == 1
    assert fits("sr@latin", "sr_Latn") == 2


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("Language: French\n", "fr"),
        ("Language: Français\n", "fr"),
        ("Language: Portuguese (Brazil)\n", "pt_BR"),
        ("Language: Simplified Chinese\n", "zh_Hans"),
        ("Language: Deutsch (Schweiz)\n", "de_CH"),
        ("Language: de_DE.UTF-8\n", "de_DE.UTF-8"),
        ("Language: \nX-Poedit-Language: Polish\n", "pl"),
    ],
)
def test_headers_of_catalogues(header: str, code: str) -> None:
    languages = header_of(header).languages
    assert languages is not None
    assert languages[1] == code


def test_no_is_norwegian_and_still_false() -> None:
    assert from_yaml("tgt_lang: no\nlowercase: false\n", "recipe") == {"tgt_lang": "no", "lowercase": False}
    assert override({}, ["corpus.tgt_lang=no"]) == {"corpus": {"tgt_lang": "no"}}
    assert parse(EvaluationConfig, from_yaml("lowercase: no", "recipe")).lowercase is False
    assert parse(EvaluationConfig, from_yaml("lowercase: yes", "recipe")).lowercase is True


def test_codes_of_argos_translate() -> None:
    codes = {"zho_Hans": "zh", "zh-TW": "zt", "deu_Latn": "de", "pt-BR": "pb", "pt": "pt", "nob": "nb", "no": "nb"}
    assert {code: argos_code(code) for code in codes} == codes


def test_locales_scripts_and_code_pages() -> None:
    assert [locale_of(code) for code in ("zho_Hant", "srp_Latn", "en_XX", "sr@latin")] == [
        "zh_TW",
        "sr@latin",
        "en",
        "sr@latin",
    ]
    assert script_of("tgl") == "Latn"
    assert code_page("Đ".encode("cp1250"), ("en", "srp_Latn")) == "cp1250"
    assert code_page("Я".encode("cp1251"), ("eng_Latn", "srp_Cyrl")) == "cp1251"


UNSPACED = {
    "zh": ["今天天气很好。", "我想喝啤酒。", "他是一个医生。"],
    "ja": ["今日は天気がいいです。", "私はビールが飲みたい。", "彼は医者です。"],
    "th": ["วันนี้อากาศดีมาก", "ฉันอยากดื่มเบียร์", "เขาเป็นหมอ"],
    "km": ["ថ្ងៃនេះអាកាសធាតុល្អ", "ខ្ញុំចង់ផឹកស្រាបៀរ", "គាត់ជាវេជ្ជបណ្ឌិត"],
    "lo": ["ມື້ນີ້ອາກາດດີ", "ຂ້ອຍຢາກດື່ມເບຍ", "ລາວເປັນທ່ານໝໍ"],
    "my": ["ဒီနေ့ရာသီဥတုကောင်းတယ်။", "ငါဘီယာသောက်ချင်တယ်။", "သူကဆရာဝန်ဖြစ်တယ်။"],
}


@pytest.mark.parametrize("code", UNSPACED)
def test_a_language_that_is_not_told_is_recognised(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = UNSPACED[code]
    for name in ("src", "ref"):
        (tmp_path / f"z.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    test = TestSet.read(tmp_path / "z.src", [tmp_path / "z.ref"])
    assert test.languages == (code, code)
    assert name_of(code) in capsys.readouterr().err
    scores = score(lines, lines, EvaluationConfig(), "tgt")
    assert scores.bleu == pytest.approx(100)
    assert f"tok:{bleu_tokenizer('auto', code)}" in scores.signatures["bleu"]
    assert unsplit(test, [metric("bleu", code)]) == ""
    assert "tgt_lang" in unsplit(test, [metric("bleu", "en")])


def test_spaced_text_is_split() -> None:
    texts = ["Ein Mann schläft.", "Это хороший день.", "나는 맥주를 마시고 싶다.", "我 们 去 公 园 。"]
    tests = [TestSet(["x"], [[text]], ("", "")) for text in texts]
    assert [unsplit(test, [metric("bleu", "en")]) for test in tests] == [""] * len(texts)


def test_faults_know_the_language() -> None:
    pair = "He does not sleep here.", "Er schläft hier."
    assert negation_lost(Line(*pair, ("eng_Latn", "deu_Latn"))) == negation_lost(Line(*pair, ("en", "de"))) == ""


def test_names_beside_each_other_are_told_apart_where_they_have_to_be() -> None:
    bare = ["am", "be", "mt", "mr", "ne", "pa", "te", "af", "no", "fil", "yue", "ast", "hsb", "kab"]
    for reader in ("en", "de", "fr", "es", "zh", "ar"):
        names = names_of([*bare, "zh-Hans", "zh-Hant", "pt-BR", "pt-PT", "sr", "sr-Latn", "nb", "nn", "tl"], reader)
        assert len(set(names.values())) == len(names)
        assert not set(names) & set(names.values())
    told = {
        "zh": ["Chinese"], "zh-Hans": ["Chinese"], "zh_TW": ["Traditional Chinese"], "pt-BR": ["Portuguese"],
        "pt-PT": ["European Portuguese"], "pt pt-PT": ["Portuguese", "European Portuguese"], "sr": ["Serbian"],
        "sr-Latn": ["Serbian (Latin)"], "sr sr-Latn": ["Serbian (Cyrillic)", "Serbian (Latin)"],
        "zh zh-Hant": ["Simplified Chinese", "Traditional Chinese"], "en_XX": ["English"], "en-GB": ["British English"],
        "zh_TW zh_HK": ["Traditional Chinese (Taiwan)", "Traditional Chinese (Hong Kong SAR China)"],
        "pt_BR pt_PT": ["Brazilian Portuguese", "European Portuguese"], "no nb": ["Norwegian", "Norwegian Bokmål"],
        "de deu_Latn": ["German (de)", "German (deu_Latn)"], "de-x-law de": ["German (law)", "German"],
    }  # fmt: skip
    assert {codes: list(names_of(codes.split()).values()) for codes in told} == told
    assert list(names_of(["pt_BR", "pt_PT", "sr-Latn"], "de").values()) == [
        "Portugiesisch (Brasilien)", "Portugiesisch (Portugal)", "Serbisch (Lateinisch)",
    ]  # fmt: skip
