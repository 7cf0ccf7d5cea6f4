"""All runs in one table: what differs, sorted and filtered; the model card of a run."""

import csv
import io
import json
import shlex
import shutil
from pathlib import Path

import pytest
import yaml
from tests.errors import raises_error

from dragoman.analysis.run_table import as_csv, as_html, as_text, entries_of, find_runs, only, ordered, table
from dragoman.config import override
from dragoman.errors import Error
from dragoman.export.model_card import card, write_card

RUN = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"


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


def changed(run, *, settings=None, **plan):
    """Other settings and another plan for a run; its card."""
    written = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    (run / "config.yaml").write_text(yaml.safe_dump(override(written, settings or [])), encoding="utf-8")
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    lines = (json.dumps({**event, **plan} if event["event"] == "plan" else event) for event in events)
    (run / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return card(run)


def test_a_card_says_whether_tests_were_looked_for_in_the_training_text(folder):
    left_out, not_looked = "or nearly do, were left out", "was not looked at for this run"
    assert left_out in changed(folder / "a", settings=["corpus.leaks=drop"])
    text = changed(folder / "a", settings=["corpus.leaks=keep"])
    assert (left_out in text, not_looked in text) == (False, True)
    assert not_looked not in changed(folder / "a", settings=["corpus.files={paths: [x]}"])  # the assembly has looked


def test_a_card_has_kinds_and_licences_of_the_training_pairs(folder):
    rows = [{"kind": "manual", "licence": "GPL-2+ | MIT", "documents": 3, "pairs": 1200}]
    text = changed(folder / "a", origins=rows)
    assert (
        "| kind | licence | packages | pairs |\n| --- | --- | --- | --- |\n| manual | GPL-2+ \\| MIT | 3 | 1,200 |"
        in text
    )
    assert "follows from those of the training data above" in text
    text = changed(folder / "a", origins=[{**rows[0], "licence": ""}])
    assert "| kind | documents | pairs |\n| --- | --- | --- |\n| manual | 3 | 1,200 |" in text
    assert "licence of the package" not in text


def test_a_card_of_several_languages_names_no_direction(folder):
    text = changed(folder / "a", settings=["tokenizer={type: sentencepiece, languages: [de, en, nb]}"])
    assert yaml.safe_load(text.split("---\n")[1])["language"] == ["de", "en", "nb"]
    assert "between the languages German, English, Norwegian" in text
    assert "no other direction" not in text
    assert "no other direction" in card(folder / "c")


@pytest.mark.parametrize(
    ("codes", "languages"),
    [
        (("no", "en"), ["no", "en"]),  # which YAML reads as false where nobody quotes it
        (("zh-CN", "pt_BR"), ["zh", "pt"]),  # the Hub takes no regions, and no capitals
        (("ach", "en"), ["ach", "en"]),
        (("english", "de"), ["en", "de"]),
        (("src", "tgt"), None),
    ],
)
def test_languages_of_a_card_are_codes_of_the_hub(folder, codes, languages):
    text = changed(folder / "a", settings=[f"corpus.src_lang='{codes[0]}'", f"corpus.tgt_lang='{codes[1]}'"])
    assert yaml.safe_load(text.split("---\n")[1]).get("language") == languages
    assert ("from src to tgt" in text, "for translation" in text) == (False, languages is None)


def test_a_card_names_the_files_of_a_mixture_and_not_their_folders(folder):
    mix = "{type: mix, sources: [{type: files, src: /a/one.de, tgt: /a/one.en}, {type: tmx, path: /b/memory.tmx}]}"
    assert "- train: mix one.de, one.en, memory.tmx" in changed(folder / "a", settings=[f"corpus.train={mix}"])


def test_an_unfinished_run_claims_no_figure(folder):
    text = card(folder / "c")
    assert "No test set was scored." in text
    assert "No figure says how good it is." in text
    assert "Figures are of the test sets above" not in text


def test_the_python_of_a_card_runs(tmp_path, monkeypatch, capsys):
    """Its name is one that has to be quoted."""
    run = tmp_path / "it's mine"
    shutil.copytree(RUN, run)
    text = card(run)
    monkeypatch.chdir(tmp_path)
    exec(text.split("```python\n")[1].split("```")[0], {})  # noqa: S102 - our own lines
    assert capsys.readouterr().out.startswith("['")
    command = text.split("## Use\n\n    ")[1].splitlines()[0]
    assert shlex.split(command) == ["dragoman", "translate", "it's mine", "<", "text"]


def test_a_card_of_a_run_without_a_log(tmp_path):
    (tmp_path / "config.yaml").write_text("task: translation\ncorpus: {src_lang: de, tgt_lang: en}\n", encoding="utf-8")
    assert "from German to English" in card(tmp_path)
