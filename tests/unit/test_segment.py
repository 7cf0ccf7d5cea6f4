"""Sentences: boundaries by the rules of languages, and offsets that are exact on any text."""

import random
from pathlib import Path

import pytest
from tests.scripts import script

from dragoman.text.segment import sentences

CASES = [
    ("en", "Dr. Smith arrived at 5 p.m. He left.", ["Dr. Smith arrived at 5 p.m.", "He left."]),
    ("en", "It costs $3.50. Really? Yes!", ["It costs $3.50.", "Really?", "Yes!"]),
    ("en", "See e.g. Figure 3. It helps.", ["See e.g. Figure 3.", "It helps."]),
    ("en", 'He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
    ("en", "J. R. Smith wrote it. She read it.", ["J. R. Smith wrote it.", "She read it."]),
    ("en", "Wait... what? OK.", ["Wait... what?", "OK."]),
    ("en", "1. Open the file. 2. Save it.", ["1. Open the file.", "2. Save it."]),
    ("en", "Use config.yaml or v2.3.1 here. Done.", ["Use config.yaml or v2.3.1 here.", "Done."]),
    ("en", "He came (!) on Monday. Why?", ["He came (!) on Monday.", "Why?"]),
    ("de", "Am 3. Mai kam z. B. Frau Dr. Maier. Sie ging.", ["Am 3. Mai kam z. B. Frau Dr. Maier.", "Sie ging."]),
    ("de", "Er wurde 1999 geboren. Das war früh.", ["Er wurde 1999 geboren.", "Das war früh."]),
    ("de", "Kaiser Wilhelm II. regierte lange. Dann nicht.", ["Kaiser Wilhelm II. regierte lange.", "Dann nicht."]),
    ("de", "„Komm!“ Er ging.", ["„Komm!“", "Er ging."]),
    ("fr", "M. Dupont dit : « Non ! » Puis il part.", ["M. Dupont dit : « Non ! »", "Puis il part."]),
    ("es", "¿Qué hora es? Son las tres.", ["¿Qué hora es?", "Son las tres."]),
    ("zh", "你好。我是汤姆！你呢？", ["你好。", "我是汤姆！", "你呢？"]),
    ("zh", "他说：“走吧。”然后他走了。", ["他说：“走吧。”", "然后他走了。"]),
    ("ja", "「いいよ。」と彼は言った。次。", ["「いいよ。」と彼は言った。", "次。"]),
    ("hi", "यह एक है। वह दो है।", ["यह एक है।", "वह दो है।"]),
    ("th", "สวัสดี ผมชื่อทอม", ["สวัสดี ผมชื่อทอม"]),
    ("ru", "Это г. Москва. Он т.е. она здесь.", ["Это г. Москва.", "Он т.е. она здесь."]),
    ("ka", "დღეს კარგი ამინდია. წავიდეთ პარკში! სად ხარ?", ["დღეს კარგი ამინდია.", "წავიდეთ პარკში!", "სად ხარ?"]),
    ("ka", "ნახა ა. წერეთელმა. წავიდა.", ["ნახა ა. წერეთელმა.", "წავიდა."]),
    ("hy", "Դու՞ եկար։", ["Դու՞ եկար։"]),
    ("hy", "Այո՜ նա եկավ։ Գնաց։", ["Այո՜ նա եկավ։", "Գնաց։"]),
    ("hy", "Ինչպե՞ս ես:  Սա թեստ է:", ["Ինչպե՞ս ես:", "Սա թեստ է:"]),  # spaCy 5911
    ("am", "ሰላም ነው፡፡ ደህና ነህ፡፡ አመሰግናለሁ፡፡", ["ሰላም ነው፡፡", "ደህና ነህ፡፡", "አመሰግናለሁ፡፡"]),
    ("am", "ሰላም ነው። ዶ/ር አበበ መጣ::", ["ሰላም ነው።", "ዶ/ር አበበ መጣ::"]),
    ("hi", "डॉ. शर्मा आए। वे चले गए।", ["डॉ. शर्मा आए।", "वे चले गए।"]),
    ("hi", "यह आया।वह गया।क्या?हाँ।", ["यह आया।", "वह गया।", "क्या?", "हाँ।"]),
    ("hi", "यह अच्छा है. वह चला गया.", ["यह अच्छा है.", "वह चला गया."]),
    ("hi", "श्री. नरेन्द्र ने कहा।", ["श्री. नरेन्द्र ने कहा।"]),  # indic_nlp_library 30
    ("bn", "ডা. রহমান এসেছেন। তিনি চলে গেছেন।", ["ডা. রহমান এসেছেন।", "তিনি চলে গেছেন।"]),
    ("pa", "ਡਾ. ਸਿੰਘ ਆਏ। ਉਹ ਗਏ॥", ["ਡਾ. ਸਿੰਘ ਆਏ।", "ਉਹ ਗਏ॥"]),
    ("ta", "கி.மீ. தொலைவு. அவர் வந்தார்.", ["கி.மீ. தொலைவு.", "அவர் வந்தார்."]),
    ("ur", "وہ آیا۔ وہ گیا۔کیا؟ ہاں۔", ["وہ آیا۔", "وہ گیا۔", "کیا؟", "ہاں۔"]),
    ("ar", "قال د. محمد إن الاجتماع غدا.", ["قال د. محمد إن الاجتماع غدا."]),
    ("ar", "كيف حالك؟أنا بخير، شكرا. وأنت؟", ["كيف حالك؟", "أنا بخير، شكرا.", "وأنت؟"]),
    ("ar", "علامة (؟) هنا. نعم.", ["علامة (؟) هنا.", "نعم."]),
    ("fa", "سال ۵۵۰ ق.م. بود. او رفت.", ["سال ۵۵۰ ق.م. بود.", "او رفت."]),
    ("el", "Πώς είσαι; Είμαι καλά.", ["Πώς είσαι;", "Είμαι καλά."]),
    ("el", "Πού είναι; πού είναι", ["Πού είναι; πού είναι"]),
    ("en", "int x; Double y; done", ["int x; Double y; done"]),
    ("my", "နေကောင်းပါတယ်။နေကောင်းလား။", ["နေကောင်းပါတယ်။", "နေကောင်းလား။"]),
    ("my", "ဖြစ်ပါသည်၊၊ ထို့ကြောင့်၊ သူ", ["ဖြစ်ပါသည်၊၊", "ထို့ကြောင့်၊ သူ"]),  # yasbd-lib 285
    ("km", "ខ្ញុំទៅ ។ អ្នកទៅ៕ គាត់", ["ខ្ញុំទៅ ។", "អ្នកទៅ៕", "គាត់"]),
    ("dz", "འདི་འདྲ་ཡིན། འདི་རེད།", ["འདི་འདྲ་ཡིན།", "འདི་རེད།"]),
    ("he", "הוא גר בבית 12. הוא גר כאן.", ["הוא גר בבית 12.", "הוא גר כאן."]),
    ("hr", "Živim u kući 12. Ona živi ovdje 3. svibnja.", ["Živim u kući 12.", "Ona živi ovdje 3. svibnja."]),
    ("hr", "Kralj Petar II. Karađorđević npr. vlada.", ["Kralj Petar II. Karađorđević npr. vlada."]),
    ("id", "Bpk. Joko datang. Jl. Sudirman no. 5.", ["Bpk. Joko datang.", "Jl. Sudirman no. 5."]),
    ("ja", "Yahoo!ニュースを読む。Hello!世界。", ["Yahoo!ニュースを読む。", "Hello!", "世界。"]),
    ("th", "พ.ศ. 2560 ดร. สมชาย เปิด", ["พ.ศ. 2560 ดร. สมชาย เปิด"]),
    ("de", "ich bin alt. sie ist jung.", ["ich bin alt.", "sie ist jung."]),
    ("de", "am 3. mai kam z. b. frau dr. maier. sie ging.", ["am 3. mai kam z. b. frau dr. maier.", "sie ging."]),
    ("en", "hello! how are you? see e.g. this.", ["hello!", "how are you?", "see e.g. this."]),
    ("", "One line\nanother line", ["One line", "another line"]),
    ("", "", []),
    ("", " \n ", []),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "wanted"), CASES)
