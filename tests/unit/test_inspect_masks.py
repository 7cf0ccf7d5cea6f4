"""The picture of masks: the masks of a batch, written out by hand, with its tokens on both axes."""

import numpy as np

from dragoman.analysis.examples import words_of
from dragoman.analysis.masks import masks_figure, sentence_masks
from dragoman.inference.attention_maps import label

LINES = ["ich möchte ein bier", "guten tag"]


def test_masks_by_hand() -> None:
    (long_tokens, long), (short_tokens, short) = sentence_masks(LINES, words_of(LINES).src)
    assert long_tokens == ["<s>", "ich", "möchte", "ein", "bier"]
    assert short_tokens == ["<s>", "guten", "tag", "<pad>", "<pad>"]
    assert long["padding"].all()
    assert short["padding"].astype(int).tolist() == [[1, 1, 1, 0, 0]] * 5
    triangle = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert long["causal"].astype(int).tolist() == triangle
    assert short["padding & causal"].astype(int).tolist() == [*triangle[:3], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0]]


def test_the_figure_shows_tokens_and_every_cell() -> None:
    masks = sentence_masks(LINES, words_of(LINES).src)
    figure = masks_figure(masks)
    assert len(figure.axes) == 6
    for axes, mask in zip(figure.axes[3:], masks[1][1].values(), strict=True):
        assert [tick.get_text() for tick in axes.get_xticklabels()] == masks[1][0]
        assert [tick.get_text() for tick in axes.get_yticklabels()] == masks[1][0]
        written = np.array([text.get_text() for text in axes.texts]).reshape(5, 5)
        assert (written == np.where(mask, "1", "0")).all()
        assert (axes.images[0].get_array() == mask).all()
    titles = [axes.get_title(loc="left") for axes in figure.axes[:3]]
    assert titles == ["padding", "causal", "padding & causal"]


def test_long_sentences_are_drawn_without_numbers() -> None:
    lines = [" ".join(f"w{i}" for i in range(40))]
    assert not masks_figure(sentence_masks(lines, words_of(lines).src)).axes[0].texts


def test_labels() -> None:
    assert [label(piece) for piece in ("▁Haus", " ", "\n", "￭?", "￮", "￭", "</s>", "我")] == [
        "▁Haus", "␣", "⏎", "?", "␣", "￭", "</s>", "我",
    ]  # fmt: skip
    assert words_of(["我爱你 , Peter"]).src.pieces([4, 5, 6, 7, 8]) == [",", "Peter", "你", "我", "爱"]
