"""Imports: a core module loads little of the package, and no modules import each other in a circle."""

import ast
import functools
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dragoman

ROOT = Path(dragoman.__file__).parent


def test_a_core_module_loads_few_files_of_the_package() -> None:
    """In one process, one after another: what a module needs is loaded with the ones before it, or by itself."""
    most = {"nn.attention": 6, "models.transformer": 19, "inference.search_translator": 149}
    count = "print(*(name for name in sys.modules if name.split('.')[0] == 'dragoman'))"
    code = "import sys\n" + "".join(f"import dragoman.{module}\n{count}\n" for module in most)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for (module, at_most), line in zip(most.items(), done.stdout.splitlines(), strict=True):
        assert len(line.split()) <= at_most, (module, sorted(line.split()))


def inner_imports(tree: ast.AST) -> set[ast.stmt]:
    """Imports inside of functions, and for type checkers alone."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    imports, rest = set(), [(tree, False)]
    while rest:
        node, is_inside = rest.pop()
        if isinstance(node, ast.Import | ast.ImportFrom) and is_inside:
            imports.add(node)
        is_inside |= isinstance(node, functions) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        )
        # an import is a statement: it stands in no expression
        rest += [(part, is_inside) for part in ast.iter_child_nodes(node) if not isinstance(part, ast.expr)]
    return imports


def names(node: ast.AST) -> list[str]:
    """The names of modules, or of things in them, that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []


@functools.cache
def modules() -> dict[str, ast.Module]:
    """The syntax of each module of the package, by its name."""
    paths = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in ROOT.rglob("*.py")}
    return {name.removesuffix(".__init__"): ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}


@functools.cache
def graph() -> dict[str, set[str]]:
    """The modules of the package, and those that each imports, at once, later in a function, or for type checkers."""
    trees = modules()
    edges: dict[str, set[str]] = {}
    for name, tree in trees.items():
        imported = [target for node in ast.walk(tree) for target in names(node)]
        places = [target if target in trees else target.rpartition(".")[0] for target in imported]
        edges[name] = {place for place in places if place in trees}
    return edges


def test_imports_inside_of_functions_keep_optional_packages_out() -> None:
    inside = {
        (name.removeprefix("dragoman").lstrip("."), target)
        for name, tree in modules().items()
        for node in inner_imports(tree)
        for target in names(node)
    }
    others = {(name, target) for name, target in inside if not f"{target}.".startswith(OPTIONAL)}
    assert others == INSIDE


def test_no_modules_import_each_other_in_a_circle() -> None:
    edges = graph()
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


def test_a_circle_would_be_found() -> None:
    edges = dict(graph())
    assert "dragoman.nn.masks" in edges["dragoman.models.transformer"]
    edges["dragoman.nn.masks"] = {*edges["dragoman.nn.masks"], "dragoman.models.transformer"}
    with pytest.raises(CycleError):
        TopologicalSorter(edges).prepare()


OPTIONAL = tuple(
    f"{name}."
    for name in (
        "argostranslate", "ctranslate2", "faiss", "icu4py", "jieba", "mlflow", "onnx", "opencc", "openpyxl", "peft",
        "pyarrow", "pypdf", "ray", "sacremoses",
        "simplemma", "spacy", "subword_nmt", "tokenizers", "transformers", "wandb",
        "zstandard",
        "dragoman.backends.cpu_training",  # where the processor has the instructions
    )
)  # fmt: skip
"""Packages of the extras of pyproject.toml, and what only some processors have."""

INSIDE: set[tuple[str, str]] = {
    # for type checkers alone: names of the package are loaded when they are used
    ("text.glossary", "dragoman.text.inflection.Inflection"),
    ("", "dragoman.experiments.callbacks.Callback"),
    ("", "dragoman.experiments.evaluate.evaluate"),
    ("", "dragoman.experiments.train.Training"),
    ("", "dragoman.experiments.train.train"),
    ("", "dragoman.inference.classifier.Predictor"),
    ("", "dragoman.inference.generator.Generator"),
    ("", "dragoman.inference.translation.Scored"),
    ("", "dragoman.inference.translation.Translation"),
    ("", "dragoman.pipeline.translator.Translator"),
    ("", "dragoman.text.glossary.Glossary"),
    ("", "dragoman.text.sources.records.Corpus"),
    ("", "dragoman.version.__version__"),
    # it imports matplotlib, for which a recipe with a mistake in it, or a server, should not wait
    ("experiments.train", "dragoman.analysis.report.write_report"),
    ("serve.explainer", "dragoman.analysis.explain.explain"),
    # 0.1 s, which only files, and other engines, should take
    ("cli.translate", "dragoman.pipeline.files.run_on_files"),
    ("pipeline.options", "dragoman.export"),
    # 0.1 s, which only a run that is written should take
    ("runs.loggers", "torch.utils.tensorboard.SummaryWriter"),
    # all that trains, which a server of runs that are there does not need
    ("cli.serve", "dragoman.experiments.demo.RECIPE"),
    ("cli.serve", "dragoman.tasks.recipes"),
    # they import starlette and uvicorn, of the extra `serve`
    ("cli.serve", "dragoman.serve.process.run_server"),
    # of a broken installation too, the version is told: each part says what it cannot load
    ("cli.about", "psutil"),
    ("cli.about", "torch"),
    ("cli.about", "dragoman.backends.c_library.cache_folder"),
    ("cli.about", "dragoman.backends.c_library.compiler_command"),
    ("cli.about", "dragoman.device.cpu_capabilities"),
    ("cli.about", "dragoman.device.machine_name"),
    ("cli.about", "dragoman.device.pick_device"),
    # for files of records alone: what a translation imports stays a short list (the limit above)
    ("text.corpus", "dragoman.text.sources.records.PAIR"),
    ("text.corpus", "dragoman.text.sources.records.columns_of"),
    # it imports PyTorch, which whoever only writes text should not wait for
    ("runs.atomic_io", "safetensors.torch.save_file"),
}
"""The others there are."""


def names_from_dragoman(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name in it or "") of every import of Dragoman in a script, wherever it stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "dragoman")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dragoman":
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("folder", ["benchmarks", "speedrun", "docs/book"])
def test_scripts_import_what_is_there(folder: str) -> None:
    """A function that has moved is missed here, and not when somebody measures again."""
    missing = []
    for path in sorted((ROOT.parents[1] / folder).rglob("*.py")):
        for module, name in names_from_dragoman(path):
            loaded = importlib.import_module(module)
            is_module = hasattr(loaded, "__path__") and importlib.util.find_spec(f"{module}.{name}") is not None
            if name and not hasattr(loaded, name) and not is_module:
                missing.append(f"{path.name}: {module}.{name}")
    assert missing == []