def test_boundaries(language: str, text: str, wanted: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text, language)] == wanted


ALPHABET = [
    *"aAbB ..!?…。！？ \n\t\"'”»)(“«[]1239-:;,",
    "Dr.",
    "z.B.",
    "e.g.",
    "…",
    "你",
    "好",
    "\u2028",
    "é",
    "👍",
    "।",
]


def test_offsets_are_exact_on_any_text() -> None:
    """Sentences are in order, do not overlap, are stripped, and nothing but white space is outside of them."""
    rng = random.Random(1)
    for number in range(10_000):
        text = "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(60)))
        at = 0
        for start, end in sentences(text, ("en", "de", "zh", "")[number % 4]):
            assert at <= start < end
            assert not text[at:start].strip()
            assert text[start:end] == text[start:end].strip()
            at = end
        assert not text[at:].strip()


@pytest.mark.timeout(120)  # it takes half a second; quadratic time would take many minutes
@pytest.mark.parametrize("marks", [".", "a.", ". ", '"', "A. B. "])
def test_a_long_text_of_marks_is_searched_in_linear_time(marks: str) -> None:
    """Searches of expressions are no steps that could be counted; `test_growth.py` counts all others."""
    text = marks * (200_000 // len(marks))
    assert sentences(text, "en")[-1].end <= len(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Yan et al. [2004] analysed variations and suggested that changes are related.", 1),  # pySBD 86
        ("Trying to get back to Com. & Adm. through the most direct path in the dark.", 1),  # pySBD 90
        ("Come work for us in 'S-Hertogenbosch. Apply via the ''apply'' button.", 2),  # pySBD 122
        ("Read the booklet by D. Seyfort Ruegg and the matter of A. MacDonald's tomes.", 1),  # segtok 12
        ("Acme Inc. USA is expanding its engineering team this quarter.", 1),  # yasbd-lib 260, and the next ones
        ("Beta Corp. North America leads this hiring initiative.", 1),
        ("Martin Luther King Jr. Day is a paid holiday at this company.", 1),
        ("He works at Acme Inc. She left.", 2),
        ("“Bless my soul,” he whispered, “Harry Potter . . . what an honor.” He hurried out.", 2),  # neurosnap 12
        ("Pausing... for... thought... should not [trigger splitting].", 1),  # sentencex 11
        ("Llama 3.x at 98.6 costs $1.50. Yes.", 2),  # StealthHumanizer 77
    ],
)
def test_reports_about_other_splitters(text: str, count: int) -> None:
    assert len(sentences(text, "en")) == count


def test_sentences_of_known_number_in_the_catalogues_that_are_there() -> None:
    """Each language of `benchmarks/sentences.py` in small, where a Debian has its catalogues."""
    benchmark = script("benchmarks/sentences.py")
    folder = Path("/usr/share/locale")
    texts = benchmark.catalogues(folder, SAMPLE, 40) if folder.is_dir() else {}
    if not texts:
        pytest.skip("no catalogues of these languages")
    for language, joined in texts.items():
        count = benchmark.scores("catalogues", language, joined)[0]["ours"]
        assert count["right"] >= 0.95 * (count["right"] + count["missed"]), language
        assert count["right"] >= 2 * count["false"], language  # some lines hold two sentences


SAMPLE = ["de", "el", "hi", "ka", "pa", "tr", "zh_CN"]
