"""Every recipe that ships builds; every command line that the README and the tour show can be given."""

import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from tests.errors import raises_error
from tests.unit.test_init_from import FIRST, settings

from dragoman import config
from dragoman.cli import serve
from dragoman.cli.main import load
from dragoman.corpora import embedded
from dragoman.errors import Error
from dragoman.experiments import demo
from dragoman.runs import checkpoint
from dragoman.runs.log import RunLog
from dragoman.tasks import recipes
from dragoman.tasks.translation.job import TranslationJob
from dragoman.text.plain_sources import EmbeddedPair

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))


def test_there_are_recipes() -> None:
    assert {"demo", "multi30k-en-de", "multi30k-en-de-tok"} <= {path.stem for path in RECIPES}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_builds(path: Path) -> None:
    if "rules: spacy" in path.read_text(encoding="utf-8"):
        pytest.importorskip("spacy")
    recipe = recipes.load(path)
    assert recipe.run_dir == f"runs/{path.stem}"
    parameters = recipes.check(recipe)
    assert 1e4 < parameters < 1e9


def test_a_recipe_survives_being_written_and_read(tmp_path: Path) -> None:
    for path in RECIPES:
        recipe = recipes.load(path)
        copy = tmp_path / path.name
        copy.write_text(config.to_yaml(recipe), encoding="utf-8")
        assert recipes.load(copy) == recipe


SPACY = "tokenizer={type: words, rules: spacy, lang: sv}"
SEPARATE = "tokenizer={type: separate, src: {type: words}, tgt: {type: words, rules: spacy, lang: sv}}"


