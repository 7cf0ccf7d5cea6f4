"""Installations as strangers have them: public reports of other packages, rebuilt as small inputs."""

import importlib.util
import io
import os
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tests.errors import raises_error

from dragoman import version
from dragoman.cli import about
from dragoman.cli import main as cli
from dragoman.errors import Error, not_installed

ROOT = Path(__file__).parents[2]


def run(*arguments: str, first: Path | None = None, **variables: str) -> "subprocess.CompletedProcess[str]":
    """`dragoman ...` in a process of its own, with a folder before all others on Python's path."""
    paths = [str(first) if first else "", str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **variables}
    command = [sys.executable, "-m", "dragoman", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)


def broken(folder: Path, package: str, error: str) -> Path:
    """A folder with a package that raises an error when it is imported."""
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text(f"raise {error}\n", encoding="utf-8")
    return folder


def test_the_wheel_takes_each_data_file() -> None:
    """mergekit 216, serpent-tools 271, mne 936: a file that is used and that the build does not know."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "package-data"
    ]
    package = ROOT / "src" / "dragoman"
    homes = {package.parent.joinpath(*name.split(".")): globs for name, globs in patterns.items()}
    for path in package.rglob("*"):
        if path.is_dir() or path.suffix in (".py", ".pyc"):
            continue
        taken = (
            fnmatch(path.relative_to(home).as_posix(), glob)
            for home in homes.keys() & {*path.parents}
            for glob in homes[home]
        )
        assert any(taken), path
    for code in package.rglob("*.py"):
        assert (code.parent / "__init__.py").is_file(), code  # else setuptools takes it for no package


def test_the_source_archive_is_the_repository() -> None:
    """sentencepiece 386 and 835, StringZilla 186: an archive of which nothing can be built, tested or followed."""
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()]
    folders = {name for kind, *names in lines for name in names if kind == "graft"} | {"src"}
    files = {name for kind, *names in lines for name in names if kind == "include"}
    files |= {"README.md", "pyproject.toml", "setup.py", "MANIFEST.in"}  # setuptools takes these itself
    try:
        command = ["git", "-C", str(ROOT), "ls-files"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no git, or no checkout of this user")
    tops = {name.partition("/")[0] for name in listed}
    assert tops - folders - files == set()


@pytest.mark.parametrize("is_checkout", [True, False])
def test_a_package_inside_of_another_repository_is_not_that_repository(tmp_path: Path, is_checkout: bool) -> None:
    """nethogs 279, uftrace 1361, collectd 958: the commit, and here the recipes, of somebody else's project."""
    package = tmp_path / ("src" if is_checkout else "vendor") / "dragoman"
    package.mkdir(parents=True)
    (tmp_path / "setup.py").touch()
    (tmp_path / ".git").mkdir()
    if not is_checkout:
        (package / "recipes").mkdir()  # as setup.py has it
    copy = package / "version.py"
    copy.write_bytes(Path(version.__file__).read_bytes())
    spec = importlib.util.spec_from_file_location("copy_of_version", copy)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.folder_of("recipes") == (tmp_path if is_checkout else package) / "recipes"
    if not is_checkout:
        assert module.commit() is None


def test_the_version_is_told_of_a_broken_installation(tmp_path: Path) -> None:
    """transformers 32878, 43576 and 12509: the command for reports of bugs fails with what is to be reported."""
    folder = broken(tmp_path, "torch", "OSError('libcudart.so.12: cannot open shared object file')")
    (tmp_path / "pypdf-1.dist-info").mkdir()
    (tmp_path / "pypdf-1.dist-info" / "METADATA").write_bytes(b"Name: pypdf\nVersion: 1\nSummary: \xff\n")
    done = run("--version", "--verbose", first=folder)
    assert done.returncode == 0, done.stderr
    assert "torch: OSError: libcudart.so.12: cannot open shared object file" in done.stdout.splitlines()
    assert "extra pdf: without pypdf (pip install 'dragoman[pdf]')" in done.stdout.splitlines()
    assert f"recipes: {version.folder_of('recipes')}" in done.stdout.splitlines()


def test_the_version_is_told_where_nothing_was_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers 13270: the code runs from a folder on Python's path, and no package of its name is there."""

    def requires(name: str) -> list[str]:
        raise about.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(about.metadata, "requires", requires)
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    lines = list(about.lines())
    assert any(line.startswith("extras: PackageNotFoundError") for line in lines)
    assert "C compiler: no no-such-compiler: kernels in C are not used" in lines


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError("libgomp.so.1: cannot open"), "dragoman: libgomp.so.1: cannot open: install Dragoman again"),
        (
            ImportError("no symbol", name="rapidfuzz"),
            "dragoman: rapidfuzz does not load (no symbol): install Dragoman",
        ),
        (ModuleNotFoundError("No", name="rapidfuzz"), "dragoman: rapidfuzz is not installed: install Dragoman again"),
    ],
    ids=["system", "broken", "missing"],
)
def test_a_library_that_does_not_load_is_told_in_a_line(
    error: Exception, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """sockeye 102, pymc2 90, piwheels 117: a traceback, or a wrong reason."""

    def app(**options: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(sys, "argv", ["dragoman", "doctor"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith(line)


def test_an_import_of_ours_that_fails_is_no_mistake_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def app(**options: object) -> None:
        raise ImportError("cannot import name 'gone' from 'dragoman.errors'", name="dragoman.errors")

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(ImportError):
        cli.main()


def test_an_optional_package_that_is_broken_is_not_called_missing() -> None:
    """espnet 2374, inductiva 770: `pip install` of what is there already changes nothing."""
    try:
        raise ImportError("libfaiss.so: undefined symbol: omp_get\n_thread")
    except ImportError:
        error = not_installed("a datastore needs faiss", "knn")
    with raises_error(Error.NOT_INSTALLED, "libfaiss.so", "pip uninstall"):
        raise error
    try:
        raise ModuleNotFoundError("No module named 'faiss'")
    except ImportError:
        assert "pip install 'dragoman[knn]'" in str(not_installed("a datastore needs faiss", "knn"))


def test_the_help_is_printed_where_letters_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """rich 368, mempalace 47, faceswap 713: a bullet or an umlaut ends a command in a locale of ASCII."""
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii", errors="surrogateescape", write_through=True) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        monkeypatch.setattr(sys, "argv", ["dragoman", "--help"])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 0
        assert b"translate" in raw.getvalue()


def test_the_completion_of_a_module_is_that_of_the_command() -> None:
    """shtab 55, argcomplete 532: a script for `python -m dragoman`, which is an error at each start of the shell."""
    done = run("--show-completion", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="")
    if done.returncode:
        pytest.skip(f"no shell: {done.stderr}")
    assert "_DRAGOMAN_COMPLETE=complete_" in done.stdout
    assert "python" not in done.stdout
