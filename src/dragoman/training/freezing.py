"""Parts of a model that a training leaves as they are: the setting `training.freeze`."""

from collections.abc import Sequence

from torch import Tensor, nn

from dragoman.errors import Error

EMBEDDINGS = ("src_embedding", "tgt_embedding", "embedding")
"""The names of a model's parts that `embeddings` stands for."""


def frozen_parameters(model: nn.Module, parts: Sequence[str]) -> list[Tensor]:
    """The parameters of some parts of a model, for the setting `training.freeze`.

    Raises DragomanError for a part that there is not, and where nothing is left to train.
    """
    named = dict(model.named_parameters())
    frozen: dict[str, Tensor] = {}
    for part in parts:
        wanted = EMBEDDINGS if part == "embeddings" else (part,)
        found = {name: one for name, one in named.items() if any(f"{name}.".startswith(f"{w}.") for w in wanted)}
        if not found:
            there = ", ".join(dict.fromkeys(name.split(".")[0] for name in named))
            raise Error.UNKNOWN_NAME(
                f"training.freeze: no part {part!r} in this model; it has {there}, and `embeddings`"
            )
        frozen |= found
    if len(frozen) == len(named):
        raise Error.WRONG_SETTING("training.freeze: all of the model is frozen", "leave something to train")
    return list(frozen.values())
