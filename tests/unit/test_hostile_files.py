"""Run directories and corpora from strangers: refused in one line, nothing executed, little memory taken."""

import gzip
import json
import os
import pickle
import resource
import shutil
import struct
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.config import parse
from dragoman.data.store import IdCorpus
from dragoman.errors import DragomanError
from dragoman.inference.classifier import read_labels
from dragoman.inference.search_translator import SearchTranslator
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import read_yaml
from dragoman.tasks import recipes
from dragoman.tasks.recipes import TranslationRecipe
from dragoman.text.lines import read_lines
from dragoman.text.vectors import read_vectors

CANARY = "dragoman-canary"
LIMIT = 2**30


class Payload:
    """Pickled, it makes a file as soon as it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory as training leaves it."""
    folder = tmp_path_factory.mktemp("honest")
    for lang, text in (("de", "eins zwei\ndrei vier\n"), ("en", "one two\nthree four\n")):
        (folder / f"c.{lang}").write_text(text, encoding="utf-8")
    files = {"type": "files", "src": str(folder / "c.de"), "tgt": str(folder / "c.en")}
    data = {
        "run_dir": str(folder / "run"),
        "device": "cpu",
        "corpus": {"src_lang": "de", "tgt_lang": "en", "train": files, "valid": files},
        "tokenizer": {"type": "sentencepiece", "vocab_size": 40},
        "model": {"type": "transformer", "d_model": 8, "num_heads": 2, "d_ff": 8},
        "training": {"max_steps": 1, "schedule": {"type": "linear", "lr": 0.01, "warmup_steps": 0}},
    }
    recipes.run(parse(TranslationRecipe, data))
    SearchTranslator.load(folder / "run").translate(["eins"])
    return folder / "run"


def edited(**changes: Any) -> Callable[[Path], None]:
    """config.yaml with some settings of the model changed."""

    def harm(run: Path) -> None:
        text = (run / "config.yaml").read_text(encoding="utf-8")
        for key, value in changes.items():
            lines = [f"  {key}: {value}" if line.startswith(f"  {key}:") else line for line in text.splitlines()]
            text = "\n".join(lines) + "\n"
        (run / "config.yaml").write_text(text, encoding="utf-8")

    return harm


def config(text: str | bytes) -> Callable[[Path], None]:
    def harm(run: Path) -> None:
        data = text.replace("CANARY", str(run / CANARY)) if isinstance(text, str) else text
        (run / "config.yaml").write_bytes(data.encode() if isinstance(data, str) else data)

    return harm


def weights(make: Callable[[Path], bytes]) -> Callable[[Path], None]:
    """The weights replaced by other bytes, with a manifest that vouches for them."""

    def harm(run: Path) -> None:
        (folder,) = (run / "checkpoints").iterdir()
        for name in ("averaged", "model"):
            (folder / f"{name}.safetensors").write_bytes(make(run))
        vouch(folder)

    return harm


def vouch(folder: Path) -> None:
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    for name in manifest["files"]:
        data = (folder / name).read_bytes()
        manifest["files"][name] = {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))


