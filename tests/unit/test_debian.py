"""The corpus of Debian's packages: what is downloaded, what is read, which paragraphs translate each other."""

import gzip
import hashlib
import io
import json
import lzma
import os
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.errors import raises_error
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.corpora import debian, parallel_pages
from dragoman.errors import Error
from dragoman.formats import archive
from dragoman.formats.bitext import po_entries

CATALOGUE = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "Open"\nmsgstr "\xc3\x96ffnen"\n'
COPYRIGHT = (
    b"Format: https://example.org\n\nFiles: *\nCopyright: 2020 A\n 2021 B\nLicense: GPL-2+\n\nFiles: x\nLicense: MIT\n"
)


def tar(files: dict[str, bytes | tuple[str, bytes]], suffix: str = ".xz") -> bytes:
    """A tar archive; a name with a pair for content is a link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as target:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, tuple):
                info.type, info.linkname = content[1], content[0]
                target.addfile(info)
            else:
                info.size = len(content)
                target.addfile(info, io.BytesIO(content))
    packed = {".xz": lzma.compress, ".gz": lambda data: gzip.compress(data, mtime=0), "": bytes}[suffix](out.getvalue())
    return packed


def deb(path: Path, files: dict[str, bytes | tuple[str, bytes]], suffix: str = ".xz") -> Path:
    """A Debian package with these files."""
    out = b"!<arch>\n"
    for name, data in {
        "debian-binary": b"2.0\n",
        "control.tar.xz": tar({}),
        f"data.tar{suffix}": tar(files, suffix),
    }.items():
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(out)
    return path


def gz(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


MAN = (
    '.TH LS 1 "May 2020"\n.SH NAME\nls \\- list files\n.SH OPTIONS\nList the\n.B files\nof a\n.IR folder .\n.PP'
    '\nA second one.\n.TP\n\\fB\\-a\\fR, \\fB\\-\\-all\\fR\nall of them\n.nf\n$ ls\n.fi\n.SH "SEE ALSO"\n.BR cp (1)\n'
)
MAN_DE = (
    '.TH LS 1 "Mai 2020"\n.SH BEZEICHNUNG\nls \\- Dateien auflisten\n.SH OPTIONEN\nListet die \\fBDateien\\fP\neines '
    "\\fIOrdners\\fP auf.\n.PP\nEin zweiter.\n.TP\n\\fB\\-a\\fP, \\fB\\-\\-all\\fP\nalle davon\n.nf\n$ ls\n.fi\n"
    '.SH "SIEHE AUCH"\n\\fBcp\\fP(1)\n.SH ÜBERSETZUNG\nDie Übersetzung ist von Anna.\n'
)
PAGE = (
    "<page><info><title type='link'>Sound</title></info><p>Press <keyseq><key>Ctrl</key><key>A</key></keyseq>.</p>{}"
    "</page>"
)
TRANSLATION = {
    "en": "Package: ls\nDescription-md5: 1\nDescription-en: lists files\n It lists\n files.\n .\n  * fast\n  * small\n",
    "de": "Package: ls\nDescription-md5: 1\nDescription-de: listet auf\n"
    " Es listet Dateien.\n .\n  * schnell\n  * klein\n",
}


def packages(folder: Path) -> Path:
    deb(
        folder / "tool_1.0_all.deb",
        {
            "./usr/share/locale/de/LC_MESSAGES/tool.po": CATALOGUE,
            "./usr/share/locale/fr/LC_MESSAGES/tool.po": CATALOGUE,
            "./usr/share/locale/de_AT/LC_MESSAGES/tool.po": CATALOGUE,
            "./usr/share/tool/i18n/tool_de_DE.po": CATALOGUE,
            "./usr/bin/tool": b"\x7fELF",
            "./usr/share/doc/tool/copyright": COPYRIGHT,
            "./usr/share/help/C/tool/a.page": PAGE.format("<p>More.</p>").encode(),
            "./usr/share/help/de/tool/a.page": PAGE.replace("Sound", "Klang")
            .replace("Press", "Drücke")
            .format("<p>Mehr.</p>")
            .encode(),
            "./usr/share/locale/de/LC_MESSAGES/link.po": ("/etc/passwd", tarfile.SYMTYPE),
        },
    )
    deb(folder / "coreutils_9_amd64.deb", {"./usr/share/man/man1/ls.1.gz": gz(MAN)}, ".gz")
    deb(folder / "manpages-de_4_all.deb", {"./usr/share/man/de/man1/ls.1.gz": gz(MAN_DE)}, "")
    (folder / "sources_1.orig.tar.gz").write_bytes(tar({"sources-1/po/de.po": CATALOGUE}, ".gz"))
    for code, text in TRANSLATION.items():
        (folder / f"Translation-{code}.gz").write_bytes(gz(text))
    return folder


def texts(path: Path) -> list[tuple[str, str]]:
    return [(entry.src, entry.tgt) for entry in po_entries(path.read_bytes(), path.name)]


def test_what_packages_have_of_a_language_is_unpacked(tmp_path: Path) -> None:
    found = packages(tmp_path / "debs")
    done = debian.unpack(debian.in_folder(found), ("en", "de"), tmp_path / "to")
    files = tmp_path / "to/files"
    assert sorted(path.relative_to(files).as_posix() for path in files.rglob("*") if path.is_file()) == [
        "descriptions/descriptions.de.po",
        "manpages-de/manual.de.po",
        "sources/po/de.po",
        "tool/help.de.po",
        "tool/usr/share/locale/de/LC_MESSAGES/tool.po",
        "tool/usr/share/tool/i18n/tool_de_DE.po",
    ]
    assert (files / "tool/usr/share/locale/de/LC_MESSAGES/tool.po").read_bytes() == CATALOGUE
    assert (done.packages, done.catalogues, done.pages) == (4, 3, 2)
    assert texts(files / "tool/help.de.po") == [
        ("Sound", "Klang"),
        ("Press Ctrl+A.", "Drücke Ctrl+A."),
        ("More.", "Mehr."),
    ]
    assert texts(files / "manpages-de/manual.de.po") == [
        ("NAME", "BEZEICHNUNG"),
        ("ls - list files", "ls - Dateien auflisten"),
        ("OPTIONS", "OPTIONEN"),
        ("List the files of a folder.", "Listet die Dateien eines Ordners auf."),
        ("A second one.", "Ein zweiter."),
        ("all of them", "alle davon"),
        ("SEE ALSO", "SIEHE AUCH"),
    ]
    assert texts(files / "descriptions/descriptions.de.po") == [
        ("lists files", "listet auf"),
        ("It lists files.", "Es listet Dateien."),
        ("fast", "schnell"),
        ("small", "klein"),
    ]
    assert debian.licence(tmp_path / "to", "tool") == "GPL-2+"
    assert debian.licence(tmp_path / "to", "descriptions") == debian.NO_LICENCE


def test_no_other_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, read = packages(tmp_path / "debs"), list[str]()
    files = archive.files

    def noted(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
        for name, data in files(path, wanted):
            read.append(name)
            yield name, data

    monkeypatch.setattr(archive, "files", noted)
    debian.unpack(debian.in_folder(found), ("en", "de"), tmp_path / "to")
    assert len(read) == 8
    assert not any("bin" in name or "fr/" in name or "AT" in name for name in read)


def test_the_same_packages_give_the_same_bytes(tmp_path: Path) -> None:
    found = packages(tmp_path / "debs")
    contents = []
    for name in ("one", "two"):
        debian.unpack(
            list(reversed(debian.in_folder(found))) if name == "two" else debian.in_folder(found),
            ("en", "de"),
            tmp_path / name,
        )
        folder = tmp_path / name / "files"
        contents.append(
            {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        )
    assert contents[0] == contents[1]


def test_a_page_whose_sections_differ_gives_the_others() -> None:
    source = parallel_pages.markup("<h1>A</h1><p>one</p><h1>B</h1><p>two</p><p>three</p>")
    target = parallel_pages.markup("<h1>a</h1><p>eins</p><h1>b</h1><p>zwei</p>")
    assert list(parallel_pages.pairs(source, target)) == [("A", "a"), ("one", "eins")]
    assert list(parallel_pages.pairs(source, parallel_pages.markup("<p>eins</p>"))) == []


def test_texts_with_gaps_and_unknown_entities_are_left_out() -> None:
    page = (
        '<!DOCTYPE a [<!ENTITY kde "KDE">]><title>2.1. For &kde; &lt;b&gt;</title><ul class="docnav">no</ul>'
        "<para>See <xref/>.</para><para>&no; x</para>"
    )
    assert [block.text for block in parallel_pages.markup(page)] == ["For KDE <b>", "", ""]
    links = (
        '<para>At <ulink url="http://x"></ulink>.</para><para>At <ulink url="y"/>.</para><para>A <link>b</link></para>'
    )
    assert [block.text for block in parallel_pages.markup(links)] == ["", "", "A b"]
    assert [block.text for block in parallel_pages.markup("<td>3. digit</td>")] == ["3. digit"]  # no heading's number
    assert [block.text for block in parallel_pages.markup(page, {"no": "<b>yes</b>"})] == ["For KDE <b>", "", "yes x"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (r"a \(lqb\(rq \e \&c\/d\-e \(em", "a “b” \\ cd-e —"),
        (r"\f[BI]x\f[R] \s-1Y\s0 \[aq]", "x Y '"),
        (".BR open (2) ,", "open(2),"),
        ('.RB "see " \\-a "; now"', "see -a; now"),
        (r"a \*[unknown] b", ""),
        (r"a \n[x] b", ""),
    ],
)
def test_a_line_of_a_manual_as_a_reader_sees_it(line: str, text: str) -> None:
    assert [block.text for block in parallel_pages.roff(line)] == [text]


def test_a_term_that_is_not_read_leaves_the_next_line_whole() -> None:
    """The first line behind it was taken for the term, and the rest for the text."""
    own = ".TP\n.nf\n.B int f(void);\n.fi\nTransforms\n.I src\nto it.\n.TP\n.B PATH\nIf it\nis set."
    theirs = ".TP\n.nf\n.B int f(void);\n.fi\nwandelt \\fIquelle\\fP\num.\n.TP\n"
    theirs += ".if  !'po4a'hide' .B PATH\nWenn sie gesetzt\nist."
    blocks = [parallel_pages.roff(text) for text in (own, theirs)]
    assert list(parallel_pages.pairs(*blocks)) == [
        ("Transforms src to it.", "wandelt quelle um."),
        ("If it is set.", "Wenn sie gesetzt ist."),
    ]


def test_an_item_of_a_description_is_one_text_on_all_its_lines() -> None:
    """Each line of an item came as a text of its own, beside a line of the translation that broke elsewhere."""
    own = "Description-md5: 1\nDescription-en: daemons\n Daemons for\n devices:\n  - one that\n    watches\n"
    own += "  - another\n .\n Two\n paragraphs:\n 1. first\n   item\n 2. second\n"
    own += " .\n Run:\n   tool -a\n   tool -b\n and wait\n for it.\n"
    theirs = "Description-md5: 1\nDescription-de: Daemons\n Daemons für Geräte:\n  * einer, der\n    zusieht\n"
    theirs += "    und wartet\n  * ein anderer\n .\n Zwei Absätze:\n 1. erster\n 2. zweiter\n .\n Nur einer.\n"
    read = [dict(debian._descriptions(f"Package: x\n{text}")) for text in (own, theirs)]
    assert read[0]["1"][1][3] == ["Run:", "tool -a", "tool -b", "and wait for it."]
    assert [pair[1:] for pair in debian._described(*read)] == [
        ("daemons", "Daemons"),
        ("Daemons for devices:", "Daemons für Geräte:"),
        ("one that watches", "einer, der zusieht und wartet"),
        ("another", "ein anderer"),
        ("Two paragraphs:", "Zwei Absätze:"),
        ("first item", "erster"),
        ("second", "zweiter"),
    ]


def test_marks_of_notes_and_links_are_no_text() -> None:
    page = (
        '<h2>Ports<a class="headerlink" href="#p" title="Link">¶</a></h2>'
        '<p>It runs<a href="#f" class="footnote"><sup class="footnote">[44]</sup></a>: x <a href="b">here</a></p>'
        '<p>A<a class="footnote-reference brackets" href="#i"><span class="b">[</span>1<span>]</span></a> b.</p>'
        '<div class="footnote"><p><a href="#g" class="para"><sup class="para">[44] </sup></a>A note.</p></div>'
    )
    assert [block.text for block in parallel_pages.markup(page)] == ["Ports", "It runs: x here", "A b.", "A note."]


def test_spellings_of_a_language() -> None:
    assert {"pt-br"} == debian.spellings("pt_BR")
    assert "pt-br" not in debian.spellings("pt")
    assert {"zh-cn", "zh-hans"} <= debian.spellings("zh_CN")
    with raises_error(Error.UNSUPPORTED, "de-fr"):
        debian.other_language(("de", "fr"))


def test_broken_packages(tmp_path: Path) -> None:
    good = deb(tmp_path / "a.deb", {"./x.po": os.urandom(5000)})
    everything = lambda name: True  # noqa: E731
    for cut in (4, 100, 500, 3000):
        (tmp_path / "cut.deb").write_bytes(good.read_bytes()[:cut])
        with raises_error(Error.WRONG_FILE_TYPE if cut < 8 else Error.DAMAGED, "cut.deb"):
            list(archive.files(tmp_path / "cut.deb", everything))
    for name in ("../x.po", "/etc/x.po", "a/../../x.po"):
        with raises_error(Error.UNSAFE, "bad.deb"):
            list(archive.files(deb(tmp_path / "bad.deb", {name: b"x"}), everything))
    linked = deb(
        tmp_path / "l.deb",
        {"a": ("/etc/passwd", tarfile.SYMTYPE), "b": ("a", tarfile.LNKTYPE), "p": ("", tarfile.FIFOTYPE)},
    )
    assert list(archive.files(linked, everything)) == []
    with raises_error(Error.UNKNOWN_FORMAT, "z.deb"):
        (tmp_path / "z.deb").write_bytes(good.read_bytes().replace(b"data.tar.xz ", b"data.tar.lz4"))
        list(archive.files(tmp_path / "z.deb", everything))
    with raises_error(Error.MISSING_FILE, "empty"):
        (tmp_path / "empty").mkdir()
        debian.in_folder(tmp_path / "empty")
    with raises_error(Error.EMPTY):
        debian.unpack([good], ("en", "de"), tmp_path / "to")


FAKE = """#!{python}
import json, os, pathlib, shutil, sys
words = [word for word in sys.argv[1:] if word not in ("-q", "--print-uris", "--download-only")]
repository = pathlib.Path({repository!r})
options = dict(word.split("=", 1) for word in sys.argv if "::" in word and "=" in word)
words = [word for word in words if "::" not in word and word != "-o"]
with open({log!r}, "a") as log: print(*words, file=log)
if sys.argv[0].endswith("apt-config"):
    print("LIST='/none/sources.list'\\nPARTS='{repository}/parts'")
