"""Sums of gradients whose bytes do not depend on how many processes compute them.

Floating-point sums depend on their order, (a + b) + c is not a + (b + c). So the micro-batches of a step are added
along one fixed tree, whoever computed them (pairwise summation, Higham 1993): of four (0 + 1) + (2 + 3). A process has
the leaves of a whole subtree; what is above it is added between processes (`distributed.py`), and a + b = b + a to the
last bit.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Sums:
    """Gradients (one a parameter, None where it took no part), loss and token counts, summed over micro-batches."""

    gradients: list[Tensor | None]
    loss: Tensor
    tokens: int
    processed: int

    def add(self, other: "Sums") -> "Sums":
        """Add what comes after this in the order of micro-batches, in place."""
        both = [
            (own, more) for own, more in zip(self.gradients, other.gradients, strict=True) if None not in (own, more)
        ]
        if both:
            torch._foreach_add_(*map(list, zip(*both, strict=True)))
        self.gradients = [
            more if own is None else own for own, more in zip(self.gradients, other.gradients, strict=True)
        ]
        self.loss = self.loss + other.loss
        self.tokens += other.tokens
        self.processed += other.processed
        return self


def tree_sum(leaves: Iterable[Sums]) -> Sums | None:
    """The sum of micro-batches along a binary tree, None where there are none.

    Leaves that are missing at the end leave the rest of the tree as it is: 0 to 4 are ((0 + 1) + (2 + 3)) + 4. At any
    time as many sums are held as the number of leaves so far has ones in binary, and one more.
    """
    held: list[Sums] = []
    for number, leaf in enumerate(leaves):
        held.append(leaf)
        while number & 1:
            right = held.pop()
            held[-1].add(right)
            number >>= 1
    while len(held) > 1:
        right = held.pop()
        held[-1].add(right)
    return held[0] if held else None
