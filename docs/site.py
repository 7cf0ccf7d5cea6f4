"""Build the site of all pages: `make docs`.

    python docs/site.py BUILD

BUILD/pages gets the pages of the repository in their folders, with what is made for them: all settings, all bad
corpora, the reference of the Python interface, and the book where `make book` has built it. MkDocs makes BUILD/site of
them, which opens without a network and without a server.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from dragoman.tasks import settings_reference

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.system import test_bad_corpora  # noqa: E402 - bad corpora stand in a table of their tests

FOLDERS = ("docs", "benchmarks", "speedrun", "recipes", "deploy")
COPIED = (".md", ".svg", ".png", ".sh", ".ipynb", ".yaml", ".conf", ".json", ".txt")
NAVIGATION = [
    {"Dragoman": "README.md"},
    {
        "Use": [
            {"A tour of the commands": "docs/tour.md"},
            {"Folders of files": "docs/files.md"},
            {"Documents": "docs/documents.md"},
            {"Serving": "docs/serving.md"},
            {"The open internet": "docs/open-internet.md"},
            {"Python": "docs/python.md"},
            {"Judging": "docs/judging.md"},
            {"Languages": "docs/languages.md"},
            {"Several processes and machines": "docs/scale.md"},
            {"GPUs": "docs/gpu.md"},
            {"Models of other programs": "docs/importing.md"},
            {"Text from Debian": "docs/debian.md"},
            {"Systems": "docs/systems.md"},
        ]
    },
    {
        "Learn": [
            {"The book": "docs/book/index.md"},
            {"Architecture": "docs/architecture.md"},
            {"Why does it not learn?": "docs/not-learning.md"},
            {"Glossary": "docs/glossary.md"},
        ]
    },
    {"Coming from": "docs/coming-from/index.md"},
    {
        "Reference": [
            {"Settings": "docs/settings.md"},
            {"Python interface": "docs/api.md"},
            {"Errors": "docs/errors.md"},
            {"Run directory": "docs/run-directory.md"},
            {"Promises": "docs/promises.md"},
            {"Bad corpora": "docs/bad-corpora.md"},
            {"Backends": "docs/backends.md"},
            {"All pages": "docs/index.md"},
        ]
    },
    {
        "Results": [
            {"Results": "benchmarks/results.md"},
            {"Variants": "benchmarks/variants.md"},
            {"Log": "benchmarks/log/README.md"},
        ]
    },
    {"Contributing": "CONTRIBUTING.md"},
]
SHIM = "https://unpkg.com/iframe-worker/shim"
"""What Material loads from a network for pages on the disk."""
MODULES = ("dragoman", "dragoman.errors")
PRINTED = {"docs/settings.md": settings_reference.markdown, "docs/bad-corpora.md": test_bad_corpora.document}
"""Pages that are not kept in the repository, and the functions that make them."""


def write_pages(pages: Path) -> None:
    """The Markdown of the site, each page where it is in the repository, so that links between pages hold."""
    for file in [*ROOT.glob("*.md"), *(file for name in FOLDERS for file in ROOT.joinpath(name).rglob("*"))]:
        if file.suffix in COPIED and file.is_file():
            copy = pages / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    for name, text_of in PRINTED.items():
        (pages / name).write_text(text_of(), encoding="utf-8")
    reference = "".join(f"## {name}\n\n::: {name}\n\n" for name in MODULES)
    (pages / "docs/api.md").write_text(f"# The Python interface\n\n{reference}", encoding="utf-8")
    toolkits = sorted(file for file in (pages / "docs/coming-from").glob("*.md") if file.stem != "index")
    titles = {file.name: file.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") for file in toolkits}
    listed = "".join(f"- [{title}]({name})\n" for name, title in titles.items())
    (pages / "docs/coming-from/index.md").write_text(f"# Coming from another toolkit\n\n{listed}", encoding="utf-8")
    _write_book(pages / "docs/book")
    for page in pages.rglob("*.md"):  # a folder is not a page: its index is
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"\]\(((?:\.\./|docs/)?(?:coming-from|book))/?\)", r"](\1/index.md)", text)
        page.write_text(text, encoding="utf-8")


def _write_book(folder: Path) -> None:
    """The page of the book, which links to the chapters where they have been built."""
    folder.mkdir(parents=True, exist_ok=True)
    chapters = ROOT / "build/book"
    if not (chapters / "index.html").is_file():
        text = "# The book\n\nIts chapters run: `make book` builds them (half an hour), `dragoman learn` shows them.\n"
    else:
        shutil.copytree(chapters, folder / "chapters", dirs_exist_ok=True)
        text = "# The book\n\n[Open the book](chapters/index.html), fifteen chapters, in English and Chinese.\n"
    (folder / "index.md").write_text(text, encoding="utf-8")


def configuration(pages: Path, site: Path) -> dict[str, object]:
    """Settings of MkDocs: Material without anything from a network, search, and docstrings as the reference."""
    python = {
        "paths": [str(ROOT / "src")],
        "options": {
            "extensions": [f"{ROOT / 'docs/theme/doctests.py'}:Doctests"],
            "show_source": False,
            "heading_level": 3,
            "show_root_heading": False,
            "filters": ["!^_"],
        },
    }
    return {
        "site_name": "Dragoman",
        "docs_dir": str(pages),
        "site_dir": str(site),
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.tabs", "navigation.top", "content.code.copy"],
            "palette": [
                {"media": f"(prefers-color-scheme: {scheme})", "scheme": name}
                for scheme, name in (("light", "default"), ("dark", "slate"))
            ],
        },
        "plugins": ["offline", "search", {"mkdocstrings": {"handlers": {"python": python}}}],
        "markdown_extensions": ["tables", "fenced_code", "toc", "pymdownx.superfences", "attr_list"],
        "nav": NAVIGATION,
        "validation": {"nav": {"omitted_files": "ignore"}, "links": {"not_found": "warn", "anchors": "warn"}},
    }


def main(build: Path) -> int:
    pages, site = build.resolve() / "pages", build.resolve() / "site"
    shutil.rmtree(pages, ignore_errors=True)
    write_pages(pages)
    config = build / "mkdocs.yml"
    config.write_text(yaml.safe_dump(configuration(pages, site), allow_unicode=True), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--config-file", str(config)]
    done = subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False)
    if done.returncode:
        return done.returncode
    shutil.copyfile(ROOT / "docs/theme/frame_worker.js", site / "assets/frame_worker.js")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        ours = f"{os.path.relpath(site, page.parent)}/assets/frame_worker.js"
        page.write_text(text.replace(SHIM, ours), encoding="utf-8")
    print(f"open {site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"))
