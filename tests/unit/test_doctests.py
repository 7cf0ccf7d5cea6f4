"""The worked examples in the docstrings, of every module."""

import doctest
import importlib
import pkgutil

import pytest

import dragoman

MODULES = [
    found.name for found in pkgutil.walk_packages(dragoman.__path__, "dragoman.") if not found.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_are_right(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("place", ["nn.masks", "data.batch", "decoding.beam"])
def test_the_hard_places_have_one(place: str) -> None:
    assert doctest.testmod(importlib.import_module(f"dragoman.{place}")).attempted > 0
