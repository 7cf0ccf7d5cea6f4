"""Attention pictures: the maps that a model hands over, unchanged, with the tokens of their sides."""

from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from tests.errors import raises_error
from torch import Tensor

from dragoman.analysis.attention import attention_figure
from dragoman.analysis.examples import words_of
from dragoman.decoding.base import DecodingConfig, SampledConfig
from dragoman.errors import Error
from dragoman.inference.attention_maps import attention_kinds, attention_of, check_choice
from dragoman.inference.loading import build_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.base import Seq2SeqModel
from dragoman.models.families import RecurrentConfig, TransformerConfig

WORDS = words_of(["two small dogs run", "zwei kleine hunde"])
SRC, TGT = ["two", "dogs", "run", "</s>"], ["<s>", "zwei", "hunde"]


class Made(Seq2SeqModel):
    """A model that says "zwei hunde" whatever it reads; its maps are made up."""

    def __init__(self, maps: dict[str, Tensor]) -> None:
        super().__init__()
        self.maps = maps
        self.src_vocab_size = self.tgt_vocab_size = WORDS.src.vocab_size

    def encode(self, src: Tensor, src_mask: Tensor) -> Any:
        return len(src)

    def decode(self, tgt_in: Tensor, memory: Any) -> Tensor:
        raise NotImplementedError

    def start(self, memory: int) -> Any:
        return Row(memory, 0)

    def decode_step(self, prev: Tensor, state: "Row") -> tuple[Tensor, "Row"]:
        said = [WORDS.tgt.id_of(piece) for piece in ("zwei", "hunde", "</s>", "</s>")][min(state.position, 3)]
        logits = torch.zeros(len(prev), self.tgt_vocab_size)
        logits[:, said] = 9.0
        return logits, Row(len(prev), state.position + 1)

    def attention_maps(self, src: Tensor, src_mask: Tensor, tgt_in: Tensor) -> dict[str, Tensor]:
        self.read = (src, src_mask, tgt_in)
        return self.maps


class Row:
    def __init__(self, rows: int, position: int) -> None:
        self.rows, self.position = rows, position

    pads_rows: ClassVar[bool] = False

    def reorder(self, rows: Tensor) -> "Row":
        return Row(len(rows), self.position)


def maps(layers: int = 2, heads: int = 3, src: int = 4, tgt: int = 3) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)

    def random(queries: int, keys: int) -> Tensor:
        return torch.rand(1, heads, queries, keys, generator=generator).softmax(-1)

    found = {f"encoder.{i}.self": random(src, src) for i in range(layers)}
    for i in range(layers):
        found |= {f"decoder.{i}.self": random(tgt, tgt), f"decoder.{i}.cross": random(tgt, src)}
    return found


def translator(model: Seq2SeqModel) -> SearchTranslator:
    return SearchTranslator(model, WORDS, decoding=DecodingConfig(beam_size=2))


def labels(axes: Any) -> tuple[list[str], list[str]]:
    return [t.get_text() for t in axes.get_yticklabels()], [t.get_text() for t in axes.get_xticklabels()]


def test_without_a_target_the_model_translates_first() -> None:
    model = Made(maps())
    kinds = attention_of(translator(model), "two dogs run")
    assert list(kinds) == ["encoder.self", "decoder.self", "decoder.cross"]
    src, src_mask, tgt_in = model.read
    assert WORDS.src.pieces(src[0].tolist()) == SRC
    assert src_mask.all()
    assert WORDS.tgt.pieces(tgt_in[0].tolist()) == TGT
    assert kinds["encoder.self"].queries == kinds["encoder.self"].keys == SRC
    assert kinds["decoder.self"].queries == kinds["decoder.self"].keys == TGT
    assert kinds["decoder.cross"].queries == ["zwei", "hunde", "</s>"]  # row i says the token after its input
    assert kinds["decoder.cross"].keys == SRC


def test_a_target_is_forced() -> None:
    model = Made(maps(tgt=4))
    attention_of(translator(model), "two dogs run", "zwei kleine hunde")
    assert WORDS.tgt.pieces(model.read[2][0].tolist()) == ["<s>", "zwei", "kleine", "hunde"]


