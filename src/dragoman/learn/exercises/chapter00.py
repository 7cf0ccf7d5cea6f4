"""Chapter 0: before you begin. It has nothing to write."""

from dragoman.learn.exercise import Exercise

EXERCISES: list[Exercise] = []