@pytest.mark.parametrize("path", [ROOT / "recipes/multi30k-en-de.yaml", ROOT / "recipes/trec.yaml"])
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([SPACY], (Error.NOT_INSTALLED,)),
        (["model.position={type: learned, max_len: 300}", "corpus.max_tokens=300"], (Error.WRONG_SETTING,)),
        (["training.precision=float8"], (Error.WRONG_SETTING, "precision")),
    ],
)
def test_check_refuses_what_training_would(
    monkeypatch: pytest.MonkeyPatch, path: Path, changes: list[str], error: tuple[Any, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with raises_error(*error):
        recipes.check(recipes.load(path, changes))


def test_check_looks_at_both_sides_and_lets_fitting_positions_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    path = ROOT / "recipes/multi30k-en-de.yaml"
    fits = ["model.position={type: learned, max_len: 257}", "corpus.max_tokens=256"]
    assert recipes.check(recipes.load(path, fits))
    with raises_error(Error.NOT_INSTALLED):
        recipes.check(recipes.load(path, [SEPARATE, "model.tie_embeddings=output"]))


def test_an_embedded_pair_that_is_none_is_refused_as_the_recipe_is_read() -> None:
    assert set(embedded.PAIRS) == set(get_args(EmbeddedPair))
    for path, key in (("demo", "corpus.train"), ("lm-demo", "corpus.valid")):
        with raises_error(Error.WRONG_SETTING):
            recipes.load(ROOT / f"recipes/{path}.yaml", [f"{key}.pair=xx-yy"])


@pytest.mark.system
def test_check_is_quick_because_it_imports_little() -> None:
    heavy = {"torch._dynamo", "tensorflow", "matplotlib", "spacy", "jieba", "transformers"}
    code = (
        "import sys, dragoman.cli.main; from dragoman.tasks import recipes; "
        "recipes.check(recipes.load('recipes/multi30k-en-de.yaml')); "
        f"sys.exit(', '.join({heavy} & sys.modules.keys()) or 0)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("task", ["[a]", "{a: b}", "3", "sorting"])
def test_a_task_that_is_none_gets_one_clear_line(tmp_path: Path, task: str) -> None:
    (tmp_path / "odd.yaml").write_text(f"task: {task}\n", encoding="utf-8")
    with raises_error(Error.UNKNOWN_NAME, "odd.yaml"):
        recipes.load(tmp_path / "odd.yaml")


@pytest.mark.parametrize(
    ("sources", "names", "expected"),
    [
        (["a/test.de", "b/test.de", "c.de"], [], ["a/test.de", "b/test.de", "c.de"]),
        (["a/test.de", "b/dev.de"], [], ["test.de", "dev.de"]),
        (["a/test.de", "b/test.de"], ["x", "y"], ["x", "y"]),
        (["a/test.de", "b/dev.de"], ["x", "x"], "`name` x twice"),
        (["a/test.de", "a/test.de"], [], "`src` a/test.de twice: give each set a `name`"),
        (["a/test.de", "a/test.de"], ["x", "y"], ["x", "y"]),
    ],
)
def test_no_set_is_lost_because_two_have_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: list[str], names: list[str], expected: list[str] | str
) -> None:
    recipe = recipes.load(ROOT / "recipes/multi30k-en-de.yaml")
    (tmp_path / "config.yaml").write_text(config.to_yaml(recipe), encoding="utf-8")
    monkeypatch.setattr(TranslationJob, "evaluate", lambda self, files, *_, **__: files)
    paths = [Path(source) for source in sources]
    if isinstance(expected, str):
        with raises_error(Error.CONFLICT):
            recipes.evaluate(tmp_path, sources=paths, references=[], names=names)
    else:
        found = recipes.evaluate(tmp_path, sources=paths, references=[], names=names)
        assert found == {name: (path, None) for name, path in zip(expected, paths, strict=True)}


def test_the_demo_needs_no_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    started = []
    monkeypatch.setattr(recipes, "run", lambda recipe, **_: started.append(recipe) or SimpleNamespace(tests={}))
    with raises_error(Error.INTERRUPTED):
        demo.run_demo(None, ["seed=3"])
    assert started == [recipes.load(ROOT / "recipes/demo.yaml", ["seed=3"])]
    assert recipes.file_of("recipes/demo.yaml") == recipes.file_of("demo") == demo.RECIPE


README = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/tour.md"))
SHOWN = re.findall(r"^(?:.*\| )?dragoman .*", README, flags=re.MULTILINE)


def settings_of(line: str) -> dict[str, Any]:
    """What a command line that is shown gives to its command, as the command line parses it; nothing is run."""
    words = shlex.split(line, comments=True)
    arguments = itertools.takewhile(lambda word: word not in ("|", "<", ">"), words[words.index("dragoman") + 1 :])
    command: Any = load(next(arguments))
    while hasattr(command, "commands"):
        name = next(arguments, None)
        if name is None:  # a group alone, as `dragoman learn`
            break
        if name.isdigit():  # `learn 3` is `learn open 3`
            name, arguments = "open", itertools.chain([name], arguments)
        command = command.commands[name]
    return dict(command.make_context(command.name, list(arguments)).params)


@pytest.mark.parametrize("line", SHOWN)
def test_a_command_line_of_the_readme_can_be_given(line: str) -> None:
    """Options and arguments are known, and so are the keys of changes: to the recipe that is named, or else to any."""
    settings = settings_of(line)
    recipe = ROOT / str(settings.get("recipe"))
    changes = settings.get("overrides") or [item for item in settings.get("files") or () if "=" in item]
    recipes.load(recipe if recipe.is_file() else ROOT / "recipes/demo.yaml", changes)


def test_that_test_sees_what_is_renamed() -> None:
    for line, complaint in (
        ("echo a | dragoman predict runs/mine --probability > out  # an option", "--probability"),
        ("dragoman inspect mask a b -o out.svg", "mask"),
        ("dragoman train recipes/demo.yaml training.max_step=3", "`training.max_step`"),
        ("dragoman translate runs/mine decoding.sampling.sample=3 < in", "`decoding.sampling.sample`"),
    ):
        with pytest.raises(Exception, match=complaint):
            test_a_command_line_of_the_readme_can_be_given(line)


def test_what_the_readme_names_is_there() -> None:
    assert len(SHOWN) > 30
    shown = re.findall(r"recipes/[\w-]+\.yaml", README)
    assert shown
    for name in shown:
        assert (ROOT / name).is_file(), name
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make (\w[\w-]*)", README, flags=re.MULTILINE)
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_references_go_with_their_sources() -> None:
    a, b, one, two, three, four = map(Path, ("a", "b", "1", "2", "3", "4"))
    assert recipes.references_of([a, b], [one, two, three, four]) == [[one, two], [three, four]]
    assert recipes.references_of([a], []) == [[]]
    for sources in ([], [a, b]):
        with raises_error(Error.UNEQUAL_COUNTS):
            recipes.references_of(sources, [one])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nobody_goes_on_with_half_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """A training that stops and saves takes the signal: whoever uses the model has to hear of it, once."""
    data = settings(tmp_path, "demo", *FIRST)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(config.to_yaml(recipes.parsed(config.override(data, ["training.log_every=1"]), "tiny")))
    monkeypatch.setattr(demo, "RECIPE", recipe)
    event = RunLog.event

    def stopping(log: RunLog, kind: str, **fields: Any) -> None:
        event(log, kind, **fields)
        if kind == "train" and fields["step"] == 2:
            signal.raise_signal(number)

    with monkeypatch.context() as stopped:
        stopped.setattr(RunLog, "event", stopping)
        with raises_error(Error.INTERRUPTED, "step 2"):
            serve._demo_run()
    run = serve._demo_run()
    assert checkpoint.step_of(checkpoint.list_checkpoints(run)[-1]) == 3
    monkeypatch.setattr(recipes, "run", None)
    assert serve._demo_run() == run
