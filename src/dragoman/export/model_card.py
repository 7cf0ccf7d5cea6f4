"""The model card of a run: what it is, what it was trained on and how, what it scores, and what it is not for.

Its head has the fields of the Hugging Face Hub, which reads them from a file that is called README.md there. Everything
in it comes from the run directory; what that does not say (a licence, a name for the data) is left for people to write.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dragoman.errors import DragomanError, writing
from dragoman.languages.codes import language_of, name_of
from dragoman.runs import atomic_io
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import CONFIG
from dragoman.runs.events import METRICS, Event, best_validation, last_event, read_events, without_repeats

FILE = "MODEL_CARD.md"
PIPELINES = {
    "translation": "translation",
    "classification": "text-classification",
    "image_classification": "image-classification",
    "language_modelling": "text-generation",
    "masked_language_modelling": "fill-mask",
}
METRICS_OF_HUB = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "accuracy": "accuracy", "macro_f1": "macro F1"}
"""Figures that the card has, by the field of the log's event."""


def write_card(run_dir: str | Path) -> Path:
    """Write `MODEL_CARD.md` into a run directory. Raises DragomanError for a folder that is none."""
    path = Path(run_dir) / FILE
    with writing(path):
        atomic_io.replace_text(path, card(run_dir))
    return path


def card(run_dir: str | Path, export: str = "") -> str:
    """The text of a run's card; `export` names the program that an export of it is for."""
    path = Path(run_dir)
    settings = read_yaml(path / CONFIG)
    try:
        events = without_repeats(read_events(path / METRICS))
    except DragomanError:  # an imported run has no log
        events = []
    identity = atomic_io.read_json(path / "identity.json", dict) if (path / "identity.json").exists() else {}
    tests = [event for event in events if event["event"] == "test"]
    name = path.resolve().name
    head = yaml.safe_dump(_head(name, settings, tests), sort_keys=False, allow_unicode=True)
    parts = [
        f"---\n{head}---\n",
        f"# {name}\n",
        _what(settings, events, export),
        _use(path, settings, export),
        _data(settings, events, identity),
        _training(settings, events),
        _figures(events, tests),
        _limits(settings),
    ]
    return "\n".join(part for part in parts if part)


def _head(name: str, settings: Mapping[str, Any], tests: list[Event]) -> dict[str, Any]:
    task = settings.get("task", "translation")
    found: dict[str, Any] = {}
    if languages := [code for code in map(language_of, _languages(settings)) if len(code) == 2]:
        found["language"] = list(dict.fromkeys(languages))
    found |= {"library_name": "dragoman", "pipeline_tag": PIPELINES.get(task, task), "tags": ["dragoman", task]}
    if settings.get("init_from"):
        found["base_model"] = Path(settings["init_from"]).name
    results: list[dict[str, Any]] = []
    for test in tests:
        metrics = [
            {"type": key, "name": title, "value": round(float(test[key]), 2)}
            for key, title in METRICS_OF_HUB.items()
            if isinstance(test.get(key), int | float)
        ]
        if metrics:
            task_name = {"type": PIPELINES.get(task, task)}
            dataset = {"type": str(test["name"]), "name": str(test["name"])}
            results.append({"task": task_name, "dataset": dataset, "metrics": metrics})
    if results:
        found["metrics"] = list(dict.fromkeys(metric["type"] for result in results for metric in result["metrics"]))
        found["model-index"] = [{"name": name, "results": results}]
    return found


def _what(settings: Mapping[str, Any], events: list[Event], export: str) -> str:
    task = str(settings.get("task", "translation")).replace("_", " ")
    model = settings.get("model", {})
    size = last_event(events, "plan").get("parameters")
    kind = str(model.get("type", "model"))
    said = [f"A model for {task}"]
    codes = _languages(settings)
    if all(codes):
        said = [f"A model that translates from {name_of(codes[0])} to {name_of(codes[1])}"]
    said.append(f": {'an' if kind[0] in 'aeiou' else 'a'} {kind}")
    if size:
        said.append(f" with {size / 1e6:.1f} million parameters")
    text = "".join(said) + ", trained with Dragoman."
    return text + (f" This is an export of it for {export}.\n" if export else "\n")


def _use(path: Path, settings: Mapping[str, Any], export: str) -> str:
    commands = {"translation": "translate", "language_modelling": "generate", "masked_language_modelling": "fill"}
    command = commands.get(str(settings.get("task", "translation")), "predict")
    if export:
        return ""
    return f"## Use\n\n    dragoman {command} {path.resolve().name} < text\n"


