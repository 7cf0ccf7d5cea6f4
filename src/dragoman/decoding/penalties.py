"""Length penalties: what a hypothesis' log probability is divided by before hypotheses are compared.

Every further token makes a log probability smaller, so without a penalty the search prefers short translations.
`length` counts the tokens of the hypothesis, `</s>` among them.

A divisor is positive and never falls as `length` grows (so `alpha` is at least 0). The beam search relies on that: it
is why the best score that an unfinished hypothesis may still reach is `log_prob / divisor(longest allowed length)`.
"""

from typing import Annotated, Literal

from pydantic import Field

from dragoman.config import by_type, settings

Alpha = Annotated[float, Field(ge=0.0, le=10.0)]


@settings
class NoPenalty:
    """The plain log probability: the search looks for the most probable translation, which is often a short one."""

    type: Literal["none"] = "none"

    def divisor(self, length: int) -> float:
        return 1.0


@settings
class AveragePenalty:
    """`length ** alpha`; with alpha 1 the score is the mean log probability of a token.

    >>> AveragePenalty(alpha=0.5).divisor(9)
    3.0
    """

    type: Literal["average"] = "average"
    alpha: Alpha = 1.0  #: Exponent of the length; 0: none.

    def divisor(self, length: int) -> float:
        return float(length**self.alpha)


@settings
class GnmtPenalty:
    """`((5 + length) / 6) ** alpha`: Wu et al. 2016, "Google's Neural Machine Translation System", eq. 14.

    >>> GnmtPenalty(alpha=0.5).divisor(19)
    2.0
    """

    type: Literal["gnmt"] = "gnmt"
    alpha: Alpha = 0.6  #: Exponent of the length term; 0: none.

    def divisor(self, length: int) -> float:
        return float(((5 + length) / 6) ** self.alpha)


LengthPenalty = Annotated[NoPenalty | AveragePenalty | GnmtPenalty, by_type]
"""The table of penalties, told apart by their `type:`. A new one is its class and one name here."""
