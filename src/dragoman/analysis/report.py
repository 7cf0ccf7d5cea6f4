"""The report of a run: one HTML file that holds everything, works offline and runs no script.

It is made from metrics.jsonl and config.yaml of a run directory, during training or after it. Jinja2 is loaded when a
report is written.
"""

import statistics
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from dragoman.analysis import step_titles
from dragoman.analysis.figure import GRID, INK, MUTED, TRAIN, VALID, to_svg
from dragoman.analysis.marked import marked
from dragoman.analysis.plots import SCORES, panel_title, panels_for, training_curves
from dragoman.languages.codes import tag_of
from dragoman.runs import atomic_io
from dragoman.runs.atomic_io import read_yaml
from dragoman.runs.events import METRICS, Event, best_validation, last_event, read_events, without_repeats

SHOWN_VALIDATIONS = 6
METRIC_NAMES = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER",
    "exact_match": "exact match, %",
    "accuracy": "accuracy, %",
    "macro_f1": "macro F1, %",
    "loss": "loss, nats/token",
    "perplexity": "perplexity",
    "bits_per_character": "bits/character",
}
"""Headings of figures, in the order of a table's columns; a table has the columns that its run logged."""

TEST_FIGURES = {"sentences": ("sentences", 0), **{name: (title, 2) for name, title in METRIC_NAMES.items()},
                "decode_s": ("decoding, s", 1), "sentences_per_s": ("sentences/s", 1)}  # fmt: skip
"""The columns of the test table: (heading, digits) by field of the event."""

SHOWN_LABELS = 30  # largest number of labels for which the confusion matrix is shown


WORDS: dict[str, dict[str, Any]] = read_yaml(Path(__file__).parent / "report_words.yaml")
"""Names on the page for the runs of a task, by the recipe's `task:`."""

FACTS: tuple[dict[str, str], ...] = (
    {"languages": "run.languages", "source": "corpus.train.type",
     "pairs read": "plan.pairs_read", "characters": "plan.characters"},
    {"normalise": "corpus.normalize", "tokenizer": "tokenizer.type", "source vocabulary": "plan.src_vocab_size",
     "target vocabulary": "plan.tgt_vocab_size", "vocabulary": "plan.vocab_size"},
    {"tokens": "plan.tokens", "unknown tokens": "plan.unknown",
     "pairs kept": "plan.pairs_kept", "pairs dropped": "run.dropped"},
    {"tokens a batch": "training.batch_tokens", "steps an epoch": "plan.steps_per_epoch"},
    {"longest side": "run.max_tokens", "windows of": "run.block_len"},
    {"model": "model.type", "parameters": "plan.parameters",
     "label smoothing": "training.label_smoothing", "training loss": "run.losses"},
    {"steps": "run.step", "last epoch": "run.epoch", "best at step": "run.best_step", "ended": "run.end_reason"},
    {"beam size": "decoding.beam_size", "length penalty": "decoding.length_penalty",
     "temperature": "decoding.temperature", "top_k": "decoding.top_k", "top_p": "decoding.top_p",
     "test decoding": "run.decode_s"},
    {"test sentences": "run.sentences"},
)  # fmt: skip
"""For each of the nine steps the places of its facts: a setting, `plan.` a field of the plan event, `run.` computed."""


class Attempt(NamedTuple):
    """The model's output for a sentence at a step."""

    step: int
    best: bool
    runs: list[tuple[str, bool]]  # (text, True where the reference has it too)
    left_out: int  # characters cut off the end of a very long output


class Sample(NamedTuple):
    """A sentence, its reference and the model's attempts at it, oldest first."""

    src: str
    ref: str
    attempts: list[Attempt]


REPORT = "report.html"
"""Its file in a run directory."""


def write_report(run_dir: str | Path) -> Path:
    """Write `run_dir/report.html` atomically and return its path. Parts whose events are missing are left out.

    Raises DragomanError when metrics.jsonl or config.yaml is missing or cannot be read.
    """
    run_dir = Path(run_dir)
    events = without_repeats(read_events(run_dir / METRICS))
    config = read_yaml(run_dir / "config.yaml")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": _number, "text": _text, "tag": tag_of}
    template = files("dragoman.analysis").joinpath("report.html.j2").read_text(encoding="utf-8")
    page = environment.from_string(template).render(
        **_view(events, config),
        name=run_dir.resolve().name,
        config_text=(run_dir / "config.yaml").read_text(encoding="utf-8").strip(),
    )
    path = run_dir / REPORT
    atomic_io.replace_text(path, page)
    return path


