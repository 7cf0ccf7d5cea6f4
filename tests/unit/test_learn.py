"""The book's links lead somewhere, `dragoman learn` does what it says, and every bug is caught by its self-test."""

import base64
import io
import json
import re
import sys
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.learn import book, lesson
from dragoman.learn.book import CODE, markdown, page, source_of_symbol
from dragoman.learn.bug import Bug, source_of
from dragoman.learn.bugs import BUGS, WORDS
from dragoman.learn.chapter import Cell, Chapter, Drawing, Output, chapters, notebook, read_chapter, run
from dragoman.learn.exercises import exercises_of
from dragoman.learn.selftests import SELF_TESTS

ROOT = Path(__file__).parents[2]
NUMBERS = range(1, len(BUGS) + 1)


def learn(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["learn", *arguments], standalone_mode=False)
    code = found.return_value if isinstance(found.return_value, int) else found.exit_code
    return code, found.stdout + (str(found.exception) if found.exception else "")


def test_there_are_fifteen_chapters_and_thirty_bugs() -> None:
    assert [chapter.number for chapter in chapters()] == list(range(15))
    assert len(BUGS) >= 30
    assert [bug.name for bug in BUGS] == list(WORDS)


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)
def test_a_chapter_names_code_exercises_and_bugs_that_are_there(chapter: object) -> None:
    text = chapter.path.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    for path, symbol in CODE.findall(re.sub(r"^# ?", "", text, flags=re.MULTILINE)):
        source_of_symbol(path, symbol)
    for exercise in exercises_of(chapter.number):  # type: ignore[attr-defined]
        assert f"`{exercise.name}`" in text
    named = [int(number) for number in re.findall(r"\b[Bb]ug `?(\d+)", text)]
    assert set(named) <= set(NUMBERS)
    assert "http" not in text
    assert "(" in chapter.title  # type: ignore[attr-defined]  # its name in Chinese


def test_the_chapter_on_attention_has_the_rows_that_were_measured() -> None:
    measured = (ROOT / "benchmarks/families.md").read_text(encoding="utf-8").partition("## BLEU by source length")[2]
    rows = {
        words: (plain, dot) for words, plain, dot in re.findall(r"\| ([\w -]+) \| \d+ \| (\S+) \| (\S+) \|", measured)
    }
    text = "\n".join(cell.text for cell in chapters()[4].in_language("en").cells)
    shown = re.findall(r"^\| (\d[\w -]+) \| (\S+) \| (\S+) \|", text, re.MULTILINE)
    assert len(shown) == 3
    assert all(rows[words] == (plain, dot) for words, plain, dot in shown)
    (plain_short, dot_short), (plain_long, dot_long) = (
        [float(bleu) for bleu in row[1:]] for row in shown[:: len(shown) - 1]
    )
    assert (round(dot_short - dot_long), round(plain_short - plain_long)) == (22, 26)
    assert (round(2 * dot_long / dot_short), round(3 * plain_long / plain_short)) == (1, 1)
    assert all(float(dot) > float(plain) for plain, dot in rows.values())


def test_a_figure_in_a_notebook_has_a_ground_and_an_alternative_text() -> None:
    cells = [Cell("# 1. A chapter", is_code=False), Cell("show(figure)", is_code=True)]
    outputs = [Output(), Output("", [Drawing("name", "<svg width='1'></svg>", "a line")])]
    written = json.loads(notebook(Chapter(1, Path("01_a.py"), cells), outputs))
    data = written["cells"][1]["outputs"][0]["data"]
    assert "".join(data["image/svg+xml"]).startswith('<svg style="background: #fff" ')
    assert data["text/plain"] == ["a line"]


def test_a_page_with_a_root_has_a_font_for_it() -> None:
    whole = page(None, markdown("$\\sqrt{d}$"), chapters())
    font = base64.b64decode(re.search(r"Book Radical.*?base64,([^)]+)\)", whole)[1])  # type: ignore[index]
    read = TTFont(io.BytesIO(font))
    assert set(read.getBestCmap()) == {0x20, 0x221A}
    [variants] = read["MATH"].table.MathVariants.VertGlyphConstruction
    heights = [one.AdvanceMeasurement for one in variants.MathGlyphVariantRecord]
    assert heights == sorted(heights)
    assert heights[-1] > 2.5 * read["head"].unitsPerEm
    assert "Book Radical" not in page(None, markdown("$d$"), chapters())


