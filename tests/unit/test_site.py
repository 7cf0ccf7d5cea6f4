"""The pages of the site (`make docs`), without MkDocs, which is not installed for the checks."""

import re
from pathlib import Path
from typing import Any

from tests import links
from tests.scripts import script
from tests.system.test_bad_corpora import document

from dragoman.tasks.settings_reference import markdown


def files_of(navigation: list[Any]) -> list[str]:
    targets = [target for entry in navigation for target in entry.values()]
    return [name for target in targets for name in ([target] if isinstance(target, str) else files_of(target))]


def test_each_page_of_the_navigation_is_there_and_no_link_is_dead(tmp_path: Path) -> None:
    site = script("docs/site.py")
    site.write_pages(tmp_path)
    assert [name for name in files_of(site.NAVIGATION) if not (tmp_path / name).is_file()] == []
    assert "::: dragoman\n" in (tmp_path / "docs/api.md").read_text(encoding="utf-8")
    assert (tmp_path / "docs/settings.md").read_text(encoding="utf-8") == markdown()
    assert (tmp_path / "docs/bad-corpora.md").read_text(encoding="utf-8") == document()
    dead = [link for page in tmp_path.rglob("*.md") for link in links.dead_links(page)]
    assert [link for link in dead if not re.search(r"\.(py|toml)$|/$", link)] == []


def test_doctests_are_code_in_the_reference() -> None:
    source = (Path(links.__file__).parents[1] / "docs/theme/doctests.py").read_text(encoding="utf-8")
    [pattern] = re.findall(r're\.compile\(r"(.*)", re\.MULTILINE\)', source)
    text = "Add.\n\n>>> 1 + 1\n2\n>>> 2\n2\n\nMore."
    fenced = re.sub(pattern, lambda match: f"<{match[0]}>", text, flags=re.MULTILINE)
    assert fenced == "Add.\n\n<>>> 1 + 1\n2\n>>> 2\n2>\n\nMore."
