"""The report: whole from a full log, tolerant of a short one, and deaf to what the sentences say."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.errors import raises_error

from dragoman.analysis.marked import marked
from dragoman.analysis.report import SHOWN_VALIDATIONS, write_report
from dragoman.errors import Error
from dragoman.quality.classification import score_labels
from dragoman.runs.log import RunLog

CONFIG = """\
corpus: {src_lang: de, tgt_lang: ar, normalize: nfc, max_tokens: 256, train: {type: tsv, path: a.tsv}}
tokenizer: {type: sentencepiece}
model: {type: transformer}
training: {batch_tokens: 4096, label_smoothing: 0.1}
decoding: {beam_size: 5, length_penalty: {type: gnmt, alpha: 0.6}}
# </code><script>alert("config")</script>
"""
EVIL = "<script>alert('x')</script>"
SIGNATURES = {"bleu": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0", "chrf": "nrefs:1|nc:6", "ter": "x"}


def samples(hyp: str) -> list[dict[str, str]]:
    return [{"src": "Guten Tag & mehr", "ref": "صباح الخير", "hyp": hyp}, {"src": EVIL, "ref": EVIL, "hyp": EVIL}]


def run_directory(path: Path, validations: int = 9) -> Path:
    with RunLog(path, loggers=()) as log:
        log.event("start", elapsed_s=0, dragoman="0.1.0", torch="2.7", machine="x86_64 <fast>", device="cpu", threads=2)
        dropped = {"blank": 7, "too_long": 13, "never": 0}
        log.event("plan", pairs_read=1020, pairs_kept=1000, dropped=dropped, parameters=7_577_600, max_steps=5000)
        for i in range(1, validations + 1):
            log.event("train", elapsed_s=60 * i, step=100 * i, epoch=0, loss=5 / i, lr=1e-3, tokens_per_s=9000)
            hyps = samples(f"محاولة {i}")
            log.event("valid", elapsed_s=60 * i, step=100 * i, epoch=0, loss=4 / i, bleu=2.0 * i, samples=hyps)
        log.event("end", elapsed_s=600, reason="max_steps", step=100 * validations)
        scores = {"bleu": 29.87, "chrf": 51.2, "ter": 50.0, "signatures": SIGNATURES}
        log.event("test", name="news", **scores, sentences=500, decode_s=10.0, samples=samples("الخير"))
        log.event("test", name="talks <i>", bleu=12.3)
    (path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    return path


class Page(HTMLParser):
    """A page as its elements and its text; stumbles over an element that is not closed where it should be."""

    VOID = ("meta", "br", "hr", "img", "link")

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))
        assert self.open == []
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if self.open[-1:] in (["mark"], ["code"]) else f" {data}"


def test_a_full_run(tmp_path: Path) -> None:
    path = write_report(run_directory(tmp_path / "my-run"))
    assert path == tmp_path / "my-run" / "report.html"
    page = Page(path)
    for expected in (
        *("my-run", "de → ar", "29.87", "29.9", "10.0 min", "7.6 M", "7,577,600", "1,020", "1,000", "gnmt, alpha 0.6"),
        *("– blank 7", "– too long 13", "pairs dropped 20", *SIGNATURES.values(), "x86_64 <fast>", "talks <i>"),
        *(
            "ended : max_steps",
            "last epoch 1",
            "taken with smoothed labels, the validation loss without",
            "50.0",
            "training loss 5.00 → 0.56",
            "at 6 of 9 validations",
        ),
    ):
        assert expected in page.text.replace("ended:", "ended :"), expected
    assert "never" not in page.text
    assert sum(tag == "svg" for tag, _ in page.elements) == 4
    assert not list(tmp_path.glob("*/*.tmp"))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("training: {label_smoothing: 0.0}\nmodel: {dropout: 0.0}", ""),
        (
            "training: {averaging: {type: ema}}\nmodel: {attention_dropout: 0.1}",
            "dropout and the weights of the moment",
        ),
        (
            "training: {label_smoothing: 0.1, averaging: {type: ema}}\nmodel: {dropout: 0.1}",
            "smoothed labels, dropout and the weights",
        ),
    ],
)
def test_why_the_losses_differ_is_said_as_the_settings_have_it(tmp_path: Path, settings: str, told: str) -> None:
    run_dir = run_directory(tmp_path)
    (run_dir / "config.yaml").write_text(f"corpus: {{}}\n{settings}\n", encoding="utf-8")
    text = Page(write_report(run_dir)).text
    assert ("The training loss is taken with" in text) == bool(told)
    assert told in text


def test_it_stands_alone_and_runs_nothing(tmp_path: Path) -> None:
    path = write_report(run_directory(tmp_path))
    page = Page(path)
    assert not {tag for tag, _ in page.elements} & {"script", "link", "img", "iframe", "i"}
    assert not [
        name for _, attributes in page.elements for name in attributes if name.startswith("on") or name == "src"
    ]
    assert EVIL in page.text
    html = path.read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\s\"'<]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert not re.search(r"url\((?!#)|@import", html)
    ids = re.findall(r' id="([^"]+)"', html)
    references = set(re.findall(r'(?:href="|url\()#([^")]+)', html))
    assert references <= set(ids)


def test_sentences_carry_their_language_and_direction(tmp_path: Path) -> None:
    page = Page(write_report(run_directory(tmp_path)))
    marked = [attributes for _, attributes in page.elements if attributes.get("dir") == "auto"]
    assert {attributes["lang"] for attributes in marked} == {"de", "ar"}


@pytest.mark.parametrize(("validations", "best_place"), [(1, 1), (3, 2), (40, 23), (40, 40), (7, 6)])
def test_attempts_are_a_few_with_first_last_and_best(tmp_path: Path, validations: int, best_place: int) -> None:
    from dragoman.analysis.report import _progress_samples

    valid = [
        {"event": "valid", "step": i, "bleu": 50.0 if i == best_place else 1.0, "samples": samples(str(i))}
        for i in range(1, validations + 1)
    ]
    shown = _progress_samples(valid, valid[best_place - 1], True)
    assert [sample.src for sample in shown] == ["Guten Tag & mehr", EVIL]
    steps = [attempt.step for attempt in shown[0].attempts]
    assert steps == sorted(steps)
    assert len(steps) == min(validations, SHOWN_VALIDATIONS)
    assert {1, best_place, validations} <= set(steps)
    assert [attempt.step for attempt in shown[0].attempts if attempt.best] == [best_place]


def test_an_output_that_does_not_stop_is_cut_and_an_empty_one_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("", encoding="utf-8")
    with RunLog(tmp_path, loggers=()) as log:
        log.event("test", name="t", bleu=None, samples=[{"src": "a", "ref": "b", "hyp": "the " * 500}])
        log.event("test", name="u", samples=[{"src": "a", "ref": "b", "hyp": ""}])
    text = Page(write_report(tmp_path)).text
    assert "and 1,820 more characters" in text
    assert "(nothing)" in text


@pytest.mark.parametrize("log", ["", '{"event": "start"', '{"event": "start"}\n{"event": "train", "step": 1}\n'])
def test_a_run_that_was_killed_early(tmp_path: Path, log: str) -> None:
    (tmp_path / "config.yaml").write_text("", encoding="utf-8")
    (tmp_path / "metrics.jsonl").write_text(log, encoding="utf-8")
    assert "not finished" in Page(write_report(tmp_path)).text


TOLD_BY = {
    "start": "x86_64 <fast>",
    "plan": "7,577,600",
    "train": "training loss 5.00 → 0.56",
    "valid": "at 6 of 9 validations",
    "test": "29.87",
    "end": "ended : max_steps",
}


@pytest.mark.parametrize("kind", TOLD_BY)
def test_each_event_may_be_missing_and_the_others_are_told(tmp_path: Path, kind: str) -> None:
    run_directory(tmp_path)
    path = tmp_path / "metrics.jsonl"
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if f'"event": "{kind}"' not in line]
    path.write_text("\n".join(lines) + '{"event": "te', encoding="utf-8")
    text = Page(write_report(tmp_path)).text.replace("ended:", "ended :")
    assert {event for event, told in TOLD_BY.items() if told in text} == TOLD_BY.keys() - {kind}
    assert "Settings, versions, machine" in text


def test_a_run_that_goes_on_after_its_end_is_not_finished(tmp_path: Path) -> None:
    run_directory(tmp_path)
    with RunLog(tmp_path, loggers=()) as log:
        log.event("start", device="cpu")
    assert "not finished" in Page(write_report(tmp_path)).text


def test_a_language_model_has_its_own_words(tmp_path: Path) -> None:
    run_directory(tmp_path, validations=2)
    (tmp_path / "config.yaml").write_text(
        "task: language_modelling\ncorpus: {block_len: 64}\ndecoding: {temperature: 0.8}\n", encoding="utf-8"
    )
    with RunLog(tmp_path, loggers=()) as log:
        log.event("plan", characters=12_345, tokens=12_000, vocab_size=68, unknown=0)
        told = [{"src": "ROMEO:", "ref": "But, soft!\nwhat light", "hyp": "I am\na king"}]
        log.event("valid", elapsed_s=9, step=900, epoch=1, loss=1.5, bits_per_character=2.16, samples=told)
    page = Page(write_report(tmp_path))
    for expected in ("12,345", "Read text", "Prompt and sample", "windows of 64 tokens", "the model goes on", "2.16"):
        assert expected in page.text, expected
    assert "sacreBLEU" not in page.text
    assert not any(tag == "mark" for tag, _ in page.elements)


@pytest.mark.parametrize(
    ("task", "said"),
    [("classification", ["text", "masks are true"]), ("image_classification", ["image", "Cut into patches"])],
)
def test_a_classifier_has_its_own_words_and_shows_what_was_taken_for_what(
    tmp_path: Path, task: str, said: list[str]
) -> None:
    tmp_path.joinpath("config.yaml").write_text(f"task: {task}\n", encoding="utf-8")
    scores = score_labels(list("abbb"), list("aabb"), ["a", "b"])
    with RunLog(tmp_path, loggers=()) as log:
        log.event("plan", pairs_read=40, labels=["a", "b"])
        shown = [{"src": "ein Satz", "ref": "a", "hyp": "b"}]
        log.event("valid", elapsed_s=9, step=900, epoch=1, loss=0.5, accuracy=80.0, score=80.0, samples=shown)
        log.event("test", name="test", **scores.to_dict(), sentences=4, decode_s=0.5)
    page = Page(write_report(tmp_path))
    for expected in (*said, "Read examples", "examples read 40", "loss, nats/example", "examples/s", "8.0", "75.00"):
        assert expected in page.text, expected
    for expected in ("is said a said b precision, % recall, % F1, %", "a 1 1 100.0 50.0 66.7", "b 0 2 66.7 100.0 80.0"):
        assert expected in page.text, expected
    for foreign in ("pairs", "Detokenize", "translation", "sacreBLEU", "token<"):
        assert foreign not in page.text.split("Settings, versions, machine")[0], foreign


@pytest.mark.parametrize("missing", ["metrics.jsonl", "config.yaml"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    run_directory(tmp_path)
    (tmp_path / missing).unlink()
    with raises_error(Error.MISSING_FILE) as caught:
        write_report(tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("hyp", "ref", "expected"),
    [
        ("", "a", []),
        ("the same", "the same", [("the same", True)]),
        ("a big red cat", "a cat", [("a ", True), ("big red", False), (" cat", True)]),
        ("猫が好き", "犬が好き", [("猫", False), ("が好き", True)]),
        ("हिन्दी भाषा", "हिन्दी", [("हिन्दी ", True), ("भाषा", False)]),
        ("cats,", "cats.", [("cats", True), (",", False)]),
    ],
)
def test_words_that_differ(hyp: str, ref: str, expected: list[tuple[str, bool]]) -> None:
    assert marked(hyp, ref) == expected
