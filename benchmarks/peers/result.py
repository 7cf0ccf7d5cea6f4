"""What a script measures of a toolkit, without anything that every environment would have to have."""

import json
from dataclasses import asdict, dataclass

RESULT = "RESULT "
"""What the line begins with on which a script says what it found."""


@dataclass(frozen=True)
class Result:
    """Tokens are those of both sides, each sentence with its </s>; of the target those that are predicted."""

    name: str
    version: str
    torch: str
    shape: str
    precision: str
    threads: int
    parameters: int
    steps: int
    seconds: float
    real_tokens: int
    padded_tokens: int
    sentences: int

    @property
    def rate(self) -> float:
        """Real tokens a second."""
        return self.real_tokens / self.seconds

    @property
    def fill(self) -> float:
        return self.real_tokens / self.padded_tokens

    def show(self) -> None:
        """Print the line that `run.py` reads."""
        print(f"\n{RESULT}{json.dumps(asdict(self))}", flush=True)
