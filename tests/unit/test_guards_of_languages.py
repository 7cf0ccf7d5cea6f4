"""The guards in the punctuation, digits and counting of each language (shared/cases/languages/guards.tsv)."""

import pytest

from dragoman.quality.faults import source_warnings, warnings_of
from dragoman.text.numbers import numbers_in, values_in

SOUND = [
    ("en", "ar", "What is it? I do not know.", "ما هذا؟ لا أعرف."),
    ("en", "el", "What is it? Where are you?", "Τι είναι; Πού είσαι;"),
    ("en", "hy", "What is it? Where are you?", "Ի՞նչ է դա։ Որտե՞ղ ես։"),
    ("en", "th", "Hello. How are you?", "สวัสดี คุณเป็นอย่างไรบ้าง"),
    ("en", "fa", "The price is 1,500 dollars.", "قیمت ۱٬۵۰۰ دلار است."),
    ("en", "ar", "It cost 25% of 1,234.56.", "كلف ٢٥٪ من ١٬٢٣٤٫٥٦."),
    ("hi", "en", "१,२३,४५६ लोग हैं।", "There are 123,456 people."),
    ("en", "ja", "It costs 30,000 yen.", "3万円です。"),
    ("zh", "en", "人口为1200万。", "The population is 12 million."),
    ("en", "th", "It was 2024.", "ปี 2567"),
    ("en", "he", 'He said "yes".', "הוא אמר ״כן״."),
    ("en", "ru", "It weighs 5 kg and costs $20.", "Весит 5 кг и стоит 20 долларов."),
    ("en", "id", "Children play.", "Anak anak bermain."),
]


@pytest.mark.parametrize(("src_lang", "tgt_lang", "src", "tgt"), SOUND)
def test_sound_pairs(src_lang: str, tgt_lang: str, src: str, tgt: str) -> None:
    assert warnings_of(src, tgt, (src_lang, tgt_lang)) == []


@pytest.mark.parametrize(
    ("src_lang", "tgt_lang", "src", "tgt"),
    [
        ("en", "hi", "There are 1,234,567 people.", "12,34,567 लोग हैं।"),
        ("en", "bn", "It was opened on 1/1/1904.", "এটি ১/১/১৯০৪ তারিখে খোলা হয়।"),
        ("en", "ko", "The town has 12 million people.", "도시의 인구는 1200만 명이다."),
        ("en", "ko", "It costs 10,000,000 won.", "천만 원입니다."),
        ("en", "zh-Hant", "It was founded in 2024 with 150,000,000 dollars.", "成立於民國113年，資金1.5億美元。"),
        ("en", "ja", "In 2024, 120 million people came.", "令和6年には1億2千万人が来た。"),
        ("en", "fa", "The law of 2024.", "قانون سال ۱۴۰۳."),
        ("en", "ne", "The law of 2024.", "२०८१ सालको कानून।"),
        ("en", "de", "It has 1.5 million users.", "Es hat 1,5 Mio. Nutzer."),
        ("en", "de", "It has 1,500,000 users.", "Es hat 1,5 Millionen Nutzer."),
        ("en", "hi", "It costs 150,000 rupees.", "इसकी कीमत 1.5 लाख रुपये है।"),
        ("en", "th", "On 5 May 2024 at 10:30.", "วันที่ ๕ พฤษภาคม ๒๕๖๗ เวลา ๑๐:๓๐ น."),
        ("en", "pl", "On 12 March 2024.", "12 marca 2024 r."),
        ("en", "ja", "It weighs 5 kg and costs $20.", "重さは5キログラム、値段は20ドルです。"),
        ("ru", "en", "Весит 5 кг, это 20%.", "It weighs 5 kilograms, this is 20 percent."),
        ("en", "zh", 'He said "yes".', "他说《是》。"),
        ("en", "bg", "Select the cell(s) in the table.", "Изберете клетките в таблицата."),
        ("en", "el", "The base-10 logarithm of a number.", "Ο δεκαδικός λογάριθμος ενός αριθμού."),
        ("en", "as", "They go again and again.", "তেওঁলোক বাৰে বাৰে যায়।"),
        ("en", "de", "Want to insert a row? Select it.", "Um eine Zeile einzufügen, wählen Sie diese aus."),
        ("en", "sr-Latn", "Open the file.", "Otvori datoteku."),
        ("en", "hi", "Open LibreOffice Writer now.", "LibreOffice Writer खोलें।"),
        ("en", "zh", "Open the file.", "開啟檔案。"),
        ("en", "ko", "The price per $100 of value", "가치 100달러 당 가격"),
        ("en", "hu", "It is less than 100%.", "Ez 100%-nál kevesebb."),
        ("en", "fr", "It costs ３，０００ yen.", "Cela coûte 3 000 yens."),
    ],
)  # fmt: skip
def test_sound_pairs_of_the_same_kinds(src_lang: str, tgt_lang: str, src: str, tgt: str) -> None:
    assert warnings_of(src, tgt, (src_lang, tgt_lang)) == []


