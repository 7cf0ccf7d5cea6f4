"""Corrections as `adapt` and `datastore` take them: pairs as people want them, and the file that they are from."""

from dataclasses import dataclass
from pathlib import Path

from dragoman.pipeline.memory import deduplicated_pairs
from dragoman.runs.directory import check_run_dir, languages_of


@dataclass(frozen=True)
class Corrections:
    """Pairs between the languages of a run, each source once."""

    file: Path
    pairs: list[tuple[str, str]]

    @classmethod
    def read(cls, file: Path, run: Path) -> "Corrections":
        """The corrections in a TMX, an XLIFF, a PO file, or two columns."""
        return cls(file, deduplicated_pairs(file, languages_of(check_run_dir(run))))
