"""First weights, dropped, tied and checkpointed layers, relative positions and SSRUs: what each one changes."""

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from tests.errors import raises_error
from torch import Tensor, nn

from dragoman.backends.accelerate import accelerate
from dragoman.config import override, parse
from dragoman.data.batch import collate
from dragoman.errors import Error
from dragoman.models.families import TextClassifierConfig, TransformerConfig
from dragoman.models.language_model import LanguageModelConfig
from dragoman.models.stacks import checkpoint_layers, taken
from dragoman.models.transformer import Transformer
from dragoman.nn.attention import KVCache, MultiHeadAttention
from dragoman.nn.masks import causal_mask
from dragoman.nn.relative_positions import RelativePositions
from dragoman.nn.ssru import SSRU, SSRUState
from dragoman.runs import checkpoint
from dragoman.tasks import recipes
from dragoman.tasks.adapter import LoraConfig, add_adapter
from dragoman.training.config import TrainingConfig
from dragoman.training.loss import token_loss
from dragoman.training.step import TrainingStep
from dragoman.training.task import Task

SIZES = {"d_model": 32, "num_heads": 2, "d_ff": 64, "num_encoder_layers": 4, "num_decoder_layers": 4, "dropout": 0.0}
BATCH = collate([([4, 5, 6, 7], [8, 9]), ([10, 11], [12, 13, 14, 15, 16]), ([17, 4], [5])])
RECIPE: dict[str, Any] = {
    "run_dir": "run",
    "corpus": {name: {"type": "demo", "pair": "de-en", "split": name, "size": 9} for name in ("train", "valid")}
    | {"src_lang": "de", "tgt_lang": "en"},
    "tokenizer": {"type": "words"},
}


def transformer(seed: int = 1, **settings: Any) -> Transformer:
    torch.manual_seed(seed)
    config = parse(TransformerConfig, {**SIZES, **settings})
    return config.build(src_vocab_size=19, tgt_vocab_size=19, shared_vocab=True, pad_id=0)


def checked(*changes: str) -> int:
    recipe = parse(recipes.TranslationRecipe, override(RECIPE, ["model.d_model=32", *changes]))
    return recipes.job(recipe).check()


def loss_of(model: nn.Module, seed: int = 7) -> Tensor:
    torch.manual_seed(seed)
    return token_loss(model(BATCH.src, BATCH.src_mask, BATCH.tgt_in), BATCH.tgt_out, BATCH.tgt_mask, 0.1)


def trained(model: nn.Module, seed: int = 7) -> tuple[Tensor, dict[str, Tensor | None]]:
    """(loss, gradients)."""
    model.zero_grad()
    loss = loss_of(model.train(), seed)
    loss.backward()
    return loss.detach(), {name: parameter.grad for name, parameter in model.named_parameters()}


# -- first weights -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["xavier_uniform", "fairseq", "depth_scaled"])
def test_first_weights_are_xaviers_times_a_factor(how: str) -> None:
    plain = dict(transformer().named_parameters())
    for name, parameter in transformer(initialization=how).named_parameters():
        factor = 1.0
        if parameter.dim() == 2 and "_layers" in name:
            factor = {
                "xavier_uniform": 1.0,
                "fairseq": 2**-0.5 if name.split(".")[-2] in ("query_proj", "key_proj", "value_proj") else 1.0,
                "depth_scaled": (1 + int(name.split(".")[1])) ** -0.5,
            }[how]
        torch.testing.assert_close(parameter, factor * plain[name])


@pytest.mark.parametrize(("how", "deviation"), [("normal", 0.02), ("xavier_normal", math.sqrt(2 / (32 + 64)))])
def test_first_weights_are_normal(how: str, deviation: float) -> None:
    layers = transformer(initialization=how).decoder_layers
    weights = torch.cat([layer.feed_forward.expand.weight.flatten() for layer in layers])  # type: ignore[union-attr]
    assert float(weights.detach().std()) == pytest.approx(deviation, rel=0.05)
    assert float((weights.abs() > 2 * deviation).float().mean()) == pytest.approx(0.0455, abs=0.01)


# -- dropped layers ----------------------------------------------------------------------------------------------------


def test_training_drops_layers_and_nothing_else_does() -> None:
    model, whole = transformer(layer_drop=0.3), transformer()
    assert torch.equal(loss_of(model.eval()), loss_of(whole.eval()))
    torch.manual_seed(1)
    model.train()
    passes = [[number for number, _ in taken(model.decoder_layers)] for _ in range(1000)]
    assert sum(map(len, passes)) / 4000 == pytest.approx(0.7, abs=0.03)
    assert all(2 in [number for number, _ in taken(model.decoder_layers, kept=2)] for _ in range(50))


