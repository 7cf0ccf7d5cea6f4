"""The model card of a run: what it is, what it was trained on and how, what it scores, and what it is not for.

Its head has the fields of the Hugging Face Hub, which reads them from a file that is called README.md there. Everything
in it comes from the run directory; what that does not say (a licence, a name for the data) is left for people to write.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment

from dragoman.alignment.learnt_memory import LEXICON
from dragoman.errors import DragomanError, writing
from dragoman.languages.codes import is_known, name_of, tag_of
from dragoman.runs import atomic_io
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.directory import CONFIG, TOKENIZER
from dragoman.runs.events import METRICS, Event, best_validation, last_event, read_events, without_repeats
from dragoman.text.annotations import has_learnt
from dragoman.text.tokenizers.pair import load_tokenizers

FILE = "MODEL_CARD.md"
PIPELINES = {
    "translation": "translation",
    "classification": "text-classification",
    "image_classification": "image-classification",
    "language_modelling": "text-generation",
    "masked_language_modelling": "fill-mask",
}
COMMANDS = {
    "translation": "translate {} < text",
    "classification": "predict {} < text",
    "image_classification": "predict {} picture.png",
    "language_modelling": "generate {} < text",
    "masked_language_modelling": "fill {} < text",
}
CALLS = {
    "translation": ("load", 'translate(["..."])'),
    "classification": ("load_classifier", 'predict(["..."])'),
    "image_classification": ("load_classifier", 'predict(["picture.png"])'),
    "language_modelling": ("load_language_model", 'generate(["..."])'),
}
"""(function of the package that loads the model, method); there is none for a model that fills gaps."""
LEARNT = {
    "tags": (
        "Formatting and placeholders",
        "Click⟦1⟧ Open⟦/1⟧ in the⟦2/⟧ menu.",
        "`dragoman translate` writes them for documents and for lines with tags",
    ),
    "terms": (
        "Terms",
        "Open the⟦term⟧ spreadsheet⟦as⟧ Tabellenkalkulation⟦/term⟧.",
        "`dragoman translate --glossary FILE` writes them",
    ),
    "fuzzy": (
        "Matches of a memory",
        "Open the file.⟦memory⟧ Die Datei⟦other⟧ schließen⟦/other⟧.",
        "`dragoman translate --memory FILE` writes them",
    ),
    "context": (
        "Sentences before",
        "The pump runs.⟦break⟧ It is red.",
        "`dragoman translate` writes them for documents, `dragoman translate RUN --context previous` for lines",
    ),
}
"""Of each setting whose pieces a model learns: its name, a sentence as it is read, its writer."""
METRICS_OF_HUB = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "accuracy": "accuracy", "macro_f1": "macro F1"}
"""Figures that the card has, by the field of the log's event."""


TEMPLATE = Environment(trim_blocks=True, keep_trailing_newline=True).from_string(
    Path(__file__).with_name("model_card.md.j2").read_text(encoding="utf-8")
)


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
    plan = last_event(events, "plan")
    metrics = METRICS_OF_HUB | (plan.get("titles") or {})
    name = path.resolve().name
    task = str(settings.get("task", "translation"))
    languages, corpus = _languages(settings), settings.get("corpus", {})
    known = all(map(is_known, languages))  # and no `src` and `tgt` of languages that nobody has named
    shown = {key: _without_places(value) for key, value in settings.items() if key != "run_dir"}
    return TEMPLATE.render(
        head=_yaml(_head(name, settings, tests, metrics)),
        name=name,
        export=export,
        languages=[name_of(code) for code in languages] if known else [],
        task=task.replace("_", " "),
        kind=str(settings.get("model", {}).get("type", "model")),
        command=COMMANDS[task].format(shlex.quote(name)) if task in COMMANDS else "",
        call=CALLS.get(task),
        quoted=repr(name),
        settings=settings,
        corpus=corpus,
        training=settings.get("training", {}),
        plan=plan,
        origins=plan.get("origins") or [],
        several=[name_of(code) for code in _several(settings)],
        licences=any(origin["licence"] for origin in plan.get("origins") or []),
        decoding=settings.get("decoding") or {},
        start=last_event(events, "start"),
        end=last_event(events, "end"),
        best=best_validation(events),
        sources={split: _source(corpus[split]) for split in ("train", "valid") if corpus.get(split)},
        identity=identity,
        recipe=_yaml(shown),
        learnt=_learnt(path, settings),
        lexicon=(path / LEXICON).is_file(),
        events=events,
        tests=tests,
        metrics=metrics,
        names=[key for key in METRICS_OF_HUB if any(isinstance(test.get(key), int | float) for test in tests)],
        signatures=dict.fromkeys(
            f"{key}: `{signature}`" for test in tests for key, signature in (test.get("signatures") or {}).items()
        ),
    )


