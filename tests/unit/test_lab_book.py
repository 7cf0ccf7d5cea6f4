"""All runs in one table: what differs, sorted and filtered; the model card of a run."""

import csv
import io
import json

import pytest
import yaml
from tests.errors import raises_error

from dragoman.analysis.lab_book import as_csv, as_html, as_text, entries_of, find_runs, only, ordered, table
from dragoman.errors import Error
from dragoman.export.model_card import card, write_card


def write_run(folder, seed, lr, score, *, finished=True):
    folder.mkdir(parents=True)
    corpus = {"src_lang": "de", "tgt_lang": "en", "max_tokens": 128, "train": {"type": "files", "src": "/a/b.de"}}
    training = {"schedule": {"type": "linear", "lr": lr}, "optimizer": {"type": "adamw"}, "batch_tokens": 100}
    settings = {"task": "translation", "run_dir": str(folder), "seed": seed, "corpus": corpus, "training": training}
    settings["model"] = {"type": "transformer"}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (folder / "identity.json").write_text(json.dumps({"corpus.train.src": "abc"}), encoding="utf-8")
    events = [
        {"event": "start", "time": "2026-11-27T01:02:03+00:00", "machine": "box", "torch": "2", "commit": "abc"},
        {"event": "plan", "time": "t", "parameters": 1200000, "pairs_read": 10, "pairs_kept": 9, "dropped": {"x": 1}},
        {"event": "valid", "time": "t", "step": 10, "score": score, "loss": 1.0, "bleu": score, "elapsed_s": 60.0},
    ]
    if finished:
        events.append({"event": "end", "time": "t", "reason": "max_steps", "step": 10, "elapsed_s": 90.0})
        test = {"event": "test", "time": "t", "name": "news", "bleu": score - 1, "chrf": 50.0, "sentences": 100}
        events.append({**test, "signatures": {"bleu": "nrefs:1"}, "elapsed_s": 90.0})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    write_run(tmp_path / "a", 1, 0.001, 30.0)
    write_run(tmp_path / "deep" / "b", 2, 0.001, 32.5)
    write_run(tmp_path / "c", 1, 0.004, 8.0, finished=False)
    return tmp_path


def rows_of(folder):
    return table(entries_of(find_runs(folder)))


def test_the_columns_are_facts_what_differs_and_figures(folder):
    rows = rows_of(folder)
    assert [row["run"].rpartition("/")[2] for row in rows] == ["a", "c", "b"]
    assert {"seed", "training.schedule.lr", "validation", "news bleu", "news chrf", "commit", "data"} <= set(rows[0])
    assert not {"corpus.src_lang", "run_dir", "training.batch_tokens"} & set(rows[0])
    assert [row["state"] for row in rows] == ["max_steps", "not finished", "max_steps"]
    assert [row["minutes"] for row in rows] == [1.5, 1.0, 1.5]
    assert len({row["data"] for row in rows}) == 1


def test_runs_are_sorted_and_filtered(folder):
    entries = entries_of(find_runs(folder))
    names = lambda found: [entry.path.name for entry in found]  # noqa: E731
    assert names(ordered(entries, "-validation")) == ["b", "a", "c"]
    assert names(ordered(entries, "news bleu")) == ["a", "b", "c"]  # one without the figure comes last
    assert names(only(entries, ["validation>=30"])) == ["a", "b"]
    assert names(only(entries, ["training.schedule.lr=1e-3", "seed!=1"])) == ["b"]
    assert names(only(entries, ["state=not"])) == ["c"]
    with raises_error(Error.UNKNOWN_NAME):
        only(entries, ["bleu>3"])
    with raises_error(Error.WRONG_OPTION):
        only(entries, ["seed"])
    with raises_error(Error.UNKNOWN_NAME):
        ordered(entries, "bleu")


def test_text_csv_and_html(folder):
    rows = rows_of(folder)
    text = as_text(rows)
    assert "all: machine box" in text
    assert "32.50" in text
    read = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert [float(row["validation"]) for row in read] == [30.0, 8.0, 32.5]
    page = as_html(rows, entries_of(find_runs(folder)), "<runs>")
    assert "&lt;runs&gt;" in page
    assert page.count("<tr>") == 4


def test_what_cannot_be_read_is_told(folder, tmp_path, capsys):
    (folder / "a" / "config.yaml").write_text("{", encoding="utf-8")
    assert len(entries_of(find_runs(folder))) == 2
    assert "left out" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    with raises_error(Error.NOT_A_RUN, "empty"):
        find_runs(tmp_path / "empty")
    with raises_error(Error.MISSING_FILE, "nowhere"):
        find_runs(tmp_path / "nowhere")
    assert as_text([]) == "no runs\n"


def test_a_model_card_has_the_fields_of_the_hub_and_the_figures(folder):
    text = write_card(folder / "a").read_text(encoding="utf-8")
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["language"] == ["de", "en"]
    assert (head["pipeline_tag"], head["library_name"]) == ("translation", "dragoman")
    (result,) = head["model-index"][0]["results"]
    assert result["dataset"]["name"] == "news"
    assert result["metrics"][0] == {"type": "bleu", "name": "BLEU", "value": 29.0}
    for part in (
        "from German to English",
        "1.2 million",
        "pairs read: 10; trained on: 9",
        "left out: 1 x",
        "nrefs:1",
        "SHA-256 of corpus.train.src: `abc`",
        "more than 128 tokens",
        "| news | 100 | 29.00 | 50.00 |",
    ):
        assert part in text
    assert "b.de" in text
    assert "/a/b.de" not in text  # where a file lay is nobody's business
    assert str(folder) not in text
    assert "export of it for ONNX" in card(folder / "a", "ONNX")


def test_a_card_of_a_run_without_a_log(tmp_path):
    (tmp_path / "config.yaml").write_text("task: translation\ncorpus: {src_lang: de, tgt_lang: en}\n", encoding="utf-8")
    assert "from German to English" in card(tmp_path)
