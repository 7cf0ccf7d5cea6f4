"""Text that was read in another encoding than it is written in."""

import pytest

from dragoman.quality.misread import Misread
from dragoman.quality.text_faults import repaired, wrong_with

SOUND = {
    "ru": "Нажмите кнопку, чтобы открыть диалоговое окно «Параметры».",
    "uk": "Натисніть кнопку, щоб відкрити діалогове вікно «Параметри».",
    "bg": "Натиснете бутона, за да отворите диалога „Настройки“.",
    "be": "Націсніце кнопку, каб адкрыць дыялогавае акно «Параметры».",
    "sr": "Кликните на дугме да бисте отворили прозор „Опције“.",
    "el": "Κάντε κλικ στο κουμπί για να ανοίξετε το παράθυρο «Επιλογές».",
    "he": "לחיצה על הכפתור תפתח את תיבת הדו־שיח של האפשרויות.",
    "ar": "انقر على الزر لفتح مربع حوار الخيارات.",
    "fa": "برای باز کردن کادر گفتگو روی دکمه کلیک کنید.",
    "th": "คลิกปุ่มเพื่อเปิดกล่องโต้ตอบตัวเลือก",
    "tr": "Seçenekler iletişim kutusunu açmak için düğmeye tıklayın, sonra değişikliği onaylayın.",
    "pl": "Kliknij przycisk, aby otworzyć okno „Opcje” i zmienić ustawienia języków.",
    "cs": "Klepnutím na tlačítko otevřete dialogové okno, ve kterém můžete změnit nastavení.",
    "hu": "A gombra kattintva megnyithatja a beállítások párbeszédablakát, ahol módosíthatja őket, és gyűjtők.",
    "ro": "Faceți clic pe buton pentru a deschide fereastra și a modifica opțiunile în română.",
    "lt": "Spustelėkite mygtuką, kad atvertumėte parinkčių langą ir pakeistumėte nuostatas.",
    "de": "Klicken Sie auf die Schaltfläche, um das Fenster zu öffnen; größere Änderungen später.",
    "fr": "Cliquez sur le bouton pour accéder à la boîte de dialogue « Paramètres » déjà créée.",
    "vi": "Bấm vào nút để mở hộp thoại tùy chọn và thay đổi thiết lập.",
    "zh-CN": "单击该按钮，打开选项对话框。",
    "zh-TW": "按一下該按鈕，開啟選項對話方塊。",
    "ja": "ボタンをクリックすると、オプションのダイアログが開きます。",
    "ko": "단추를 클릭하면 옵션 대화 상자가 열립니다.",
    "hi": "संवाद खोलने के लिए बटन क्लिक करें।",
    "ka": "დააჭირეთ ღილაკს ფანჯრის გასახსნელად.",
}


def read(text: str, written_in: str, read_as: str) -> str:
    """A text as it looks when it is read in another encoding, undefined bytes as control characters."""
    data, found = text.encode(written_in, "ignore"), ""
    while data:
        try:
            return found + data.decode(read_as)
        except UnicodeDecodeError as error:
            found += data[: error.start].decode(read_as) + chr(data[error.start])
            data = data[error.start + 1 :]
    return found


@pytest.mark.parametrize("language", SOUND)
def test_a_sound_line_stays(language: str) -> None:
    reader = Misread(language)
    assert not reader.is_misread(SOUND[language])
    assert repaired(SOUND[language], reader) == SOUND[language]


@pytest.mark.parametrize("read_as", ["cp1252", "cp1251", "koi8-r", "cp437", "mac-roman", "cp1254", "cp874"])
@pytest.mark.parametrize("language", SOUND)
def test_utf_8_that_was_read_as_another_encoding(language: str, read_as: str) -> None:
    damaged = read(SOUND[language], "utf-8", read_as)
    assert repaired(damaged, Misread(language)) == SOUND[language]
    assert "mojibake" in wrong_with(damaged, Misread(language))


