"""The report of a run: one HTML file that holds everything, works offline and runs no script.

It is made from the run directory alone (metrics.jsonl and config.yaml), during training or after it, and says what was
read, what was trained, how it went, what came out and how that was measured. Jinja2 is loaded when a report is written.
"""

import difflib
import re
import statistics
import string
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.analysis.figure import GRID, INK, MUTED, TRAIN, VALID, to_svg
from dragoman.analysis.plots import PANELS, SCORES, panels_for, training_curves
from dragoman.config import read_yaml
from dragoman.runs import atomic_io
from dragoman.runs.log import METRICS, Event, best_validation, read_events, without_repeats

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
"""What the tables call a figure, in the order of their columns; a table has those columns that its run logged."""

TEST_FIGURES = {"sentences": ("sentences", 0), **{name: (title, 2) for name, title in METRIC_NAMES.items()},
                "decode_s": ("decoding, s", 1), "sentences_per_s": ("sentences/s", 1)}  # fmt: skip
"""The columns of the test table: (heading, digits) by field of the event."""

SHOWN_LABELS = 30
"""Labels up to which the report shows which was taken for which."""


class Words(NamedTuple):
    """What the page calls things in the runs of a task."""

    src: str
    ref: str
    hyp: str
    progress: str
    """Heading of the validation samples."""
    tests: str
    """Heading of the test samples."""
    scores: str
    """How the scores were computed."""
    masks: str = "targets shifted by one; masks are true at real tokens"
    """What to know of the step that makes masks."""
    instead: Mapping[str, str] = {}
    """Steps, facts and figures that are called otherwise than in translation."""
    compares: bool = True
    """Whether what the model says should be the reference, so that differences are marked."""

    def name(self, usual: str) -> str:
        """What this task calls the step, fact or figure that translation calls `usual`."""
        return self.instead.get(usual, usual)


CLASSIFIER_WORDS = Words(
    src="text",
    ref="label",
    hyp="the model says",
    progress="The same examples as training went on",
    tests="Labels of test examples",
    scores="Accuracy is the percentage of examples whose label is right. F1 is the harmonic mean of a label's "
    "precision and recall; macro F1 is its mean over the labels, so that a rare one counts as much as a frequent one.",
    masks="masks are true at real tokens",
    instead={
        "Read pairs": "Read examples",
        "pairs read": "examples read",
        "source vocabulary": "vocabulary",
        "Pad, shift, mask": "Pad, mask",
        "Encode once and search": "Label",
        "test decoding": "labelling",
        "Detokenize and score": "Score",
        "test sentences": "test examples",
        "sentences": "examples",
        "decoding, s": "labelling, s",
        "sentences/s": "examples/s",
        METRIC_NAMES["loss"]: "loss, nats/example",
    },
)


WORDS = {
    "translation": Words(
        src="source",
        ref="reference",
        hyp="translation",
        progress="The same sentences as training went on",
        tests="Translations of test sentences",
        scores="BLEU, chrF and TER are sacreBLEU's, over the whole set at once, on detokenized text against one "
        "reference a sentence. A signature says exactly how; figures with different signatures must not be compared. "
        "Validation may search with fewer hypotheses than the test does. BLEU on one set says little about another "
        "kind of text.",
    ),
    "language_modelling": Words(
        src="prompt",
        ref="the text goes on",
        hyp="the model goes on",
        progress="The same prompts as training went on",
        tests="Continuations of test texts",
        scores="The loss is the mean over every token of the text, each predicted once from the tokens before it in "
        "its window. Losses and perplexities of different tokenizers must not be compared; bits per character may be, "
        "where no token is unknown. More tokens before each prediction make every figure better.",
        masks="targets are the inputs shifted by one; no token sees a later one",
        instead={
            "Read pairs": "Read text",
            "Pad, shift, mask": "Shift, mask",
            "Encode once and search": "Prompt and sample",
        },
        compares=False,
    ),
    "classification": CLASSIFIER_WORDS,
    "image_classification": CLASSIFIER_WORDS._replace(
        src="image",
        masks="every image is as large as the next: nothing is padded",
        instead={
            **CLASSIFIER_WORDS.instead,
            "Normalise and tokenize": "Read pixels",
            "Ids": "Cut into patches",
            "tokens a batch": "patches a batch",
        },
    ),
}
"""By the recipe's `task:`."""


