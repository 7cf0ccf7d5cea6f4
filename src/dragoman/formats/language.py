"""The language that a file says it is in, changed to the target's when the file has been translated."""

import re
from collections.abc import Mapping, Sequence
from functools import partial

from dragoman.formats import direction
from dragoman.formats.base import Edit, Finish, Options, spliced
from dragoman.formats.inline import escaped
from dragoman.formats.xml_texts import places_of
from dragoman.languages.codes import language_of, script_of, tag_of


def tag_like(code: str, like: str) -> str:
    """The tag of a language, spelled as another one is: with a region, and with a line between its parts.

    >>> tag_like("ar", "en"), tag_like("ar", "en_US")
    ('ar', 'ar_EG')
    """
    tag = tag_of(code, like)
    return tag.replace("-", "_") if "_" in like else tag


def in_attributes(names: Mapping[str, Sequence[str]], *, of_source: bool = False) -> Finish:
    """Writes the target language into attributes of XML that name one: by an element's name, their names.

    `*` stands for every element. Values that name no language (`none`, `x-none`, `zxx`) stay; `of_source`: so do those
    that name another one than the source's.
    """
    places = places_of(names)

    def finish(text: str, options: Options) -> str:
        src, tgt = options.languages
        edits = []
        for start, end in places(text) if tgt else ():
            code = text[start:end]
            is_other = of_source and language_of(code) != language_of(src)
            if code and code.lower() not in ("none", "x-none", "zxx", "und") and not is_other:
                edits.append(Edit(start, end, tag_like(tgt, code) if of_source else tag_of(tgt, code)))
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

    Word has an attribute of its own for the languages of East Asia and for those of complex scripts (Arabic, Hindi,
    Thai ...), and a size, boldness, slant and font of their own for these.
    """
    src, tgt = options.languages
    if not tgt:
        return text
    own = {"-asian": "eastAsia", "-complex": "bidi"}.get(_script_group(tgt), "")

    def with_own(tag: re.Match[str]) -> str:
        prefix, end = tag[1], "/>" if tag.group().endswith("/>") else ">"
        return f'{tag.group().removesuffix(end).rstrip()} {prefix}{own}="{tag_of(tgt, "de-DE")}"{end}'

    text = _OFFICE(text, options)
    text = direction.of_office(text, options)
    if own:
        text = re.sub(rf"<(\w+:)(?:lang|themeFontLang)\b(?![^<>]*\b{own}=)[^<>]*>", with_own, text)
        text = in_attributes({"lang": (own,), "themeFontLang": (own,)})(text, options)
    if (own == "bidi") != (_script_group(src) == "-complex"):
        one, other = ("", "Cs") if own == "bidi" else ("Cs", "")
        text = _PROPERTIES.sub(partial(_with_twins, one, other), text)
    return text


_OFFICE = in_attributes({
    "lang": ("val",), "themeFontLang": ("val",), "rPr": ("lang",), "endParaRPr": ("lang",), "defRPr": ("lang",),
    "fld": ("lang",),
})  # fmt: skip
_PROPERTIES = re.compile(r"<(?!a:|m:)(\w+:)rPr>(?:[^<]++|<(?!/?\1rPr>))*+")
_FONTS = re.compile(r"<(\w+:)rFonts(?=\s)[^<>]*?(?=\s*/?>)")


def _with_twins(one: str, other: str, properties: re.Match[str]) -> str:
    """The properties of a run of Word, said for complex scripts (`Cs`) as they are for others (""), or the reverse."""
    text = properties[0]
    for name in ("b", "i", "sz"):
        if not re.search(rf":{name}{other}[\s/]", text):
            both = rf"\g<0>\1{name}{other}\2" if other else rf"\1{name}\2\g<0>"
            text = re.sub(rf"(<\w+:){name}{one}((?:\s[^<>]*)?/>)", both, text, count=1)
    return _FONTS.sub(partial(_with_fonts, bool(other)), text)


def _with_fonts(is_complex: bool, fonts: re.Match[str]) -> str:
    """The fonts of a run of Word: with the font for complex scripts, or with the fonts for all other scripts."""
    named = dict(re.findall(r'\s\w+:(\w+)="([^"]+)"', fonts[0]))
    has_other = {"cs", "cstheme"} if is_complex else {"ascii", "hAnsi", "asciiTheme", "hAnsiTheme"}
    if not has_other.isdisjoint(named):
        return fonts[0]
    theme = named.get("asciiTheme" if is_complex else "cstheme", "")[:5]  # major, minor
    value = f"{theme}{'Bidi' if is_complex else 'HAnsi'}" if theme else named.get("ascii" if is_complex else "cs", "")
    by_name, by_theme = (("cs",), ("cstheme",)) if is_complex else (("ascii", "hAnsi"), ("asciiTheme", "hAnsiTheme"))
    added = (by_theme if theme else by_name) if value else ()
    return fonts[0] + "".join(f' {fonts[1]}{name}="{value}"' for name in added)


def of_opendocument(text: str, options: Options) -> str:
    """A part of an OpenDocument file with the target language in all formatting of text.

    Western, Asian and complex scripts have attributes of their own, for sizes, boldness and slant too. The usual
    formatting has the language of the target's script in any case.
    """
    src, tgt = options.languages
    if not tgt:
        return text
    language, _, region = tag_of(tgt, "de-DE").partition("-")
    groups = tuple(map(_script_group, (src, tgt)))
    values = {"language": language, "country": region.rpartition("-")[2] or "none"}

    def written(tag: re.Match[str]) -> str:
        markup = tag.group()
        for group in {"", groups[1]}:
            for name, value in values.items():
                markup = re.sub(rf'(\s{_of_group(name, group)}=")(?!none|zxx)[^"]*"', rf'\g<1>{value}"', markup)
            markup = re.sub(rf'(\sstyle:rfc-language-tag{group}=")[^"]*"', rf'\g<1>{tag_of(tgt, "de-DE")}"', markup)
        return _with_twins_of(markup, *groups) if groups[0] != groups[1] else markup

    def usual(tag: re.Match[str]) -> str:
        own = "|".join(_of_group(name, groups[1]) for name in values)
        left = re.sub(rf'\s(?:{own})="[^"]*"', "", tag[2])
        return tag[1] + "".join(f' {_of_group(name, groups[1])}="{value}"' for name, value in values.items()) + left

    text = re.sub(r"<style:text-properties\b[^<>]*>", written, direction.of_opendocument(text, options))
    return _USUAL.sub(usual, text) if groups[1] else text


_USUAL = re.compile(
    r"(<style:default-style\b[^<>]*(?<!/)>(?:[^<]++|<(?!/?style:default-style\b|style:text-properties\b))*+"
    r"<style:text-properties\b)([^<>]*>)"
)


def _of_group(name: str, group: str) -> str:
    """The name of an attribute for a group of scripts.

    >>> _of_group("language", ""), _of_group("language", "-asian")
    ('fo:language', 'style:language-asian')
    """
    return f"style:{name}{group}" if group else f"fo:{name}"


def _with_twins_of(tag: str, src: str, tgt: str) -> str:
    """Formatting of text with a size, boldness and slant for a group of scripts, if it has one for another group."""
    for name in ("font-size", "font-style", "font-weight"):
        value = re.search(rf'\s{_of_group(name, src)}="([^"]*)"', tag)
        if value and f" {_of_group(name, tgt)}=" not in tag:
            tag = re.sub(r"\s*/?>$", rf' {_of_group(name, tgt)}="{value[1]}"\g<0>', tag)
    return tag


def _script_group(code: str) -> str:
    """The group that a language's script belongs to, as OpenDocument names it: Asian, complex, or "" for Western."""
    script = script_of(code)
    return "-asian" if script in _ASIAN else "" if script in _WESTERN else "-complex"


