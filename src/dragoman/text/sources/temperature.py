"""Weights of a mixture by the sizes of its corpora."""

from pydantic import Field

from dragoman.config import settings
from dragoman.text.sources.files import MAX_WEIGHT


@settings
class TemperatureWeights:
    """Weights by the sizes of the corpora: small ones come more often than once (Arivazhagan et al. 2019, section 4.2).

    A corpus of n pairs has a share of n^(1/T) in an epoch. The largest comes once, so that no pair is left out: 1
    leaves all as they are, a large T makes them equally frequent; 5 is usual. The corpora are counted first.
    """

    temperature: float = Field(default=5.0, ge=1)  #: T.

    def passes(self, counts: list[int]) -> list[float]:
        """Passes over corpora of so many pairs.

        >>> TemperatureWeights(temperature=2.0).passes([10_000, 100])
        [1.0, 10.0]
        """
        largest = max(counts)
        power = 1.0 - 1.0 / self.temperature
        return [min(MAX_WEIGHT, (largest / count) ** power) if count else 0.0 for count in counts]
