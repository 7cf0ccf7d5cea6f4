"""PDF: its text alone, a line for each paragraph, as far as the file says. Layout is not kept."""

import io
import re
from pathlib import Path

from dragoman.errors import DragomanError, Error
from dragoman.languages.punctuation import ENDS

MAX_PAGES = 5_000


def text_of(data: bytes, name: str) -> str:
    """The text of a PDF. Raises DragomanError for a file that is broken, locked, or has no text."""
    try:
        import pypdf
    except ImportError as error:
        raise Error.NOT_INSTALLED("reading a PDF needs pypdf", "pip install 'dragoman[pdf]'", file=name) from error
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Error.LOCKED("is protected by a password", "save it without one", file=name)
        if len(reader.pages) > MAX_PAGES:
            raise Error.TOO_LARGE(f"more than {MAX_PAGES:,} pages", "split it", file=name)
        pages = [page.extract_text() for page in reader.pages]
    except DragomanError:
        raise
    except Exception as error:  # of many kinds: it reads whatever it can
        raise Error.DAMAGED(f"cannot be read as a PDF: {error}", file=name) from error
    text = "\n\n".join(_paragraphs(page) for page in pages)
    if not text.strip():
        raise Error.EMPTY("a PDF without text, a scan perhaps", "run it through OCR first", file=name)
    return text + "\n"


def _paragraphs(page: str) -> str:
    """Lines of a page joined to paragraphs: a line that ends with no mark goes on in the next, unless that is short."""
    lines = [line.strip() for line in page.split("\n")]
    longest = max(map(len, lines), default=0)
    out: list[str] = []
    joined = False
    for line in lines:
        if joined and line and out:
            before = out[-1]
            out[-1] = (
                before[:-1] + line if re.search(r"[^\W\d_]-$", before) and line[:1].islower() else f"{before} {line}"
            )
        else:
            out.append(line)
        joined = bool(line) and not re.search(rf"[{ENDS}:;]$", line) and len(line) > 0.7 * longest
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n")


def output_path(path: Path) -> Path:
    """The text file that a translation goes to."""
    return path.with_suffix(".txt")
