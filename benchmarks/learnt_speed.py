"""What lines with codes, terms, a match or the sentences before cost beside plain ones, of a run that has learnt them.

    python benchmarks/learnt_speed.py RUN LINES [--count 200] [--times 3]

Each line is translated as it is, with a tag around its middle words, with a glossary of the longest word of each line,
with a memory that has each line with another word in it, and with all of them; a run that has learnt to read the
sentences before (`corpus.context`) translates the lines as documents of ten, too. In turn, after a first time that does
not count. Times are of the processor: of the search (`SearchTranslator.hypotheses`), and of all that stands beside it.
"""

import argparse
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.inference.search_translator import SearchTranslator
from dragoman.pipeline.in_context import Before
from dragoman.pipeline.memory import TranslationMemory
from dragoman.pipeline.translator import Translator
from dragoman.text.glossary import Glossary
from dragoman.text.lines import read_lines

PAGE_LINES = 10
"""Lines of a document."""
SHORTEST = 5
"""Letters of a term, at least."""


@dataclass
class Clock:
    """Seconds of the processor in the search, and beside it."""

    search: float = 0.0
    beside: float = 0.0


def with_tag(line: str) -> str:
    """The line with a tag around its middle words.

    >>> with_tag("one two three four")
    'one <b>two three</b> four'
    """
    words = line.split(" ")
    start, end = len(words) // 3, max(len(words) // 3 + 1, 3 * len(words) // 4)
    return " ".join([*words[:start], f"<b>{' '.join(words[start:end])}</b>", *words[end:]])


def longest_words(lines: Sequence[str]) -> list[str]:
    """The longest word of each line, each once.

    >>> longest_words(["open the spreadsheet", "close it", "the spreadsheet"])
    ['spreadsheet', 'close']
    """
    each = [max((word for word in line.split() if word.isalpha()), key=len, default="") for line in lines]
    return list(dict.fromkeys(word for word in each if len(word) >= SHORTEST))


def other_lines(lines: Sequence[str]) -> list[str]:
    """Each line with its last word but one replaced by that of the next line."""
    words = [line.split() for line in lines]
    return [
        " ".join([*one[:-2], *other[-2:-1], *one[-1:]])
        for one, other in zip(words, [*words[1:], words[0]], strict=True)
    ]


def ways(translator: Translator, lines: Sequence[str]) -> dict[str, tuple[Translator, list[str]]]:
    """The translator and the lines of each row."""
    words = longest_words(lines)
    targets = translator.translate(words)
    glossary = Glossary({word: target for word, target in zip(words, targets, strict=True) if target.strip()})
    memory = TranslationMemory(
        list(zip(other_lines(lines), translator.translate(list(lines)), strict=True)), translator.languages or ("", "")
    )
    tagged = [with_tag(line) for line in lines]
    termed = translator.with_terms(glossary)
    rows = {
        "plain": (translator, list(lines)),
        "codes": (translator, tagged),
        "terms": (termed, list(lines)),
        "a match": (translator.with_memory(memory), list(lines)),
        "all": (termed.with_memory(memory), tagged),
    }
    return rows | ({"sentences before": (translator, list(lines))} if translator.pipeline.context[0] else {})


def timed(translator: Translator, lines: Sequence[str], *, in_context: bool = False) -> Clock:
    """The time of one translation of all lines; `in_context`: as documents of ten lines."""
    pipeline = translator.pipeline.reading("auto" if in_context else "none")
    pages = [Before() for _ in range(0, len(lines), PAGE_LINES)]
    clock, hypotheses = Clock(), SearchTranslator.hypotheses

    counting, running, started = threading.Lock(), 0, 0.0

    def watched(self: SearchTranslator, parts: Any) -> Any:
        """A search; of several at once, in threads of their own, the time counts once."""
        nonlocal running, started
        with counting:
            started = started if running else time.process_time()
            running += 1
        try:
            return hypotheses(self, parts)
        finally:
            with counting:
                running -= 1
                clock.search += 0.0 if running else time.process_time() - started

    SearchTranslator.hypotheses = watched  # type: ignore[method-assign]
    try:
        begun = time.process_time()
        pipeline.texts(lines, documents=[pages[row // PAGE_LINES] for row in range(len(lines))])
        clock.beside = time.process_time() - begun - clock.search
    finally:
        SearchTranslator.hypotheses = hypotheses  # type: ignore[method-assign]
    return clock


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args(arguments)
    lines = [line for line in read_lines(options.lines) if len(line.split()) > 2][: options.count]
    rows = ways(Translator.load(options.run, device="cpu"), lines)
    glossary = rows["terms"][0].pipeline.own.glossary
    assert glossary is not None
    print(f"{sum(len(glossary.find(line)) for line in lines) / len(lines):.1f} terms a line\n")
    clocks: dict[str, list[Clock]] = {name: [] for name in rows}
    for number in range(options.times + 1):
        for name, (translator, texts) in rows.items():
            clock = timed(translator, texts, in_context=name == "sentences before")
            if number:
                clocks[name].append(clock)
    print("| lines | search, ms a line | beside it, ms a line | as fast as plain ones |")
    print("|---|---|---|---|")
    best = {name: min(found, key=lambda one: one.search + one.beside) for name, found in clocks.items()}
    for name, one in best.items():
        plain = best["plain"]
        share = (plain.search + plain.beside) / (one.search + one.beside)
        each = [1000 * seconds / len(lines) for seconds in (one.search, one.beside)]
        print(f"| {name} | {each[0]:.2f} | {each[1]:.2f} | {share:.2f} |")


if __name__ == "__main__":
    main()
