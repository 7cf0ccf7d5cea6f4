"""What is wrong with a file or an output is named: other kinds of files, forms of text, scores that are none."""

import gzip
import io
import tarfile

import pytest
from tests.errors import raises_error

from dragoman.doctor.examine import Examination
from dragoman.errors import Error
from dragoman.quality.output_checks import check_output
from dragoman.quality.test_set import TestSet, read_hypotheses
from dragoman.text.lines import read_lines
from dragoman.text.sources.files import FilesSource
from dragoman.text.sources.jsonl import JsonlSource
from dragoman.text.sources.tsv import TsvSource

REFERENCES = [f"She says that he, a doctor, has {number} dogs and I'm sure." for number in range(20)]
TEST = TestSet(REFERENCES, [REFERENCES], ("en", "en"))


def tar():
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo("a.txt")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"one\n"))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.de", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
        ("a.de.gz", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
        ("a.de", tar()),
        ("a.de.gz", gzip.compress(tar(), mtime=0)),
        ("a.de.gz", gzip.compress(b"%PDF-1.7\n", mtime=0)),
        ("a.de", b"7z\xbc\xaf\x27\x1c\0\0"),
        ("a.de", b"Rar!\x1a\x07\0"),
        ("a.de", b"%PDF-1.7\n"),
        ("a.de", b"PAR1\0\0"),
        ("a.de", gzip.compress(b"one\n", mtime=0)),
    ],
    ids=["pointer", "pointer.gz", "tar", "tar.gz", "pdf.gz", "7z", "rar", "pdf", "parquet", "gzip"],
)
def test_other_kinds_of_files_are_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with raises_error(Error.WRONG_FILE_TYPE):
        list(read_lines(tmp_path / name))


@pytest.mark.parametrize("content", ['[{"src": "a", "tgt": "b"}]\n', '[\n {"src": "a"}\n]\n', '{\n "src": "a"\n}\n'])
def test_json_that_is_no_object_a_line_is_named(tmp_path, content):
    (tmp_path / "a.jsonl").write_text(content, encoding="utf-8")
    with raises_error(Error.WRONG_SHAPE):
        list(JsonlSource(path=str(tmp_path / "a.jsonl")).pairs())


@pytest.mark.parametrize(
    ("name", "content", "is_text"),
    [
        ("a.de", '[{"src": "a"}]\n', False),
        ("a.json", '[\n {"src": "a"}\n]\n', False),
        ("a.de", '["a", "b"]\n', False),
        ("a.de", '{"src": "a", "tgt": "b"}\n', False),
        ("a.jsonl.gz", '{"src": "a", "tgt": "b"}\n', False),
        ("a.de", "[Musik]\n", True),
        ("a.de", "[\n", True),
        ("a.de", "{name} sagt\n", True),
    ],
)
def test_json_in_the_place_of_a_text_is_named_to_training_and_doctor(tmp_path, name, content, is_text):
    data = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith("gz") else data)
    (tmp_path / "a.en").write_text("one\n" * content.count("\n"), encoding="utf-8")
    source = FilesSource(src=str(tmp_path / name), tgt=str(tmp_path / "a.en"))
    shown = [finding.kind for finding in Examination(source, "de", "en").run().findings]
    assert ("unreadable" in shown) is not is_text
    if is_text:
        assert len(list(source.pairs())) == content.count("\n")
    else:
        with raises_error(Error.WRONG_SHAPE, name):
            list(source.pairs())


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        ("cut into subwords", lambda line: line.replace("doctor", "doc@@ tor")),
        ("cut into subwords", lambda line: " ".join(f"▁{word}" for word in line.split())),
        ("tokenised", lambda line: line.replace(",", " ,").replace(".", " .")),
        ("escaped", lambda line: line.replace("'", "&apos;")),
        ("cut into subwords", lambda line: line.replace(" ", " Ġ")),
        ("escaped", lambda line: line.replace("'", "&#39;")),
        ("escaped", lambda line: line.replace(" ", "&nbsp;")),
        ("special tokens", lambda line: f"<s> {line} </s>"),
        ("special tokens", lambda line: f"eng_Latn {line}"),
        ("special tokens", lambda line: line.replace("doctor", "<unk>")),
        ("lower-cased", str.lower),
        ("upper-cased", str.upper),
        ("several outputs", lambda line: f"{line} ||| -0.31"),
        ("special tokens", lambda line: f">>eng<< {line}"),
        ("special tokens", lambda line: f"__en__ {line}"),
        ("columns", lambda line: f"-0.31\t{line}"),
        ("numbered", lambda line: f"12. {line}"),
        ("numbered", lambda line: f"-0.31 {line}"),
        ("in quotes", lambda line: f'"{line}"'),
    ],
)
def test_the_form_of_an_output_is_named(kind, spoil):
    assert kind in {fault.kind for fault in check_output(TEST, [spoil(line) for line in REFERENCES])}
    assert not {fault.kind for fault in check_output(TEST, REFERENCES)} - {"references"}
    lower = TestSet(REFERENCES, [[line.lower() for line in REFERENCES]], ("en", "en"))
    assert "lower-cased" not in {fault.kind for fault in check_output(lower, [line.lower() for line in REFERENCES])}


