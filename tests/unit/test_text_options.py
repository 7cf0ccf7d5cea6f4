"""Options of other toolkits that belong to text, loss and search: each one's effect."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error

import dragoman
from dragoman import config
from dragoman.backends import chunked_loss
from dragoman.data.batch import collate
from dragoman.decoding.base import Hypothesis
from dragoman.decoding.coverage import cross_attention
from dragoman.decoding.search import DecodingConfig
from dragoman.errors import Error
from dragoman.export import argos, bergamot, huggingface, marian
from dragoman.inference import unknown_words
from dragoman.inference.loading import build_model
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment, Translation
from dragoman.models.families import TransformerConfig
from dragoman.nn.embeddings import TokenEmbedding
from dragoman.pipeline.lines import OutputFormat
from dragoman.special_tokens import UNK_ID
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.tasks.translation.job import TranslationJob
from dragoman.tasks.word_vectors import load_vectors
from dragoman.text.tokenizers.pair import load_tokenizers, save_tokenizers, train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig
from dragoman.training import loss as textbook
from dragoman.training import preflight

SIZES: dict[str, Any] = {"d_model": 16, "num_heads": 2, "d_ff": 16, "num_encoder_layers": 1, "num_decoder_layers": 1}
FILES = {"type": "files", "src": "a", "tgt": "b"}
BARE = {"run_dir": "run", "corpus": {"src_lang": "en", "tgt_lang": "de", "train": FILES, "valid": FILES}}
LINES = ["the cat sees the dog .", "a dog runs .", "the bird sings today .", "we see a cat and a bird ."]


def translator(**decoding: Any) -> SearchTranslator:
    """A random model of words."""
    tokenizers = train_tokenizers(WordsConfig(), lambda: iter(LINES), lambda: iter(LINES))
    torch.manual_seed(3)
    model = build_model(TransformerConfig(**SIZES), tokenizers).eval()
    return SearchTranslator(model, tokenizers, decoding=config.parse(DecodingConfig, decoding, "decoding"))


EVERY: dict[str, Any] = {"beam_size": 400, "max_length_ratio": 0, "max_length_extra": 3, "min_length": 1}
"""A search that leaves nothing out."""


def test_a_word_penalty_ranks_as_marian_does() -> None:
    """(log probability - penalty * length) / length^alpha."""
    free = translator(**EVERY, n_best=400)
    [every] = free.hypotheses(free.parts(LINES[0]))
    for penalty in (0.5, 3.0):
        searching = translator(**EVERY, word_penalty=penalty, length_penalty={"type": "average", "alpha": 0.5})
        [found] = searching.n_best(LINES[:1])[0]
        scores = [(it.log_prob - penalty * (1 + len(it.ids))) / (1 + len(it.ids)) ** 0.5 for it in every if not it.cut]
        assert found.score == pytest.approx(max(scores), abs=1e-5)
        [begun] = searching.n_best(LINES[:1], ["the dog"])[0]  # whose words are words as well
        for item in (found, begun):
            [alone] = score(searching, [(LINES[0], item.text)])
            assert (alone.score, alone.log_prob) == pytest.approx((item.score, item.log_prob), abs=1e-5)


def test_a_word_penalty_makes_translations_shorter() -> None:
    none = {"length_penalty": {"type": "average", "alpha": 0.9}}
    free, short = (translator(**EVERY, **none, word_penalty=penalty).translate(LINES) for penalty in (0.0, 20.0))
    assert [len(line.split()) for line in short] == [1] * len(LINES)
    assert sum(len(line.split()) for line in free) > len(LINES)
    with raises_error(Error.WRONG_SETTING, "word_penalty"):
        translator(word_penalty=1, sampling={})


def writing_unknown(**decoding: Any) -> SearchTranslator:
    """A model that writes nothing but unknown words."""
    found = translator(ban_unk=False, beam_size=1, max_length_ratio=1, max_length_extra=0, **decoding)
    raised = torch.nn.functional.one_hot(torch.tensor(UNK_ID), found.tokenizers.tgt.vocab_size) * 100.0
    found.model.output.register_forward_hook(lambda _, __, logits: logits + raised)  # type: ignore[union-attr]
    return found


def test_unknown_words_are_copied_from_where_the_model_looked(tmp_path: Path) -> None:
    plain, copying = writing_unknown(), writing_unknown(replace_unk=True)
    assert set(plain.translate(LINES)[0].split()) == {"⁇"}
    for line, text in zip(LINES, copying.translate(LINES), strict=True):
        words = line.split()
        batch = collate([(copying.tokenizers.src.encode(line), [UNK_ID] * (len(words) + 1))])
        [looked] = cross_attention(copying.model, batch.src, batch.src_mask, batch.tgt_in)
        assert text.split() == [words[int(row[: len(words)].argmax())] for row in looked[: len(words) + 1]]
    table = tmp_path / "table.txt"
    table.write_text("the ||| die\ncat|||Katze\n.|||.\n", encoding="utf-8")
    using = writing_unknown(replace_unk=True, phrase_table=str(table))
    names = {"the": "die", "cat": "Katze"}
    for before, after in zip(copying.translate(LINES), using.translate(LINES), strict=True):
        assert after.split() == [names.get(word, word) for word in before.split()]
    table.write_text("the ||| die\ncat\n", encoding="utf-8")
    with raises_error(Error.WRONG_SHAPE, f"{table}:2"):
        writing_unknown(replace_unk=True, phrase_table=f"{tmp_path}/./table.txt").translate(LINES)


@pytest.mark.parametrize(
    ("inner", "line", "looked", "ids", "text"),
    [
        ("whitespace", "he lives in the U.S. now", 4, [UNK_ID], "U.S."),
        ("whitespace", "a new C++ book", 2, [UNK_ID], "Cplusplus"),
        ("whitespace", "the probation period ends", 2, [UNK_ID], "Probezeit"),
        ("characters", "a Žižek", 2, [UNK_ID, "c"], "Žc"),
        ("characters", "a Žižek", 2, [UNK_ID], "Žižek"),
        ("characters", "a Žižek", 2, [UNK_ID, "愛"], "Žižek愛"),
    ],
)
def test_what_is_copied_is_as_long_as_what_is_unknown(
    inner: str, line: str, looked: int, ids: list[Any], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The word that the model looked at with all its marks, or the phrase of a table; a letter inside of a word."""
    table = tmp_path / "table.txt"
    table.write_text("C++|||Cplusplus\nprobation period|||Probezeit\nperiod|||Periode\n", encoding="utf-8")
    kind = config.parse(TranslationRecipe, {**BARE, "tokenizer": {"type": inner}}).tokenizer
    tokenizers = train_tokenizers(kind, *[lambda: iter([*LINES, "我愛"])] * 2)
    written = [tokenizers.tgt.encode(one)[0] if isinstance(one, str) else one for one in ids]
    part = Segment(tokenizers.src.encode(line), [], line)
    attention = torch.nn.functional.one_hot(torch.tensor([looked] * 9), 9 + len(part.ids)).float()
    monkeypatch.setattr(unknown_words, "cross_attention", lambda *_: attention[None])
    model = build_model(TransformerConfig(**SIZES), tokenizers)
    copied = unknown_words.without_unknown(model, tokenizers, part, Hypothesis(written, 0.0, 0.0), str(table))
    assert copied == text


