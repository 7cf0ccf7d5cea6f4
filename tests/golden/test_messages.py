"""The words of errors, an example of each code: the only place where tests look at them.

Everywhere else a test asks for an error's code, file and line (`tests/errors.py`). Where words are meant to change,
record them anew and read the difference:

    DRAGOMAN_RECORD=1 python -m pytest tests/golden/test_messages.py

and commit messages.json. What bad corpora are refused with stands in bad_corpora.json, checked by
`tests/system/test_bad_corpora.py`.
"""

import gzip
import json
import math
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from dragoman.analysis import figure
from dragoman.config import from_yaml, parse
from dragoman.corpora import embedded, multi30k
from dragoman.data import store
from dragoman.decoding.rows import check_finite
from dragoman.device import pick_device
from dragoman.doctor.fix import require_new
from dragoman.errors import DragomanError, Error, not_installed, writing
from dragoman.experiments import model_soup
from dragoman.formats.document import Document
from dragoman.importing.base import refusal
from dragoman.learn.exercise import Wrong
from dragoman.models.families import TransformerConfig
from dragoman.pipeline import confidence
from dragoman.pipeline.bulk import shard_of
from dragoman.quality.external_metrics import any_metric
from dragoman.quality.slices import slices
from dragoman.quality.test_set import TestSet
from dragoman.runs import checkpoint, directory, lock
from dragoman.tasks import settings_reference
from dragoman.text.glossary import Glossary
from dragoman.text.lines import find, lines_in, read_lines, reporting_os_errors
from dragoman.text.sources.files import FilesSource
from dragoman.text.sources.tsv import TsvSource
from dragoman.text.tokenizers.base import Vocabulary
from dragoman.text.tokenizers.hub import HubConfig, HubTokenizer
from dragoman.text.tokenizers.language_tags import LanguageTags
from dragoman.training import distributed, preflight

RECORDED = Path(__file__).with_name("messages.json")


