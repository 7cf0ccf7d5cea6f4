"""The origins of a training corpus that was made of files: kinds of text, licences, numbers of pairs."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from dragoman.corpora import debian
from dragoman.doctor.assembly import RECORD
from dragoman.errors import DragomanError
from dragoman.text.corpus import FilesSource
from dragoman.text.lines import find


def origins_of(source: Any, pairs: int) -> list[dict[str, Any]]:
    """Pairs, packages or other documents of each kind and licence, the most first; none where nobody has written it.

    They are read from the record beside the text, if it is the record of so many training pairs.
    """
    if not isinstance(source, FilesSource):
        return []
    try:
        folder = find(source.src).parent
        files = json.loads((folder / RECORD).read_text(encoding="utf-8"))["files"]
        counts, documents = _counted(files, folder)
    except (OSError, ValueError, KeyError, TypeError, DragomanError):  # a file of this name that is something else
        return []
    if counts.total() != pairs:
        return []
    return [
        {"kind": kind, "licence": licence, "documents": len(documents[kind, licence]), "pairs": count}
        for (kind, licence), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _counted(
    files: list[dict[str, Any]], folder: Path
) -> tuple[Counter[tuple[str, str]], dict[tuple[str, str], set[str]]]:
    """(training pairs, documents) by kind and licence."""
    counts, documents = Counter[tuple[str, str]](), dict[tuple[str, str], set[str]]()
    has_licences = (folder.parent / debian.LICENCES).is_dir()
    for file in files:
        if count := file["fates"].get("train", 0):
            document = str(file["document"])
            if has_licences:
                group = debian.kind_of(file["path"]), debian.licence(folder.parent, Path(document).name)
            else:
                group = str(file["kind"]), ""
            counts[group] += count
            documents.setdefault(group, set()).add(document)
    return counts, documents
