"""The language that a file says it is in, changed to the target's when the file has been translated."""

import re
from collections.abc import Mapping, Sequence

from dragoman.formats import direction
from dragoman.formats.base import Edit, Finish, Options, spliced
from dragoman.formats.inline import escaped
from dragoman.formats.xml_texts import places_of
from dragoman.languages.codes import language_of, script_of, tag_of


def in_attributes(names: Mapping[str, Sequence[str]]) -> Finish:
    """Writes the target language into attributes of XML that name one: by an element's name, their names.

    `*` stands for every element. Values that name no language (`none`, `x-none`, `zxx`) stay.
    """
    places = places_of(names)

    def finish(text: str, options: Options) -> str:
        edits = []
        for start, end in places(text) if options.languages[1] else ():
            if text[start:end] and text[start:end].lower() not in ("none", "x-none", "zxx", "und"):
                edits.append(Edit(start, end, tag_of(options.languages[1], text[start:end])))
        return spliced(text, edits)

    return finish


def in_element(name: str, beside: bool = False) -> Finish:
    """Writes the target language as the text of the first element of that name: `dc:language`.

    `beside`: in an element of its own behind that one, which goes on being the language that the file is in first.
    """
    element = re.compile(rf"(<{name}\b[^<>]*+>\s*+)((?:[^<>\s]|\s++(?=[^<>\s]))*+)(\s*+</{name}>)")

    def finish(text: str, options: Options) -> str:
        if not options.languages[1]:
            return text

        def changed(tag: re.Match[str]) -> str:
            code = tag_of(options.languages[1], tag[2])
            if not beside:
                return tag[1] + escaped(code) + tag[3]
            is_there = code in (each[2] for each in element.finditer(text))
            return tag.group() if is_there else f"{tag.group()}\n<{name}>{escaped(code)}</{name}>"

        return element.sub(changed, text, count=1)

    return finish


def one_after_another(*all_of: Finish) -> Finish:
    """All of them."""

    def finish(text: str, options: Options) -> str:
        for each in all_of:
            text = each(text, options)
        return text

    return finish


def of_office(text: str, options: Options) -> str:
    """A part of an Office file with the target language in all formatting of text: that is for spelling checkers.

    Word has an attribute of its own for the languages of East Asia and for those that are written from the right.
    """
    tgt = options.languages[1]
    if not tgt:
        return text
    own = {"-asian": "eastAsia", "-complex": "bidi"}.get(_script_group(tgt), "")

    def with_own(tag: re.Match[str]) -> str:
        prefix, end = tag[1], "/>" if tag.group().endswith("/>") else ">"
        return f'{tag.group().removesuffix(end).rstrip()} {prefix}{own}="{tag_of(tgt, "de-DE")}"{end}'

    text = _OFFICE(text, options)
    text = direction.of_office(text, options)
    if own:
        text = re.sub(rf"<(\w+:)lang\b(?![^<>]*\b{own}=)[^<>]*>", with_own, text)
        text = in_attributes({"lang": (own,)})(text, options)
    return text


_OFFICE = in_attributes({
    "lang": ("val",), "themeFontLang": ("val",), "rPr": ("lang",), "endParaRPr": ("lang",), "defRPr": ("lang",),
    "fld": ("lang",),
})  # fmt: skip


def of_opendocument(text: str, options: Options) -> str:
    """A part of an OpenDocument file with the target language in all formatting of text.

    Western, Asian and complex scripts have attributes of their own.
    """
    tgt = options.languages[1]
    if not tgt:
        return text
    group = _script_group(tgt)
    prefix = "style" if group else "fo"
    language, _, region = tag_of(tgt, "de-DE").partition("-")
    region = region.rpartition("-")[2]

    def written(tag: re.Match[str]) -> str:
        said = re.sub(rf'(\s{prefix}:language{group}=")(?!none|zxx)[^"]*"', rf'\g<1>{language}"', tag.group())
        said = re.sub(rf'(\s{prefix}:country{group}=")(?!none)[^"]*"', rf'\g<1>{region or "none"}"', said)
        return re.sub(rf'(\sstyle:rfc-language-tag{group}=")[^"]*"', rf'\g<1>{tag_of(tgt, "de-DE")}"', said)

    text = direction.of_opendocument(text, options)
    return re.sub(r"<style:text-properties\b[^<>]*>", written, text)


def _script_group(code: str) -> str:
    """The group that a language's script belongs to, as OpenDocument names it: Asian, complex, or "" for Western."""
    script = script_of(code)
    return "-asian" if script in _ASIAN else "" if script in _WESTERN else "-complex"


_ASIAN = frozenset({"Hans", "Hant", "Jpan", "Kore"})
_WESTERN = frozenset({"", "Latn", "Cyrl", "Grek", "Armn", "Geor"})


def by_key(pattern: str) -> Finish:
    """Writes the target language where the first group of a pattern finds one: `"@@locale": "de"`."""
    compiled = re.compile(pattern, re.MULTILINE)

    def finish(text: str, options: Options) -> str:
        found = compiled.search(text)
        if found is None or language_of(found[1]) != language_of(options.languages[0]) or not options.languages[1]:
            return text
        tag = tag_of(options.languages[1], found[1])
        return f"{text[: found.start(1)]}{tag.replace('-', '_') if '_' in found[1] else tag}{text[found.end(1) :]}"

    return finish


of_messages = by_key(r'"@@locale"\s*:\s*"([A-Za-z]{2,3}(?:[-_][A-Za-z]+)*)"')
of_subtitles = by_key(r"\AWEBVTT[^\n]*\n(?:[^\n]+\n)*?Language:[ \t]*([A-Za-z]{2,3}(?:[-_][A-Za-z]+)*)")
of_front_matter = by_key(
    r"\A(?:---|\+\+\+)\r?\n(?:(?!---|\+\+\+)[^\n]*\n)*?"
    r"(?:lang|language|locale)[ \t]*[:=][ \t]*[\"']?([A-Za-z]{2,3}(?:[-_][A-Za-z]+)*)"
)
of_xml = by_key(r"\A(?:\s|<[?!](?:[^<>]|<[^<>]*>)*>)*<[^<>]*?\sxml:lang\s*=\s*[\"']([A-Za-z]{2,3}(?:[-_][A-Za-z]+)*)")
of_asciidoc = by_key(r"^:lang:[ \t]+([A-Za-z]{2,3}(?:[-_][A-Za-z]+)*)")
