"""The reader's own Transformer: its pieces, their checks, the file that grows, and the comparison with Dragoman."""

import ast
import random
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.data.batch import collate
from dragoman.decoding import search as searching
from dragoman.decoding.base import DecodingConfig
from dragoman.errors import DragomanError
from dragoman.learn import laboratory, mini, mini_compare, mini_solution
from dragoman.learn.exercise import Wrong
from dragoman.learn.mini import PIECES, Piece

ONE = ([4, 5, 6, 7], [4, 5, 6, 7])
"""The book's sentence."""


def learn(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["learn", *arguments], standalone_mode=False)
    code = result.return_value if isinstance(result.return_value, int) else result.exit_code
    return code, result.stdout + (str(result.exception) if result.exception else "")


def solve(*names: str) -> None:
    """Write the reference's pieces into the reader's file in the places of the stubs."""
    text = mini.PATH.read_text(encoding="utf-8")
    source = Path(mini_solution.__file__).read_text(encoding="utf-8")
    for name in names:
        written = next(ast.get_source_segment(source, one) for one in ast.parse(source).body if named(one) == name)
        stub = next(ast.get_source_segment(text, one) for one in ast.parse(text).body if named(one) == name)
        assert stub
        assert written
        text = text.replace(stub, written)
    mini.PATH.write_text(text, encoding="utf-8")


def named(node: ast.AST) -> str:
    return getattr(node, "name", "")


@pytest.mark.parametrize("piece", PIECES.values(), ids=lambda piece: piece.name)
def test_the_reference_passes_and_its_mistakes_are_named(piece: Piece) -> None:
    piece.check(piece.solution)
    wrong = piece.wrong_answers()
    assert len(wrong) >= 6
    assert len({message for _, message in wrong}) == len(wrong)
    for answer, message in random.Random(1).sample(wrong, 3) if piece.rounds < 20 else wrong:
        with pytest.raises(Wrong) as caught:
            piece.check(answer, seed=1)
        assert str(caught.value) == message


def test_the_reference_is_plain_and_short() -> None:
    source = Path(mini_solution.__file__).read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {name for node in imports for name in re.findall(r"import (\w+)|from (\w+)", ast.unparse(node))[0]} <= {
        "",
        "math",
        "torch",
    }
    assert len([line for line in source.splitlines() if line.strip()]) <= 210
    assert list(PIECES) == [
        named(node) for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]


def test_the_file_grows_in_order_and_keeps_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert mini.write(0) is None
    assert mini.write(5) == mini.PATH
    solve("attention")
    mini.PATH.write_text(mini.PATH.read_text(encoding="utf-8") + "\n\nMINE = 1\n", encoding="utf-8")
    before = mini.PATH.read_text(encoding="utf-8")
    mini.write(2)
    assert mini.PATH.read_text(encoding="utf-8") == before
    mini.write(9)
    text = mini.PATH.read_text(encoding="utf-8")
    assert text.startswith(before.rstrip("\n"))
    heads = re.findall(r"^# Chapter (\d+)", text, re.MULTILINE)
    assert heads == ["1", "4", "5", "6", "7", "8", "9"]
    mini.write(12)
    compile(mini.PATH.read_text(encoding="utf-8"), str(mini.PATH), "exec")
    bodies = {named(one): ast.unparse(one) for one in ast.parse(Path(mini_solution.__file__).read_text()).body}
    text = mini.PATH.read_text(encoding="utf-8")
    assert all(line not in text for line in bodies["beam_search"].splitlines()[-3:])


def test_a_chapter_adds_its_pieces_and_grades_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = learn("4")
    assert code == 0
    assert output.split()[-1] == "mini_transformer.py"
    assert "mini_transformer.py, attention: not written yet\n" in learn("check", "4")[1]
    solve("attention")
    assert "mini_transformer.py, attention: right\n" in learn("check", "4")[1]
    text = mini.PATH.read_text(encoding="utf-8")
    mini.PATH.write_text(text.replace(" / math.sqrt(query.size(-1))", ""), encoding="utf-8")
    assert "attention: the scores are not divided by sqrt(d)\n" in learn("check", "4")[1]
    mini.PATH.write_text(text.replace("scores = query", "scores = nothing"), encoding="utf-8")
    assert re.search(r"attention: mini_transformer.py:\d+: NameError", learn("check", "4")[1])
    mini.PATH.write_text("def attention(:\n", encoding="utf-8")
    assert "mini_transformer.py:1: SyntaxError" in learn("check", "4")[1]