def test_a_page_has_its_formulas_and_nothing_from_outside() -> None:
    text = markdown("the score $\\frac{a}{b}$\n\n> code: nn/masks.py: causal_mask\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    assert "<mfrac>" in text
    assert re.search(r"ln</mi>\s*<mspace[^>]*>.*<mn>8", markdown("$\\ln 8$"))
    assert "line" in text
    assert "tril" in text
    assert "<td>1</td>" in text
    whole = page(None, text, chapters())
    assert not re.search(r'(src|href)="(https?:)?//', whole)
    with pytest.raises(KeyError, match="has no nothing"):
        source_of_symbol("nn/masks.py", "nothing")


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_is_caught_by_its_self_test(bug: Bug) -> None:
    test = SELF_TESTS[bug.selftest]
    test()
    with bug.planted(), pytest.raises(AssertionError):
        test()
    test()


def test_the_page_of_symptoms_is_what_the_bugs_say() -> None:
    assert (ROOT / "docs/not-learning.md").read_text(encoding="utf-8") == lesson.symptoms_page()


def test_a_learner_opens_answers_and_is_graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = learn("5")
    assert code == 0
    assert said.split() == ["05_batches_and_masks.ipynb", "answers05.py", "mini_transformer.py"]
    assert json.loads(Path("05_batches_and_masks.ipynb").read_text(encoding="utf-8"))["nbformat"] == 4
    code, said = learn("check", "5")
    assert code == 1
    assert said.count("not written yet") == 7 + 3  # and three pieces of mini_transformer.py
    answers = Path("answers05.py")
    text = answers.read_text(encoding="utf-8")
    head, name, text = text.partition("def sequence_mask")
    first, _, rest = text.partition("    raise NotImplementedError\n")
    first = head + name + first
    answers.write_text(f"{first}    return torch.arange(width) < lengths[:, None]\n{rest}", encoding="utf-8")
    code, said = learn("check", "5")
    assert "sequence_mask: right\n" in said
    answers.write_text(f"{first}    return torch.arange(width) <= lengths[:, None]\n{rest}", encoding="utf-8")
    assert "positions count from 0" in learn("check", "5")[1]
    code, said = learn()
    assert code == 0
    assert "exercises 1 of 7" in said
    assert learn("5")[0] == 0  # nothing is overwritten
    assert "<=" in answers.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("99",), "there are chapters 0 to 14, and no chapter 99"),
        (("check", "5"), "answers05.py is not in this folder"),
        (("bug", "999"), "no bug 999"),
        (("bug", "8", "--check"), "bug08.py is not in this folder"),
        (("bug", "8", "--name", "z"), "--name is one of a, b, c, d"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in learn(*arguments)[1]


def test_a_file_that_is_no_python_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answers05.py").write_text("def sequence_mask(:\n", encoding="utf-8")
    assert "answers05.py:1: SyntaxError" in learn("check", "5")[1]


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=[pytest.mark.system] if number % 12 != 9 else []) for number in NUMBERS]
)
def test_a_bug_is_mended_by_the_function_that_it_replaced(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bug = lesson.bug_of(number)
    path = lesson.write_bug(number)
    assert f"def {bug.sound.__name__}(" in path.read_text(encoding="utf-8")
    code, said = learn("bug", str(number), "--check")
    assert code != 0
    assert bug.selftest.replace("_", " ") in said
    path.write_text(f'"""mended"""\n\n{source_of(bug.sound)}', encoding="utf-8")
    code, said = learn("bug", str(number), "--check")
    assert said.startswith(f"fixed: {bug.name}.")
    assert str(number) in json.loads(Path("dragoman-learn.json").read_text(encoding="utf-8"))["bugs"]
    names = lesson.names_to_choose_from(number)
    letter = lesson.LETTERS[names.index(bug.name)]
    assert learn("bug", str(number), "--name", letter)[1].startswith(f"{letter}: yes")


def test_the_list_of_bugs_says_what_is_seen_and_not_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # without a learner's own language
    _, said = learn("bug", "--list")
    assert all(bug.symptom in said for bug in BUGS)
    assert not any(bug.name in said or bug.why in said for bug in BUGS)


CHAPTER = """# %% [markdown]
# # 1. Sums

# %%
total = 1 + 1
print(total)
show(new_figure(2, 1, "A sum"), "sum", "two bars")

# %% [check]
assert total == {total}
"""


def test_a_check_runs_with_its_chapter_and_is_not_shown(tmp_path: Path) -> None:
    lines = "# %%\nfrom dragoman.analysis.figure import new_figure\nfrom dragoman.learn.chapter import show\n\n"
    for total in (2, 3):
        path = tmp_path / f"0{total}_sums.py"
        path.write_text(lines + CHAPTER.replace("{total}", str(total)), encoding="utf-8")
    good, bad = (read_chapter(tmp_path / f"0{total}_sums.py") for total in (2, 3))
    done = list(run(good))
    assert [drawing[::2] for _, output in done for drawing in output.figures] == [("sum", "two bars")]
    assert "assert" not in notebook(good, [output for _, output in done])
    with pytest.raises(AssertionError):
        list(run(bad))


def test_chinese_lines_are_joined_without_a_space(tmp_path: Path) -> None:
    path = tmp_path / "01_a.py"
    path.write_text(
        '# %% [markdown] lang="zh"\n# 掩码隐藏\n# **未来**，用\n# `mask` 标出。\n#\n# - 第一，\n#   再说\n# - 第二\n',
        encoding="utf-8",
    )
    [cell] = read_chapter(path).cells
    assert cell.text == "掩码隐藏**未来**，用\n`mask` 标出。\n\n- 第一，再说\n- 第二"
    assert cell.language == "zh"


def test_chapter_0_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 is a number too: it was taken for "no number", and the chapter's process built the whole book again."""
    built: list[int] = []
    monkeypatch.setattr(book, "build_chapter", lambda number, folder: built.append(number))
    monkeypatch.setattr(book, "build", lambda *arguments: pytest.fail("the whole book"))
    monkeypatch.setattr(sys, "argv", ["book", str(tmp_path), "--one", "0"])
    book.main()
    assert built == [0]


def test_a_notebook_is_one_that_jupyter_reads() -> None:
    whole = json.loads(notebook(chapters()[1]))
    assert {cell["cell_type"] for cell in whole["cells"]} == {"markdown", "code"}
    assert len({cell["id"] for cell in whole["cells"]}) == len(whole["cells"])
