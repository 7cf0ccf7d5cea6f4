"""The language model's task: losses against a loop over single tokens, samples, and the generator over a run."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error
from torch import Tensor, nn

import dragoman
from dragoman import config
from dragoman.data.text_corpus import encode
from dragoman.data.windows import WindowPlan
from dragoman.decoding.generate import SamplingConfig
from dragoman.errors import Error
from dragoman.inference.generator import Generator
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.language_model import LanguageModel, LanguageModelConfig
from dragoman.runs import checkpoint
from dragoman.special_tokens import EOS_ID
from dragoman.tasks import recipes
from dragoman.tasks.language_modelling.job import LanguageModellingRecipe
from dragoman.tasks.language_modelling.task import LanguageModellingTask, samples, score
from dragoman.text.tokenizers.characters import CharactersTokenizer
from dragoman.text.tokenizers.pair import CharactersConfig, TokenizerPair, WordsConfig, save_tokenizers
from dragoman.text.tokenizers.words import WordsTokenizer

SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 16, "num_layers": 1, "dropout": 0.1, "position": {"type": "rotary"}}
TEXT = "the cat sees the dog.\na dog runs.\n\nthe bird sings today.\nwe see a cat and a bird.\n"
CPU = torch.device("cpu")


def model_of(vocab_size: int) -> LanguageModel:
    torch.manual_seed(3)
    return config.parse(LanguageModelConfig, SIZES).build(vocab_size=vocab_size, pad_id=0)


@pytest.fixture(scope="module")
def characters() -> Generator:
    tokenizer = CharactersTokenizer.train(CharactersConfig(), iter(TEXT.split("\n")))
    sampling = SamplingConfig(temperature=1, max_tokens=15)
    return Generator(model_of(tokenizer.vocab_size), tokenizer, sampling=sampling, max_context=12)


@pytest.fixture(scope="module")
def words() -> Generator:
    tokenizer = WordsTokenizer.train(WordsConfig(), iter(TEXT.split("\n")))
    sampling = SamplingConfig(temperature=1, max_tokens=15)
    return Generator(model_of(tokenizer.vocab_size), tokenizer, sampling=sampling, max_context=12)


# -- scores --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("block_len", "min_context"), [(8, 1), (8, 5), (8, 8), (200, 1), (1, 1)])
def test_the_loss_is_the_mean_over_single_tokens(characters: Generator, block_len: int, min_context: int) -> None:
    ids = encode(characters.tokenizer, TEXT)
    model = characters.model.train()
    found = score(model, ids, len(TEXT), block_len=block_len, min_context=min_context, device=CPU)
    assert model.training
    text = [EOS_ID, *ids.tolist()]
    # Windows start `stride` apart; each token belongs to the first one that reaches it, the last ends with the text.
    length, stride = min(block_len, len(ids)), block_len - min_context + 1
    total = 0.0
    model.eval()
    for token in range(len(ids)):
        begin = next(s for s in range(0, len(ids), stride) if s + length > token)
        begin = min(begin, len(ids) - length)
        with torch.no_grad():
            log_probs = model.decode(torch.tensor([text[begin : token + 1]]))[0, -1].log_softmax(-1)
        total -= log_probs[text[token + 1]].item()
    assert found.loss == pytest.approx(total / len(ids), rel=1e-5)
    assert found.bits_per_character == pytest.approx(total / math.log(2) / len(TEXT), rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(total / len(ids)), rel=1e-5)
    assert (found.tokens, found.characters, found.unknown) == (len(ids), len(TEXT), 0)


class Uniform(nn.Module):
    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size

    def forward(self, ids: Tensor) -> Tensor:
        return torch.zeros(*ids.shape, self.vocab_size)


def test_a_model_that_knows_nothing() -> None:
    """16 equally likely tokens are 4 bits each; in words of five characters that is 0.8 bits a character."""
    ids = np.arange(100, dtype=np.uint16) % 16
    found = score(Uniform(16), ids, 500, block_len=7, min_context=3, device=CPU)
    assert found.loss == pytest.approx(math.log(16))
    assert found.perplexity == pytest.approx(16)
    assert found.bits_per_character == pytest.approx(0.8)
    assert found.unknown == 7
    assert found.figures()["context"] == "3-7"


# -- the task ------------------------------------------------------------------------------------------------------


def test_batches_losses_and_validations(characters: Generator) -> None:
    ids, model = encode(characters.tokenizer, TEXT * 4), characters.model
    plan = WindowPlan(len(ids), 12, batch_tokens=48, seed=1)
    task = LanguageModellingTask(ids, plan, ids[:90], 90, generator=characters, min_context=4, shown=2)
    assert task.position(1) == (0, 0)
    assert task.position(plan.steps_per_epoch + 2) == (1, 1)
    [batch] = task.batches(plan.steps_per_epoch + 2)
    starts = plan.step(1, 1)[0]
    for row, start in enumerate(starts):
        assert batch.tgt_in[row].tolist() == ids[start : start + 12].tolist()
        assert batch.tgt_out[row].tolist() == ids[start + 1 : start + 13].tolist()
    lines = sorted((TEXT * 4)[:start].count("\n") + 1 for start in starts)
    assert task.describe(batch) == f"text from lines {', '.join(map(str, lines))}"
    model.eval()
    loss, count, processed = task.loss(model, batch, 0.0)
    expected = nn.functional.cross_entropy(model(batch.tgt_in).flatten(0, 1), batch.tgt_out.flatten(), reduction="sum")
    torch.testing.assert_close(loss, expected)
    assert count == processed == 12 * len(starts)

    found = task.validate(model)
    assert found.score == -found.metrics["loss"]
    assert found.metrics.keys() == {"loss", "perplexity", "bits_per_character"}
    assert found.metrics["loss"] == score(model, ids[:90], 90, block_len=12, min_context=4, device=CPU).loss
    assert len(found.samples) == 2
    assert found.samples == task.validate(model).samples


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_samples_continue_what_stands_there(kind: str, request: pytest.FixtureRequest) -> None:
    generator: Generator = request.getfixturevalue(kind)
    text = TEXT * 6
    ids = encode(generator.tokenizer, text)
    found = samples(generator, ids, 5)
    assert len(found) == 5
    assert len({sample["src"] for sample in found}) > 1
    for sample in found:
        assert sample["src"] + sample["ref"] in generator.text(ids)
        place = generator.text(ids).index(sample["src"] + sample["ref"])
        assert place == 0 or generator.text(ids)[place - 1] == "\n"
        assert sample["hyp"] != sample["ref"]
    assert samples(generator, ids, 0) == samples(generator, ids[:3], 5) == []


# -- the generator -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["characters", "words"])
@pytest.mark.parametrize("prompt", ["", "the cat", "a dog runs.\n", "the\n\ncat sees"])
def test_streamed_text_is_the_generated_text(kind: str, prompt: str, request: pytest.FixtureRequest) -> None:
    generator: Generator = request.getfixturevalue(kind)
    pieces = list(generator.stream(prompt, seed=4))
    assert "".join(pieces) == generator.generate([prompt], seed=4)[0]
    assert len(pieces) == generator.sampling.max_tokens


def test_settings_change_for_a_call(characters: Generator) -> None:
    assert len(characters.generate(["the cat"], max_tokens=7)[0]) == 7
    greedy = characters.generate(["the cat"] * 2, temperature=0)
    assert greedy[0] == greedy[1]
    assert characters.generate(["the cat"], top_k=1) == greedy[:1]
    assert characters.generate(["a", "the cat"], temperature=0)[1] == greedy[0]
    assert characters.generate([]) == []
    with raises_error(Error.UNKNOWN_SETTING, "sampling settings"):
        characters.generate(["a"], temprature=1)


def run_directory(folder: Path, generator: Generator) -> Path:
    """A run directory with a random model, put together by hand."""
    source = {"type": "text", "path": "x"}
    corpus = {"train": source, "valid": source, "block_len": 12}
    data = {"task": "language_modelling", "run_dir": str(folder), "model": SIZES, "decoding": {"max_tokens": 30},
            "corpus": corpus, "tokenizer": {"type": "characters"}}  # fmt: skip
    recipe = config.parse(LanguageModellingRecipe, data)
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(config.to_yaml(recipe), encoding="utf-8")
    save_tokenizers(TokenizerPair(generator.tokenizer, generator.tokenizer, shared=True), folder / "tokenizer")
    checkpoint.save(folder, 1, {"model": checkpoint.weights(generator.model)}, {"step": 1, "score": 1.0})
    return folder


def test_a_run_is_loaded_as_what_it_is(characters: Generator, tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", characters)
    loaded = dragoman.load_language_model(str(run), device="cpu", temperature=1)
    assert isinstance(loaded, Generator)
    assert loaded.sampling == SamplingConfig(temperature=1, max_tokens=30)
    assert loaded.max_context == 12
    assert loaded.generate(["the"]) == characters.generate(["the"], max_tokens=30)
    with raises_error(Error.WRONG_TASK, "run"):
        SearchTranslator.load(run)
    (run / "config.yaml").write_text("task: translation\n", encoding="utf-8")
    with raises_error(Error.WRONG_TASK, "run"):
        Generator.load(run)


def test_evaluation_of_files_and_what_it_refuses(characters: Generator, tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", characters)
    file = tmp_path / "new.txt"
    file.write_text(TEXT, encoding="utf-8")

    def evaluate(**options: Any) -> Any:
        lists = {"sources": [file], "references": [], "names": []}
        return recipes.evaluate(run, **{**lists, "device": "cpu", **options})

    found = evaluate()["new.txt"]
    ids = encode(characters.tokenizer, TEXT)
    assert found == score(characters.model, ids, len(TEXT), block_len=12, min_context=1, device=CPU)
    assert evaluate(min_context=9)["new.txt"].loss != found.loss
    for wrong, error in (
        ({"references": [file]}, (Error.UNSUPPORTED, "new.txt")),
        ({"min_context": 13}, (Error.OUT_OF_RANGE, "min_context")),
        ({"beam_size": 2}, (Error.UNSUPPORTED, "--beam-size")),
        ({"sources": []}, (Error.MISSING_OPTION, "run")),
    ):
        with raises_error(*error):
            evaluate(**wrong)


def test_a_tokenizer_that_samples_is_refused() -> None:
    source = {"type": "text", "path": "x"}
    data = {"task": "language_modelling", "run_dir": "x", "corpus": {"train": source, "valid": source},
            "tokenizer": {"type": "sentencepiece", "sampling": 0.1}}  # fmt: skip
    with raises_error(Error.WRONG_SETTING, "tokenizer.sampling"):
        config.parse(LanguageModellingRecipe, data)


def test_labels_are_not_smoothed_unless_the_recipe_says_so() -> None:
    source = {"type": "text", "path": "x"}
    data: dict[str, Any] = {"task": "language_modelling", "run_dir": "x", "corpus": {"train": source, "valid": source}}
    assert config.parse(LanguageModellingRecipe, data).training.label_smoothing == 0.0
    data["training"] = {"max_steps": 5}
    assert config.parse(LanguageModellingRecipe, data).training.label_smoothing == 0.0
    data["training"] = {"label_smoothing": 0.1}
    assert config.parse(LanguageModellingRecipe, data).training.label_smoothing == 0.1
