"""Fonts for pictures: DejaVu Sans, which comes with matplotlib, and installed fonts for the characters it lacks.

A picture may hold any script. Each text keeps its font; where characters are missing from it, the installed families
of `FALLBACKS` are named after it, and matplotlib takes each glyph from the first that has it. An .svg keeps text as
text, so that there the browser finds the glyph even when this machine has none.
"""

import functools
import importlib.util
import io
from pathlib import Path
from typing import Any

from fontTools import subset
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
    families = installed()
    for text, shown in texts.items():
        if not missing.isdisjoint(shown):
            text.set_fontfamily([FAMILY, *families, "sans-serif"])
    return "".join(sorted(missing.difference(*map(_characters, families))))


def embedded(text: str) -> bytes | None:
    """A font with the characters of a text that DejaVu Sans lacks, for a page that is to be read anywhere; None where
    there are none of them, or no installed family of `FALLBACKS` has any."""
    missing = {character for character in text if character.isprintable()} - _characters(FAMILY)
    for family in installed() if missing else ():
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