def test_a_line_of_a_table_of_phrases_with_scores_is_refused(tmp_path: Path) -> None:
    """Moses' own tables have their probabilities there, which would stand in translations."""
    (tmp_path / "table.txt").write_text("cat ||| Katze ||| 0.5 0.3 ||| 0-0\n", encoding="utf-8")
    with raises_error(Error.WRONG_SHAPE, "table.txt:1"):
        unknown_words.phrase_table(str(tmp_path / "table.txt"))


def test_unknown_words_that_are_never_written_are_not_replaced() -> None:
    with raises_error(Error.WRONG_SETTING, "ban_unk"):
        translator(replace_unk=True)
    with raises_error(Error.WRONG_SETTING, "replace_unk"):
        translator(phrase_table="table")


def job(folder: Path, **changes: Any) -> TranslationJob:
    """A job on LINES copied twenty times, on which `changes` (`corpus.weights_in`) are made."""
    lines = folder / "text"
    lines.write_text("".join(f"{line}\n" for line in 20 * LINES), encoding="utf-8")
    source = {"type": "files", "src": str(lines), "tgt": str(lines) + ".tgt"}
    Path(source["tgt"]).write_text("".join(f"{line[::-1]}\n" for line in 20 * LINES), encoding="utf-8")
    corpus = {"src_lang": "en", "tgt_lang": "de", "train": source, "valid": source, "doctor": "skip"}
    training = {"max_steps": 4, "batch_tokens": 100, "validate_every": 4, "loggers": []}
    recipe = {"run_dir": str(folder / "run"), "corpus": corpus, "tokenizer": {"type": "words"}, "device": "cpu"}
    recipe = config.override(recipe | {"training": training, "model": SIZES}, [f"{k}={v}" for k, v in changes.items()])
    return TranslationJob(config.parse(TranslationRecipe, recipe))


