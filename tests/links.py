"""Check the links of all pages: part of `make check`.

    python tests/links.py [FOLDER]

Each link to a file of the repository has to be there, and the heading that it names (`page.md#heading`), as GitHub and
most site generators number headings. Links to other sites are not followed.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def pages(root: Path) -> list[Path]:
    """The Markdown files that git knows, but for those that are inputs of tests. Without git (in the source archive):
    all that are not in a folder that is made, such as .venv.
    """
    try:
        command = ["git", "-C", root, "ls-files", "*.md"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        relative = [page.relative_to(root) for page in sorted(root.rglob("*.md"))]
        names = [
            page.as_posix() for page in relative if not page.parts[0].startswith((".venv", "build", "runs", "data"))
        ]
    return [root / name for name in names if "fixtures/" not in name]


def anchors(page: Path) -> set[str]:
    """The names of the headings of a page.

    >>> import tempfile; page = Path(tempfile.mkdtemp(), "page.md")
    >>> _ = page.write_text("# Two `words`, here\\n## Two words, here\\n", encoding="utf-8")
    >>> sorted(anchors(page))
    ['two-words-here', 'two-words-here-1']
    """
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    names: dict[str, int] = {}
    anchors = set()
    for title in re.findall(r"^#+ +(.*?)#*$", text, re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        anchors.add(f"{name}-{names[name]}" if names.get(name) else name)
        names[name] = names.get(name, 0) + 1
    return anchors


def dead_links(page: Path) -> Iterator[str]:
    """`FILE:LINE: LINK` of each link of a page that leads nowhere."""
    text = page.read_text(encoding="utf-8")
    text = CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in LINK.finditer(text):
        target, _, anchor = match[1].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            yield f"{page}:{text.count(chr(10), 0, match.start()) + 1}: {match[1]}"


def main(root: Path) -> int:
    dead = [link for page in pages(root) for link in dead_links(page)]
    print("\n".join(dead) if dead else "no dead link")
    return int(bool(dead))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]))
