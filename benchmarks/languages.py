"""The table of languages in docs/languages.md: what is measured on translators' own text, and what the code says.

    python benchmarks/languages.py measure FOLDER [LANGUAGE ...]     # into benchmarks/languages.json
    python benchmarks/languages.py table                             # the rows, as docs/languages.md has them

FOLDER has catalogues as LANGUAGE/LC_MESSAGES/*.mo: /usr/share/locale, or usr/lib/libreoffice/program/resource of
Debian's packages libreoffice-l10n-*. Languages with fewer than `PAIRS` pairs are left out.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import guards
import sentences
from babel import Locale
from babel.core import UnknownLocaleError
from babel.numbers import format_decimal

from dragoman.languages.codes import direction_of, is_known, language_of, names_of, script_of, tag_of
from dragoman.languages.identification import identify
from dragoman.languages.plurals import plurals_of
from dragoman.text.case import CASED, is_in_capitals, upper
from dragoman.text.numbers import numbers_in

MEASURED = Path(__file__).with_name("languages.json")
PAIRS, JOINED = 200, 400
"""Pairs of a language whose warnings are counted and which are identified; and lines that are joined and cut again."""
FEWEST = 60
"""Lines to join from which on a language has figures of them."""
AMOUNT = 1234567.5
"""A number with groups and a fraction."""
LEFT = {
    "th": "sentences (they have no mark; cut at spaces by length only)",
    "lo": "sentences (they have no mark; cut at spaces by length only)",
    "dz": "words (letters)",
    "bo": "words (letters)",
    "am": "the colon that stands for full stop and comma",
}
"""What a language has and Dragoman does not do."""


def measured(folder: Path, language: str) -> dict[str, Any] | None:
    """The figures of a language; None for one with too little text."""
    translations = guards.pairs(folder, language)
    if len(translations) < PAIRS:
        return None
    lines = sentences.catalogue_lines(folder / language, JOINED)
    drawn = guards.drawn(translations, PAIRS)
    return {
        "lines": len(translations),
        "identified": sum(identify(tgt)[0] == language_of(language) for _, tgt in drawn),
        "loud": sum(bool(guards.warned(*pair, ("en", language))) for pair in drawn),
        "in_capitals": sum(is_in_capitals(tgt, language) for tgt in translations.values()),
        "own_capitals": sum(upper(tgt, language) != tgt.upper() for tgt in translations.values()),
        "cuts": dict(sentences.counted(language, lines)) if len(lines) >= FEWEST else None,
    }


def measure(folder: Path, languages: list[str]) -> dict[str, Any]:
    """The figures of the languages of a folder, or of those that are named."""
    names = languages or sorted(path.name for path in folder.iterdir() if is_known(path.name))
    rows = {}
    for name in names:
        row = measured(folder, name) if language_of(name) != "en" else None
        if row:
            rows[tag_of(name)] = row
            print(tag_of(name), row, flush=True)
    return rows


def amounts(language: str) -> dict[str, bool]:
    """A number as the language writes it, in Latin digits and in its own, and whether it is read as that number."""
    try:
        locale = Locale.parse(language, sep="-")
    except (UnknownLocaleError, ValueError):
        return {}
    systems = [locale.default_numbering_system, locale.other_numbering_systems.get("native", "latn")]
    texts = {format_decimal(AMOUNT, locale=locale, numbering_system=system) for system in systems}
    return {text: any(str(AMOUNT) in number.values for number in numbers_in(text)) for text in sorted(texts)}


def row(language: str, name: str, figures: dict[str, Any]) -> str:
    """A row of the table."""
    cuts = figures["cuts"]
    right = cuts and cuts["right"]
    cells = [
        f"{name} `{language}`",
        direction_of(language),
        f"{100 * figures['identified'] / PAIRS:.0f} %",
        f"{100 * right / (right + cuts['false']):.1f}, {100 * right / (right + cuts['missed']):.1f} %" if cuts else "-",
        capitals(language, figures),
        ", ".join(text + ("" if is_read else " (not read)") for text, is_read in amounts(language).items()) or "-",
        f"{100 * figures['loud'] / PAIRS:.1f} %",
        plurals(language),
        LEFT.get(language_of(language), ""),
    ]
    return "| " + " | ".join(cells) + " |"


def capitals(language: str, figures: dict[str, Any]) -> str:
    if script_of(language) not in CASED:
        return f"none ({figures['in_capitals']} of {figures['lines']:,} lines)"
    return "its own rules" if figures["own_capitals"] else "Unicode's rules"


def plurals(language: str) -> str:
    known = plurals_of(language)
    return ", ".join(known.forms) if known else "not in CLDR"


def table(rows: dict[str, Any]) -> str:
    """The rows of docs/languages.md, by the names of the languages."""
    names = names_of(rows)
    return "\n".join(row(language, names[language], rows[language]) for language in sorted(rows, key=names.__getitem__))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["measure", "table"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("languages", nargs="*")
    given = parser.parse_args()
    if given.command == "table":
        print(table(json.loads(MEASURED.read_text(encoding="utf-8"))))
        return
    rows = measure(given.folder, given.languages)
    MEASURED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
