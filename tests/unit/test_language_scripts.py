"""The script of a text."""

import pytest

from dragoman.languages.scripts import han_variants, script_of_text

TEXTS = {
    "Hans": ["请打开这个文件并保存设置", "对话框", "PDF 导出选项"],
    "Hant": ["請開啟這個檔案並儲存設定", "對話方塊", "PDF 匯出選項", "呢個係咩嚟㗎？", "佢哋喺邊度"],
    "Hani": ["文件", "中文"],
    "Jpan": ["ファイルを開く", "日本の駅"],
    "Kore": ["파일을 열다"],
    "Cyrl": ["Отвори датотеку.", "Поставке LibreOffice"],
    "Latn": ["Otvori datoteku.", "Straße", "PDF"],
    "Arab": ["افتح الملف"],
    "Hebr": ["פתח את הקובץ"],
    "Deva": ["फ़ाइल खोलें"],
    "Telu": ["ఫైలు తెరువు"],
    "Gujr": ["ફાઇલ ખોલો"],
    "Ethi": ["ፋይል ክፈት"],
    "": ["", "42 %", "?!"],
}


@pytest.mark.parametrize(("script", "text"), [(script, text) for script, texts in TEXTS.items() for text in texts])
def test_the_script_of_a_text(script: str, text: str) -> None:
    expected = "Hang" if script == "Kore" else script
    assert script_of_text(text) == expected


def test_letters_of_one_of_the_two_scripts_of_chinese() -> None:
    """群 and 峰 are common to both, though OpenCC's tables have 羣 and 峯 for traditional Chinese."""
    assert han_variants("群組峰值") == (0, 1)
    assert han_variants("国内的設定") == (2, 1)
    assert script_of_text("东京都", "ja") == "Jpan"
    assert script_of_text("東京都", "zh") == "Hant"
