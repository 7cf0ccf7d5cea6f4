import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from tests.errors import raises_error

from dragoman.data import encode, store
from dragoman.data.store import FILES, META, IdCorpus, prepare
from dragoman.errors import Error
from dragoman.text.corpus import FilesSource
from dragoman.text.tokenizers.language_tags import LanguageTags
from dragoman.text.tokenizers.pair import WhitespaceConfig, save_tokenizers, train_tokenizers

WORDS = [f"w{number}" for number in range(50)]
WHITESPACE = train_tokenizers(WhitespaceConfig(), lambda: iter(WORDS), lambda: iter(WORDS))


@pytest.fixture
def source(tmp_path):
    """Pairs of words, with the mistakes that are dropped on lines 2 to 6."""
    src = ["w1 w2", "", "w3", " \t", "w1 " * 9, "w1", "w4 new", *(f"w{n} w7" for n in range(50))]
    tgt = ["w5", "w6", "   ", "", "w1", "w1 " * 9, "w4", *(f"w{n}" for n in range(50))]
    return write(tmp_path, src, tgt)


def write(folder, src, tgt):
    for name, lines in (("src.txt", src), ("tgt.txt", tgt)):
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return FilesSource(src=str(folder / "src.txt"), tgt=str(folder / "tgt.txt"))


def run(source, folder, tokenizers=WHITESPACE, normalize="nfc", max_tokens=8, workers=1):
    return prepare(source, tokenizers, folder, normalize=normalize, max_tokens=max_tokens, workers=workers)


def contents(corpus):
    ids = [(corpus.src(row).tolist(), corpus.tgt(row).tolist()) for row in range(len(corpus))]
    return ids, corpus.lines.tolist()


def test_what_is_kept_and_why_the_rest_is_not(source, tmp_path):
    corpus, report = run(source, tmp_path / "ids")
    assert (report.pairs_read, report.pairs_kept, len(corpus)) == (57, 52, 52)
    assert report.dropped == {"blank source": 1, "blank target": 1, "blank both": 1, "longer than 8 tokens": 2}
    assert corpus.lines[:3].tolist() == [1, 7, 8]
    assert WHITESPACE.src.decode(corpus.src(0)) == "w1 w2"
    assert WHITESPACE.tgt.decode(corpus.tgt(51)) == "w49"
    assert (report.src_unknown, report.tgt_unknown) == (1, 0)
    assert report.src_tokens == corpus.src_lengths.sum() == 2 + 2 + 100
    assert report.tgt_tokens == corpus.tgt_lengths.sum() == 52
    assert corpus.src_lengths.dtype == np.int32
    assert not report.reused
    with pytest.raises(ValueError, match="read-only"):
        corpus.src(0)[0] = 1


def test_a_very_large_corpus_is_read_instead_of_mapped_and_is_the_same(source, tmp_path, monkeypatch):
    mapped, _ = run(source, tmp_path / "ids")
    monkeypatch.setattr(store, "MIN_ROWS_ON_DISK", 10)
    read, _ = run(source, tmp_path / "ids")
    assert contents(read) == contents(mapped)
    assert read.src_lengths[:].tolist() == mapped.src_lengths.tolist()
    rows = np.array([51, 3, 0, 3])
    for found, expected in zip(read.pairs(rows), mapped.pairs(rows), strict=True):
        assert [side.tolist() for side in found] == [side.tolist() for side in expected]
        assert [side.dtype for side in found] == [side.dtype for side in expected]


def test_the_limit_itself_is_kept_on_either_side(tmp_path):
    eight, nine = "w1 " * 8, "w1 " * 9
    corpus, report = run(write(tmp_path, [eight, "w1", nine, "w1"], ["w1", eight, "w1", nine]), tmp_path / "ids")
    assert corpus.lines.tolist() == [1, 2]
    assert report.dropped == {"longer than 8 tokens": 2}