def safetensors(header: str, length: int | None = None, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header.encode() + data


def in_checkpoint(change: Callable[[Path], None]) -> Callable[[Path], None]:
    def harm(run: Path) -> None:
        (folder,) = (run / "checkpoints").iterdir()
        change(folder)

    return harm


def in_manifest(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        manifest = json.loads((folder / "MANIFEST.json").read_text())
        manifest["files"][name] = manifest["files"]["state.json"]
        (folder / "MANIFEST.json").write_text(json.dumps(manifest))

    return in_checkpoint(change)


def linked(folder: Path) -> None:
    (folder / "state.json").rename(folder.parent.parent / "elsewhere.json")
    (folder / "state.json").symlink_to(folder.parent.parent / "elsewhere.json")


def endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def tokenizer(name: str, data: bytes) -> Callable[[Path], None]:
    def harm(run: Path) -> None:
        path = run / "tokenizer" / name
        assert path.exists()
        path.write_bytes(data)

    return harm


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(10)
)
HUGE = '{"w": {"dtype": "F32", "shape": [1000000000000], "data_offsets": [0, 4000000000000]}}'

RUNS: dict[str, Callable[[Path], None]] = {
    "yaml that calls": config("a: !!python/object/apply:os.mkdir [CANARY]\n"),
    "yaml that names a function": config("a: !!python/name:os.system\n"),
    "yaml that makes an object": config("a: !!python/object/new:os.mkdir [CANARY]\n"),
    "a bomb of aliases": config(BOMB),
    "a list inside of itself": config("a: &a [*a]\n"),
    "yaml of 100,000 levels": config("[" * 100_000),
    "two megabytes of yaml": config("a: " + "x" * 2**21),
    "no text at all": config(bytes(range(256))),
    "a task that is code": config("task: __import__('os').mkdir('CANARY')\n"),
    "an unknown setting": edited(d_model="8\n  hook: os.system"),
    "a model that is wider than its file": edited(d_model=60_000, num_heads=1),
    "a model wider than any": edited(d_model=10**12),
    "a model of a thousand layers": edited(num_encoder_layers=1000),
    "a billion layers": edited(num_encoder_layers=10**9),
    "learned positions without end": edited(position="{type: learned, max_len: 16000000}"),
    "weights that are a pickle": weights(lambda run: pickle.dumps(Payload(run / CANARY))),
    "a header of 2^60 bytes": weights(lambda _: safetensors("{}", 2**60)),
    "a tensor of 4 TB": weights(lambda _: safetensors(HUGE)),
    "a header of brackets": weights(lambda _: safetensors("[" * 1_000_000)),
    "tensors that overlap": weights(
        lambda _: safetensors('{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, '
                              '"b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}', data=bytes(12))
    ),
    "tensors of another model": weights(
        lambda _: safetensors('{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}', data=bytes(8))
    ),
    "a manifest that names a file above": in_manifest("../../../../etc/hosts"),
    "a manifest that names a file by its whole path": in_manifest("/etc/hosts"),
    "a state that is a link": in_checkpoint(linked),
    "a manifest that is a link to zeros without end": in_checkpoint(lambda folder: endless(folder / "MANIFEST.json")),
    "a tokenizer that is a link to zeros without end": lambda run: endless(run / "tokenizer/tokenizers.json"),
    "subwords that are a link to zeros without end": lambda run: endless(run / "tokenizer/shared/sentencepiece.model"),
    "settings that are a pipe": lambda run: piped(run / "config.yaml"),
    "a tokenizer of another type": tokenizer("tokenizers.json", b'{"shared": "os.system"}'),
    "a tokenizer's settings of 100,000 levels": tokenizer("shared/config.json", b"[" * 100_000),
    "a tokenizer's settings of 70 megabytes": tokenizer("shared/config.json", b'{"a": "' + b"x" * 70 * 2**20 + b'"}'),
    "a tokenizer that is a pickle": tokenizer("shared/sentencepiece.model", pickle.dumps({"a": 1})),
    "a tokenizer that is cut off": tokenizer("shared/sentencepiece.model", b"\x0a\x0e\x0a\x05<pad"),
}  # fmt: skip


def refused(work: Callable[[], Any], run: Path) -> str:
    """What a refusal says, once it is known to be one line, and nothing was executed and little memory taken."""
    Path("/proc/self/clear_refs").write_text("5")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DragomanError) as caught:
        work()
    taken = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert not (run / CANARY).exists()
    assert taken < LIMIT, f"{taken:,} bytes"
    return str(caught.value)


needs_linux = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is measured on Linux")


@needs_linux
@pytest.mark.parametrize("name", RUNS)
def test_a_run_from_a_stranger_is_refused(name: str, honest: Path, tmp_path: Path) -> None:
    run = shutil.copytree(honest, tmp_path / "run")
    RUNS[name](run)
    said = refused(lambda: SearchTranslator.load(run, device="cpu").translate(["eins"]), run)
    assert str(run) in said, said


@needs_linux
def test_files_from_strangers_are_refused(tmp_path: Path) -> None:
    cases: dict[str, tuple[str, bytes, Callable[[Path], Any]]] = {
        "labels": ("labels.json", b"[" * 100_000, lambda path: read_labels(path.parent)),
        "state": ("state.json", b"[" * 100_000, lambda path: checkpoint.load_state(path.parent)),
        "long state": ("state.json", b'{"a": "' + b"x" * 20 * 2**20, lambda path: checkpoint.load_state(path.parent)),
        "prepared": (
            "meta.json",
            b'{"format": 1, "files": {"src.bin": 1e999, "src_offsets.bin": 1}}',
            lambda path: IdCorpus(path.parent),
        ),
        "vectors": ("vectors.txt", b"999999999999 2\na 1.0 2.0\n", lambda path: read_vectors(path, {"a"})),
        "bomb": ("bomb.gz", gzip.compress(b"x" * 200_000_000, 1), lambda path: list(read_lines(path))),
    }
    for case, (name, data, read) in cases.items():
        folder = tmp_path / case
        folder.mkdir()
        (folder / name).write_bytes(data)
        said = refused(lambda read=read, path=folder / name: read(path), folder)  # type: ignore[misc]
        assert str(folder) in said


def test_stored_ids_that_are_a_pickle_are_made_anew(tmp_path: Path) -> None:
    from dragoman.data.text_corpus import _stored

    np.save(tmp_path / "ids.npy", np.array([Payload(tmp_path / CANARY)], dtype=object), allow_pickle=True)
    (tmp_path / "meta.json").write_text(json.dumps({"made_from": "x", "report": {
        "characters": 1, "tokens": 1, "unknown": 0, "reused": True, "seconds": 0.0}}))  # fmt: skip
    assert _stored(tmp_path, "x") is None
    assert not (tmp_path / CANARY).exists()


def test_the_payload_of_these_tests_works(tmp_path: Path) -> None:
    """A canary that could not die would prove nothing."""
    pickle.loads(pickle.dumps(Payload(tmp_path / CANARY)))  # noqa: S301
    assert (tmp_path / CANARY).exists()


def test_a_run_directory_of_the_tests_is_honest(honest: Path) -> None:
    checkpoint.verify(checkpoint.select(honest))
    assert read_yaml(honest / "config.yaml")["model"]["d_model"] == 8