def test_references_that_are_no_references_are_named():
    tabs = TestSet(REFERENCES, [[f"{line}\t{line}" for line in REFERENCES]], ("en", "en"))
    assert {fault.kind for fault in check_output(tabs, [line + "!" for line in REFERENCES])} >= {"columns"}
    blank = TestSet(REFERENCES, [["", *REFERENCES[1:]]], ("en", "en"))
    [fault] = [fault for fault in check_output(blank, REFERENCES) if fault.kind == "no reference"]
    assert fault.lines == (1,)


def test_an_output_that_was_read_in_another_encoding_is_named():
    refs = [f"Die Bäckerei öffnet für {number} Gäste um fünf Uhr früh." for number in range(20)]
    test = TestSet(refs, [refs], ("de", "de"))
    garbled = [line.encode().decode("cp1252") for line in refs]
    assert "mojibake" in {fault.kind for fault in check_output(test, garbled)}
    assert "mojibake" not in {fault.kind for fault in check_output(TestSet(refs, [garbled], ("de", "de")), garbled)}


@pytest.mark.parametrize(
    "written",
    [
        "{n} ||| {line} ||| -1\n",
        "S-{n}\tder Hund\nH-{n}\t-0.3\t{line}\nD-{n}\t-0.3\t{line}\n",
        '{{"text": "{line}"}}\n',
    ],
)
def test_lines_of_more_than_a_translation_are_refused(tmp_path, written):
    text = "".join(written.format(n=n, line=line) for n, line in enumerate(REFERENCES))
    (tmp_path / "hyp").write_text(text, "utf-8")
    with raises_error(Error.WRONG_SHAPE):
        read_hypotheses(tmp_path / "hyp", TEST)


@pytest.mark.parametrize("place", ["hypotheses", "references"])
def test_test_sets_in_markup_are_refused(tmp_path, place):
    segments = "".join(f'<seg id="{n}">{line}</seg>\n' for n, line in enumerate(REFERENCES, 1))
    (tmp_path / "a.sgm").write_text(f'<refset setid="x">\n{segments}</refset>\n', "utf-8")
    (tmp_path / "src").write_text("a line\n" * (len(REFERENCES) + 2), "utf-8")
    with raises_error(Error.WRONG_SHAPE, "a.sgm"):
        if place == "hypotheses":
            read_hypotheses(tmp_path / "a.sgm", TEST)
        else:
            TestSet.read(tmp_path / "src", [tmp_path / "a.sgm"], ("en", "en"))


def test_line_ends_of_old_mac_os_are_named(tmp_path):
    (tmp_path / "a.de").write_bytes("\r".join(REFERENCES).encode())
    with raises_error(Error.WRONG_SHAPE, "a.de"):
        list(read_lines(tmp_path / "a.de"))
    (tmp_path / "a.de").write_bytes("\r".join(REFERENCES).encode() + b"\n")
    assert len(list(read_lines(tmp_path / "a.de"))) == 1


@pytest.mark.parametrize(("kind", "marks"), [("cut into subwords", "@@ "), ("tokenised", " . ")])
def test_the_doctor_names_the_form(tmp_path, kind, marks):
    (tmp_path / "a.de").write_text("".join(f"ich sehe das Haus {n}\n" for n in range(30)), encoding="utf-8")
    (tmp_path / "a.en").write_text("".join(f"I see the ho{marks}use {n}\n" for n in range(30)), encoding="utf-8")
    found = Examination(FilesSource(src=str(tmp_path / "a.de"), tgt=str(tmp_path / "a.en")), "de", "en").run()
    assert kind in {finding.kind for finding in found.findings if finding.severity == "warning"}


def test_scores_that_are_none_are_refused_and_low_ones_counted(tmp_path, capsys):
    path = tmp_path / "a.tsv"
    for score, code in (("nan", Error.WRONG_SHAPE), ("inf", Error.WRONG_SHAPE), ("good", Error.WRONG_SHAPE)):
        path.write_text(f"a\tb\t0.9\nc\td\t{score}\n", encoding="utf-8")
        with raises_error(code):
            list(TsvSource(path=str(path), score_column=3, min_score=0.1).pairs())
    path.write_text("a\tb\t0.9\nc\td\t0.2\ne\tf\t0.3\n", encoding="utf-8")
    source = TsvSource(path=str(path), score_column=3, min_score=0.5)
    assert [len(list(source.pairs())) for _ in range(2)] == [1, 1]
    assert capsys.readouterr().err.count("2 of 3 pairs are left out") == 1
