"""Corpora as people have them: compressed, in zip files, as exchange files, in tables with scores."""

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from tests.errors import raises_error
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.errors import Error
from dragoman.text.corpus import (
    FilesSource,
    JsonlSource,
    MixSource,
    ParquetSource,
    PoSource,
    TmxSource,
    TsvSource,
    XliffSource,
    source_of_file,
)
from dragoman.text.lines import language_of_file, read_lines
from dragoman.text.sources.base import fingerprint

LINES = "eins\nzwei\n"
PACKED = {
    "a.de.gz": gzip.compress(LINES.encode()),
    "a.de.xz": lzma.compress(LINES.encode()),
    "a.de.bz2": bz2.compress(LINES.encode()),
    "a.de.zst": zstandard.compress(LINES.encode()),
}


@pytest.mark.parametrize("name", PACKED)
def test_compressed_lines(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(PACKED[name])
    assert list(read_lines(path)) == ["eins", "zwei"]
    assert language_of_file(path) == "de"
    bare = tmp_path / "bare"
    bare.write_bytes(PACKED[name])
    with raises_error(Error.WRONG_FILE_TYPE):
        list(read_lines(bare))
    path.write_text("plain\n", encoding="utf-8")
    with raises_error(Error.WRONG_FILE_TYPE):
        list(read_lines(path))
    path.write_bytes(PACKED[name][:-9])
    with raises_error(Error.DAMAGED):
        list(read_lines(path))


def test_files_in_a_zip_file(tmp_path: Path) -> None:
    path = tmp_path / "de-en.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("Corpus.de-en.de", LINES)
        file.writestr("Corpus.de-en.en", "one\ntwo\n")
    source = FilesSource(src=f"{path}/Corpus.de-en.de", tgt=f"{path}/Corpus.de-en.en")
    assert [(pair.src, pair.tgt) for pair in source.pairs()] == [("eins", "one"), ("zwei", "two")]
    assert fingerprint(source) != fingerprint(FilesSource(src=source.tgt, tgt=source.src))
    for name, code, *names in [
        ("", Error.WRONG_FILE_TYPE, "Corpus.de-en.de"),
        ("/x.de", Error.MISSING_FILE, "x.de", "Corpus.de-en.de"),
    ]:
        with raises_error(code, "de-en.zip", *names):
            list(FilesSource(src=f"{path}{name}", tgt=source.tgt).pairs())
    with raises_error(Error.SAME_FILE):
        list(FilesSource(src=source.src, tgt=source.src).pairs())


def test_exchange_files(tmp_path: Path) -> None:
    tmx = tmp_path / "m.tmx"
    tmx.write_text(
        '<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx><body>\n'
        '<tu><tuv xml:lang="de-DE"><seg>Ein <bpt i="1">&lt;b&gt;</bpt>Wort<ept i="1"/> &amp; mehr</seg></tuv>'
        '<tuv xml:lang="en"><seg>A <hi>word</hi>\nand more</seg></tuv><tuv xml:lang="fr"><seg>mot</seg></tuv></tu>\n'
        '<tu><tuv xml:lang="de"><seg>nur</seg></tuv></tu></body></tmx>',
        encoding="utf-8",
    )
    pairs = list(TmxSource(path=str(tmx), src_lang="de", tgt_lang="en").pairs())
    assert [(pair.line, pair.src, pair.tgt) for pair in pairs] == [(2, "Ein Wort & mehr", "A word and more")]
    assert [pair.tgt for pair in TmxSource(path=str(tmx), src_lang="de", tgt_lang="fr").pairs()] == ["mot"]
    with raises_error(Error.EMPTY):
        list(TmxSource(path=str(tmx), src_lang="de", tgt_lang="es").pairs())
    tmx.write_text('<!DOCTYPE x [<!ENTITY a "b">]><tmx/>', encoding="utf-8")
    with raises_error(Error.UNSAFE):
        list(TmxSource(path=str(tmx), src_lang="de", tgt_lang="en").pairs())
    xliff = tmp_path / "m.xlf"
    xliff.write_text(
        "<xliff><trans-unit><source>a</source><target>x</target><alt-trans><source>no</source><target>no</target>"
        "</alt-trans></trans-unit><trans-unit><source>b</source></trans-unit>"
        '<trans-unit><source>c</source><target state="new">z</target></trans-unit></xliff>',
        encoding="utf-8",
    )
    assert [(pair.src, pair.tgt) for pair in XliffSource(path=str(xliff)).pairs()] == [("a", "x")]
    po = tmp_path / "m.po"
    po.write_text(
        'msgid ""\nmsgstr "header"\n\nmsgid "a"\nmsgstr "x"\n\n#, fuzzy\nmsgid "b"\nmsgstr "y"\n\n'
        'msgid "one"\nmsgid_plural "many"\nmsgstr[0] "uno"\nmsgstr[1] "muchos"\n',
        encoding="utf-8",
    )
    assert [(pair.src, pair.tgt) for pair in PoSource(path=str(po)).pairs()] == [
        ("a", "x"),
        ("one", "uno"),
        ("many", "muchos"),
    ]


def test_scores_choose_and_weigh_pairs(tmp_path: Path) -> None:
    path = tmp_path / "scored.tsv"
    path.write_text("a\tx\t0.9\nb\ty\t0.2\nc\tz\t0.5\n", encoding="utf-8")
    kept = TsvSource(path=str(path), score_column=3, min_score=0.5)
    assert [(pair.line, pair.src) for pair in kept.pairs()] == [(1, "a"), (3, "c")]
    weighted = TsvSource(path=str(path), score_column=3, weighted=True)
    many = [pair.src for pair in MixSource(sources=[weighted] * 1, weights=[1.0]).pairs()]
    assert many == ["b"]  # 0.9 + 0.2 is one whole; with 0.5 there is not yet another
    assert [pair.src for pair in weighted.unweighted().pairs()] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="of which score"):
        TsvSource(path=str(path), min_score=0.5)
    path.write_text("a\tx\thigh\n", encoding="utf-8")
    with raises_error(Error.WRONG_SHAPE):
        list(kept.pairs())