class Step(NamedTuple):
    """One of the nine steps with this run's numbers: (what, value) rows."""

    title: str
    facts: list[tuple[str, str]]


class Attempt(NamedTuple):
    """What the model made of a sentence at a step: (text, whether the reference has it there too) runs."""

    step: int
    best: bool
    runs: list[tuple[str, bool]]
    left_out: int  # characters cut off the end of an output that does not stop


class Sample(NamedTuple):
    """A sentence, its reference and the model's attempts at it, oldest first."""

    src: str
    ref: str
    attempts: list[Attempt]


def write_report(run_dir: str | Path) -> Path:
    """Write `run_dir/report.html` and return its path; atomically, if one is there already.

    Events that are missing leave their part out. Raises DragomanError when metrics.jsonl or config.yaml is missing or
    cannot be read.
    """
    import jinja2

    run_dir = Path(run_dir)
    events = without_repeats(read_events(run_dir / METRICS))
    config = read_yaml(run_dir / "config.yaml")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": _number, "text": _text, "moment": _moment}
    template = environment.from_string(
        files("dragoman.analysis").joinpath("report.html.j2").read_text(encoding="utf-8")
    )
    page = template.render(
        **_view(events, config),
        name=run_dir.resolve().name,
        config_text=(run_dir / "config.yaml").read_text(encoding="utf-8").strip(),
    )
    path = run_dir / "report.html"
    atomic_io.replace_text(path, page)
    return path