def test_longer_pairs_lose_their_ends_where_that_is_asked_for(tmp_path):
    source = write(tmp_path, ["w1 w2 w3 w4", "w1"], ["w5", "w5 w6 w7"])
    tokenizers = train_tokenizers(WhitespaceConfig(), lambda: iter(WORDS), lambda: iter(WORDS))
    options = {"normalize": "none", "max_tokens": 2, "workers": 1}
    cut, report = prepare(source, tokenizers, tmp_path / "ids", cut=True, **options)
    texts = [[tokenizers.src.decode(side(row)) for side in (cut.src, cut.tgt)] for row in range(2)]
    assert texts == [["w1 w2", "w5"], ["w1", "w5 w6"]]
    assert report.dropped == {}
    assert prepare(source, tokenizers, tmp_path / "ids", cut=True, **options)[1].reused
    tags = LanguageTags(tags={"de": "w8", "en": "w9"}, src_before=["w7"], src_after=["{src}"])
    framed = replace(tokenizers, languages=tags)
    ids, _ = prepare(
        source, framed, tmp_path / "framed", cut=True, languages=("de", "en"), **{**options, "max_tokens": 3}
    )
    assert framed.src.pieces(ids.src(0)) == ["w7", "w1", "w8"]
    with raises_error(Error.EMPTY):
        prepare(write(tmp_path, ["w1 w2 w3"], ["w5"]), tokenizers, tmp_path / "ids", **options)


def test_text_is_normalised_before_it_is_tokenized(tmp_path):
    source = write(tmp_path, ["e\u0301"], ["x"])
    tokenizers = train_tokenizers(WhitespaceConfig(), lambda: iter(["é"]), lambda: iter(["x"]))
    for normalize, unknown in (("nfc", 0), ("none", 1)):
        assert run(source, tmp_path / normalize, tokenizers, normalize)[1].src_unknown == unknown


def test_an_equal_request_reuses_and_any_other_rebuilds(source, tmp_path):
    first, report = run(source, tmp_path / "ids")
    before = contents(first)
    again, reused = run(source, tmp_path / "ids")
    assert reused == replace(report, reused=True, seconds=reused.seconds)
    assert contents(again) == before
    other = train_tokenizers(WhitespaceConfig(), lambda: iter(WORDS[:40]), lambda: iter(WORDS))
    assert not run(source, tmp_path / "ids", max_tokens=9)[1].reused
    assert not run(source, tmp_path / "ids", max_tokens=9, normalize="nfkc")[1].reused
    assert not run(source, tmp_path / "ids", other)[1].reused
    write(tmp_path, ["w1"], ["w2"])
    assert run(source, tmp_path / "ids")[1].pairs_read == 1


@pytest.mark.parametrize("name", [META, *FILES])
@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_a_damaged_store_is_named_when_opened_and_rebuilt_when_prepared(source, tmp_path, name, damage):
    before = contents(run(source, tmp_path / "ids")[0])
    path = tmp_path / "ids" / name
    path.write_bytes(path.read_bytes()[:-1]) if damage == "cut" else path.unlink()
    code = Error.CANNOT_READ if damage == "missing" and name == META else Error.DAMAGED
    with raises_error(code, name):
        IdCorpus(tmp_path / "ids")
    rebuilt, report = run(source, tmp_path / "ids")
    assert not report.reused
    assert contents(rebuilt) == before


@pytest.mark.parametrize("meta", ["[]", "{}", '{"format": 99, "files": 3}', "\udcff"])
def test_nonsense_in_the_description_is_damage(source, tmp_path, meta):
    run(source, tmp_path / "ids")
    (tmp_path / "ids" / META).write_text(meta, encoding="utf-8", errors="surrogateescape")
    with raises_error(Error.DAMAGED, "meta.json", "damaged"):
        IdCorpus(tmp_path / "ids")


def test_another_format_and_another_vocabulary_are_refused(source, tmp_path):
    corpus, _ = run(source, tmp_path / "ids")
    with raises_error(Error.DAMAGED, "ids"):
        IdCorpus(tmp_path / "ids", (54, 40))
    (tmp_path / "ids" / META).write_text(json.dumps({**corpus.meta, "format": 2}), encoding="utf-8")
    with raises_error(Error.OTHER_VERSION, "ids"):
        IdCorpus(tmp_path / "ids")


