"""Multi30k's French and Czech beside pairs of English and German: the corpus of `multi30k.md`, "Four languages".

    python benchmarks/four_languages.py diversified/train.lc.norm.tok.en diversified/train.lc.norm.tok.de four-languages

Behind the pairs of the two files come English to French and English to Czech, a mark before the source saying so, and
French to German and Czech to German, where the text itself says it: the same 29,000 captions throughout. The Czech has
no tokenised version in the dataset and is lower-cased and cut at punctuation here. It also writes the French and the
Czech by themselves (`train.fr`, `train.cs`), to be translated by what is trained.
"""

import re
import sys
from pathlib import Path

from dragoman.text.lines import find, read_lines

TOKENISED = "multi30k-tok/train.lc.norm.tok.{}.gz"
WORDS_AND_MARKS = re.compile(r"\w+|[^\w\s]")


def main(src: str, tgt: str, out: Path) -> None:
    english, german, french = (list(read_lines(find(TOKENISED.format(code)))) for code in ("en", "de", "fr"))
    czech = [" ".join(WORDS_AND_MARKS.findall(line.lower())) for line in read_lines(find("multi30k/train.cs.gz"))]
    sides = list(read_lines(find(src))), list(read_lines(find(tgt)))
    for sources, targets in (
        ([f"2fr {line}" for line in english], french),
        ([f"2cs {line}" for line in english], czech),
        (french, german),
        (czech, german),
    ):
        assert len(sources) == len(targets), "Multi30k is parallel"
        sides[0].extend(sources)
        sides[1].extend(targets)
    out.mkdir(parents=True)
    for name, lines in (("train.src", sides[0]), ("train.tgt", sides[1]), ("train.fr", french), ("train.cs", czech)):
        (out / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(sides[0]):,} pairs in {out}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