elif words[0] == "update":
    if (repository / "offline").exists():
        sys.exit("E: no network")
    lists = pathlib.Path(options["Dir::State::Lists"])
    assert "deb-src" in next(pathlib.Path(options["Dir::Etc::SourceParts"]).iterdir()).read_text()
    (lists / "x_Packages").touch()
    for path in repository.glob("Translation-*"):
        (lists / ("x_i18n_" + path.name)).write_bytes(path.read_bytes())
else:
    known = json.loads((repository / "known.json").read_text())
    for word in words[1:]:
        name, _, version = word.partition("=")
        files = known.get(("src:" if words[0] == "source" else "") + name, [])
        if not files or version not in ("", files[0][1]):
            print("E: Unable to locate package " + name, file=sys.stderr)
        for file, _, size, digest in files:
            if "--print-uris" in sys.argv:
                print(f"'http://x/{{file}}' {{file}} {{size}} SHA256:{{digest}}")
            elif (repository / file).exists() and version in ("", files[0][1]):
                shutil.copy(repository / file, file)
            else:
                print("E: Failed to fetch http://x/" + file + " 404", file=sys.stderr)
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package source, and an apt-get that knows it alone."""
    folder = packages(tmp_path / "repository")
    for code, text in TRANSLATION.items():
        (folder / f"Translation-{code}.gz").unlink()
        (folder / f"Translation-{code}").write_text(text)
    (folder / "parts").mkdir()
    (folder / "parts/debian.sources").write_text("Types: deb\nURIs: http://x\n")
    known: dict[str, list[tuple[str, str, int, str]]] = {}
    for path in sorted(folder.glob("*_*")):
        name, version = path.name.removesuffix(".tar.gz").split("_")[:2]
        data = path.read_bytes()
        known["src:sources" if name == "sources" else name] = [
            (path.name, version, len(data), hashlib.sha256(data).hexdigest())
        ]
    (folder / "known.json").write_text(json.dumps(known))
    table = {"a": ["tool", "coreutils", "manpages-{lang}", "nowhere"], "b": ["src:sources"], "c": ["Translation-"]}
    monkeypatch.setattr(debian, "table", lambda: table)
    (tmp_path / "bin").mkdir()
    for name in ("apt-get", "apt-config"):
        script = tmp_path / "bin" / name
        script.write_text(FAKE.format(python=sys.executable, repository=str(folder), log=str(tmp_path / "log")))
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return folder


def test_packages_are_downloaded_once(repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = debian.fetch(("en", "de"), tmp_path / "to")
    names = [
        "coreutils_9_amd64.deb",
        "manpages-de_4_all.deb",
        "sources_1.orig.tar.gz",
        "tool_1.0_all.deb",
    ]
    assert [path.name.split(".")[0] for path in paths[:2]] == ["Translation-de", "Translation-en"]
    assert sorted(path.name for path in paths[2:]) == sorted(names)
    assert "nowhere" in capsys.readouterr().err
    listed = (tmp_path / "to/packages.tsv").read_bytes()
    assert b"coreutils\t9\t" in listed
    assert not (tmp_path / "to/apt").exists()
    calls = (tmp_path / "log").read_text()
    assert debian.fetch(("en", "de"), tmp_path / "to") == paths
    assert (tmp_path / "log").read_text() == calls
    assert (tmp_path / "to/packages.tsv").read_bytes() == listed

    (tmp_path / "to/packages/tool_1.0_all.deb").write_bytes(b"cut")  # by a crash: this one is fetched again
    assert debian.fetch(("en", "de"), tmp_path / "to") == paths
    assert "download tool=1.0" in (tmp_path / "log").read_text().removeprefix(calls)

    paths[0].unlink()  # nor is a list of descriptions another one today
    assert debian.fetch(("en", "de"), tmp_path / "to") == paths
    assert all(path.exists() for path in paths)

    shared = debian.fetch(("en", "de"), tmp_path / "other", packages=tmp_path / "to/packages")
    assert [path.name for path in shared] == [path.name for path in paths]
    assert (tmp_path / "log").read_text().count("download tool=1.0") == 2


def test_a_version_that_is_gone(repository: Path, tmp_path: Path) -> None:
    debian.fetch(("en", "de"), tmp_path / "to")
    (tmp_path / "to/packages/tool_1.0_all.deb").unlink()
    (repository / "tool_1.0_all.deb").unlink()
    (tmp_path / "to/packages/coreutils_9_amd64.deb").unlink()
    with raises_error(Error.MISSING_FILE, "packages.tsv", "tool"):
        debian.fetch(("en", "de"), tmp_path / "to")


def test_a_package_that_cannot_be_downloaded_is_left_out(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "tool_1.0_all.deb").unlink()
    paths = debian.fetch(("en", "de"), tmp_path / "to", kinds=["a"])
    assert sorted(path.name for path in paths) == ["coreutils_9_amd64.deb", "manpages-de_4_all.deb"]
    assert "left out: tool" in capsys.readouterr().err


def test_no_apt_no_network_no_such_kind(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with raises_error(Error.UNKNOWN_NAME, "games"):
        debian.fetch(("en", "de"), tmp_path / "to", kinds=["games"])
    (repository / "offline").touch()
    with raises_error(Error.NO_NETWORK):
        debian.fetch(("en", "de"), tmp_path / "to")
    monkeypatch.setenv("PATH", "")
    with raises_error(Error.NOT_INSTALLED):
        debian.fetch(("en", "de"), tmp_path / "to")
    (tmp_path / "to/packages.tsv").write_text("nothing\n1\n")
    with raises_error(Error.DAMAGED, "packages.tsv"):
        debian.fetch(("en", "de"), tmp_path / "to")


def test_the_table_of_packages_is_sound() -> None:
    kinds = debian.table()
    names = [name for entry in kinds.values() for name in entry]
    assert len(names) == len(set(names))
    assert {"catalogues", "manuals", "help", "handbooks", "libreoffice", "descriptions"} == set(kinds)


def test_the_command_makes_a_corpus(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["tree", "river", "stone", "cloud", "bird", "window", "table", "garden", "road", "house"]
    for number in range(30):  # packages enough to hold some out
        text = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: de\\n"\n'
        for first in words:
            name = f"{first} {chr(97 + number)}"
            text += f'\nmsgid "The {name} of {words[number % 10]}"\nmsgstr "Das {name}"\n'
        deb(repository / f"p{number}_1_all.deb", {f"./usr/share/locale/de/LC_MESSAGES/p{number}.po": text.encode()})
    monkeypatch.chdir(tmp_path)
    arguments = ["data", "debian", "--pair", "en-de", "--from", str(repository), "--to"]
    done = CliRunner().invoke(app, [*arguments, "one"])
    assert done.exit_code == 0, done.output
    assert "pairs by kind:\n  catalogue: " in done.output
    assert "pairs by licence:\n  see copyright: " in done.output
    assert (tmp_path / "one/corpus/train.en").read_text().count("\n") > 100
    assert CliRunner().invoke(app, [*arguments, "two"]).exit_code == 0
    for name in ("train.en", "train.de", "valid.en", "test.de", "files.json"):
        assert (tmp_path / "one/corpus" / name).read_bytes() == (tmp_path / "two/corpus" / name).read_bytes()
    assert CliRunner().invoke(app, ["data", "debian", "--pair", "de"]).exit_code != 0
