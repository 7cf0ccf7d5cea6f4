"""The checker of links (`tests/links.py`)."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests import links


@pytest.mark.parametrize("has_git", [True, False])
def test_dead_links_are_told_with_their_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_git: bool
) -> None:
    (tmp_path / "other.md").write_text("# A `heading`, here\n\n```\n# no heading\n```\n", encoding="utf-8")
    (tmp_path / "page.md").write_text(
        "[good](other.md) [anchor](other.md#a-heading-here) [site](https://example.org) `[code](gone.md)`\n"
        "[gone](gone.md)\n![picture](gone.png)\n[no anchor](other.md#no-heading)\n",
        encoding="utf-8",
    )
    if not has_git:  # in the source archive, on a machine without it
        monkeypatch.setenv("PATH", str(tmp_path))
    elif shutil.which("git"):
        subprocess.run(["git", "-C", tmp_path, "init", "--quiet"], check=True)
        subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    assert links.main(tmp_path) == 1
    dead = capsys.readouterr().out.replace(f"{tmp_path}/", "").splitlines()
    assert dead == ["page.md:2: gone.md", "page.md:3: gone.png", "page.md:4: other.md#no-heading"]
    (tmp_path / "page.md").write_text("[good](other.md)\n", encoding="utf-8")
    assert links.main(tmp_path) == 0