def test_a_translation_that_is_as_long_as_the_model_reads_is_read_without_its_end() -> None:
    model = Made(maps(tgt=2))
    model.max_target_length = 2  # as learned positions have it: "zwei hunde" comes to no </s>
    kinds = attention_of(translator(model), "two dogs run")
    assert WORDS.tgt.pieces(model.read[2][0].tolist()) == ["<s>", "zwei"]
    assert kinds["decoder.cross"].queries == ["zwei", "hunde"]


def test_every_layer_and_head_is_drawn_unchanged() -> None:
    made = maps()
    kind = attention_kinds(made, SRC, TGT, [*TGT[1:], "</s>"])["decoder.cross"]
    figure = attention_figure(kind)
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in panels] == [
        f"layer {layer}, head {head}" for layer in range(2) for head in range(3)
    ]
    for number, axes in enumerate(panels):
        expected = made[f"decoder.{number // 3}.cross"][0, number % 3].numpy()
        np.testing.assert_allclose(axes.images[0].get_array(), expected)
    assert labels(panels[3]) == (["zwei", "hunde", "</s>"], SRC)
    assert labels(panels[1]) == ([], [])  # tokens stand at the left and at the foot only
    assert figure.get_suptitle() == "Cross-attention"


def test_one_layer_and_head_is_drawn_large_with_its_weights() -> None:
    made = maps()
    kind = attention_kinds(made, SRC, TGT, TGT)["encoder.self"]
    figure = attention_figure(kind, 1, 2)
    axes = figure.axes[0]
    weights = made["encoder.1.self"][0, 2].numpy()
    np.testing.assert_allclose(axes.images[0].get_array(), weights)
    assert labels(axes) == (SRC, SRC)
    written = sorted(int(text.get_text()) for text in axes.texts)
    assert written == sorted(round(100 * weight) for weight in weights.flatten() if weight >= 0.05)
    assert figure.get_suptitle() == "Encoder self-attention, layer 1, head 2"


def test_a_choice_that_is_not_there() -> None:
    kinds = attention_kinds(maps(), SRC, TGT, TGT)
    check_choice(kinds, 1, 2)
    with raises_error(Error.OUT_OF_RANGE):
        check_choice(kinds, 2, None)
    with raises_error(Error.OUT_OF_RANGE):
        check_choice(kinds, None, -1)


def test_a_model_without_attention_and_a_blank_sentence_are_refused() -> None:
    with raises_error(Error.UNSUPPORTED):
        attention_of(translator(Made({})), "two dogs")
    with raises_error(Error.BLANK, "blank"):
        attention_of(translator(Made(maps())), "  ")


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        (TransformerConfig(d_model=8, num_heads=2, d_ff=8), {"encoder.self": 4, "decoder.self": 4, "decoder.cross": 4}),
        (RecurrentConfig(d_model=8, d_embedding=8), {"decoder.cross": 1}),
    ],
)
def test_real_models(config: Any, kinds: dict[str, int]) -> None:
    torch.manual_seed(1)
    found = attention_of(translator(build_model(config, WORDS).eval()), "two dogs run", "zwei hunde")
    assert {name: len(kind.layers) for name, kind in found.items()} == kinds
    for kind in found.values():
        for layer in kind.layers:
            assert layer.shape[1:] == (len(kind.queries), len(kind.keys))
            np.testing.assert_allclose(layer.sum(-1), 1, atol=1e-5)
    assert attention_figure(found["decoder.cross"]).axes


def test_what_a_search_that_draws_says_is_what_is_shown() -> None:
    torch.manual_seed(3)
    model = build_model(TransformerConfig(d_model=8, num_heads=2, d_ff=8), WORDS).eval()
    decoding = DecodingConfig(sampling=SampledConfig(samples=5), max_length_ratio=0.0, max_length_extra=4)
    drawing = SearchTranslator(model, WORDS, decoding=decoding)
    for sentence in ("two dogs run", "two small dogs", "dogs", "run two", "small run"):
        shown = attention_of(drawing, sentence)["decoder.cross"].queries
        assert " ".join(token for token in shown if token != "</s>") == drawing.translate([sentence])[0]