def test_a_dropped_layer_has_no_gradient_and_the_seed_says_which() -> None:
    model = transformer(layer_drop=0.5)
    loss, gradients = trained(model)
    dropped = {name.rpartition(".self")[0] for name, gradient in gradients.items() if gradient is None} - {""}
    assert 0 < len(dropped) < 8
    assert torch.equal(trained(model)[0], loss)
    assert len({float(trained(model, seed)[0]) for seed in range(5)}) > 1


def test_a_guided_head_is_there_in_every_pass() -> None:
    model = transformer(layer_drop=0.9, alignment_head=[2, 0]).train()
    for _ in range(20):
        maps: list[Tensor] = []
        model(BATCH.src, BATCH.src_mask, BATCH.tgt_in, maps)
        assert len(maps) == 2


def test_a_pass_that_drops_all_that_is_trained_changes_nothing() -> None:
    """Of an adapter nothing but layers is trained: such a pass has no gradient at all."""
    model = transformer(layer_drop=0.999)
    add_adapter(model, LoraConfig(r=2))
    task = SimpleNamespace(
        count=lambda step: 1,
        micro_batch=lambda step, number: [BATCH],
        loss=lambda model, batch, smoothing: (loss_of(model), batch.num_tokens, batch.num_tokens),
    )
    step = TrainingStep(
        TrainingConfig(), model, cast(Task, task), device=torch.device("cpu"), precision="float32", seed=1
    )
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    loss, norm, _ = step.take(1, 0.1)
    assert float(loss) > 0
    assert float(norm) == 0
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


# -- tied layers -------------------------------------------------------------------------------------------------------


def test_tied_layers_are_one_layer() -> None:
    model = transformer(tied_layers=[1, 1, 3, 3], tied_encoder_layers=[1, 1, 1, 1], shrink_residuals=True)
    assert len(set(model.encoder_layers)) == 1
    assert [list(model.decoder_layers).index(layer) for layer in model.decoder_layers] == [0, 0, 2, 2]
    weights = checkpoint.weights(model)
    assert {name.split(".")[1] for name in weights if name.startswith("decoder_layers")} == {"0", "2"}
    plain = checkpoint.weights(transformer(tied_layers=[1, 1, 3, 3], tied_encoder_layers=[1, 1, 1, 1]))
    for name, value in weights.items():  # shrunk once, as in a model of as many layers
        added = name.endswith(("output_proj.weight", "contract.weight"))
        torch.testing.assert_close(value, plain[name] * ((8 if "encoder" in name else 12) ** -0.5 if added else 1.0))
    assert all(gradient is not None for gradient in trained(model)[1].values())


def test_every_family_ties_its_layers() -> None:
    language_model = parse(LanguageModelConfig, {"d_model": 8, "num_layers": 3, "tied_layers": [1, 1, 1]})
    classifier = parse(TextClassifierConfig, {"d_model": 8, "tied_layers": [1, 1]})
    assert len(set(language_model.build(vocab_size=9, pad_id=0).layers)) == 1
    assert len(set(classifier.build(vocab_size=9, num_labels=2, pad_id=0, unk_id=1).encoder.layers)) == 1


@pytest.mark.parametrize("tied", ["[1,1]", "[1,1,1,5]", "[0,1,1,1]"])
@pytest.mark.parametrize("key", ["tied_layers", "tied_encoder_layers"])
def test_numbers_of_tied_layers_have_to_fit(key: str, tied: str) -> None:
    with raises_error(Error.WRONG_SETTING) as error:
        checked(f"model.{key}={tied}")
    assert "from 1 to 4" in str(error.value)


# -- gradient checkpointing --------------------------------------------------------------------------------------------


def kept_bytes(model: nn.Module) -> int:
    """Of the tensors that a forward pass leaves for the backward pass, beside the parameters."""
    own, kept = {parameter.data_ptr() for parameter in model.parameters()}, {}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.data_ptr() not in own:
            kept[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss_of(model.train())
    return sum(kept.values())


@pytest.mark.parametrize("precision", ["textbook", "float32", "bfloat16"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"layer_drop": 0.4}, {"decoder_autoreg": "rnn"}, {"position": {"type": "relative"}}],
    ids=["plain", "dropped", "ssru", "relative"],
)
def test_checkpointed_layers_have_the_same_gradients_to_the_bit(precision: str, settings: dict[str, Any]) -> None:
    found = []
    for checkpointed in (False, True):
        model = transformer(**{**settings, "dropout": 0.2, "attention_dropout": 0.1})
        if precision != "textbook":
            accelerate(model, torch.device("cpu"), precision)
        if checkpointed:
            checkpoint_layers(model)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            found.append(trained(model))
    (loss, gradients), (again, others) = found
    assert torch.equal(loss, again)
    for name, gradient in gradients.items():
        other = others[name]
        assert (gradient is None) == (other is None), name
        assert gradient is None or torch.equal(gradient, other), name  # type: ignore[arg-type]


