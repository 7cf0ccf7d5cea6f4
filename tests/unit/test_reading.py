"""The pages name what is there, and the core stays short enough to be read in an afternoon."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dragoman"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MAX_CORE_LINES = 4500
LIBRARIES = {"torch", "numpy", "sentencepiece", "sacrebleu", "safetensors", "pydantic", "jaxtyping"}
SUPPORT = {
    "backends", "config", "corpora", "device", "errors", "progress", "runs", "version", "data.eval_batches",
    "data.movable", "data.random", "data.row_order", "data.store", "data.stream_blocks", "decoding.constrained",
    "decoding.continuous_batching", "decoding.filters", "decoding.rules", "decoding.search", "decoding.rows",
    "evaluation", "inference", "languages", "models.families", "models.stacks", "nn.kv_cache",
    "nn.relative_positions", "nn.ssru",
    "quality", "special_tokens",
    "text.augment", "text.plain_sources", "text.glossary", "text.images", "text.labelled", "text.lines", "text.sources",
    "text.tokenizers", "training",
}  # fmt: skip
"""Packages and modules of Dragoman that the core leans on, and that need not be read with it."""


def core() -> list[Path]:
    """The files of docs/architecture.md's table, in order."""
    rows = [
        line for line in (ROOT / "docs/architecture.md").read_text(encoding="utf-8").splitlines() if line[:1] == "|"
    ]
    return [PACKAGE / name for row in rows for name in re.findall(r"^\|[^|]*\| `([\w/]+\.py)` \|", row)]


def test_the_core_is_read_in_an_afternoon() -> None:
    files = core()
    assert len(files) == len(set(files)) > 25
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= MAX_CORE_LINES


def test_the_core_leans_on_little() -> None:
    files = {path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".") for path in core()}
    for path in core():
        for name in imported(path):
            top, _, inner = name.partition(".")
            if top != "dragoman":
                assert top in LIBRARIES or top in sys.stdlib_module_names, f"{path.name} imports {name}"
            else:
                supported = any(f"{inner}.".startswith(f"{module}.") for module in SUPPORT)
                assert inner in files or supported, f"{path.name} imports {name}"


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            package = PACKAGE.parent / node.module.replace(".", "/")
            modules = {alias.name for alias in node.names if (package / f"{alias.name}.py").exists()}
            names |= {f"{node.module}.{name}" for name in modules} or {node.module}
    return names - {"dragoman"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    for name in re.findall(r"`([\w./-]+\.(?:py|c|yaml))`", page.read_text(encoding="utf-8")):
        places = [ROOT / name, PACKAGE / name, *PACKAGE.rglob(name)]
        assert any(place.exists() for place in places), name


@pytest.mark.parametrize("page", ["promises.md", "architecture.md"])
def test_names_beside_a_file_are_in_it(page: str) -> None:
    """`Class.method` (`path.py`), and `path.py`, `name`: in either order."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    pairs = [(path, name) for name, path in re.findall(r"`([A-Za-z_][\w.]*)` \(`([\w/]+\.py)`\)", text)]
    pairs += re.findall(r"`([\w/]+\.py)`, `([A-Za-z_][\w.]*)`", text)
    assert pairs
    for path, name in pairs:
        source = (PACKAGE / path).read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"\b(?:def|class) {part}\b|^{part}\b", source, re.M), f"{name} in {path}"