def _data(settings: Mapping[str, Any], events: list[Event], identity: Mapping[str, str]) -> str:
    plan, corpus = last_event(events, "plan"), settings.get("corpus", {})
    lines = ["## Training data\n"]
    lines += [f"- {split}: {_source(corpus[split])}" for split in ("train", "valid") if corpus.get(split)]
    read, kept = plan.get("pairs_read"), plan.get("pairs_kept")
    if read and kept:
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in (plan.get("dropped") or {}).items())
        lines.append(f"- pairs read: {read:,}; trained on: {kept:,}" + (f"; left out: {dropped}" if dropped else ""))
    lines += [f"- SHA-256 of {key}: `{digest}`" for key, digest in identity.items()]
    return "\n".join(lines) + "\n" if len(lines) > 1 else ""


def _source(source: Any) -> str:
    """The kind of a corpus and the names of its files, not where they lay."""
    if not isinstance(source, Mapping):
        return str(source)
    names = [Path(value).name for key, value in source.items() if key in ("src", "tgt", "path") and value]
    return " ".join([str(source.get("type", "")), ", ".join(names)]).strip()


def _without_places(value: Any) -> Any:
    """Settings whose files are named without the folders that they lay in."""
    if isinstance(value, Mapping):
        return {key: _without_places(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_places(item) for item in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _training(settings: Mapping[str, Any], events: list[Event]) -> str:
    start, end, best = last_event(events, "start"), last_event(events, "end"), best_validation(events)
    if not start:
        return ""
    training = settings.get("training", {})
    lines = ["## Training\n"]
    lines.append(
        f"- {end.get('step') or 0:,} steps of {training.get('batch_tokens') or 0:,} tokens"
        f" x {training.get('micro_batches', 1)}, {(training.get('optimizer') or {}).get('type')}, seed"
        f" {settings.get('seed')}; ended by: {end.get('reason', 'not finished')}"
    )
    minutes = float(end.get("elapsed_s") or 0) / 60
    lines.append(f"- {minutes:.1f} minutes on {start.get('machine')}, {start.get('device')}, {start.get('precision')}")
    lines.append(
        f"- Dragoman {start.get('dragoman')}"
        + (f" ({start['commit']})" if start.get("commit") else "")
        + f", PyTorch {start.get('torch')}, Python {start.get('python')}"
    )
    if best is not None and best.get("score") is not None:
        lines.append(f"- best validation: {best['score']:.2f} at step {best.get('step') or 0:,}")
    shown = {key: _without_places(value) for key, value in settings.items() if key != "run_dir"}
    recipe = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
    return "\n".join(lines) + f"\n\n<details><summary>The recipe</summary>\n\n```yaml\n{recipe}```\n\n</details>\n"


def _figures(events: list[Event], tests: list[Event]) -> str:
    if not tests:
        return "## Evaluation\n\nNo test set was scored.\n" if events else ""
    names = [key for key in METRICS_OF_HUB if any(isinstance(test.get(key), int | float) for test in tests)]
    head = ["test set", "sentences", *(METRICS_OF_HUB[key] for key in names)]
    rows = [
        [str(test["name"]), f"{test.get('sentences') or 0:,}", *(_figure(test.get(key)) for key in names)]
        for test in tests
    ]
    lines = ["## Evaluation\n", *("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)), ""]
    signatures = {f"{key}: `{said}`": None for test in tests for key, said in (test.get("signatures") or {}).items()}
    return "\n".join([*lines, *signatures, ""])


def _figure(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, int | float) else "-"


def _limits(settings: Mapping[str, Any]) -> str:
    corpus = settings.get("corpus", {})
    lines = [
        "## Limits\n",
        "- Figures are of the test sets above; on text of another kind they say little.",
        "- It may leave out, change or make up what a text says, fluently. Look at numbers, names and negations.",
        "- What its training text lacks or has wrong, it lacks or has wrong; nobody has examined it for bias.",
    ]
    if corpus.get("max_tokens"):
        lines.insert(2, f"- It has seen no sentence of more than {corpus['max_tokens']} tokens.")
    lines.append("- Licence: not stated. It follows from those of the training data; add `license:` to the head.")
    return "\n".join(lines) + "\n"


def _languages(settings: Mapping[str, Any]) -> tuple[str, str]:
    corpus = settings.get("corpus", {})
    return str(corpus.get("src_lang") or ""), str(corpus.get("tgt_lang") or "")
