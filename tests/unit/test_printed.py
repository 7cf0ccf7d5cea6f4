"""What `inspect --print` writes: numbers worked out by hand, under each other."""

import math
from pathlib import Path

import pytest

from dragoman.analysis.columns import columns
from dragoman.analysis.examples import words_of
from dragoman.analysis.masks import sentence_masks
from dragoman.analysis.norms import normed_batch
from dragoman.analysis.printed import batch_text, masks_text, norms_text, positions_text, smoothing_text
from dragoman.cli.main import app
from dragoman.text.tokenizers.pair import TokenizerPair

PAIRS = [("ich möchte ein bier", "i want a beer"), ("guten tag", "hello")]


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def test_chinese_characters_are_two_columns_wide() -> None:
    first, second = columns([["", "我", "b"], ["爱", "12", "3"]]).splitlines()
    assert first == "    我  b"
    assert second == "爱  12  3"


def test_a_batch_has_its_ids_shifted_by_one() -> None:
    tokenizers = TokenizerPair(
        words_of([PAIRS[0][0], PAIRS[1][0]]).src, words_of(["i want a beer", "hello"]).src, False
    )
    told = rows(batch_text(PAIRS, tokenizers))
    ids = [row[1:] for row in told if row[0] == "ids"]
    tgt_in, tgt_out = ids[2:4], ids[4:6]
    assert [row[0] for row in tgt_in] == ["2", "2"]
    assert tgt_in[0][1:] == tgt_out[0][:-1]
    assert tgt_out[0][-1] == "3"
    assert ["mask", "1", "1", "0", "0", "0"] in told
    assert ["mask", "1", "1", "1", "0", "0"] in told


def test_masks_in_both_conventions_are_each_others_opposite() -> None:
    masks = sentence_masks(["a b", "c"], words_of(["a b", "c"]).src)
    visible, hidden = (masks_text(masks, hidden=one) for one in (False, True))
    assert ["a", "1", "1", "0"] in rows(visible)
    assert ["a", "0", "0", "1"] in rows(hidden)
    cells = [[cell for row in rows(text)[1:] for cell in row[1:] if cell in "01"] for text in (visible, hidden)]
    assert all({one, other} == {"0", "1"} for one, other in zip(*cells, strict=True))


def test_positions_with_another_base() -> None:
    told = rows(positions_text(4, [28], base=100.0))
    assert told[-1][:2] == ["2,", "3"]
    assert float(told[-1][2]) == pytest.approx(0.1)
    assert float(told[-1][4]) == pytest.approx(math.sin(2.8), abs=1e-4)
    assert float(told[-1][5]) == pytest.approx(math.cos(2.8), abs=1e-4)


def test_norms_have_mean_0_and_standard_deviation_1_where_they_should() -> None:
    text = norms_text(*normed_batch(["ein hund läuft", "guten tag"]))
    layer = text.split("LayerNorm")[1].split("RMSNorm")[0]
    for row in rows(layer)[2:6]:
        assert [abs(float(row[-2])), float(row[-1])] == [0.0, 1.0]


def test_both_forms_of_label_smoothing() -> None:
    ours, notebook, padded = rows(smoothing_text([0.4], 5, target=2))[2:]
    assert ours[-5:] == ["0.0800", "0.0800", "0.6800", "0.0800", "0.0800"]
    assert notebook[-5:] == ["0.0000", "0.1333", "0.6000", "0.1333", "0.1333"]
    assert padded[-5:] == ["0.0000"] * 5


def test_the_commands_print_and_draw_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, expected in (
        (["masks", "--print"], "True, may be attended to"),
        (["masks", "--hidden"], "masked_fill"),
        (["batch"], "tgt_out"),
        (["positions", "--print", "--position", "28", "--base", "1000"], "1000^"),
        (["norms", "--print"], "LayerNorm"),
        (["smoothing", "--print", "5"], "annotated notebook"),
    ):
        assert not app(["inspect", *arguments], standalone_mode=False)
        assert expected in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert not app(["inspect", "norms", "--print", "-o", "norms.svg"], standalone_mode=False)
    assert [path.name for path in tmp_path.iterdir()] == ["norms.svg"]