def test_an_audit_of_the_growing_file_says_what_is_still_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mini.write(6)
    solve("attention", "padding_mask", "causal_mask")
    early = learn("audit", "mini_transformer.py")[1]
    assert early.startswith("mini_transformer.py has no whole model yet (MultiHeadAttention, ")
    assert early.endswith("come in chapters up to 10): until then, dragoman learn check 6")
    mini.write(10)
    solve("MultiHeadAttention", "EncoderLayer", "DecoderLayer", "Transformer")
    assert "(positions are not written): until then, dragoman learn check" in learn("audit", "mini_transformer.py")[1]
    solve("positions")
    assert learn("audit", "mini_transformer.py") == (0, "no fault is there to be seen: 21 checks\n")


def test_pytorchs_functions_are_imported_as_f(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mini.write(6)
    text = mini.PATH.read_text(encoding="utf-8")
    head, _, body = text.rpartition("    raise NotImplementedError")  # that of `loss`
    line = "    return F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD)"
    mini.PATH.write_text(head + line + body, encoding="utf-8")
    assert mini.verdicts(6) == {"loss": "right"}


def test_a_piece_is_judged_among_right_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in attention is said of attention, not of what is made of it."""
    monkeypatch.chdir(tmp_path)
    mini.write(9)
    solve("attention", "MultiHeadAttention")
    text = mini.PATH.read_text(encoding="utf-8").replace("softmax(dim=-1)", "softmax(dim=-2)", 1)
    mini.PATH.write_text(text, encoding="utf-8")
    assert "over the queries" in mini.verdicts(4)["attention"]
    assert mini.verdicts(7) == {"MultiHeadAttention": "right"}
    assert set(mini.verdicts(9).values()) == {"not written yet"}
    renamed = text.replace("self.key_proj", "self.keys")
    mini.PATH.write_text(renamed, encoding="utf-8")
    assert "`__init__`" in mini.verdicts(7)["MultiHeadAttention"]


def test_its_weights_in_dragomans_model_give_the_same_logits_and_searches() -> None:
    torch.manual_seed(1)
    model = mini_solution.Transformer(14, 14, 48, 4, 96, 2)
    pairs = laboratory.pairs("reverse", "train", 48 * 250)
    batches = [mini_solution.batch(pairs[start : start + 48]) for start in range(0, len(pairs), 48)]
    losses = mini_solution.train(model, batches, 200, warmup=60)
    assert losses[-1] < 0.4 < losses[0]
    ours = mini.dragoman_model(model)
    test = laboratory.pairs("reverse", "test", 40)
    batch = collate([*test, ONE])
    src, tgt_in, tgt_out = mini_solution.batch([*test, ONE])
    assert (src.equal(batch.src), tgt_in.equal(batch.tgt_in), tgt_out.equal(batch.tgt_out)) == (True, True, True)
    assert torch.allclose(model.eval()(src, tgt_in), ours(batch.src, batch.src_mask, batch.tgt_in), atol=1e-4)
    sources = [mini_solution.batch([pair])[0] for pair in test]
    greedy = [mini_solution.greedy(model, src) for src in sources]
    assert sum(one == tgt for one, (_, tgt) in zip(greedy, test, strict=True)) > 20
    results = searching.search(ours, batch.src, batch.src_mask, DecodingConfig(beam_size=1))
    assert [list(one[0].ids) for one in results[:40]] == greedy
    best = [mini_solution.beam_search(model, src, 4)[0] for src in sources]
    results = searching.search(ours, batch.src, batch.src_mask, DecodingConfig(beam_size=4))
    assert sum(list(one[0].ids) == ids for one, (ids, _) in zip(results, best, strict=False)) >= 36


def test_both_are_trained_alike_and_compared() -> None:
    data = mini_compare.corpus(400, held_out=4)
    own, ours = mini_compare.compare(seconds=0.5, data=data)
    assert (own.name, ours.name) == ("mini_transformer.py", "Dragoman")
    assert own.loss == pytest.approx(ours.loss, rel=0.02)
    lines = mini_compare.table([own, ours]).splitlines()
    assert lines[0].split() == ["training", "tokens/s", "loss", "BLEU", "sentences/s"]
    assert lines[2].startswith("Dragoman")


def test_a_piece_that_is_missing_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "mini_transformer.py is not there" in learn("mini")[1]
    mini.write(4)
    with pytest.raises(DragomanError, match="has no Transformer"):
        mini_compare.compare(SimpleNamespace(**vars(mini_solution) | {"Transformer": None}))
