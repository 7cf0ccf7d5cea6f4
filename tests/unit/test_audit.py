"""`learn audit` finds every planted fault in models of many styles, names it and its line, and finds nothing in sound
ones."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman.learn.audit import audit

FOLDER = Path(__file__).parents[1] / "audit"
FAULTS: dict[str, list[dict[str, Any]]] = yaml.safe_load((FOLDER / "faults.yaml").read_text(encoding="utf-8"))
REPORTS = FAULTS.pop("reports")
PLANTED = [
    *(
        pytest.param(style, one, id=f"{style}-{number}-{one['fault']}")
        for style, several in FAULTS.items()
        for number, one in enumerate(several, start=1)
    ),
    *(pytest.param(one["style"], one, id=one["report"].replace("/", "-")) for one in REPORTS),
]


def planted(style: str, one: dict[str, Any]) -> str:
    """The model's source with the fault in it."""
    text = (FOLDER / f"{style}.py").read_text(encoding="utf-8")
    for old, new in ((one["old"], one["new"]), *one.get("also", {}).items()):
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {style}"
        text = text.replace(old, new)
    return text


def changed_lines(style: str, text: str) -> set[str]:
    before = (FOLDER / f"{style}.py").read_text(encoding="utf-8").splitlines()
    return set(text.splitlines()) - set(before)


@pytest.mark.parametrize("style", FAULTS)
def test_nothing_is_reported_of_a_sound_model(style: str) -> None:
    assert list(map(str, audit(str(FOLDER / f"{style}.py")))) == []


@pytest.mark.parametrize(("style", "one"), PLANTED)
def test_a_planted_fault_is_named_with_its_line(style: str, one: dict[str, Any], tmp_path: Path) -> None:
    text = planted(style, one)
    path = tmp_path / f"{style}.py"
    path.write_text(text, encoding="utf-8")
    findings = audit(str(path))
    named = [finding for finding in findings if finding.fault == one["fault"]]
    assert named, f"not found; found are {[str(finding) for finding in findings]}"
    assert not [finding for finding in findings if finding.fault == "stopped"]
    if named[0].line is not None:
        line = text.splitlines()[named[0].line - 1]
        if "line" in one:
            assert one["line"] in line
        else:
            assert line in changed_lines(style, text)
