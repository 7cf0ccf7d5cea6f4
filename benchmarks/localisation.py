"""The localisation benchmark: text and markup of LibreOffice's help, scored beside what its translators wrote.

    python benchmarks/localisation.py translate RUN TEST.markup.en.gz OUT [links]
    python benchmarks/localisation.py score OUT TEST.markup.en.gz TEST.markup.de.gz

`translate` carries markup as `dragoman translate FILE.html` does; with `links` by the links of words alone, whatever
the run has learnt. `score` takes the output of any system, a paragraph a line: BLEU and chrF of the text without
markup; paragraphs whose tags are those of the source, once each and nested; and, of the pairs of tags that the
translators wrote (menu entries, emphasis, literals, keys), the share around whose words the system has one of the same
tag. That share of the pairs whose words the system's text has as often as the translators' says nothing but where tags
are put.
"""

import gzip
import html
import re
import sys
from collections import Counter
from pathlib import Path

import sacrebleu

import dragoman
from dragoman.formats.base import Code, Item, Options
from dragoman.formats.html import text_units

NAMES = "span|a|kbd|img|br|i|b|em|strong|sub|sup|u|input|var|cite|small|s|tt|samp|code|label|svg|p|div"
TAG = re.compile(rf"<(/?)({NAMES})((?:\s[^<>]*)?)(/?)>")
TEXT = re.compile(rf"<(?!/?(?:{NAMES})(?:\s[^<>]*)?/?>)")
"""A `<` that is text: what stands in for a folder or a value in the help."""


def read(path: str) -> list[str]:
    opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")  # noqa: SIM115
    with opened as file:
        return [line.rstrip("\n") for line in file]


def plain(line: str) -> str:
    return " ".join(html.unescape(TAG.sub("", line)).split())


def tags(line: str) -> Counter[str]:
    return Counter(match.group() for match in TAG.finditer(line))


def is_nested(line: str) -> bool:
    stack: list[str] = []
    for match in TAG.finditer(line):
        close, name, _, alone = match.groups()
        if alone:
            continue
        if not close:
            stack.append(name)
        elif not stack or stack.pop() != name:
            return False
    return not stack


def pairs(line: str) -> Counter[tuple[str, str]]:
    """(tag, the words in it) of each pair, marks and spaces at its edges aside."""
    found: Counter[tuple[str, str]] = Counter()
    opened: list[tuple[str, str, int]] = []
    for match in TAG.finditer(line):
        close, name, _, alone = match.groups()
        if alone:
            continue
        if not close:
            opened.append((name, match.group(), match.end()))
        else:
            for place in range(len(opened) - 1, -1, -1):
                if opened[place][0] == name:
                    _, tag, start = opened.pop(place)
                    found[tag, re.sub(r"^[\W_]+|[\W_]+$", "", plain(line[start : match.start()]))] += 1
                    break
    return found


def score(out: str, src: str, ref: str) -> None:
    ours, sources, theirs = read(out), read(src), read(ref)
    hypotheses, references = [plain(line) for line in ours], [[plain(line) for line in theirs]]
    bleu, chrf = sacrebleu.corpus_bleu(hypotheses, references), sacrebleu.corpus_chrf(hypotheses, references)
    print(f"text: BLEU {bleu.score:.2f}, chrF {chrf.score:.2f}")
    marked = [row for row, line in enumerate(sources) if TAG.search(line)]
    kept = sum(tags(ours[row]) == tags(sources[row]) for row in marked)
    nested = sum(is_nested(ours[row]) for row in marked)
    print(f"{len(marked):,} paragraphs with markup: tags kept {100 * kept / len(marked):.2f} %, ", end="")
    print(f"nested {100 * nested / len(marked):.2f} %")
    for kind in ("menuitem", "emph", "literal", "keycode", "input", "avis", "<a>", ""):
        wanted = right = 0
        for row in marked:
            of_ref = Counter({key: n for key, n in pairs(theirs[row]).items() if kind in key[0]})
            of_ours = pairs(ours[row])
            wanted += of_ref.total()
            right += (of_ref & of_ours).total()
        if wanted:
            share = 100 * right / wanted
            print(f"  {kind or 'all pairs':10} {wanted:5,} by the translators, {share:5.1f} % around the same words")
    there = right = 0
    for row in marked:
        of_ours, text = pairs(ours[row]), plain(ours[row])
        for (tag, words), count in pairs(theirs[row]).items():
            as_often = len(re.findall(rf"(?<!\w){re.escape(words)}(?!\w)", text)) == count
            if words and as_often and tag in tags(sources[row]):
                there += count
                right += min(count, of_ours[tag, words])
    print(f"{there:,} pairs whose words are there as often, {100 * right / max(there, 1):.1f} % around them")


def translate(run: str, src: str, out: str, codes: str = "pieces") -> None:
    from dragoman.formats.base import Edit, spliced
    from dragoman.pipeline.document import DocumentTranslator

    pipeline = dragoman.load(run).pipeline
    if codes == "links":
        pipeline.__dict__["carries_codes"] = False
    document = DocumentTranslator(pipeline)
    page = "".join(f"<p>{TEXT.sub('&lt;', line)}</p>\n" for line in read(src))
    units = list(text_units(page, Options()))
    edits = []
    for start in range(0, len(units), 256):
        chunk = units[start : start + 256]
        for unit, items in zip(chunk, document(chunk), strict=True):
            if items is not None:
                edits.append(Edit(unit.start, unit.end, unit.render(items)))
    lines = [line[3:-4] for line in spliced(page, edits).splitlines()]
    Path(out).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{document.report.codes:,} codes, {document.report.wrapped} texts with their codes around the whole")


def items_of(line: str) -> tuple[Item | Code, ...]:
    """The items of a paragraph."""
    units = list(text_units(f"<p>{TEXT.sub('&lt;', line)}</p>", Options()))
    return units[0].items if len(units) == 1 else ()


if __name__ == "__main__":
    {"translate": translate, "score": score}[sys.argv[1]](*sys.argv[2:])
