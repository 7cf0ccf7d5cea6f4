"""The book's pages in a browser: roots are painted with any fonts, code is whole, figures can be seen in the dark, and
the switch shows English, Chinese or both."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib.figure import Figure
from matplotlib.image import imread
from tests.system.browsers import CHROMIUM

from dragoman.analysis.figure import to_svg
from dragoman.learn.book import body_html, cell_html, markdown, page
from dragoman.learn.chapter import Cell, Drawing, Output, chapters

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")]
sync_api = pytest.importorskip("playwright.sync_api")
ROOT_SIGN = "\N{SQUARE ROOT}"


@pytest.fixture
def poor_fonts(tmp_path: Path) -> dict[str, str]:
    """An environment whose one font lacks the root sign, as fonts without mathematics do."""
    font = TTFont(Path(mpl.get_data_path()) / "fonts/ttf/DejaVuSans.ttf")
    cutter = subset.Subsetter(subset.Options(drop_tables=["FFTM"]))
    cutter.populate(unicodes=set(font.getBestCmap()) - {ord(ROOT_SIGN)})
    cutter.subset(font)
    (tmp_path / "fonts").mkdir()
    font.save(tmp_path / "fonts/poor.ttf")
    (tmp_path / "fonts.conf").write_text(
        f"<fontconfig><dir>{tmp_path / 'fonts'}</dir><cachedir>{tmp_path / 'cache'}</cachedir></fontconfig>"
    )
    return {**os.environ, "FONTCONFIG_FILE": str(tmp_path / "fonts.conf")}


@pytest.fixture
def browser_with(request: pytest.FixtureRequest) -> Iterator[Any]:
    with sync_api.sync_playwright() as started:
        launched = []

        def launch(environment: dict[str, str] | None = None) -> Any:
            launched.append(
                started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], env=environment or None)
            )
            return launched[-1]

        yield launch
        for browser in launched:
            browser.close()


def ink_of_root(opened: Any, html: str) -> int:
    """Dark pixels of the sign of the page's root: of what stands left of the number under it."""
    opened.set_content(html)
    opened.evaluate("document.fonts.ready.then(() => 0)")
    box = opened.evaluate(
        "(() => { const root = document.querySelector('msqrt').getBoundingClientRect();"
        "const inside = document.querySelector('msqrt > *').getBoundingClientRect();"
        "return {x: root.x, y: root.y, width: inside.x - root.x, height: root.height} })()"
    )
    if box["width"] < 1:  # no sign, no room for one
        return 0
    picture = imread(io.BytesIO(opened.screenshot(clip=box, full_page=True)))
    return int((picture[..., :3] < 0.5).any(axis=2).sum())


@pytest.mark.parametrize("formula", ["$\\sqrt{7}$", "$$\\sqrt{\\frac{1}{\\frac{1}{7}}}$$"])
def test_a_root_is_painted_whatever_fonts_a_machine_has(
    formula: str, poor_fonts: dict[str, str], browser_with: Any
) -> None:
    html = page(None, markdown(formula), chapters())
    opened = browser_with(poor_fonts).new_page(viewport={"width": 800, "height": 600}, color_scheme="light")
    assert ink_of_root(opened, html) >= 10
    assert ink_of_root(opened, html.replace('msqrt { font-family: "Book Radical"; }', "")) == 0