def test_checkpointed_layers_keep_less() -> None:
    model = transformer(dropout=0.1)
    before = kept_bytes(model)
    checkpoint_layers(model)
    assert kept_bytes(model) < 0.4 * before


def test_where_checkpointing_does_not_go_together_it_is_refused() -> None:
    assert checked("training.gradient_checkpointing=true") > 0
    with raises_error(Error.WRONG_SETTING) as error:
        checked("training.gradient_checkpointing=true", "model={type: recurrent, d_model: 32}")
    assert "recurrent" in str(error.value)
    with raises_error(Error.WRONG_SETTING) as error:
        checked("model.layer_drop=0.1", "training.reduce=fast")
    assert "training.reduce=exact" in str(error.value)
    with pytest.raises(ValueError, match="graphs"):
        TrainingConfig(gradient_checkpointing=True, compile="graphs")


# -- relative positions ------------------------------------------------------------------------------------------------


def test_relative_positions_by_a_loop() -> None:
    """Equations 2 and 5 of Shaw et al. 2018, keys alone, of distances that are clipped at 2."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, positions=RelativePositions(4, 2)).double()
    x = torch.randn(1, 6, 8, dtype=torch.float64)
    query, key, value = (attention.split_heads(part)[0] for part in attention.project_qkv(x))
    vectors = attention.positions.embedding.weight
    contexts = []
    for head in range(2):
        for i in range(6):
            scores = [query[head, i] @ (key[head, j] + vectors[max(-2, min(2, j - i)) + 2]) / 2 for j in range(i + 1)]
            contexts.append(torch.stack(scores).softmax(0) @ value[head, : i + 1])
    context = torch.stack(contexts).view(2, 6, 4).transpose(0, 1).reshape(1, 6, 8)
    torch.testing.assert_close(attention(x, x, causal_mask(6)), attention.output_proj(context))


def test_relative_positions_need_no_others_and_have_no_end() -> None:
    model = transformer(position={"type": "relative", "max_distance": 3}).eval()
    assert model.max_target_length is None
    assert not model.src_embedding.positions(0, 9).any()
    ids = torch.arange(600)[None] % 15 + 4
    one, two = (model.encode(part, torch.ones_like(part).bool()).hidden for part in (ids, ids.roll(1, 1)))
    assert not torch.allclose(one[:, 1:5], two[:, 1:5])


# -- SSRU --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 7, 64, 65])
def test_an_ssru_by_a_loop(length: int) -> None:
    """Section 3.1 of Kim et al. 2019, step by step."""
    torch.manual_seed(0)
    unit = SSRU(6)
    x, cell = torch.randn(3, length, 6), torch.zeros(3, 6)
    forget, values = torch.sigmoid(x @ unit.forget_proj.weight.T + unit.forget_proj.bias), x @ unit.input_proj.weight.T
    outputs = []
    for place in range(length):
        cell = forget[:, place] * cell + (1 - forget[:, place]) * values[:, place]
        outputs.append(cell.relu())
    torch.testing.assert_close(unit(x, x, None), torch.stack(outputs, dim=1))
    state = unit.project_kv(x[:, :0])
    for part in x.split(5, dim=1):
        context, state = state.attend(unit, unit.project_qkv(part))
    torch.testing.assert_close(context, torch.stack(outputs, dim=1)[:, -context.size(1) :])
    assert state.length == length


def test_an_ssru_remembers_as_much_at_every_place() -> None:
    model = transformer(decoder_autoreg="rnn").eval()
    assert not any(isinstance(module, MultiHeadAttention) for module in own_memories(model))
    with torch.inference_mode():
        state = model.start_search(model.encode(BATCH.src, BATCH.src_mask), 2)
        sizes = []
        for _ in range(4):
            _, state = model.decode_step(torch.tensor([5, 6, 7]), state)
            sizes.append([cache.cell.shape for cache in state.past if isinstance(cache, SSRUState)])
    assert sizes == [[(3, 32)] * 4] * 4
    assert not any(isinstance(cache, KVCache) for cache in state.past)


def own_memories(model: Transformer) -> Iterator[nn.Module]:
    return (layer.self_attention for layer in model.decoder_layers)
