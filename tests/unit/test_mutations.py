"""The script of hand-made mistakes still fits the source."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "mutations.py"


def test_every_right_text_stands_in_its_file_once_and_its_tests_are_there() -> None:
    spec = importlib.util.spec_from_file_location("mutations", SCRIPT)
    assert spec
    assert spec.loader
    mutations = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mutations)
    assert mutations.texts_are_there() == []
    assert len(mutations.MUTATIONS) == len(set(mutations.MUTATIONS)) >= 92
    for files in [*mutations.TESTS.values(), *mutations.SYSTEM.values()]:
        assert all((SCRIPT.parent / name).exists() for name in files)
    assert {row.path for row in mutations.MUTATIONS} == set(mutations.TESTS)
