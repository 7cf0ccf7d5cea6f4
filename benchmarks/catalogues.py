"""Entries of compiled catalogues (gettext's .mo)."""

from collections.abc import Iterator
from gettext import GNUTranslations
from pathlib import Path


def entries(folder: Path) -> Iterator[tuple[str | tuple[str, int], str]]:
    """The key and the text of each entry in the catalogues of a language's folder; files that are none are left out.

    A key is the English message, behind its context and "\\4" where it has one, or (message, form) for a plural.
    """
    for path in sorted(folder.glob("LC_MESSAGES/*.mo")):
        with path.open("rb") as file:
            try:
                catalogue = GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            except (OSError, ValueError, LookupError):
                continue
        yield from catalogue.items()
