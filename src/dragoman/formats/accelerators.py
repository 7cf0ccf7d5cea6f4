"""Accelerators of menus and buttons: the letter that a key presses, marked by `_` (GTK), `&` (Qt, Windows) or `~`.

`_File`, `E&xit`, `~Save`; where the words have no such letter, behind them: `文件(_F)`. LyX has them behind all words:
`Open Inset|O`.
"""

import re

import regex

_BEHIND = re.compile(r"\s?[(（]([_&~])[A-Za-z0-9][)）]")
_MARKED = {
    "_": re.compile(r"(?<!_)_(?=[^\W\d_])"),
    "&": re.compile(r"(?<![A-Z&])&(?=[^\W\d_])|(?<!&)&(?=[a-z])"),  # not that of R&D
    "~": re.compile(r"(?<!~)~(?=[^\W\d_]{2})"),
}
_AFTER_BAR = re.compile(r"(?<=\S)\|\w$")
_LOWER_NAME = re.compile(r"[a-z0-9]\S*")
LONGEST_LABEL = 60
"""Characters of the text of a button or a menu."""
_ENTITY = re.compile(r"&(?:[A-Za-z]{1,32}|#\d{1,7}|#x[0-9A-Fa-f]{1,6});")
_NAME = re.compile(r"\w*_\w*")


def accelerator(text: str) -> str:
    """The mark of a text's accelerator; "" for a text that has none.

    >>> accelerator("_File"), accelerator("文件(&F)"), accelerator("Fish & chips"), accelerator("&lt;b&gt;")
    ('_', '&', '', '')
    """
    if match := _BEHIND.search(text):
        return match[1]
    marks = [mark for mark in "_&~" if len(_MARKED[mark].findall(_ENTITY.sub("", text))) == 1]
    return marks[0] if len(marks) == 1 else ""


def without_accelerator(text: str, mark: str) -> str:
    """The text without the mark of its accelerator.

    >>> without_accelerator("E_xit", "_"), without_accelerator("文件(_F)...", "_")
    ('Exit', '文件...')
    """
    bare = _BEHIND.sub("", text, count=1)
    return bare if bare != text else _MARKED[mark].sub("", text, count=1)


def accelerator_in(text: str) -> str:
    """The mark of the accelerator in a text without a translation to compare with; "" if it seems to have no
    accelerator.

    >>> [accelerator_in(text) for text in ("E_xit", "_Save as…", "my_name is set", "a=1&b=2", "~/notes", "Q&A")]
    ['_', '_', '', '', '', '']
    >>> accelerator_in("Journal_names_(ISO)")
    ''
    """
    mark = accelerator(text)
    if not mark or len(text) > LONGEST_LABEL or re.search(r"[/=<>{}\\`]|\.\w", text) or _LOWER_NAME.fullmatch(text):
        return ""
    is_name = any(name[0] != "_" and not name[0].isupper() for name in _NAME.findall(text))
    if mark == "_" and (is_name or text.count("_") > 1):
        return ""
    return mark


def with_accelerator(text: str, like: str, mark: str) -> str:
    """A text with the accelerator of another one: before the same letter, where a word begins with it, or else before
    its first; behind a text without letters that have a case.

    >>> with_accelerator("Save file", "_Datei speichern", "_"), with_accelerator("Open", "&Datei...", "&")
    ('_Save file', '&Open')
    >>> with_accelerator("文件...", "&File...", "&"), with_accelerator("File", "文件(_F)", "_")
    ('文件(&F)...', '_File')
    """
    behind = _BEHIND.search(like)
    place = like.index(mark) + 1
    letter = like[place]
    begins = [
        match.start()
        for match in regex.finditer(r"(?<![\p{L}\p{N}\p{M}])\p{L}", text)
        if text[match.start()].isupper() or text[match.start()].islower()
    ]
    if not begins:
        shown = letter.upper() if letter.isascii() else "A"
        end = re.search(r"(?:\.{3}|[…:：.。])?\s*$", text)
        at = end.start() if end else len(text)
        return text if behind and behind[0] in text else f"{text[:at]}({mark}{shown}){text[at:]}"
    at = next((begin for begin in begins if text[begin].casefold() == letter.casefold()), begins[0])
    return text[:at] + mark + text[at:]


def _is_label(text: str) -> bool:
    """True for a text that a button or a menu may have."""
    return len(text) < LONGEST_LABEL and not _LOWER_NAME.fullmatch(text)


def without_accelerators(src: str, tgt: str) -> tuple[str, str]:
    """A text and its translation without the mark of their accelerator, where both have the same mark. A name that is
    in both texts has no accelerator: `file_name`. The translation may have left the mark out.

    >>> without_accelerators("Save _as...", "Speichern _unter …")
    ('Save as...', 'Speichern unter …')
    >>> without_accelerators("set file_name", "setze file_name")
    ('set file_name', 'setze file_name')
    >>> without_accelerators("Lo_wer case", "Minuscules"), without_accelerators("my_name", "mon nom")
    (('Lower case', 'Minuscules'), ('my_name', 'mon nom'))
    >>> without_accelerators("Copy", "_Kopieren"), without_accelerators("/_View/Tool _bar", "/_Ansicht/_Leiste")
    (('Copy', 'Kopieren'), ('/View/Tool bar', '/Ansicht/Leiste'))
    >>> without_accelerators("Questions and answers", "Fragen&Antworten")
    ('Questions and answers', 'Fragen&Antworten')
    >>> without_accelerators("Open Inset|O", "Einfügung öffnen|ö"), without_accelerators("unit|L", "L")
    (('Open Inset', 'Einfügung öffnen'), ('unit|L', 'L'))
    """
    if _AFTER_BAR.search(src) and (_AFTER_BAR.search(tgt) or ("|" not in tgt and len(tgt) > 1)):
        src, tgt = _AFTER_BAR.sub("", src), _AFTER_BAR.sub("", tgt)
    if src.startswith("/") and tgt.startswith("/") and 1 < src.count("/") == tgt.count("/"):  # the way through menus
        steps = [without_accelerators(*pair) for pair in zip(src.split("/"), tgt.split("/"), strict=True)]
        return "/".join(one for one, _ in steps), "/".join(other for _, other in steps)
    mark, other = accelerator(src), accelerator(tgt)
    if mark and mark not in tgt and _is_label(src):
        return without_accelerator(src, mark), tgt
    if other and other not in src and _is_label(tgt) and re.search(rf"(?<!\w){other}", tgt):  # not `Fragen&Antworten`
        return src, without_accelerator(tgt, other)
    if not mark or other != mark:
        return src, tgt
    if mark == "_" and {name for name in _NAME.findall(src) if not name.startswith("_")} & set(_NAME.findall(tgt)):
        return src, tgt
    return without_accelerator(src, mark), without_accelerator(tgt, mark)
