"""PowerPoint presentations (.pptx): slides, what their masters show on them, notes and comments."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from dragoman.formats.base import Options, Part, Unit, aside
from dragoman.formats.encoding import decoded
from dragoman.formats.language import of_office
from dragoman.formats.office import FIELDS, described, paragraphs, parts_by_kind
from dragoman.formats.package import Package
from dragoman.formats.xml_texts import contents_of, values_of

PROMPT = "prompts of a layout, which no reader sees"
_HIDDEN = re.compile(r"<(?:\w+:)?sld\b[^<>]*\sshow=[\"'](?:0|false)[\"']")
_SHAPE = re.compile(r"<(?:\w+:)?sp>(?:(?!<(?:\w+:)?sp>).)*?</(?:\w+:)?sp>", re.DOTALL)
_PLACEHOLDER = re.compile(r"<(?:\w+:)?ph\b")


def parts(package: Package) -> dict[str, Part]:
    """The parts of a presentation that hold text."""
    by_name = parts_by_kind(package, KINDS)
    for name, part in by_name.items():
        if part is SLIDE and _HIDDEN.search(decoded(package.read(name), name, "xml")[0]):
            by_name[name] = Part(aside("hidden", *SLIDE.passes), SLIDE.finish)
    return by_name


def of_master(text: str, options: Options) -> Iterator[Unit]:
    """The texts of a master or a layout: those of placeholders are prompts for whoever fills them in."""
    prompts = deque(shape.span() for shape in _SHAPE.finditer(text) if _PLACEHOLDER.search(shape.group()))
    for unit in paragraphs(0)(text, options):
        while prompts and prompts[0][1] <= unit.start:
            prompts.popleft()
        is_prompt = bool(prompts) and prompts[0][0] <= unit.start
        yield replace(unit, kept=PROMPT) if is_prompt else unit


_FIELDS = contents_of(("t",), "field", within=("fld",), kept=FIELDS)
SLIDE = Part((described, _FIELDS, paragraphs(0)), of_office)
_MASTER = Part((described, of_master), of_office)
KINDS = {
    "slide": SLIDE,
    "notesslide": Part(aside("notes", *SLIDE.passes), of_office),
    **dict.fromkeys(("slidemaster", "slidelayout", "notesmaster", "handoutmaster"), _MASTER),
    "comments": Part(aside("comments", contents_of(("text",), "comment"), paragraphs(0)), of_office),
    **dict.fromkeys(
        ("officedocument", "presentation"), Part((values_of({"section": ("name",)}, "section of slides"),), of_office)
    ),
}