@pytest.mark.parametrize("losses", [textbook, chunked_loss], ids=["textbook", "chunked"])
@pytest.mark.parametrize("taught", [False, True])
def test_a_weight_multiplies_the_loss_of_its_pair(losses: Any, taught: bool) -> None:
    torch.manual_seed(1)
    logits, teacher = torch.randn(3, 5, 7, requires_grad=True), [torch.randn(3, 5, 7)] if taught else []
    targets, mask = torch.randint(0, 7, (3, 5)), torch.arange(5) < torch.tensor([5, 2, 4])[:, None]
    weights, more = torch.tensor([2.0, 0.0, 0.25]), {"teachers": teacher, "weight": 0.3}
    loss = losses.token_loss(logits, targets, mask * weights[:, None], 0.1, **more)
    [gradient] = torch.autograd.grad(loss, logits)
    rows = [
        losses.token_loss(
            logits[row, None],
            targets[row, None],
            mask[row, None],
            0.1,
            teachers=[one[row, None] for one in teacher],
            weight=0.3,
        )
        for row in range(3)
    ]
    expected = sum(weight * row for weight, row in zip(weights, rows, strict=True))
    [expected_gradient] = torch.autograd.grad(expected, logits)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient, expected_gradient)


def test_weights_in_the_loss_repeat_nothing(tmp_path: Path) -> None:
    """Each pair is there once, and what a batch is taught counts by the weights of its lines."""
    values = np.random.default_rng(1).integers(0, 5, 20 * len(LINES)) / 2
    (tmp_path / "weights").write_text("".join(f"{value}\n" for value in values), encoding="utf-8")
    changes = {"corpus.train.weights": tmp_path / "weights", "corpus.weights_in": "loss"}
    made = job(tmp_path, **changes)
    made.prepare()
    assert len(made.train) == 20 * len(LINES)
    model, task = made.start()
    model.requires_grad_(False).eval()
    for batch in task.micro_batch(1, 0):
        assert batch.weights.tolist() == values[made.train.lines[batch.rows] - 1].tolist()
        whole, tokens, _ = task.loss(model, batch, 0.1)
        each = [task.loss(model, collate([made.train.pairs([row])[0]]), 0.1)[0] for row in batch.rows]
        assert float(whole) == pytest.approx(sum(float(one) * w for one, w in zip(each, batch.weights, strict=True)))
        assert tokens == batch.num_tokens
    in_epoch = job(tmp_path, **{"corpus.train.weights": tmp_path / "weights", "run_dir": tmp_path / "other"})
    in_epoch.prepare()
    assert len(in_epoch.train) == pytest.approx(values.sum(), abs=1)