@pytest.mark.parametrize(
    ("src_lang", "tgt_lang", "src", "tgt", "warning"),
    [
        ("hi", "en", "वह आया। वह गया। उसने खाया।", "He came.", "sentences lost: 3 in the source, 1 here"),
        ("en", "ja", "It costs 30,000 yen.", "3億円です。", "numbers lost: 30,000"),
        ("en", "th", "It was 2024.", "ปี 2566", "numbers lost: 2024"),
        ("en", "ar", "It cost 1,234.56.", "كلف ١٬٢٣٤٫٥٧.", "numbers lost: 1,234.56"),
        ("hi", "en", "१,२३,४५६ लोग हैं।", "There are 123,457 people.", "numbers lost: 1,23,456"),
        ("en", "ru", "It costs $20.", "Стоит 20 рублей.", "units lost: $"),
        ("ru", "en", "Весит 5 кг.", "It weighs 5 pounds.", "units lost: кг"),
        ("en", "fa", "The file is open.", "پرونده پرونده باز است.", "doubled word: 'پرونده پرونده'"),
        ("en", "ar", "The file is open.", "المِلَفّ المِلَفّ مفتوح.", "doubled word: 'المِلَفّ المِلَفّ'"),
        ("en", "zh", "He opens it. She closes the window.", "他打开了。", "sentences lost: 2 in the source, 1 here"),
        ("en", "he", 'He said "yes" to her.', "הוא אמר לה כן.", "quotation marks lost"),
        (
            "en", "zh-Hant", "This is a long sentence in the English language for testing.",
            "这是一个用于测试的英文长句，简体字。",
            "translation is in simplified letters, not in traditional ones",
        ),
        ("en", "zh-CN", "Open it.", "開啟檔案。", "translation is in traditional letters, not in simplified ones"),
        ("en", "sr-Cyrl", "Open the file.", "Otvori datoteku.", "translation is in Latin script, not in Cyrillic"),
        ("en", "hi", "Open the file.", "Fail kholen.", "translation is in Latin script, not in Devanagari"),
        ("en", "ko", "It costs $20.", "20유로입니다.", "units lost: $"),
    ],
)  # fmt: skip
def test_faults_are_seen(src_lang: str, tgt_lang: str, src: str, tgt: str, warning: str) -> None:
    assert [str(one) for one in warnings_of(src, tgt, (src_lang, tgt_lang))] == [warning]


@pytest.mark.parametrize(
    ("tgt_lang", "src", "tgt"),
    [
        ("my", "Is it open? It is closed.", "ဖွင့်ထားသလား။ ပိတ်ထားသည်။"),  # Weblate 7375, jellyfin 7088
        ("ja", "Is it open? It is closed.", "開いていますか。閉じています。"),
        ("th", "Is it open? It is closed.", "เปิดอยู่หรือเปล่า ปิดอยู่"),
        ("am", "The file is open. Close it.", "ፋይሉ ክፍት ነው። ዝጋው።"),  # Weblate 7353
        ("bn", "The file is open. Close it.", "ফাইলটি খোলা আছে। বন্ধ করুন।"),  # Weblate 5189
        ("or", "The file is open. Close it.", "ଫାଇଲ ଖୋଲା ଅଛି| ବନ୍ଦ କରନ୍ତୁ|"),  # Weblate 2880
        ("pa_Arab", "Are you sure? It will not be saved.", "تسیں پکے او؟ ایہ رکھیا نہیں جائے گا۔"),  # Pontoon 2699
        ("ar", "What did you do?! I left.", "ماذا فعلت؟! لقد غادرت."),  # Weblate 19008, 17917
        ("ja", "What did you do?! I left.", "何をした！？出て行ったよ。"),  # Weblate 10296
        (
            "ar",
            "Slow motion (0.5×), tags of 25 characters, 15:1",
            "حركة بطيئة (٠٫٥×)، وسوم ٢٥ حرفًا، ١٥:١",
        ),  # pootle 4203
        ("bn", "It needs 12 characters.", "১২-টি অক্ষর প্রয়োজন।"),  # translate 3370
        ("ja", "Version 9.5 of 12 parts.", "１２部のバージョン９．５。"),  # OmegaT 2111
        ("fr", "Add 1/2 cup of sugar.", "Ajoutez ½ tasse de sucre."),  # OmegaT 2247
        ("ru", "HAH HAH! HEH HEH HEH!", "ХАХ ХАХ! ХЕ ХЕ ХЕ!"),  # Weblate 4023
        ("fr", "So that you feel able to help.", "Afin que vous vous sentiez à même d'aider."),  # Weblate 3926
        ("tok", "It is a film.", "ni li sitelen tawa tawa mi."),  # Weblate 14299
        ("or", "They go to each house.", "ସେମାନେ ଘର ଘର ଯାଆନ୍ତି।"),  # Weblate 21581
    ],
)
def test_false_alarms_that_others_had_reported(tgt_lang: str, src: str, tgt: str) -> None:
    assert warnings_of(src, tgt, ("en", tgt_lang)) == []


def test_names_in_capitals_and_in_latin_letters() -> None:
    assert warnings_of("请打开「转到页面」对话框。", "Open the Go to Page dialog.", ("zh", "en")) == []
    assert warnings_of("Откройте «LibreOffice».", "Open LibreOffice.", ("ru", "en")) == []
    assert warnings_of('Open "LibreOffice" now.', "LibreOffice jetzt öffnen.", ("en", "de")) != []
    assert [str(one) for one in warnings_of("他说：「好的。」", "He said yes to Anna.", ("zh", "en"))] == [
        "quotation marks lost"
    ]
    assert source_warnings("画像（LibreOffice 7 テキスト）", ("ja", "en")) == []
    assert source_warnings("The man is walking.", ("ja", "en")) != []


def test_numbers_of_a_source_in_digits_of_every_script() -> None:
    assert [number.text for number in numbers_in("٣ ४ ๕ ᠕ 𞥐 ６")] == ["3", "4", "5", "5", "0", "6"]
    assert values_in("1/1/1904").count("1") == 2
