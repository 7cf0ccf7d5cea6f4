"""Fonts: characters that DejaVu Sans lacks are drawn from an installed font, or spoken of, and never warned about."""

from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.image import imread

from dragoman.analysis import fonts
from dragoman.analysis.examples import words_of
from dragoman.analysis.figure import save
from dragoman.analysis.masks import masks_figure, sentence_masks

FAMILY = "Dragoman Test Han"
CHINESE = ["我爱你", "爱"]


@pytest.fixture
def han_font(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An installed font that has 我 and 爱, as full squares, and no 你."""
    characters = {ord("我"): "wo", ord("爱"): "ai"}
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", *characters.values()])
    builder.setupCharacterMap(characters)
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 1000), (1000, 1000), (1000, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square = pen.glyph()
    builder.setupGlyf(dict.fromkeys([".notdef", *characters.values()], square))
    builder.setupHorizontalMetrics(dict.fromkeys([".notdef", *characters.values()], (1000, 0)))
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    builder.setupNameTable({"familyName": FAMILY, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(tmp_path / "han.ttf")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist])
    font_manager.fontManager.addfont(tmp_path / "han.ttf")
    monkeypatch.setattr(fonts, "FALLBACKS", ("No Such Family", FAMILY))
    return FAMILY


def test_a_font_installed_after_the_list_of_fonts_was_written_is_used(
    han_font: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    monkeypatch.setattr(
        font_manager.fontManager,
        "ttflist",
        [font for font in font_manager.fontManager.ttflist if font.name != han_font],
    )
    reads = []
    paths = [str(broken), str(tmp_path / "han.ttf")]
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: reads.append(1) or paths)
    fonts._add_new_fonts.cache_clear()
    assert fonts.use_fallbacks(written("我")) == ""
    assert fonts.use_fallbacks(written("你")) == "你"
    assert fonts.use_fallbacks(written("们")) == "们"
    assert len(reads) == 1
    fonts._add_new_fonts.cache_clear()


def written(*texts: str) -> Figure:
    figure = Figure()
    for text in texts:
        figure.text(0.5, 0.5, text)
    return figure


def test_latin_text_keeps_its_font_and_needs_no_other() -> None:
    figure = written("Grüße, ▁Haus ␣ → ε")
    assert fonts.use_fallbacks(figure) == ""
    assert figure.texts[0].get_fontfamily() == written("x").texts[0].get_fontfamily()


def test_an_installed_font_is_named_where_it_is_needed(han_font: str) -> None:
    figure = written("我 loves", "plain", "你")
    assert fonts.use_fallbacks(figure) == "你"
    needs, plain, lacks = figure.texts
    assert needs.get_fontfamily() == [fonts.FAMILY, han_font, "sans-serif"]
    assert lacks.get_fontfamily() == needs.get_fontfamily()
    assert han_font not in plain.get_fontfamily()


def test_the_glyph_is_drawn_from_the_fallback(han_font: str, tmp_path: Path) -> None:
    """A full square has more ink than the box that stands for a character that no font has."""
    ink = {}
    for character in "我你":
        path = save(written(character * 8), tmp_path / f"{ord(character)}.png")
        ink[character] = (imread(path)[..., :3] < 0.5).sum()
    assert ink["我"] > 1.5 * ink["你"]


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_missing_glyphs_are_one_clear_line_and_no_warning(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fonts, "FALLBACKS", ())
    figure = masks_figure(sentence_masks(CHINESE, words_of(CHINESE).src))
    save(figure, tmp_path / f"masks{suffix}")
    lines = capsys.readouterr().err.splitlines()
    if suffix == ".svg":
        assert lines == []
        svg = (tmp_path / "masks.svg").read_text(encoding="utf-8")
        assert ">爱</text>" in svg
        assert "sans-serif" in svg
    else:
        (line,) = lines
        assert "'你我爱'" in line
        assert ".svg" in line
        assert "dragoman[cjk]" in line
