"""`dragoman compare`: verdicts as exit codes, one page without a network, and clear words about wrong files."""

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.evaluation.comparison import compare_outputs
from dragoman.quality.test_set import TestSet

WORDS = [
    "dog",
    "cat",
    "house",
    "garden",
    "street",
    "river",
    "market",
    "kitchen",
    "forest",
    "station",
    "bridge",
    "school",
    "tower",
]
FIXTURE = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"


@pytest.fixture
def files(tmp_path):
    rng = random.Random(1)
    references = [" ".join(rng.choices(WORDS, k=8)) + "." for _ in range(60)]

    def spoilt(share, seed):
        other = random.Random(seed)
        return [" ".join(w if other.random() > share else "x" for w in line.split()) for line in references]

    written = {
        "test.de": [line.upper() for line in references],
        "test.en": references,
        "good.en": spoilt(0.05, 1),
        "bad.en": spoilt(0.5, 2),
        "like-bad.en": spoilt(0.5, 3),
    }
    for name, lines in written.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def run(files, *arguments, page="page.html"):
    fixed = ["--src", str(files / "test.de"), "--ref", str(files / "test.en"), "-o", str(files / page)]
    options = ["--resamples", "200", "--trials", "200"]
    named = [str(files / item) if item.endswith(".en") else item for item in arguments]
    return CliRunner().invoke(app, ["compare", *named, *fixed, *options])


@pytest.mark.parametrize(
    ("systems", "code", "verdict"),
    [
        (("bad.en", "good.en"), 0, "better"),
        (("good.en", "bad.en"), 4, "worse"),
        (("bad.en", "like-bad.en"), 3, "undecided"),
        (("bad.en", "good.en", "like-bad.en"), 3, "undecided"),
        (("good.en", "good.en", "bad.en"), 2, "given twice"),
    ],
)
def test_the_exit_code_is_the_verdict(files, systems, code, verdict):
    found = run(files, *systems)
    assert found.exit_code == code or (code == 2 and found.exception is not None)
    assert verdict in (found.stdout if code != 2 else str(found.exception))


def test_all_figures_as_json(files):
    found = run(files, "bad.en", "good.en", "--json", "--metric", "chrf", "--metric", "bleu:lowercase")
    told = json.loads(found.stdout)
    (pair,) = told["compared"]
    assert [test["metric"] for test in pair["tests"]] == ["chrf", "bleu"]
    assert pair["tests"][0]["p_corrected"] < 0.05
    assert pair["verdict"] == told["verdict"] == "better"
    assert 0 < len(pair["sentences"]) <= 50
    assert pair["tests"][0]["wins"] > pair["tests"][0]["losses"]


def test_the_page_holds_everything_and_escapes_text(files):
    lines = (files / "good.en").read_text(encoding="utf-8").splitlines()
    lines[0] = "<script>alert(1)</script>"
    (files / "good.en").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run(files, "bad.en", "good.en", "bad.en")
    run(files, "bad.en", "good.en")
    page = (files / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "&lt;script&gt;" in page or "&lt;<mark>script" in page or "alert" in page
    assert "good.en is <span" in page
    assert page.count('class="sentence') <= 50


def test_wrong_files_are_told(files):
    (files / "short.en").write_text("one\n", encoding="utf-8")
    assert "short.en has 1 lines and test.de has 60" in str(run(files, "bad.en", "short.en").exception)
    assert "give two or more" in str(run(files, "bad.en").exception)
    assert "a page is an .html file" in str(run(files, "bad.en", "good.en", page="page.pdf").exception)


def test_a_run_beside_a_file(tmp_path):
    (tmp_path / "test.en").write_text("a dog runs in the garden\na cat runs in the garden\n", encoding="utf-8")
    (tmp_path / "test.de").write_text("ein hund läuft im garten\neine katze läuft im garten\n", encoding="utf-8")
    (tmp_path / "other.de").write_text("ein hund läuft im garten\neine katze läuft im garten\n", encoding="utf-8")
    arguments = ["compare", str(FIXTURE), str(tmp_path / "other.de"), "--src", str(tmp_path / "test.en")]
    more = ["--ref", str(tmp_path / "test.de"), "-o", str(tmp_path / "p.html"), "--device", "cpu"]
    found = CliRunner().invoke(app, [*arguments, *more, "--resamples", "100", "--trials", "100"])
    assert found.exit_code in (0, 3), found.output
    assert "other.de beside finished, 2 sentences" in found.stdout


def test_a_model_is_judged_by_the_same_rule_as_its_output(files):
    """`adapt`, `distil` and `train --from` compare models as `compare` compares files: they never disagree."""
    references = (files / "test.en").read_text(encoding="utf-8").splitlines()
    for number in range(8):
        rng = random.Random(number)
        lines = [
            " ".join(w if rng.random() > 0.1 * (number // 2) else "x" for w in line.split()) for line in references
        ]
        (files / f"{number}.en").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    verdicts = set()
    for one, other in [(0, 7), (2, 4), (4, 5), (6, 7), (7, 4)]:
        paths = [str(files / f"{number}.en") for number in (one, other)]
        fixed = ["--src", str(files / "test.de"), "--ref", str(files / "test.en"), "-o", str(files / "page.html")]
        told = json.loads(CliRunner().invoke(app, ["compare", *paths, *fixed, "--json"]).stdout)
        outputs = [Path(path).read_text(encoding="utf-8").splitlines() for path in paths]
        found = compare_outputs(TestSet(references, [references], ("de", "en")), *outputs)
        assert found.verdict == told["verdict"]
        assert found.tests[0].p == told["compared"][0]["tests"][0]["p_corrected"]
        verdicts.add(found.verdict)
    assert verdicts == {"better", "worse", "undecided"}