@pytest.mark.parametrize(
    ("language", "written_in", "read_as"),
    [
        ("ru", "cp1251", "cp1252"), ("ru", "koi8-r", "cp1251"), ("ru", "cp1251", "koi8-r"), ("ru", "cp866", "cp1251"),
        ("uk", "cp1251", "cp1252"), ("bg", "cp1251", "cp1252"), ("be", "cp1251", "cp1252"),
        ("sr", "cp1251", "cp1252"), ("tr", "iso8859-9", "latin-1"), ("tr", "cp1254", "cp1251"),
        ("pl", "cp1250", "cp1252"), ("pl", "iso8859-2", "latin-1"), ("cs", "cp1250", "cp1252"),
        ("hu", "iso8859-2", "latin-1"), ("lt", "cp1257", "cp1252"), ("el", "cp1253", "cp1252"),
        ("el", "iso8859-7", "latin-1"), ("he", "cp1255", "cp1252"), ("ar", "cp1256", "cp1252"),
        ("ar", "iso8859-6", "latin-1"), ("th", "cp874", "cp1252"), ("zh-CN", "gb18030", "latin-1"),
        ("zh-TW", "cp950", "latin-1"), ("ja", "cp932", "latin-1"), ("ja", "euc_jp", "latin-1"),
        ("ko", "cp949", "latin-1"), ("ko", "cp949", "gb18030"), ("zh-CN", "gb18030", "cp949"),
        ("de", "mac-roman", "cp1252"), ("fr", "cp850", "cp1252"),
    ],
)  # fmt: skip
def test_one_code_page_read_as_another(language: str, written_in: str, read_as: str) -> None:
    sound = read(SOUND[language], written_in, written_in)  # what the code page has of it
    assert repaired(read(sound, written_in, read_as), Misread(language)) == sound


@pytest.mark.parametrize("text", ["МНИМ.CSC, МНИМ.CSCH", "СПб", "А, Б, .., Аа, Бб", "ЭТО ВСЁ — ОШИБКА"])
def test_lines_in_capitals_and_lists_are_no_mojibake(text: str) -> None:
    for language in ("ru", "uk"):
        assert Misread(language).repaired(text) == text


def test_a_short_line_is_mended_beside_others_of_the_same_kind() -> None:
    reader = Misread("tr")
    assert reader.repaired("Görünüþ") == "Görünüþ"
    for line in ("Tümleþik Geliþtirme", "Baþlýk Satýrý", "Deðiþiklikler"):
        assert reader.is_misread(line)
    assert reader.repaired("Görünüþ") == "Görünüş"


def test_of_a_language_that_is_not_known_nothing_is_said() -> None:
    assert not Misread("").is_misread("Ïðèâåò")
    assert not Misread("xx").is_misread("Ïðèâåò")


@pytest.mark.parametrize(
    ("language", "damaged", "sound"),
    [
        ("tr", "Ä°stanbul", "İstanbul"),
        ("tr", "ğŸ˜Š", "😊"),
        ("lv", "RÄ«ga", "Rīga"),
        ("lv", "baÅ†Ä·ieri gaida konkrÄ“tus projektus", "baņķieri gaida konkrētus projektus"),
        ("de", "K√∂nig", "König"),
        ("de", "SchlĂźsselwĂśrter", "Schlüsselwörter"),
        ("ru", "п∙я│п╩п╦ п▓я▀ п╫п╣", "Если Вы не"),
        ("es", "PUERTO BOYACÁ, BoyacÃ¡", "PUERTO BOYACÁ, Boyacá"),
        ("en", "itâ€™s PowerHouseâ„¢", "it’s PowerHouse™"),
    ],
)
def test_what_others_reported(language: str, damaged: str, sound: str) -> None:
    assert repaired(damaged, Misread(language)) == sound


@pytest.mark.parametrize("language", ["en", "de", "fr", "ru", "tr", "pl"])
def test_lines_in_another_language_are_no_mojibake(language: str) -> None:
    reader = Misread(language)
    for text in SOUND.values():
        assert reader.repaired(text) == text
    for name in ("Führt Müller", "Bæta við hljóð", "Hjælpemenuen", "Łącza wyrównania", "Tümünü Bul", "Málaga búsqueda"):
        assert not reader.is_misread(name)


@pytest.mark.parametrize("language", ["en", "tr", "pl", "de", "fr"])
def test_letters_of_another_script_beside_a_text_are_no_mojibake(language: str) -> None:
    mend = Misread(language)
    for text in ("а, б, .., аа, бб, ... (Serbian)", "α, β, γ (Greek)", "я, я", "Ω, µ"):
        assert mend.repaired(text) == text


def test_marks_of_another_encoding_inside_of_latin_text_are_mended() -> None:
    assert Misread("en").repaired("ÒI donÕt know.Ó") == "“I don’t know.”"
