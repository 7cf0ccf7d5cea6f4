"""Label smoothing: the target distribution, and the loss against a model's confidence."""

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.analysis.figure import Figure, line_style, new_figure, styled
from dragoman.training.loss import token_loss


def target_distribution(vocab_size: int, target: int, label_smoothing: float) -> np.ndarray:
    """The distribution that the training loss pulls towards, read off its gradient: softmax(logits) - gradient."""
    logits = torch.zeros(1, 1, vocab_size, requires_grad=True)
    loss = token_loss(logits, torch.tensor([[target]]), torch.tensor([[True]]), label_smoothing)
    (gradient,) = torch.autograd.grad(loss, logits)
    result: np.ndarray = (logits.softmax(-1) - gradient)[0, 0].detach().numpy()
    return result


def loss_of_confidence(confidences: Sequence[float], vocab_size: int, label_smoothing: float) -> list[float]:
    """The training loss, in nats, for these probabilities of the right token; the others share the rest evenly."""
    right = torch.tensor(confidences, dtype=torch.float64)
    wrong = (1 - right) / (vocab_size - 1)
    probabilities = torch.cat([right[:, None], wrong[:, None].expand(-1, vocab_size - 1)], dim=1)
    target, mask = torch.tensor([[0]]), torch.tensor([[True]])
    logits = probabilities.log().float()
    return [float(token_loss(row[None, None], target, mask, label_smoothing)) for row in logits]


@styled
def smoothing_figure(
    epsilons: Sequence[float], vocab_size: int = 8, target: int = 3, loss_vocab_size: int = 8000
) -> Figure:
    """Left: the target distribution over a small vocabulary. Right: the loss against the confidence."""
    figure = new_figure(11, 4.4, "Label smoothing")
    left, right = figure.subplots(1, 2)
    width = 0.8 / len(epsilons)
    confidences = 1 - np.geomspace(0.9, 1e-5, 300)
    for number, epsilon in enumerate(epsilons):
        style, name = line_style(number), f"ε = {epsilon:g}"
        distribution = target_distribution(vocab_size, target, epsilon)
        bars = left.bar(np.arange(vocab_size) + (number + 0.5) * width - 0.4, distribution, width, color=style["color"])
        bars.set_label(f"{name}: {distribution[target]:.3g} on the right token")
        losses = loss_of_confidence(confidences.tolist(), loss_vocab_size, epsilon)
        # Against 1 - p on a log scale, reversed: near certainty is where the curves differ.
        right.plot(1 - confidences, losses, label=name, **style)
        if epsilon:
            lowest = epsilon * (1 - 1 / loss_vocab_size)
            (value,) = loss_of_confidence([1 - lowest], loss_vocab_size, epsilon)
            right.plot([lowest], [value], color=style["color"], marker="o", markersize=5)
    left.set(title=f"what the model is asked to say, {vocab_size} words", xlabel="token", ylabel="probability")
    left.set_xticks(range(vocab_size), labels=["right" if i == target else str(i) for i in range(vocab_size)])
    left.legend(loc="upper right")
    right.set(
        title=f"loss against confidence, {loss_vocab_size:,} words (● lowest)",
        xlabel="probability given to the right token",
        ylabel="loss (nats)",
        xscale="log",
    )
    right.invert_xaxis()
    right.set_xticks([0.9, 0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5])
    right.xaxis.set_major_formatter(lambda rest, _: f"{1 - rest:.5g}")
    right.xaxis.minorticks_off()
    right.set_ylim(0, 1.25 * right.get_ylim()[1])
    right.legend(loc="upper left", ncols=len(epsilons))
    left.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")
    return figure
