"""The exercises of the book, a file for each chapter."""

from importlib import import_module

from dragoman.learn.exercise import Exercise

CHAPTERS = range(15)


def exercises_of(chapter: int) -> list[Exercise]:
    """The exercises of a chapter, in their order."""
    exercises: list[Exercise] = import_module(f"dragoman.learn.exercises.chapter{chapter:02}").EXERCISES
    return exercises