def test_nothing_left_and_a_failing_reader_leave_no_trace(tmp_path):
    blank = write(tmp_path, ["", "w1"], ["w1", " "])
    with raises_error(Error.EMPTY):
        run(blank, tmp_path / "ids")
    unequal = write(tmp_path, ["w1", "w2"], ["w1"])
    with raises_error(Error.UNEQUAL_COUNTS, "src.txt"):
        run(unequal, tmp_path / "ids")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["src.txt", "tgt.txt"]


def test_an_error_leaves_the_older_store_as_it_was(source, tmp_path):
    before = contents(run(source, tmp_path / "ids")[0])
    write(tmp_path, ["w1", "w2"], ["w1"])
    with raises_error(Error.UNEQUAL_COUNTS, "src.txt"):
        run(source, tmp_path / "ids")
    assert contents(IdCorpus(tmp_path / "ids")) == before
    assert not (tmp_path / "ids.tmp").exists()


def test_a_folder_of_something_else_is_never_deleted(source, tmp_path):
    with raises_error(Error.ALREADY_THERE):
        run(source, tmp_path)
    with raises_error(Error.WRONG_FILE_TYPE, "src.txt"):
        run(source, tmp_path / "src.txt")
    assert (tmp_path / "src.txt").exists()


def test_large_vocabularies_take_four_bytes(tmp_path):
    words = [f"w{number}" for number in range(70_000)]
    tokenizers = train_tokenizers(WhitespaceConfig(vocab_size=80_000), lambda: iter(words), lambda: iter(words))
    corpus, _ = run(write(tmp_path, [words[-1]], [words[0]]), tmp_path / "ids", tokenizers)
    assert corpus.src(0).dtype == np.uint32
    assert tokenizers.src.decode(corpus.src(0)) == words[-1]
    assert [encode.id_dtype(size) for size in (65_536, 65_537)] == ["uint16", "uint32"]


def test_processes_give_the_same_bytes(source, tmp_path, monkeypatch):
    run(source, tmp_path / "alone")
    monkeypatch.setattr(encode, "CHUNK_PAIRS", 5)
    _, report = run(source, tmp_path / "together", workers=2)
    assert report.pairs_read == 57
    for name in FILES:
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "together" / name).read_bytes()


def test_a_small_corpus_starts_no_process(source, tmp_path, monkeypatch):
    monkeypatch.setattr(encode, "ProcessPoolExecutor", None)
    assert run(source, tmp_path / "ids", workers=4)[1].pairs_kept == 52


def test_an_error_of_the_reader_ends_the_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(encode, "CHUNK_PAIRS", 2)
    source = write(tmp_path, WORDS, WORDS[:-1])
    with raises_error(Error.UNEQUAL_COUNTS, "src.txt"):
        run(source, tmp_path / "ids", workers=2)
    assert not (tmp_path / "ids").exists()
    assert not (tmp_path / "ids.tmp").exists()


def test_few_chunks_are_under_way_at_any_time():
    """Reading must wait for encoding: otherwise a whole corpus would queue up in memory."""
    read = []

    def chunks():
        for number in range(50):
            read.append(number)
            yield [number]

    with ThreadPoolExecutor(1) as pool:
        for taken, result in enumerate(encode.in_order(lambda chunk: pool.submit(chunk.pop), chunks(), ahead=4)):
            assert result == taken
            assert len(read) - taken <= 4


ENDLESS = """
import itertools, sys
from pathlib import Path
from dragoman.data import encode, store
from dragoman.text.corpus import DemoSource, Pair
from dragoman.text.tokenizers.pair import WhitespaceConfig, train_tokenizers
encode.CHUNK_PAIRS = 100
DemoSource.pairs = lambda self: (Pair(n, "a b", "c") for n in itertools.count(1))
tokenizers = train_tokenizers(WhitespaceConfig(), lambda: iter(["a b"]), lambda: iter(["c"]))
store.prepare(DemoSource(split="train"), tokenizers, sys.argv[1], normalize="nfc", max_tokens=8, workers=2)
"""