def test_pairs_that_weights_leave_out_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a file of weights, of a score and of a mixture, once however often they are read."""
    files = {}
    for name in ("src", "tgt", "weights"):
        files[name] = tmp_path / name
        files[name].write_text("0\n1\n0.5\n2\n0.5\n", encoding="utf-8")
    text = FilesSource(src=str(files["src"]), tgt=str(files["tgt"]), weights=str(files["weights"]))
    table = tmp_path / "a.tsv"
    table.write_text("a\tx\t0\nb\ty\t1\n", encoding="utf-8")
    scored = TsvSource(path=str(table), score_column=3, weighted=True)
    mixture = MixSource(sources=[text.unweighted(), scored.unweighted()], weights=[0, 1])
    for source, kept in ((text, 4), (scored, 1), (mixture, 2), (text, 4)):
        assert len(list(source.pairs())) == kept
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition("/")[2] for line in lines] == [
        "weights: 2 of 5 pairs are left out: by their weights",
        "a.tsv: 1 of 2 pairs are left out: by their weights",
        "tgt: 5 of 5 pairs are left out: by their weights",
    ]
    assert list(MixSource(sources=[text, scored]).pairs())
    assert not capsys.readouterr().err


def test_records_of_the_hub(tmp_path: Path) -> None:
    """The two ways: an object of languages under `translation`, or a column for each side."""
    jsonl, parquet = tmp_path / "a.jsonl", tmp_path / "a.parquet"
    jsonl.write_text('{"translation": {"de": "eins", "en": "one"}}\n', encoding="utf-8")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"translation": {"de": "eins", "en": "one"}}]), parquet)
    for cls, path in ((JsonlSource, jsonl), (ParquetSource, parquet)):
        source = cls(path=str(path), src_key="translation.de", tgt_key="translation.en")
        assert [(pair.src, pair.tgt) for pair in source.pairs()] == [("eins", "one")]
        with raises_error(Error.WRONG_SHAPE):
            list(cls(path=str(path), src_key="translation.de", tgt_key="translation.fr").pairs())
    with raises_error(Error.WRONG_SHAPE):
        list(ParquetSource(path=str(parquet)).pairs())
    parquet.write_bytes(b"PAR1 broken PAR1")
    with raises_error(Error.WRONG_FILE_TYPE):
        list(ParquetSource(path=str(parquet)).pairs())


def test_the_doctor_reads_a_single_file(tmp_path: Path) -> None:
    tmx = tmp_path / "m.tmx"
    units = "".join(
        f'<tu><tuv xml:lang="de"><seg>Das ist Satz {n}.</seg></tuv>'
        f'<tuv xml:lang="en"><seg>This is sentence {n}.</seg></tuv></tu>'
        for n in range(50)
    )
    tmx.write_text(f"<tmx><body>{units}</body></tmx>", encoding="utf-8")
    result = CliRunner().invoke(app, ["doctor", str(tmx), "--src-lang", "de", "--tgt-lang", "en"])
    assert "50 lines" in result.stdout
    assert source_of_file("a.tsv.gz", "", "") == TsvSource(path="a.tsv.gz")
    assert source_of_file("recipe.yaml", "", "") is None
    with raises_error(Error.MISSING_OPTION, "a.tmx", "src_lang", "tgt_lang"):
        source_of_file("a.tmx", "", "")


TMX_CODES = """<tmx version="1.4"><body><tu>
<tuv xml:lang="en">
<seg>Click <bpt i="7">&lt;b></bpt>Open<ept i="7">&lt;/b></ept> the <ph x="2">%s</ph>file <hi>now</hi>.</seg></tuv>
<tuv xml:lang="de">
<seg>Die <ph x="2">%s</ph>Datei <hi>jetzt</hi> <bpt i="7">&lt;b></bpt>öffnen<ept i="7">&lt;/b></ept>.</seg></tuv>
</tu></body></tmx>"""
XLIFF_CODES = """<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1">
<source>Click <g id="a">Open</g><x id="b"/> it <bx id="3" rid="3"/>x<ex id="4" rid="3"/></source>
<target><x id="b"/><g id="a">Öffnen</g> es <bx id="3" rid="3"/>y<ex id="4" rid="3"/></target>
<alt-trans><target>Noch <g id="a">eins</g></target></alt-trans></trans-unit></body></file></xliff>"""
XLIFF2_CODES = """<xliff version="2.0" srcLang="en" trgLang="de"><file id="f"><unit id="1"><segment>
<source>Click <pc id="1">Open</pc> <ph id="2"/> it <sc id="3"/>x<ec startRef="3"/></source>
<target><ph id="2"/> <pc id="1">Öffnen</pc> <sc id="3"/>y<ec startRef="3"/></target>
</segment></unit></file></xliff>"""


@pytest.mark.parametrize(
    ("name", "text", "plain", "tagged"),
    [
        (
            "a.tmx",
            TMX_CODES,
            ("Click Open the file now.", "Die Datei jetzt öffnen."),
            ("Click <1>Open</1> the <2/>file <3>now</3>.", "Die <2/>Datei <3>jetzt</3> <1>öffnen</1>."),
        ),
        (
            "a.xlf",
            XLIFF_CODES,
            ("Click Open it x", "Öffnen es y"),
            ("Click <1>Open</1><2/> it <3>x</3>", "<2/><1>Öffnen</1> es <3>y</3>"),
        ),
        (
            "b.xlf",
            XLIFF2_CODES,
            ("Click Open it x", "Öffnen y"),
            ("Click <1>Open</1> <2/> it <3>x</3>", "<2/> <1>Öffnen</1> <3>y</3>"),
        ),
    ],
)
def test_inline_codes_are_left_out_or_numbered_alike_on_both_sides(
    name: str, text: str, plain: tuple[str, str], tagged: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    for codes, expected in (("drop", plain), ("keep", tagged)):
        settings: dict[str, Any] = {"path": str(path), "codes": codes}
        languages = {"src_lang": "en", "tgt_lang": "de"}
        source = TmxSource(**settings, **languages) if name.endswith(".tmx") else XliffSource(**settings)
        assert [pair[1:3] for pair in source.pairs()] == [expected]