def _view(events: list[Event], config: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the template shows, by name."""
    start, plan, end = _last(events, "start"), _last(events, "plan"), _last(events, "end")
    if start and end and events.index(end) < events.index(start):
        end = {}  # the run went on after it
    valid = [event for event in events if event["event"] == "valid"]
    best = best_validation(events)
    tests = list({event["name"]: _with_speed(event) for event in events if event["event"] == "test"}.values())
    words = _words(config)
    return {
        "start": {key: value for key, value in start.items() if key not in ("event", "elapsed_s")},
        "plan": plan,
        "end": end,
        "valid": valid,
        "best": best,
        "tests": tests,
        "src_lang": _dig(config, "corpus.src_lang") or "",
        "tgt_lang": _dig(config, "corpus.tgt_lang") or "",
        "family": _dig(config, "model.type") or "",
        "finished": bool(end),
        "words": words,
        "metric_names": METRIC_NAMES,
        "test_figures": [
            (name, words.name(title), digits)
            for name, (title, digits) in TEST_FIGURES.items()
            if any(test.get(name) is not None for test in tests)
        ],
        "confusions": [test for test in tests if 1 < len(test.get("labels") or ()) <= SHOWN_LABELS],
        "valid_metrics": [name for name in METRIC_NAMES if any(event.get(name) is not None for event in valid)],
        "headlines": _headlines(events, start, plan, best, tests),
        "steps": _nine_steps(events, config, plan, end, best, tests),
        "curves": _curves(events),
        "only_in_training": _only_in_training(config),
        "samples": _progress_samples(valid, best, words),
        "shown_validations": min(SHOWN_VALIDATIONS, len(valid)),
        "test_samples": {event["name"]: _samples([event], words=words) for event in tests if event.get("samples")},
    }


def _only_in_training(config: Mapping[str, Any]) -> str:
    """What the loss of a training step has and that of a validation has not, as far as the settings say."""
    model = _dig(config, "model") or {}
    dropout = any(value for name, value in model.items() if name.endswith("dropout"))
    averaged = _dig(config, "training.averaging.type") not in (None, "none")
    found = ["smoothed labels"] if _dig(config, "training.label_smoothing") else []
    found += ["dropout"] if dropout else []
    found += ["the weights of the moment instead of their average"] if averaged else []
    return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def _headlines(
    events: list[Event], start: Event, plan: Event, best: Event | None, tests: list[Event]
) -> list[tuple[str, str, str]]:
    """(what, figure, note) for the top of the page; what was not logged is not shown."""
    step, seconds = _last_value(events, "step"), _last_value(events, "elapsed_s")
    score = next((name for name in SCORES if any(event.get(name) is not None for event in [*tests, best or {}])), "")
    title = METRIC_NAMES.get(score, "")
    cards = [
        (
            f"{title}, {test['name']}",
            _number(test[score], 2 if test[score] < 10 else 1),
            f"chrF {_number(test['chrf'], 1)}" if test.get("chrf") is not None else "",
        )
        for test in tests
        if test.get(score) is not None
    ]
    if best and best.get(score) is not None:
        figure = _number(best[score], 2 if best[score] < 10 else 1)
        cards.append((f"{title}, validation", figure, f"best, step {best['step']:,}"))
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
    if start.get("machine") or start.get("device"):
        device = [_text(start[key]) for key in ("device", "precision") if start.get(key)]
        device += [f"{start['threads']} threads"] if start.get("threads") else []
        cards.append(("Device", device[0] if device else "", ", ".join(device[1:])))
    return [(what, figure, note) for what, figure, note in cards if figure]


def _nine_steps(
    events: list[Event], config: Mapping[str, Any], plan: Event, end: Event, best: Event | None, tests: list[Event]
) -> list[Step]:
    """The nine steps of docs/architecture.md, each with what this run's log and settings say of it."""
    train = [event for event in events if event["event"] == "train"]
    epoch, step = _last_value(events, "epoch"), _last_value(events, "step")
    languages = [lang for lang in (_dig(config, "corpus.src_lang"), _dig(config, "corpus.tgt_lang")) if lang]
    dropped = plan.get("dropped") or {}
    decode_s = [event["decode_s"] for event in tests if event.get("decode_s") is not None]
    sentences = [event["sentences"] for event in tests if event.get("sentences") is not None]
    steps = [
        _step(
            "Read pairs",
            ("languages", " → ".join(map(_text, languages))),
            ("source", _dig(config, "corpus.train.type")),
            ("pairs read", plan.get("pairs_read")),
            ("characters", plan.get("characters")),
        ),
        _step(
            "Normalise and tokenize",
            ("normalise", _dig(config, "corpus.normalize")),
            ("tokenizer", _dig(config, "tokenizer.type")),
            ("source vocabulary", plan.get("src_vocab_size")),
            ("target vocabulary", plan.get("tgt_vocab_size")),
            ("vocabulary", plan.get("vocab_size")),
        ),
        _step(
            "Ids",
            ("tokens", plan.get("tokens")),
            ("unknown tokens", plan.get("unknown")),
            ("pairs kept", plan.get("pairs_kept")),
            ("pairs dropped", sum(dropped.values()) if "dropped" in plan else None),
            *((f"– {reason.replace('_', ' ')}", count) for reason, count in dropped.items() if count),
        ),
        _step(
            "Batch under a token budget",
            ("tokens a batch", _dig(config, "training.batch_tokens")),
            ("steps an epoch", plan.get("steps_per_epoch")),
        ),
        _step(
            "Pad, shift, mask",
            ("longest side", _with_unit(_dig(config, "corpus.max_tokens"), "tokens")),
            ("windows of", _with_unit(_dig(config, "corpus.block_len"), "tokens")),
        ),
        _step(
            "Model to logits to loss",
            ("model", _dig(config, "model.type")),
            ("parameters", plan.get("parameters")),
            ("label smoothing", _dig(config, "training.label_smoothing")),
            ("training loss", " → ".join(_number(train[i].get("loss"), 2) for i in (0, -1)) if train else None),
        ),
        _step(
            "Train to a run directory",
            ("steps", step),
            ("last epoch", None if epoch is None else epoch + 1),
            ("best at step", best["step"] if best else None),
            ("ended", end.get("reason")),
        ),
        _step(
            "Encode once and search",
            ("beam size", _dig(config, "decoding.beam_size")),
            ("length penalty", _dig(config, "decoding.length_penalty")),
            *((name, _dig(config, f"decoding.{name}")) for name in ("temperature", "top_k", "top_p")),
            ("test decoding", f"{sum(decode_s):,.1f} s" if decode_s else None),
        ),
        _step(
            "Detokenize and score",
            ("test sentences", sum(sentences) if sentences else None),
            *(
                (f"{METRIC_NAMES[name]}, {test['name']}", _number(test[name], 2 if test[name] < 10 else 1))
                for name in SCORES
                for test in tests
                if test.get(name) is not None
            ),
        ),
    ]
    words = _words(config)
    return [Step(words.name(step.title), [(words.name(what), value) for what, value in step.facts]) for step in steps]


def _words(config: Mapping[str, Any]) -> Words:
    return WORDS.get(_dig(config, "task") or "", WORDS["translation"])


def _step(title: str, *facts: tuple[str, Any]) -> Step:
    return Step(title, [(what, _text(value)) for what, value in facts if value not in (None, "")])


def _curves(events: list[Event]) -> list[tuple[str, Any]]:
    """(title, SVG) of each panel, its colours tied to the page's, so that a dark page has light axes."""
    from markupsafe import Markup

    if not any(event["event"] in ("train", "valid") for event in events):
        return []
    colours = {INK: "ink", MUTED: "muted", GRID: "rule", TRAIN: "train", VALID: "valid"}
    curves = []
    for panel in panels_for(events):
        title, _, _ = PANELS[panel]
        svg = to_svg(training_curves(events, [panel]))
        for colour, name in colours.items():
            svg = svg.replace(colour, f"var(--{name})")
        curves.append((title, Markup(svg)))  # our own drawing; it holds no text from the run
    return curves


def _progress_samples(valid: list[Event], best: Event | None, words: Words = WORDS["translation"]) -> list[Sample]:
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
    return _samples(sampled, best, words)


def _samples(events: list[Event], best: Event | None = None, words: Words = WORDS["translation"]) -> list[Sample]:
    if not events:
        return []
    samples = []
    for wanted in events[-1]["samples"]:
        src, ref = wanted.get("src", ""), wanted.get("ref", "")
        attempts = []
        for event in events:
            hyp = next(
                (s.get("hyp") or "" for s in event["samples"] if (s.get("src"), s.get("ref")) == (src, ref)), None
            )
            if hyp is not None:
                limit = 3 * max(len(ref), 60)  # young models repeat themselves up to the length limit
                shown, left_out = hyp[:limit], max(0, len(hyp) - limit)
                same = [(shown, True)] if shown else []
                runs = _compare(shown, ref) if words.compares else same
                attempts.append(Attempt(event.get("step", 0), event is best, runs, left_out))
        samples.append(Sample(src, ref, attempts))
    return samples


_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PUNCTUATION = re.escape(string.punctuation) + "“”„‘’«»…–—¿¡،؟؛।。、，！？：；「」『』（）"
_WORD = re.compile(rf"\s+|[{_UNSPACED}]|[{_PUNCTUATION}]|[^\s{_UNSPACED}{_PUNCTUATION}]+")


def _compare(hyp: str, ref: str) -> list[tuple[str, bool]]:
    """`hyp` as (text, whether the reference has it there) runs, by words (by characters in scripts without spaces).

    >>> _compare("a cat sleeps here", "the cat sleeps")
    [('a', False), (' cat sleeps ', True), ('here', False)]
    """
    words, wanted = _WORD.findall(hyp), [word for word in _WORD.findall(ref) if not word.isspace()]
    places = [place for place, word in enumerate(words) if not word.isspace()]
    matcher = difflib.SequenceMatcher(None, [words[place] for place in places], wanted, autojunk=False)
    same = {places[i] for block in matcher.get_matching_blocks() for i in range(block.a, block.a + block.size)}
    runs: list[tuple[str, bool]] = []
    for place, word in enumerate(words):
        if word.isspace():  # between two different words it belongs to them, else to the text around
            is_same = not (runs and not runs[-1][1] and place + 1 < len(words) and place + 1 not in same)
        else:
            is_same = place in same
        if runs and runs[-1][1] == is_same:
            runs[-1] = (runs[-1][0] + word, is_same)
        else:
            runs.append((word, is_same))
    return runs


def _last(events: Iterable[Event], kind: str) -> Event:
    return next((event for event in reversed(list(events)) if event["event"] == kind), {})


def _last_value(events: list[Event], name: str) -> Any:
    """The latest reading of a field in training; decoding the test sets is not training."""
    return next((e[name] for e in reversed(events) if e["event"] != "test" and e.get(name) is not None), None)


def _dig(config: Mapping[str, Any], path: str) -> Any:
    """The setting at a dotted path, None where there is none: a report does not insist on a family of settings."""
    value: Any = config
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _with_unit(value: Any, unit: str) -> str | None:
    return None if value is None else f"{_text(value)} {unit}"


def _with_speed(test: Event) -> Event:
    sentences, seconds = test.get("sentences"), test.get("decode_s")
    return {**test, "sentences_per_s": sentences / seconds} if sentences and seconds else test


def _number(value: Any, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _moment(time: str) -> str:
    """A logged time, to the minute.

    >>> _moment("2026-01-31T09:30:05+00:00")
    '2026-01-31 09:30 UTC'
    """
    return time[:16].replace("T", " ") + " UTC"


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
