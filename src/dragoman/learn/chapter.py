"""Chapters: files in jupytext's percent format, taken apart into cells, run, and written as notebooks.

A cell begins with `# %%`, text with `# %% [markdown]`. Each cell of text is followed by the same text in Chinese,
`# %% [markdown] lang="zh"`. A cell `# %% [check]` asserts what the text says about the outputs before it: it runs with
the chapter, and is not shown. `show` puts a figure on the screen of whoever reads: into
a notebook, a page, or a file beside a terminal.
"""

import ast
import contextlib
import io
import json
import linecache
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from dragoman.analysis.figure import save, to_svg
from dragoman.version import folder_of

CHAPTERS = folder_of("docs") / "book"


_BROKEN_LINE = re.compile(r"(?<=[\u3000-\u9fff\uff01-\uff5e“”*])\n *(?=\*{0,2}[\u3000-\u9fff\uff01-\uff5e“”])")
"""Where a line of Chinese goes on in the next: a page would show a space there, and Chinese has none."""


@dataclass(frozen=True)
class Cell:
    text: str
    is_code: bool
    is_check: bool = False
    """True for code that asserts sentences of the chapter, and that no reader sees."""
    language: str = "en"
    """"en" or "zh" for text; without meaning for code."""

    def is_for(self, language: str) -> bool:
        """True for code, and for text in this language."""
        return self.is_code or self.language == language


class Drawing(NamedTuple):
    """A figure as SVG. `alt`: what it shows, for those who cannot see it."""

    name: str
    svg: str
    alt: str


@dataclass
class Output:
    """Text and figures of a cell."""

    text: str = ""
    figures: list[Drawing] = field(default_factory=list)


@dataclass(frozen=True)
class Chapter:
    number: int
    path: Path
    cells: list[Cell]

    @property
    def title(self) -> str:
        """Its English heading, without `#` and number."""
        return self.title_in("en")

    def title_in(self, language: str) -> str:
        """Its heading, without `#` and number."""
        return re.sub(r"^#\s*\d+\.\s*", "", self._first_text(language).splitlines()[0])

    def question(self, language: str) -> str:
        """The question that it answers: the first line in italics after the heading; empty if there is none."""
        line = re.search(r"^\*([^*\n]+)\*$", self._first_text(language), re.MULTILINE)
        return line[1] if line else ""

    def times(self) -> tuple[int, int]:
        """(minutes to read and try it: an estimate; seconds that its cells ran on one core, measured)."""
        line = re.search(r"^Time: about (\d+) minutes.* in (\d+) seconds?", self._first_text("en"), re.MULTILINE)
        return (int(line[1]), int(line[2])) if line else (0, 0)

    def bugs(self) -> list[int]:
        """The numbers of its bugs of the laboratory."""
        lines = [
            re.findall(r"^Bugs to hunt: (.*)$", cell.text, re.MULTILINE) for cell in self.cells if not cell.is_code
        ]
        return [int(number) for number in re.findall(r"\d+", str(lines))]

    def _first_text(self, language: str) -> str:
        texts = [cell.text for cell in self.cells if not cell.is_code and cell.language == language]
        return texts[0] if texts else self.cells[0].text

    def in_language(self, language: str) -> "Chapter":
        """The chapter in a reader's language."""
        return replace(self, cells=[cell for cell in self.cells if cell.is_for(language)])

    @property
    def name(self) -> str:
        return self.path.stem


def chapters() -> list[Chapter]:
    """All chapters, in their order."""
    return [read_chapter(path) for path in sorted(CHAPTERS.glob("[0-9][0-9]_*.py"))]


def read_chapter(path: Path) -> Chapter:
    """A chapter's cells; the comment signs of its text are gone."""
    cells = []
    for part in re.split(r"^# %%", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        is_code = "[markdown]" not in head
        text = body if is_code else re.sub(r"^# ?", "", body, flags=re.MULTILINE)
        language = "zh" if 'lang="zh"' in head else "en"
        if language == "zh":
            text = _BROKEN_LINE.sub("", text)
        cells.append(Cell(text.strip("\n"), is_code, "[check]" in head, language))
    return Chapter(int(path.stem[:2]), path, cells)


_figures: list[Drawing] | None = None
"""Where `show` puts figures while `run` runs a cell."""


def show(figure: "Figure", name: str = "figure", alt: str = "") -> None:
    """Show a figure: in a notebook below the cell, on a page in its place, else in a file whose name is printed.

    `alt`: what it shows, in a sentence; the figure's title if it is not given.
    """
    if _figures is not None:
        titles = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
        _figures.append(Drawing(name, to_svg(figure), alt or "; ".join(filter(None, titles)) or name))
        return
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        display = import_module("IPython.display")
        display.display(display.SVG(_on_white(to_svg(figure))))
        return
    print(f"(the figure is in {save(figure, f'{name}.png')})")


def _on_white(svg: str) -> str:
    """A figure's ink is dark, and a notebook's page may be dark too."""
    return svg.replace("<svg ", '<svg style="background: #fff" ', 1)


def run(chapter: Chapter, before: Callable[[Cell], None] = lambda cell: None) -> Iterator[tuple[Cell, Output]]:
    """Run a chapter's cells one after the other in one namespace, as a notebook does; text has an empty output.

    `before` is called with each cell before it runs. What a cell raises is raised.
    """
    global _figures
    space: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(chapter.cells):
        before(cell)
        if not cell.is_code:
            yield cell, Output()
            continue
        output, printed = Output(), io.StringIO()
        _figures = output.figures
        try:
            with contextlib.redirect_stdout(printed):
                _execute(cell.text, f"{chapter.name}, cell {number}", space)
        finally:
            _figures = None
        output.text = printed.getvalue()
        yield cell, output


def _execute(source: str, name: str, space: dict[str, Any]) -> None:
    """Run a cell, and print the value of its last line if that is an expression."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), space)
    if last is not None:
        exec(compile(ast.Interactive([last]), name, "single"), space)


def notebook_name(chapter: Chapter, language: str) -> str:
    return f"{chapter.name}.ipynb" if language == "en" else f"{chapter.name}.{language}.ipynb"


def notebook(chapter: Chapter, outputs: list[Output] | None = None) -> str:
    """A chapter as a Jupyter notebook (nbformat 4.5), with the outputs of `run` where they are given."""
    cells = []
    for number, cell in enumerate(chapter.cells):
        if cell.is_check:
            continue
        common: dict[str, Any] = {"id": f"cell{number}", "metadata": {}, "source": cell.text.splitlines(keepends=True)}
        if not cell.is_code:
            cells.append({"cell_type": "markdown", **common})
            continue
        cell_outputs = [] if outputs is None else _notebook_outputs(outputs[number])
        cells.append({"cell_type": "code", "execution_count": None, "outputs": cell_outputs, **common})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _notebook_outputs(output: Output) -> list[dict[str, Any]]:
    outputs: list[dict[str, Any]] = []
    if output.text:
        outputs.append({"output_type": "stream", "name": "stdout", "text": output.text.splitlines(keepends=True)})
    for _, svg, alt in output.figures:
        data = {"image/svg+xml": _on_white(svg).splitlines(keepends=True), "text/plain": [alt]}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    return outputs