def _view(events: list[Event], config: Mapping[str, Any]) -> dict[str, Any]:
    """The template's variables."""
    start, plan, end = (last_event(events, kind) for kind in ("start", "plan", "end"))
    if start and end and events.index(end) < events.index(start):
        end = {}  # the run went on after it
    valid = [event for event in events if event["event"] == "valid"]
    best = best_validation(events)
    tests = list({event["name"]: _with_speed(event) for event in events if event["event"] == "test"}.values())
    task = _setting(config, "task") or "translation"
    words = WORDS.get(task, WORDS["translation"])
    instead, marks = words["instead"], words["marks_differences"]
    titles = plan.get("titles") or {}  # of metrics that the run counts in a way of its own
    run = _run_facts(events, config, plan, end, best, tests)
    return {
        "start": start,
        "end": end,
        "valid": valid,
        "best": best,
        "tests": tests,
        **{lang: _setting(config, f"corpus.{lang}") or "" for lang in ("src_lang", "tgt_lang")},
        "family": _setting(config, "model.type") or "",
        "words": words,
        "metric_names": {name: instead.get(title, title) for name, title in METRIC_NAMES.items()} | titles,
        "test_figures": [
            (name, titles.get(name) or instead.get(title, title), digits)
            for name, (title, digits) in TEST_FIGURES.items()
            if any(test.get(name) is not None for test in tests)
        ],
        "confusions": [test for test in tests if 1 < len(test.get("labels") or ()) <= SHOWN_LABELS],
        "valid_metrics": [name for name in METRIC_NAMES if any(event.get(name) is not None for event in valid)],
        "headlines": _headlines(events, start, plan, best, tests),
        "steps": list(zip(step_titles(task), _nine_steps(config, plan, run, tests, instead), strict=True)),
        "curves": _curves(events),
        "only_in_training": _only_in_training(config),
        "samples": _progress_samples(valid, best, marks),
        "shown_validations": min(SHOWN_VALIDATIONS, len(valid)),
        "test_samples": {event["name"]: _samples([event], None, marks) for event in tests if event.get("samples")},
    }


def _only_in_training(config: Mapping[str, Any]) -> str:
    """Reasons why the losses of training and of validation differ, as far as the settings say."""
    model = _setting(config, "model") or {}
    averaging = _setting(config, "training.averaging.type")
    settings = {
        "smoothed labels": _setting(config, "training.label_smoothing"),
        "dropout": any(value for name, value in model.items() if name.endswith("dropout")),
        "the weights of the moment instead of their average": averaging not in (None, "none"),
    }
    reasons = [reason for reason, is_set in settings.items() if is_set]
    return " and ".join(filter(None, [", ".join(reasons[:-1]), *reasons[-1:]]))