def folder(**files: bytes) -> None:
    """Write the files that the examples are about into the working directory."""
    Path("folder").mkdir()
    Path("run").mkdir()
    for name, content in files.items():
        path = Path(name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


FILES = {
    "a_de": b"eins\nzwei\n",
    "a_en": b"one\n",
    "empty_de": b"",
    "a_tsv": b"eins\n",
    "terms_tsv": b"Haus\thouse\nHaus\thome\n",
    "cut_de_gz": gzip.compress(b"eins\n" * 100)[:-20],
    "dtd_xlf": b'<!DOCTYPE a [<!ENTITY b "c">]>\n<a/>\n',
    "old_docx": bytes.fromhex("D0CF11E0A1B11AE1"),
    "classifier__config_yaml": b"task: classification\n",
    "prepared__meta_json": json.dumps({"format": 0, "files": dict.fromkeys(store.FILES, 0)}).encode(),
    "answers03_py": b"def ():\n",
}  # fmt: skip


def within(block: Any, error: Exception) -> None:
    """Raise an error of the system within a block that tells it."""
    with block:
        raise error


def twice() -> None:
    path = Path("run") / lock.LOCK
    with lock.held(path.with_name(f"{lock.LOCK}.held")):
        lock._own(path)


EXAMPLES: dict[Error, Callable[[], Any]] = {
    Error.MISSING_FILE: lambda: find("not_there.de"),
    Error.ALREADY_THERE: lambda: require_new(Path("prepared")),
    Error.SAME_FILE: lambda: list(FilesSource(src="a.de", tgt="a.de").pairs()),
    Error.WRONG_FILE_TYPE: lambda: list(read_lines("folder")),
    Error.UNKNOWN_FORMAT: lambda: figure.check_suffix(Path("maps.docx")),
    Error.CANNOT_READ: lambda: within(reporting_os_errors(Path("a.de")), OSError(5, "Input/output error")),
    Error.CANNOT_WRITE: lambda: within(writing("a.en"), OSError(28, "No space left on device")),
    Error.DAMAGED: lambda: list(read_lines("cut.de.gz")),
    Error.CHANGED: lambda: multi30k._verify("train.de", gzip.compress(b"eins"), "train.de.gz", "fetch it again"),
    Error.UNSAFE: lambda: list(Document.load(Path("dtd.xlf")).texts()),
    Error.LOCKED: lambda: Document.load(Path("old.docx")),
    Error.TOO_LARGE: lambda: from_yaml(f"a: &a [{'0, ' * 1000}]\nb: [{'*a, ' * 100}]\n", "a.yaml"),
    Error.NOT_UTF8: lambda: list(lines_in(BytesIO(b"eins\ncaf\xe9\n"), "a.de")),
    Error.NOT_TEXT: lambda: list(lines_in(BytesIO(b"eins\nzw\0ei\n"), "a.de")),
    Error.BAD_SYNTAX: lambda: from_yaml("a: [", "recipe.yaml"),
    Error.WRONG_SHAPE: lambda: list(TsvSource(path="a.tsv").pairs()),
    Error.EMPTY: lambda: list(read_lines("empty.de")),
    Error.TOO_FEW: lambda: model_soup.average([Path("run")], Path("mean")),
    Error.UNEQUAL_COUNTS: lambda: list(FilesSource(src="a.de", tgt="a.en").pairs()),
    Error.MISSING_OPTION: lambda: slices(TestSet("a", ["a"], [["b"]]), "rarity", None),
    Error.CONFLICT: lambda: Glossary.load(Path("terms.tsv")),
    Error.WRONG_OPTION: lambda: shard_of("9/8"),
    Error.UNKNOWN_SETTING: lambda: settings_reference.matching("training.max_step"),
    Error.WRONG_SETTING: lambda: parse(TransformerConfig, {"d_model": -1}, "recipe.yaml"),
    Error.OUT_OF_RANGE: lambda: embedded.sentences("de-en", "train", 0),
    Error.UNKNOWN_NAME: lambda: pick_device("tpu"),
    Error.UNSUPPORTED: lambda: HubTokenizer.train(HubConfig(vocab_size=8), iter([])),
    Error.NOT_A_RUN: lambda: directory.check_run_dir("folder"),
    Error.WRONG_TASK: lambda: directory.read_run("classifier", "translation"),
    Error.NO_CHECKPOINT: lambda: checkpoint.select(Path("run"), "200"),
    Error.OTHER_VERSION: lambda: store._read_meta(Path("prepared")),
    Error.IN_USE: twice,
    Error.MISMATCH: lambda: checkpoint.require_equal_shapes(
        {"output.weight": (8, 2)}, {"output.weight": (9, 2)}, "run"
    ),
    Error.NO_SUCH_LANGUAGE: lambda: LanguageTags(tags={"de_DE": "<2de_DE>"}).code("fr"),
    Error.UNKNOWN_TOKEN: lambda: Vocabulary(["Haus"])[9],
    Error.NOT_CALIBRATED: lambda: confidence.load(Path("run"), "step-00000002"),
    Error.CANNOT_IMPORT: lambda: refusal(Path("folder"), ["activation: mish"]),
    Error.SEARCH_FAILED: lambda: check_finite(-math.inf, 0),
    Error.DIVERGED: lambda: check_finite(math.nan, 0),
    Error.WRONG_ANSWER: lambda: Wrong("attention: the mask is left out"),
    Error.NOT_INSTALLED: lambda: not_installed("a datastore needs faiss", "knn"),
    Error.NO_DEVICE: lambda: pick_device("cuda:99"),
    Error.OUT_OF_MEMORY: lambda: preflight._does_not_fit(4096, 1024, "CUDA out of memory"),
    Error.EXTERNAL_FAILED: lambda: any_metric("mine=!false").statistics(TestSet("a", ["a"], [["b"]]), ["c"]),
    Error.PROCESS_FAILED: lambda: distributed._until(lambda: False, -math.inf),
}


def messages() -> dict[str, str]:
    found = {}
    for code, example in EXAMPLES.items():
        try:
            error = example()
        except DragomanError as raised:
            error = raised
        assert isinstance(error, DragomanError)
        assert error.code is code, error
        found[str(code)] = str(error)
    return found


def test_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAGOMAN_DATA", raising=False)
    folder(**FILES)
    found = messages()
    if os.environ.get("DRAGOMAN_RECORD"):
        RECORDED.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(RECORDED.read_text(encoding="utf-8"))