@pytest.mark.system
@pytest.mark.skipif(sys.platform == "win32", reason="process groups and their signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_and_no_half_store_is_left_behind(tmp_path, number):
    path = tmp_path / "ids"
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(path)],
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    lines = tmp_path / "ids.part" / "lines.bin"
    wait_for(lambda: lines.exists() and lines.stat().st_size, "the first results")
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does: to every process
    else:
        process.kill()
    _, errors = process.communicate(timeout=300)
    wait_for(lambda: not group_lives(process.pid), "the processes to end")
    assert not path.exists()
    if number == signal.SIGINT:
        assert not lines.parent.exists()
        assert b"KeyboardInterrupt" in errors


def wait_for(condition, what):
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, f"waited too long for {what}"
        time.sleep(0.02)


def group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_encoding_processes_do_not_import_torch():
    code = "import sys, dragoman.data.store; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_no_space_is_said_in_one_line(source, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store._Building, "_append", full)
    with raises_error(Error.CANNOT_WRITE, "ids"):
        run(source, tmp_path / "ids")


def test_a_temporary_folder_that_is_full_is_named(source, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with raises_error(Error.CANNOT_WRITE, "the temporary folder (TMPDIR)"):
        run(source, tmp_path / "ids")


def test_tokenizers_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with raises_error(Error.CANNOT_WRITE, "tokenizer"):
        save_tokenizers(WHITESPACE, tmp_path / "file/tokenizer")


def test_a_killed_preparation_goes_on(source, tmp_path, monkeypatch):
    """After any chunk, with notes after each: the same bytes as without a kill, and nothing encoded twice."""
    monkeypatch.setattr(encode, "CHUNK_PAIRS", 5)
    monkeypatch.setattr(store, "SAVE_PAIRS", 1)
    run(source, tmp_path / "straight")
    encoded = []
    call = encode.Encoder.__call__

    class Killed(BaseException):
        pass

    for kill_after in (1, 4, 8):
        encoded.clear()

        def counting(self, pairs, limit=kill_after):
            if len(encoded) == limit:
                encoded.append(None)
                raise Killed
            pairs = list(pairs)
            encoded.append([pair.line for pair in pairs])
            return call(self, pairs)

        monkeypatch.setattr(encode.Encoder, "__call__", counting)
        path = tmp_path / str(kill_after)
        with pytest.raises(Killed):
            run(source, path)
        assert not path.exists()
        with (path.with_name(path.name + ".part") / "lines.bin").open("ab") as file:
            file.write(b"half of what came after the last note")
        corpus, report = run(source, path)
        lines = [line for chunk in encoded if chunk for line in chunk]
        assert len(lines) == len(set(lines))
        assert not path.with_name(path.name + ".part").exists()
        for name in store.FILES:
            assert (path / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
        assert len(corpus) == report.pairs_kept
    assert json.loads((path / "meta.json").read_text()) == json.loads((tmp_path / "straight/meta.json").read_text())


def test_another_corpus_does_not_go_on_from_what_is_left(source, tmp_path, monkeypatch):
    path = tmp_path / "ids"
    run(source, path)
    part = path.with_name("ids.part")
    path.rename(part)
    (part / store.PROGRESS).write_text(json.dumps({"fingerprint": "of something else", "kept": 3}))
    _, report = run(source, path)
    assert not report.reused
    assert not part.exists()


def test_a_large_file_is_hashed_once(tmp_path, monkeypatch):
    from dragoman.text.sources import base, digests

    monkeypatch.setattr(digests, "LARGE_FILE_BYTES", 10)
    monkeypatch.setattr(digests, "_known", {})
    path = tmp_path / "a.txt"
    path.write_text("some words of a file\n")
    with digests.remembered(tmp_path / "digests.json"):
        first = base.digest([path])
    monkeypatch.setattr(digests, "_known", {})
    with digests.remembered(tmp_path / "digests.json"):
        monkeypatch.setattr(digests.hashlib, "file_digest", None)
        assert base.digest([path]) == first
    monkeypatch.undo()
    path.write_text("other words of a file\n")
    assert base.digest([path]) != first
