"""Seconds of a processor to read files of 10, 20 and 40 thousand entries, and whether they grow as the files do.

    python benchmarks/readers.py [--entries 10000 20000 40000]

Makes a PO, MO, TMX, XLIFF, CSV and XLSX, and documents in two languages (HTML, Markdown, JSON, properties, Android,
subtitles, text); reads each as `train --files` does, and opens those that can be translated as `translate` does. Then
the whole of a collection: read, cleaned, examined, split. A ratio of 2 where the size doubles is in proportion.
"""

import argparse
import itertools
import json
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import escape

import openpyxl

from dragoman.corpora import embedded
from dragoman.doctor.assembly import gathered
from dragoman.doctor.collection import collect
from dragoman.errors import DragomanError
from dragoman.formats.base import Options
from dragoman.formats.document import Document
from dragoman.text.corpus import CollectionConfig

Pairs = Sequence[tuple[str, str]]
LANGUAGES = ("de", "en")


def po(pairs: Pairs) -> str:
    entries = "\n".join(
        f"#: file.c:{n}\nmsgid {json.dumps(src)}\nmsgstr {json.dumps(tgt)}\n" for n, (src, tgt) in enumerate(pairs)
    )
    return 'msgid ""\nmsgstr "Language: en\\nX-Source-Language: de\\n"\n\n' + entries


def mo(pairs: Pairs) -> bytes:
    messages = sorted([(b"", b"Language: en\nX-Source-Language: de\n"), *((s.encode(), t.encode()) for s, t in pairs)])
    at, tables, strings = 28 + 16 * len(messages), [], []
    for side in (0, 1):
        for message in messages:
            tables.append(struct.pack("<2I", len(message[side]), at))
            strings.append(message[side] + b"\0")
            at += len(message[side]) + 1
    head = struct.pack("<7I", 0x950412DE, 0, len(messages), 28, 28 + 8 * len(messages), 0, 0)
    return head + b"".join(tables) + b"".join(strings)


def tmx(pairs: Pairs) -> str:
    units = "".join(
        f'<tu><tuv xml:lang="de"><seg>{escape(src)}</seg></tuv>\n'
        f'<tuv xml:lang="en"><seg>{escape(tgt)}</seg></tuv></tu>\n'
        for src, tgt in pairs
    )
    return f'<tmx version="1.4"><header srclang="de"/><body>\n{units}</body></tmx>\n'


def xliff(pairs: Pairs) -> str:
    units = "".join(
        f'<trans-unit id="{n}"><source>{escape(src)}</source>\n<target>{escape(tgt)}</target></trans-unit>\n'
        for n, (src, tgt) in enumerate(pairs)
    )
    file = '<file source-language="de" target-language="en">'
    return f'<xliff version="1.2">{file}<body>\n{units}</body></file></xliff>\n'


def csv(pairs: Pairs) -> str:
    return "".join(f'"{n}","{src}","{tgt}"\n' for n, (src, tgt) in enumerate([("German", "English"), *pairs]))


def xlsx(pairs: Pairs, path: Path) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in [("German", "English"), *pairs]:
        sheet.append(row)
    book.save(path)


DOCUMENTS: dict[str, Callable[[Sequence[str]], str]] = {
    "txt": lambda texts: "".join(f"{text}\n" for text in texts),
    "html": lambda texts: "".join(f'<p title="{escape(text)}">{escape(text)}</p>\n' for text in texts),
    "md": lambda texts: "".join(f"- {text}\n\n" for text in texts),
    "json": lambda texts: json.dumps({f"key{n}": text for n, text in enumerate(texts)}, indent=1),
    "properties": lambda texts: "".join(f"key{n} = {text}\n" for n, text in enumerate(texts)),
    "srt": lambda texts: "".join(f"{n}\n00:00:01,000 --> 00:00:02,000\n{text}\n\n" for n, text in enumerate(texts)),
    "xml": lambda texts: (
        "<resources>\n"
        + "".join(f'<string name="k{n}">{escape(text)}</string>\n' for n, text in enumerate(texts))
        + "</resources>\n"
    ),
}


def make(pairs: Pairs, folder: Path) -> None:
    """Write the files of so many pairs."""
    texts: dict[str, str] = {"a.po": po(pairs), "c.tmx": tmx(pairs), "d.xlf": xliff(pairs), "e.csv": csv(pairs)}
    for kind, write in DOCUMENTS.items():
        texts |= {f"{kind}/{code}.{kind}": write([pair[side] for pair in pairs]) for side, code in enumerate(LANGUAGES)}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "b.mo").write_bytes(mo(pairs))
    xlsx(pairs, folder / "f.xlsx")


def opened(path: Path) -> Callable[[], int]:
    return lambda: sum(1 for _ in Document.load(path, Options(columns=("German",))).texts())


def read(*paths: Path) -> Callable[[], int]:
    def entries() -> int:
        [(record, entries)] = collect(CollectionConfig(paths=[str(path) for path in paths]), LANGUAGES)
        assert not record.note, record.note
        return len(entries)

    return entries


def jobs(folder: Path) -> dict[str, Callable[[], int]]:
    """What is measured, by name."""
    found: dict[str, Callable[[], int]] = {}
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        found[f"read {path.suffix[1:]}"] = read(path)
    for kind in DOCUMENTS:
        found[f"read {kind}, two files"] = read(folder / kind)
    for path in [*sorted(folder.glob("*.*")), *(folder / kind / f"de.{kind}" for kind in DOCUMENTS)]:
        try:
            Document.load(path)
        except DragomanError:  # a kind that is not translated
            continue
        found[f"open {path.suffix[1:]}"] = opened(path)
    found["collection of all"] = lambda: len(gathered(CollectionConfig(paths=[str(folder)]), LANGUAGES).files)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--entries", type=int, nargs="+", default=[10_000, 20_000, 40_000])
    arguments = parser.parse_args()
    seconds: dict[str, list[float]] = {}
    for count in arguments.entries:
        pairs = list(embedded.sentences("de-en", "train", count, 1))
        with TemporaryDirectory() as name:
            folder = Path(name)
            make(pairs, folder)
            for job, run in jobs(folder).items():
                start = time.process_time()
                run()
                seconds.setdefault(job, []).append(time.process_time() - start)
    print(f"{'seconds of entries':28}" + "".join(f"{count:>10,}" for count in arguments.entries) + "   ratios")
    for job, taken in seconds.items():
        ratios = " ".join(f"{after / before:.1f}" for before, after in itertools.pairwise(taken))
        print(f"{job:28}" + "".join(f"{value:10.2f}" for value in taken) + f"   {ratios}")


if __name__ == "__main__":
    main()