_ASIAN = frozenset({"Hans", "Hant", "Jpan", "Kore"})
_WESTERN = frozenset({"", "Latn", "Cyrl", "Grek", "Armn", "Geor"})


def by_key(pattern: str) -> Finish:
    """Writes the target language wherever the first group of a pattern finds the source's: `"@@locale": "de"`."""
    compiled = re.compile(pattern, re.MULTILINE)

    def finish(text: str, options: Options) -> str:
        src, tgt = options.languages
        matches = [one for one in compiled.finditer(text) if tgt and language_of(one[1]) == language_of(src)]
        return spliced(text, [Edit(*one.span(1), tag_like(tgt, one[1])) for one in matches])

    return finish


_CODE = r"([A-Za-z]{2,3}(?:[-_][A-Za-z]+)*)"
of_subtitles = by_key(rf"\AWEBVTT[^\n]*\n(?:[^\n]+\n)*?Language:[ \t]*{_CODE}")
of_front_matter = one_after_another(
    by_key(rf"\A(?:---|\+\+\+)\r?\n(?:(?!---|\+\+\+)[^\n]*\n)*?(?:lang|language|locale)[ \t]*[:=][ \t]*[\"']?{_CODE}"),
    direction.of_front_matter,
)
of_xml = one_after_another(
    by_key(rf"\A(?:\s|<[?!](?:[^<>]|<[^<>]*>)*>)*<[^<>]*?\s(?:xml:)?lang\s*=\s*[\"']{_CODE}"),
    in_attributes({"*": ("xml:lang",)}, of_source=True),
    direction.of_xml,
)
of_ttml = one_after_another(
    in_attributes({"tt": ("lang",)}), in_attributes({"*": ("xml:lang",)}, of_source=True), direction.of_ttml
)
of_android = in_attributes({"resources": ("tools:locale",)}, of_source=True)
of_asciidoc = by_key(rf"^:lang:[ \t]+{_CODE}")
of_rest = by_key(rf"^[ \t]+:[\w-]+[ \t]+lang={_CODE}")
