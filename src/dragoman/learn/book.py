"""The book as pages: every chapter is run, and becomes an HTML page and a notebook with its outputs.

    python -m dragoman.learn.book FOLDER [CHAPTER ...]

Pages need no network: formulas are MathML, figures and styles are inside. Lines `> code: nn/attention.py: name` become
the source of that function or class, folded.
"""

import argparse
import ast
import base64
import html
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jinja2
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import dragoman
from dragoman.analysis import fonts
from dragoman.learn.chapter import Cell, Chapter, Output, chapters, notebook, notebook_name, run
from dragoman.learn.language import LANGUAGES
from dragoman.progress import say

SOURCE = Path(dragoman.__file__).parent
CODE = re.compile(r"^> code: (\S+\.py): ([\w.]+)$", re.MULTILINE)
"""A link to the line that implements a formula: path under src/dragoman, name in that file."""


def source_of_symbol(path: str, symbol: str) -> tuple[int, str]:
    """(first line, source) of a function, class or method. Raises KeyError where there is none of that name."""
    text = (SOURCE / path).read_text(encoding="utf-8")
    current: Any = ast.parse(text)
    for name in symbol.split("."):
        parts = [node for node in current.body if getattr(node, "name", None) == name]
        if not parts:
            raise KeyError(f"{path} has no {symbol}")
        current = parts[0]
    lines = text.splitlines()
    start = min([current.lineno, *(decorator.lineno for decorator in current.decorator_list)])
    return start, "\n".join(lines[start - 1 : current.end_lineno])


def highlighted(source: str) -> str:
    marked: str = highlight(source, PythonLexer(), HtmlFormatter())
    return marked


def styles() -> str:
    """Colours of code, on a light screen and on a dark one."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".highlight") for name in ("default", "github-dark"))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


def markdown(text: str, language: str = "en") -> str:
    """A cell of text as HTML: formulas as MathML, named sources folded."""

    def formula(content: str, options: dict[str, Any]) -> str:
        content = re.sub(r"\\(ln|log) (?=[\w\\])", r"\\\1\\,", content)  # else "ln 8" is shown as "ln8"
        return convert(content, display="block" if options["display_mode"] else "inline")

    renderer = MarkdownIt("commonmark").enable("table")
    renderer.use(dollarmath_plugin, renderer=formula)
    parts = CODE.split(text)
    pieces = [renderer.render(parts[0])]
    for path, symbol, rest in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        line, source = source_of_symbol(path, symbol)
        name, file = f"<code>{html.escape(symbol)}</code>", f"<code>{path}</code>"
        where = f"{file} 第 {line} 行，{name}" if language == "zh" else f"{name} in {file}, line {line}"
        pieces.append(f"<details><summary>{where}</summary>{highlighted(source)}</details>")
        pieces.append(renderer.render(rest))
    return "".join(pieces)


def cell_html(cell: Cell, output: Output) -> str:
    """A cell and what it gave."""
    if not cell.is_code:
        return f'<section class="text" lang="{cell.language}">{markdown(cell.text, cell.language)}</section>'
    parts = [highlighted(cell.text)]
    if output.text:
        parts.append(f'<pre class="output">{html.escape(output.text)}</pre>')
    for _, svg, alt in output.figures:
        data = base64.b64encode(svg.encode()).decode()
        parts.append(f'<img class="figure" alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{data}">')
    return f'<section class="code">{"".join(parts)}</section>'


def body_html(done: list[tuple[Cell, Output]]) -> str:
    """The cells of a chapter; a text stands beside the same text in Chinese."""
    parts: list[str] = []
    for cell, output in done:
        if cell.is_check:
            continue
        html_of_cell = cell_html(cell, output)
        if not cell.is_code and cell.language == "zh":
            parts[-1] = f'<div class="pair">{parts[-1]}{html_of_cell}</div>'
        else:
            parts.append(html_of_cell)
    return "".join(parts)


def page(chapter: Chapter | None, body: str, every: list[Chapter]) -> str:
    """A whole page; without a chapter it is the table of contents."""
    loader = jinja2.PackageLoader("dragoman.learn", ".")
    template = jinja2.Environment(loader=loader, autoescape=True).get_template("book.html.j2")
    radicals = base64.b64encode(fonts.radicals()).decode() if "<msqrt" in body else ""
    values = {"chapter": chapter, "body": body, "chapters": every, "styles": styles(), "radicals": radicals}
    font = fonts.embedded(template.render(**values, font=""))  # Chinese, where the extra `cjk` is installed
    return template.render(**values, font="" if font is None else base64.b64encode(font).decode())


def build_chapter(number: int, folder: Path) -> None:
    """Run one chapter and write its page and its notebook."""
    every = chapters()
    chapter = next(one for one in every if one.number == number)
    done = list(run(chapter))
    (folder / f"{chapter.name}.html").write_text(page(chapter, body_html(done), every), encoding="utf-8")
    for language in LANGUAGES:
        outputs = [output for cell, output in done if cell.is_for(language)]
        path = folder / notebook_name(chapter, language)
        path.write_text(notebook(chapter.in_language(language), outputs), encoding="utf-8")


def build(folder: Path, numbers: list[int]) -> int:
    """Build chapters, each in a process of its own, as many at a time as there are cores; how many of them failed."""
    folder.mkdir(parents=True, exist_ok=True)
    every = chapters()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def one(number: int) -> bool:
        start = time.monotonic()
        command = [sys.executable, "-m", "dragoman.learn.book", str(folder), "--one", str(number)]
        code = subprocess.run(command, env=environment, check=False).returncode
        say(f"chapter {number}: {'failed' if code else 'built'} in {time.monotonic() - start:.0f} s")
        return code != 0

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        failed = sum(pool.map(one, numbers))
    (folder / "index.html").write_text(page(None, "", every), encoding="utf-8")
    say(f"{folder / 'index.html'}: {len(numbers) - failed} chapters, {failed} failed")
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        build_chapter(options.one, options.folder)
        return
    sys.exit(1 if build(options.folder, options.numbers or [one.number for one in chapters()]) else 0)


if __name__ == "__main__":
    main()