def test_weights_that_are_none_are_refused(tmp_path: Path) -> None:
    with raises_error(Error.WRONG_SETTING, "corpus"):
        job(tmp_path, **{"corpus.weights_in": "loss"})
    weights = tmp_path / "weights"
    changes = {"corpus.train.weights": weights, "corpus.weights_in": "loss"}
    weights.write_text("0\n" * 20 * len(LINES), encoding="utf-8")
    made = job(tmp_path, **changes)
    made.prepare()
    with raises_error(Error.EMPTY):
        made.start()
    weights.write_text("-0.9\n" * 20 * len(LINES), encoding="utf-8")
    made = job(tmp_path, **changes, run_dir=tmp_path / "other")
    made.prepare()
    with raises_error(Error.OUT_OF_RANGE, f"{weights}:1"):
        made.start()
    with raises_error(Error.WRONG_SETTING, "training.r_drop"):
        job(tmp_path, **changes, **{"training.r_drop": 1})


def test_a_batch_size_is_found_and_kept(tmp_path: Path) -> None:
    """Memory is pretended: 1 MiB for each hundred positions. A resumed run has the size of the first."""
    made = job(tmp_path, **{"training.workspace": 3})
    with pytest.MonkeyPatch.context() as patch:
        pretend_memory(patch)
        made.run()
    [found] = [config.from_yaml((tmp_path / "run" / "config.yaml").read_text("utf-8"), "")["training"]["batch_tokens"]]
    assert 250 <= found <= 300
    again = job(tmp_path, **{"training.workspace": 3, "training.max_steps": 6})
    assert again.recipe.training.batch_tokens == found
    assert again.run().outcome.step == 6
    task: Any = again.start()[1]
    assert max(batch.tgt_in.numel() for step in (1, 2, 3) for batch in task.batches(step)) > 100