def _headlines(
    events: list[Event], start: Event, plan: Event, best: Event | None, tests: list[Event]
) -> list[tuple[str, str, str]]:
    """(title, figure, note) for the top of the page, of what was logged."""
    step, seconds = _last_value(events, "step"), _last_value(events, "elapsed_s")
    scored = [(t["name"], t, "" if t.get("chrf") is None else f"chrF {_number(t['chrf'], 1)}") for t in tests]
    scored += [("validation", best, f"best, step {best['step']:,}")] if best else []
    score = next((name for name in SCORES if any(event.get(name) is not None for _, event, _ in scored)), "")
    title = (plan.get("titles") or {}).get(score) or METRIC_NAMES.get(score, "")
    cards = [
        (f"{title}, {name}", _score(event[score]), note) for name, event, note in scored if event.get(score) is not None
    ]
    if seconds is not None:
        speeds = [e["tokens_per_s"] for e in events if e["event"] == "train" and e.get("tokens_per_s") is not None]
        note = f"{statistics.median(speeds):,.0f} tokens/s" if speeds else ""
        cards.append(("Training time", f"{seconds / 60:.1f} min", note))
    if step is not None:
        limit = plan.get("max_steps")
        cards.append(("Steps", f"{step:,}", f"of at most {limit:,}" if limit else ""))
    if plan.get("parameters") is not None:
        count = plan["parameters"]
        cards.append(("Parameters", f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count:,}", f"{count:,} trained"))
    device = [_text(start[key]) for key in ("device", "precision") if start.get(key)]
    device += [f"{start['threads']} threads"] if device and start.get("threads") else []
    if device:
        cards.append(("Device", device[0], ", ".join(device[1:])))
    return cards


def _run_facts(
    events: list[Event], config: Mapping[str, Any], plan: Event, end: Event, best: Event | None, tests: list[Event]
) -> dict[str, Any]:
    """The facts of the nine steps that are computed from the log and the settings."""
    epoch = _last_value(events, "epoch")
    losses = [_number(event.get("loss"), 2) for event in events if event["event"] == "train"]
    languages = [_setting(config, f"corpus.{side}_lang") for side in ("src", "tgt")]
    decode_s, sentences = (
        [event[name] for event in tests if event.get(name) is not None] for name in ("decode_s", "sentences")
    )
    lengths = {name: _setting(config, f"corpus.{name}") for name in ("max_tokens", "block_len")}
    return {
        "languages": " → ".join(_text(language) for language in languages if language),
        "dropped": sum((plan["dropped"] or {}).values()) if "dropped" in plan else None,
        **{name: f"{_text(length)} tokens" for name, length in lengths.items() if length is not None},
        "losses": f"{losses[0]} → {losses[-1]}" if losses else None,
        "step": _last_value(events, "step"),
        "epoch": None if epoch is None else epoch + 1,
        "best_step": best["step"] if best else None,
        "end_reason": end.get("reason"),
        "decode_s": f"{sum(decode_s):,.1f} s" if decode_s else None,
        "sentences": sum(sentences) if sentences else None,
    }


def _nine_steps(
    config: Mapping[str, Any], plan: Event, run: Mapping[str, Any], tests: list[Event], instead: Mapping[str, str]
) -> list[dict[str, str]]:
    """The known facts of each step, by name."""
    known = {**config, "plan": plan, "run": run}
    steps = [{name: _setting(known, path) for name, path in places.items()} for places in FACTS]
    dropped = plan.get("dropped") or {}
    steps[2] |= {f"– {reason.replace('_', ' ')}": count for reason, count in dropped.items() if count}
    for name in SCORES:
        scored = [test for test in tests if test.get(name) is not None]
        title = (plan.get("titles") or {}).get(name, METRIC_NAMES[name])
        steps[8] |= {f"{title}, {test['name']}": _score(test[name]) for test in scored}
    return [
        {instead.get(name, name): _text(fact) for name, fact in facts.items() if fact not in (None, "")}
        for facts in steps
    ]


def _curves(events: list[Event]) -> list[tuple[str, Any]]:
    """(title, SVG) of each panel, its colours tied to the page's, so that a dark page has light axes."""
    if not any(event["event"] in ("train", "valid") for event in events):
        return []
    colours = {INK: "ink", MUTED: "muted", GRID: "rule", TRAIN: "train", VALID: "valid"}
    curves = []
    for panel in panels_for(events):
        title = panel_title(panel, events)
        svg = to_svg(training_curves(events, [panel]))
        for colour, name in colours.items():
            svg = svg.replace(colour, f"var(--{name})")
        curves.append((title, Markup(svg)))  # our own drawing; it holds no text from the run
    return curves


def _progress_samples(valid: list[Event], best: Event | None, marks_differences: bool) -> list[Sample]:
    """The sentences of the last validation and the attempts at them, at a few validations from first to last."""
    sampled = [event for event in valid if event.get("samples")]
    count = len(sampled)
    if count > SHOWN_VALIDATIONS:
        chosen = {round(i * (count - 1) / (SHOWN_VALIDATIONS - 1)) for i in range(SHOWN_VALIDATIONS)}
        if best in sampled and (place := sampled.index(best)) not in chosen:
            inner = [i for i in chosen if 0 < i < count - 1]
            chosen.remove(min(inner, key=lambda i: abs(i - place)))
            chosen.add(place)
        sampled = [sampled[i] for i in sorted(chosen)]
    return _samples(sampled, best, marks_differences)


def _samples(events: list[Event], best: Event | None, marks_differences: bool) -> list[Sample]:
    samples = []
    for sample in events[-1]["samples"] if events else ():
        src, ref = sample.get("src", ""), sample.get("ref", "")
        attempts = []
        limit = 3 * max(len(ref), 60)  # young models repeat themselves up to the length limit
        for event in events:
            hyps = [s.get("hyp") or "" for s in event["samples"] if (s.get("src"), s.get("ref")) == (src, ref)]
            for hyp in hyps[:1]:
                shown, left_out = hyp[:limit], max(0, len(hyp) - limit)
                same = [(shown, True)] if shown else []
                runs = marked(shown, ref) if marks_differences else same
                attempts.append(Attempt(event.get("step", 0), event is best, runs, left_out))
        samples.append(Sample(src, ref, attempts))
    return samples


def _last_value(events: list[Event], name: str) -> Any:
    """The latest reading of a field in training; decoding the test sets is not training."""
    return next((e[name] for e in reversed(events) if e["event"] != "test" and e.get(name) is not None), None)


def _setting(config: Mapping[str, Any], path: str) -> Any:
    """The setting at a dotted path, None where there is none."""
    value: Any = config
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _with_speed(test: Event) -> Event:
    sentences, seconds = test.get("sentences"), test.get("decode_s")
    return {**test, "sentences_per_s": sentences / seconds} if sentences and seconds else test


def _number(value: Any, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _score(value: float) -> str:
    return _number(value, 2 if value < 10 else 1)


def _text(value: Any) -> str:
    """A value of any kind in a few words.

    >>> _text(12000), _text({"type": "gnmt", "alpha": 0.6})
    ('12,000', 'gnmt, alpha 0.6')
    """
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
        case Mapping():
            return ", ".join(_text(item) if key == "type" else f"{key} {_text(item)}" for key, item in value.items())
        case list():
            return ", ".join(_text(item) for item in value)
    return str(value)