def test_code_is_whole_and_figures_have_a_light_ground(browser_with: Any) -> None:
    """All code of the book, which is not run here, and a figure; at 1,280 px no line is broken either."""
    figure = Figure()
    figure.text(0.5, 0.5, "dark ink")
    drawn = cell_html(Cell("show(figure)", is_code=True), Output("", [Drawing("f", to_svg(figure), 'a "card"')]))
    browser = browser_with()
    for scheme, width in (("dark", 1280), ("light", 1280), ("light", 390)):
        opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        for chapter in chapters():
            body = "".join(cell_html(cell, Output()) for cell in chapter.cells if not cell.is_check)
            opened.set_content(page(chapter, body + drawn, chapters()))
            sizes = opened.evaluate(
                "[...document.querySelectorAll('.code .highlight pre')].map(p => [p.scrollWidth - p.clientWidth,"
                "p.clientHeight, p.textContent.trimEnd().split('\\n').length,"
                "parseFloat(getComputedStyle(p).lineHeight), parseFloat(getComputedStyle(p).paddingTop)])"
            )
            assert len(sizes) == 1 + sum(cell.is_code and not cell.is_check for cell in chapter.cells)
            assert all(over <= 0 for over, *_ in sizes)
            assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
            if width == 1280:
                code = [cell.text for cell in chapter.cells if cell.is_code and not cell.is_check]
                for text, (_, height, lines, line_height, padding) in zip(code, sizes[:-1], strict=True):
                    if max(map(len, text.splitlines())) <= 120:
                        assert height == pytest.approx(lines * line_height + 2 * padding, abs=line_height / 2)
        image = opened.locator("img.figure")
        assert image.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(255, 255, 255)"
        assert image.get_attribute("alt") == 'a "card"'
        opened.close()


LINK = "\n\n> code: nn/masks.py: causal_mask"


@pytest.fixture
def two_languages(tmp_path: Path) -> str:
    """The address of a page with one text in English and in Chinese, and a cell of code."""
    cells = [
        Cell(f"Masks hide the *future*.{LINK}", is_code=False),
        Cell(f"掩码隐藏*未来*。{LINK}", is_code=False, language="zh"),
        Cell("print(1)", is_code=True),
    ]
    path = tmp_path / "page.html"
    path.write_text(page(chapters()[5], body_html([(cell, Output("1")) for cell in cells]), chapters()))
    return path.as_uri()


def shown(opened: Any) -> str:
    """The languages of the texts that are seen, and what the switch and the page say of themselves."""
    texts = [lang for lang in ("en", "zh") if opened.locator(f"section.text[lang={lang}]").is_visible()]
    pressed = opened.locator(".switch [aria-pressed=true]").all_text_contents()
    return f"{'+'.join(texts)} {'+'.join(pressed)} {opened.evaluate('document.documentElement.lang')}"


ENGLISH, CHINESE, BOTH = "en English en", "zh 中文 zh-Hans", "en+zh English | 中文 en"


def test_the_switch_shows_a_language_and_stays_after_a_reload(two_languages: str, browser_with: Any) -> None:
    opened = browser_with().new_context(locale="en-GB").new_page()
    opened.goto(two_languages)
    assert shown(opened) == ENGLISH
    for button, expected in (("zh", CHINESE), ("both", BOTH), ("en", ENGLISH), ("zh", CHINESE)):
        opened.click(f".switch [data-lang={button}]")
        assert shown(opened) == expected
        opened.reload()
        assert shown(opened) == expected
        assert opened.locator("section.code").is_visible()
    assert "因果掩码" not in opened.locator("main").inner_text()
    assert opened.locator("nav [aria-current]").inner_text() == chapters()[5].title_in("zh")


def test_an_address_and_a_browser_may_ask_for_chinese(two_languages: str, browser_with: Any) -> None:
    browser = browser_with()
    opened = browser.new_context(locale="en-GB").new_page()
    opened.goto(f"{two_languages}#zh")
    assert shown(opened) == CHINESE
    opened.click(".switch [data-lang=en]")  # the reader's choice goes before the address
    opened.reload()
    assert shown(opened) == ENGLISH
    opened = browser.new_context(locale="zh-CN").new_page()
    opened.goto(two_languages)
    assert shown(opened) == CHINESE


@pytest.mark.parametrize(("width", "is_beside"), [(1280, True), (390, False)])
def test_both_languages_stand_side_by_side_where_there_is_room(
    width: int, is_beside: bool, two_languages: str, browser_with: Any
) -> None:
    opened = browser_with().new_page(viewport={"width": width, "height": 900})
    opened.goto(two_languages)
    opened.click(".switch [data-lang=both]")
    english, chinese = (opened.locator(f"section.text[lang={lang}]").bounding_box() for lang in ("en", "zh"))
    assert (abs(english["y"] - chinese["y"]) < 2) == is_beside
    assert (english["x"] + english["width"] <= chinese["x"]) == is_beside
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert opened.locator("details").count() == 2
    assert opened.locator("details:visible").count() == 1  # the same code is not shown twice