def _learnt(run: Path, settings: Mapping[str, Any]) -> list[tuple[str, str, str, str, float]]:
    """(setting of `corpus`, the words of LEARNT, share of the training pairs) of all whose pieces a run has."""
    if settings.get("task", "translation") != "translation" or not (run / TOKENIZER / "tokenizers.json").is_file():
        return []
    tokenizers, corpus = load_tokenizers(run / TOKENIZER), settings.get("corpus", {})
    context = corpus.get("context") or {}
    shares = {f"augment.{name}": share for name, share in (corpus.get("augment") or {}).items()}
    shares["context"] = context.get("share", 0.0) if context.get("src") else 0.0
    names = {name: "context" if name == "context" else f"augment.{name}" for name in LEARNT}
    return [
        (names[name], *words, shares.get(names[name], 0.0))
        for name, words in LEARNT.items()
        if has_learnt(name, tokenizers)
    ]


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def _head(name: str, settings: Mapping[str, Any], tests: list[Event], titles: Mapping[str, str]) -> dict[str, Any]:
    task = settings.get("task", "translation")
    head: dict[str, Any] = {}
    codes = [tag_of(code).partition("-")[0] for code in _several(settings) or _languages(settings) if is_known(code)]
    if codes:
        head["language"] = list(dict.fromkeys(codes))
    head |= {"library_name": "dragoman", "pipeline_tag": PIPELINES.get(task, task), "tags": ["dragoman", task]}
    if settings.get("init_from"):
        head["base_model"] = Path(settings["init_from"]).name
    results: list[dict[str, Any]] = []
    for test in tests:
        metrics = [
            {"type": key, "name": title, "value": round(float(test[key]), 2)}
            for key, title in titles.items()
            if isinstance(test.get(key), int | float)
        ]
        if metrics:
            task_name = {"type": PIPELINES.get(task, task)}
            dataset = {"type": str(test["name"]), "name": str(test["name"])}
            results.append({"task": task_name, "dataset": dataset, "metrics": metrics})
    if results:
        head["metrics"] = list(dict.fromkeys(metric["type"] for result in results for metric in result["metrics"]))
        head["model-index"] = [{"name": name, "results": results}]
    return head


def _source(source: Any) -> str:
    """The kind of a corpus and the names of its files, not where they lay."""
    if not isinstance(source, Mapping):
        return str(source)
    return " ".join([str(source.get("type", "")), ", ".join(_file_names(source))]).strip()


def _file_names(source: Mapping[str, Any]) -> list[str]:
    """The names of the files of a corpus, or of the corpora that it is mixed of, without their folders."""
    names = [source[key] for key in ("src", "tgt", "path") if source.get(key)]
    names += (source.get("files") or {}).values()
    of_parts = [name for part in source.get("sources") or [] for name in _file_names(part)]
    return [*(Path(name).name for name in names), *of_parts]


def _without_places(value: Any) -> Any:
    """Settings whose files are named without the folders that they lay in."""
    if isinstance(value, Mapping):
        return {key: _without_places(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_places(item) for item in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _several(settings: Mapping[str, Any]) -> list[str]:
    """The languages of a model with language tags; no languages for a model of one direction."""
    return list((settings.get("tokenizer") or {}).get("languages") or [])


def _languages(settings: Mapping[str, Any]) -> tuple[str, str]:
    corpus = settings.get("corpus", {})
    return str(corpus.get("src_lang") or ""), str(corpus.get("tgt_lang") or "")
