"""Looking inside: pictures and tables of what a model is made of and what it does, drawn from the code that trains.

One subject a file: functions that compute, and functions that draw what was computed. `dragoman inspect` is
`cli/inspect.py`; a page can hold any of the figures by `figure.to_svg`.
"""

from pathlib import Path

NINE_STEPS = (
    "Read pairs",
    "Normalise and tokenize",
    "Ids",
    "Batch",
    "Pad, shift, mask",
    "Model to logits to loss",
    "Train",
    "Encode once and search",
    "Detokenize and score",
)
"""The steps of docs/architecture.md, which logs, reports and traces follow; the titles are those of translation."""

_CLASSIFICATION = {1: "Read examples", 5: "Pad, mask", 8: "Label", 9: "Score"}
_OTHER_TITLES = {
    "language_modelling": {1: "Read text", 5: "Shift, mask", 8: "Prompt and sample"},
    "classification": _CLASSIFICATION,
    "image_classification": {**_CLASSIFICATION, 2: "Read pixels", 3: "Cut into patches"},
}


def step_titles(task: str) -> list[str]:
    """The titles of the nine steps in runs of a task."""
    return [_OTHER_TITLES.get(task, {}).get(number, title) for number, title in enumerate(NINE_STEPS, start=1)]


EXPLAIN_PAGE = [Path(__file__).with_name(name) for name in ("explain.js", "explain.css", "explain_zh.json")]
"""The script, the style and the Chinese texts of the page that explains a sentence (`explain.py`)."""
