"""Planted mojibake: how many lines of each language are found and mended, and how many sound ones are taken for it.

    python benchmarks/mojibake.py ru=corpus.ru tr=corpus.tr zh-CN=corpus.zh

Every fifth line of the sample is written in each encoding that its language has, and read in each other one that people
read text in by mistake, where that loses nothing; what an encoding does not define is read as a control character.
"""

import argparse
import random
from collections import Counter
from pathlib import Path

from dragoman.quality.misread import Misread
from dragoman.text.lines import read_lines

READ_AS = (
    "cp1252", "cp1250", "cp1251", "koi8-r", "cp866", "cp437", "mac-roman", "cp1254", "cp1256", "gb18030", "cp950",
    "cp932", "cp949", "cp874",
)  # fmt: skip
EVERY, PLANTED = 5, 300


def misread(text: str, written_in: str, read_as: str) -> str | None:
    """A text as it looks when it is read in another encoding; None where that loses something, or changes nothing."""
    try:
        data = text.encode(written_in)
        found = ""
        while data:
            try:
                found, data = found + data.decode(read_as), b""
            except UnicodeDecodeError as error:
                if read_as in ("gb18030", "cp950", "cp932", "cp949"):
                    return None
                found += data[: error.start].decode(read_as) + chr(data[error.start])
                data = data[error.start + 1 :]
    except UnicodeEncodeError:
        return None
    return found if found != text and "\n" not in found and "\r" not in found else None


def main(language: str, path: Path, size: int, details: bool) -> None:
    lines = list(dict.fromkeys(line for line in read_lines(path) if any(map(str.isalpha, line))))
    sound = random.Random(1).sample(lines, min(size, len(lines)))
    detector = Misread(language)
    false = [line for line in sound if detector.is_misread(line)]
    rows: Counter[str] = Counter()
    by_pair = {}
    for written_in in detector.codecs:
        for read_as in READ_AS:
            sample = sound[:PLANTED]
            planted = {
                row: changed
                for row in range(0, len(sample), EVERY)
                if read_as != written_in and (changed := misread(sample[row], written_in, read_as)) is not None
            }
            if len(planted) < 5:
                continue
            reader = Misread(language)
            for row, line in enumerate(sample):
                reader.is_misread(planted.get(row, line))
            mended = [reader.repaired(changed) for changed in planted.values()]
            counts = Counter(
                planted=len(planted),
                found=sum(one != changed for one, changed in zip(mended, planted.values(), strict=True)),
                mended=sum(one == sample[row] for one, row in zip(mended, planted, strict=True)),
            )
            by_pair[f"{written_in} as {read_as}"] = counts
            rows += counts
    shares = ", ".join(f"{name} {100 * rows[name] / max(1, rows['planted']):.1f} %" for name in ("found", "mended"))
    alarms = f"{len(false)} of {len(sound)} sound lines"
    print(f"{language}: {len(by_pair)} pairs, {rows['planted']} planted, {shares}; {alarms}", flush=True)
    if details:
        for pair, counts in by_pair.items():
            if counts["mended"] < 0.9 * counts["planted"]:
                print("   ", pair, dict(counts))
        for line in false[:10]:
            print("   ", line, "->", detector.repaired(line), detector.reading_of(line)[1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="code=path")
    parser.add_argument("--size", type=int, default=3000, help="sound lines of each language (default: 3,000)")
    parser.add_argument("--details", action="store_true", help="pairs of encodings of which less than 90 %% are mended")
    given = parser.parse_args()
    for each in given.files:
        code, _, name = each.partition("=")
        main(code, Path(name), given.size, given.details)
