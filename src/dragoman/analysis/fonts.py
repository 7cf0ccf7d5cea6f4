"""Fonts for pictures: DejaVu Sans, which comes with matplotlib, and installed fonts for the characters it lacks.

A picture may hold any script. Each text keeps its font; where characters are missing from it, the installed families
of `FALLBACKS` are named after it, and matplotlib takes each glyph from the first that has it. An .svg keeps text as
text, so that there the browser finds the glyph even when this machine has none.
"""

import contextlib
import functools
import importlib.util
import io
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.fontBuilder import FontBuilder
from fontTools.otlLib.builder import buildMathTable
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont
from matplotlib import font_manager
from matplotlib.text import Text

FAMILY = "DejaVu Sans"


def use_fallbacks(figure: Any) -> str:
    """Name fallback fonts for every text of a figure that needs them; return the characters that none of them has."""
    texts = {text: text.get_text() for text in figure.findobj(Text)}
    missing = {character for shown in texts.values() for character in shown if character.isprintable()}
    missing -= _characters(FAMILY)
    if not missing:
        return ""
    families = _families(missing)
    for text, shown in texts.items():
        if not missing.isdisjoint(shown):
            text.set_fontfamily([FAMILY, *families, "sans-serif"])
    return "".join(sorted(missing.difference(*map(_characters, families))))


def embedded(text: str) -> bytes | None:
    """A font with the characters of a text that DejaVu Sans lacks, for a page that is to be read anywhere; None where
    there are none of them, or no installed family of `FALLBACKS` has any."""
    missing = {character for character in text if character.isprintable()} - _characters(FAMILY)
    for family in _families(missing) if missing else ():
        if missing.isdisjoint(_characters(family)):
            continue
        path = font_manager.findfont(font_manager.FontProperties(family=family), fallback_to_default=False)
        options = subset.Options(font_number=0, layout_features=[], notdef_outline=True, hinting=False)
        font = subset.load_font(path, options)
        cutter = subset.Subsetter(options)
        cutter.populate(text="".join(missing))
        cutter.subset(font)
        made = io.BytesIO()
        font.save(made)
        return made.getvalue()
    return None


@functools.cache
def radicals() -> bytes:
    """A font of one sign, the radical (U+221A), in heights from 0.8 to 2.8 em, for the formulas of pages.

    Browsers draw a square root from the first font of its element alone: where that font lacks the sign, nothing is
    painted. The outline is DejaVu Sans's; the taller ones (table MATH, vertical variants) have a longer stroke.
    """
    font = TTFont(font_manager.findfont(FAMILY))
    width, outline = font["hmtx"]["radical"][0], font["glyf"]["radical"].coordinates
    glyphs, heights = {".notdef": TTGlyphPen(None).glyph(), "space": TTGlyphPen(None).glyph()}, []
    for extra in (0, 300, 700, 1200, 1900, 2800, 4000):
        pen = TTGlyphPen(None)
        points = [(x, y + extra if y > 1500 else y) for x, y in outline]  # the hook below stays as it is
        pen.moveTo(points[0])
        for point in points[1:]:
            pen.lineTo(point)
        pen.closePath()
        glyphs[f"radical{extra}"] = pen.glyph()
        heights.append((f"radical{extra}", max(y for _, y in points) - min(y for _, y in points)))
    builder = FontBuilder(font["head"].unitsPerEm, isTTF=True)
    builder.setupGlyphOrder(list(glyphs))
    builder.setupCharacterMap({0x20: "space", 0x221A: "radical0"})
    builder.setupGlyf(glyphs)
    builder.setupHorizontalMetrics(dict.fromkeys(glyphs, (width, 0)))
    builder.setupHorizontalHeader(ascent=font["hhea"].ascent, descent=font["hhea"].descent)
    builder.setupNameTable({"familyName": "Book Radical", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost(underlineThickness=96)
    rule = {"RadicalRuleThickness": 96, "RadicalVerticalGap": 120, "RadicalDisplayStyleVerticalGap": 200}
    scale = {"ScriptPercentScaleDown": 71, "ScriptScriptPercentScaleDown": 50, "RadicalDegreeBottomRaisePercent": 60}
    # Browsers take no table MATH that says nothing of single glyphs; hence the correction of 0.
    correction = {"radical0": 0}
    buildMathTable(builder.font, rule | scale, correction, vertGlyphVariants={"radical0": heights})
    made = io.BytesIO()
    builder.font.save(made)
    return made.getvalue()


def _families(missing: set[str]) -> tuple[str, ...]:
    """`installed`; where all of them lack some of these characters, with fonts that were installed since matplotlib
    wrote its list of fonts, which it never does again by itself."""
    families = installed()
    if missing.difference(*map(_characters, families)) and _add_new_fonts():
        families = installed()
    return families


@functools.cache  # a folder of fonts is read once: it may be large
def _add_new_fonts() -> bool:
    """Tell matplotlib of the system's fonts that its list lacks; True if there was one."""
    known = {font.fname for font in font_manager.fontManager.ttflist}
    new = [path for path in font_manager.findSystemFonts() if path not in known]
    for path in new:
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # a bitmap, a broken file
            font_manager.fontManager.addfont(path)
    return bool(new)


def installed() -> tuple[str, ...]:
    """The families of `FALLBACKS` that this machine has, in that order; the extra `cjk` brings one."""
    known = font_manager.fontManager.ttflist
    # The package mplfonts has Noto Sans CJK. It is not imported, as that changes matplotlib's settings.
    package = importlib.util.find_spec("mplfonts")
    for folder in (package.submodule_search_locations if package else None) or ():
        path = Path(folder) / "fonts" / "NotoSansCJKsc-Regular.otf"
        if path.is_file() and not any(font.fname == str(path) for font in known):
            font_manager.fontManager.addfont(path)
    names = {font.name for font in known}
    return tuple(family for family in FALLBACKS if family in names)


@functools.cache
def _characters(family: str) -> frozenset[str]:
    path = font_manager.findfont(font_manager.FontProperties(family=family), fallback_to_default=False)
    return frozenset(map(chr, font_manager.get_font(path).get_charmap()))


FALLBACKS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK TC", "Noto Sans CJK KR", "Noto Sans SC", "Noto Sans JP",
    "Source Han Sans SC", "Source Han Sans CN", "Source Han Sans", "PingFang SC", "Hiragino Sans GB", "Hiragino Sans",
    "Heiti SC", "Microsoft YaHei", "SimHei", "Yu Gothic", "Malgun Gothic", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei",
    "AR PL UMing CN", "IPAGothic", "Droid Sans Fallback", "Arial Unicode MS", "Unifont",
)  # fmt: skip
"""Families with Chinese, Japanese or Korean characters, as systems and their packages name them; the best first."""