def pretend_memory(patch: pytest.MonkeyPatch) -> None:
    sizes = [0]
    walk = preflight._forward_backward

    def measured(trainer: Any, batch: Any) -> None:
        sizes.append(max(len(batch) * batch.src.size(1), len(batch) * batch.tgt_in.size(1)))
        walk(trainer, batch)

    patch.setattr(preflight, "_forward_backward", measured)
    patch.setattr(preflight, "peak_bytes", lambda _: 2**20 * max(sizes) // 100)


def test_a_workspace_that_holds_no_batch_is_refused(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        sizes = iter(range(0, 2**40, 2**24))
        patch.setattr(preflight, "peak_bytes", lambda _: next(sizes))
        with raises_error(Error.OUT_OF_MEMORY, "training.workspace"):
            job(tmp_path, **{"training.workspace": 1}).run()


def test_all_of_a_corpus_is_the_largest_batch(tmp_path: Path) -> None:
    """More memory than any batch takes: the trials end."""
    made = job(tmp_path, **{"training.workspace": "auto"})
    made.run()
    assert made.recipe.training.batch_tokens > 100


def test_pieces_of_other_systems_are_joined_before_scoring(tmp_path: Path) -> None:
    pairs = [("ein kaffee", "a coffee , please"), ("zwei", "two of them please")]
    options: dict[str, Any] = {"corpus": pairs, "metric": ["bleu"], "tgt_lang": "en", "src_lang": "de", "checks": False}
    for cut in (
        ["a coff@@ ee , please", "two of them ple@@ ase"],
        ["▁a ▁coff ee ▁, ▁please", "▁two ▁of ▁them ▁please"],
    ):
        whole = dragoman.evaluate(hypotheses=cut, join=True, **options)
        assert whole["test"].bleu == pytest.approx(100)
        assert dragoman.evaluate(hypotheses=cut, **options)["test"].bleu < 70


def test_lists_of_moses_count_from_0() -> None:
    found = [Translation("a dog", -0.5, -1.5), Translation("a cat", -0.75, -2.25)]
    pipeline: Any = SimpleNamespace(n_best=2)
    assert OutputFormat(moses=True).text(pipeline, 1, "ein hund", found) == (
        "0 ||| a dog ||| F0= -1.5000 ||| -0.5000\n0 ||| a cat ||| F0= -2.2500 ||| -0.7500\n"
    )


TEXT = [
    "The “dog” doesn't bark, Mr. Smith said.",
    "Well-known dogs bark ; the dogs sleep.",
    "Today the cat (and the dog) sleeps…",
]


@pytest.mark.parametrize(
    "inner", [{"type": "whitespace"}, {"type": "sentencepiece", "vocab_size": 60}], ids=["whitespace", "sentencepiece"]
)
@pytest.mark.parametrize("truecase", [False, True])
def test_text_goes_through_moses_scripts_and_back(tmp_path: Path, inner: dict[str, Any], truecase: bool) -> None:
    """Equal to sacremoses called by hand; a run keeps the same tokenizer; text comes back as it is read."""
    sacremoses = pytest.importorskip("sacremoses")
    settings = {"type": "moses", "inner": inner, "truecase": truecase, "aggressive": True}
    recipe = config.parse(TranslationRecipe, BARE | {"tokenizer": settings})
    pair = train_tokenizers(recipe.tokenizer, lambda: iter(TEXT), lambda: iter(TEXT))
    save_tokenizers(pair, tmp_path)
    kept = load_tokenizers(tmp_path)
    normal, cut = sacremoses.MosesPunctNormalizer(), sacremoses.MosesTokenizer()
    for text, words in zip(TEXT, map(cut.tokenize, map(normal.normalize, TEXT)), strict=True):
        ids = pair.src.encode(text)
        assert ids == kept.src.encode(text) != []
        assert len(kept.src.letters(text)) == len(ids)
        assert kept.src.decode(ids) == pair.src.decode(ids) == normal.normalize(text).replace(" ;", ";").strip()
        if inner["type"] == "whitespace" and not truecase:
            assert " ".join(pair.src.pieces(ids)).replace("@-@", "-").replace(" - ", "-") == " ".join(words)
    if inner["type"] == "whitespace":  # a word at the beginning has the letters that it has elsewhere
        assert pair.src.pieces(pair.src.encode("The dogs"))[0] == ("the" if truecase else "The")


def test_a_truecase_model_of_moses_is_taken_in(tmp_path: Path) -> None:
    pytest.importorskip("sacremoses")
    model = tmp_path / "truecase-model"
    model.write_text("smith (9/10) Smith (1)\nthe (90/100) The (10)\n", encoding="utf-8")
    settings = {"type": "moses", "inner": {"type": "whitespace"}, "truecase": str(model)}
    tokenizer = config.parse(TranslationRecipe, BARE | {"tokenizer": settings}).tokenizer
    pair = train_tokenizers(tokenizer, lambda: iter(["the smith ."]), lambda: iter(["the smith ."]))
    assert pair.src.pieces(pair.src.encode("The Smith .")) == ["the", "smith", "."]
    model.write_text("the cat\n", encoding="utf-8")
    with raises_error(Error.WRONG_FILE_TYPE, str(model)):
        train_tokenizers(tokenizer, lambda: iter(["the smith ."]), lambda: iter(["the smith ."]))


def test_any_tokenizer_may_read_small_letters_alone() -> None:
    pytest.importorskip("sacremoses")
    settings = {"type": "moses", "lowercase": True, "inner": {"type": "whitespace"}}
    tokenizer = config.parse(TranslationRecipe, BARE | {"tokenizer": settings}).tokenizer
    pair = train_tokenizers(tokenizer, lambda: iter(TEXT), lambda: iter(TEXT))
    assert pair.src.decode(pair.src.encode("The DOGS sleep.")) == "the dogs sleep."
    with raises_error(Error.WRONG_SETTING, "truecase"):
        config.parse(TranslationRecipe, BARE | {"tokenizer": settings | {"truecase": True}})


def test_exports_without_a_place_for_moses_refuse_it() -> None:
    pytest.importorskip("sacremoses")
    settings = {"type": "moses", "inner": {"type": "sentencepiece", "vocab_size": 60}}
    recipe = config.parse(TranslationRecipe, BARE | {"tokenizer": settings})
    pair = train_tokenizers(recipe.tokenizer, lambda: iter(TEXT), lambda: iter(TEXT))
    model: Any = build_model(TransformerConfig(**SIZES), pair)
    made = SearchTranslator(model, pair, decoding=DecodingConfig(), languages=("en", "de"))
    for target in (marian, bergamot, huggingface, argos):
        assert any("moses" in problem for problem in target.problems(made)), target


def test_a_run_with_moses_scripts_is_trained_and_loaded(tmp_path: Path) -> None:
    pytest.importorskip("sacremoses")
    side = "{type: moses, truecase: true, inner: {type: whitespace}}"
    separate = f"{{type: separate, src: {side}, tgt: {side}}}"
    made = job(tmp_path, **{"tokenizer": separate, "model.tie_embeddings": "output"})
    made.run()
    loaded = SearchTranslator.load(tmp_path / "run", device="cpu")
    assert loaded.tokenizers.tgt.pieces(loaded.tokenizers.tgt.encode("a (god)!")) == [
        "a",
        "<unk>",
        "god",
        "<unk>",
        "<unk>",
    ]
    assert loaded.tokenizers.tgt.decode(loaded.tokenizers.tgt.encode(LINES[1][::-1])) == ". Snur god a"


def test_vectors_of_words_and_of_pieces_begin_an_embedding_of_pieces(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    settings = {"vocab_size": 40, "algorithm": "bpe"}
    recipe: Any = config.parse(
        TranslationRecipe, BARE | {"tokenizer": settings, "vectors": {"src": {"path": str(path)}}}
    )
    pair = train_tokenizers(recipe.tokenizer, lambda: iter(LINES), lambda: iter(LINES))
    pieces = pair.src.pieces(range(pair.src.vocab_size))
    word = next(piece for piece in pieces if piece.startswith("▁") and len(piece) > 2)
    inside = next(piece for piece in pieces[4:] if "▁" not in piece)
    path.write_text(f"{word[1:]} 1 0 0 0\n{inside} 0 1 0 0\n▁{'x'} 0 0 1 0\n", encoding="utf-8")
    embedding = TokenEmbedding(len(pieces), 4, pad_id=0, scaled=False)
    before = embedding.embedding.weight.detach().clone()
    load_vectors(embedding, pair.src, recipe.vectors.src)
    changed = (embedding.embedding.weight != before).any(dim=1).nonzero().flatten().tolist()
    assert sorted(changed) == sorted([pieces.index(word), pieces.index(inside)])
    row = embedding.embedding.weight[pieces.index(word)]
    assert (row[0] > 0, row[1:].tolist()) == (True, [0, 0, 0])
    with raises_error(Error.WRONG_SETTING, "vectors"):
        config.parse(TranslationRecipe, BARE | {"tokenizer": {"type": "characters"}, "vectors": {"src": {"path": "v"}}})


@pytest.mark.parametrize("inner", [{"type": "whitespace"}, {"type": "sentencepiece", "vocab_size": 40}], ids=str)
@pytest.mark.parametrize("more", [{}, {"escape": False}, {"lowercase": True, "aggressive": True}], ids=str)
def test_letters_of_moses_tokens_are_those_of_the_text(inner: dict[str, Any], more: dict[str, Any]) -> None:
    """`&apos;` is one letter, and so is a mark that was normalised: links of words rely on it."""
    pytest.importorskip("sacremoses")
    lines = ["it's a zebra", "the house is red", "don't go there", "a dog, a cat"]
    kind = config.parse(TranslationRecipe, {**BARE, "tokenizer": {"type": "moses", "inner": inner, **more}}).tokenizer
    tokenizer = train_tokenizers(kind, lambda: iter(lines), lambda: iter(lines)).src
    for text in ("don't say “Zebra” — Mr. Smith's", "well-known & <b>bold</b> […] me@x.de", " "):
        counts, visible = tokenizer.letters(text), "".join(text.split())
        assert len(counts) == len(tokenizer.encode(text))
        assert sum(counts) == len(visible)
        if inner["type"] == "whitespace":
            ends = np.cumsum([0, *counts])
            tokens = [visible[start:end] for start, end in itertools.pairwise(ends)]
            assert set(tokens) >= ({"'t", "“", "Zebra", "—", "Mr."} if "Mr" in text else {"&", "<", "…"} & set(text))
