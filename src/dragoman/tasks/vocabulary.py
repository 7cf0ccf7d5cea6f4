"""The vocabulary of a run: its expected size, its tokenizers, and whether a model has room for its sentences."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dragoman.errors import Error, writing
from dragoman.models.blocks import LearnedConfig
from dragoman.progress import say
from dragoman.runs import atomic_io, checkpoint
from dragoman.text.tokenizers.from_files import FromFiles
from dragoman.text.tokenizers.pair import (
    ReuseConfig,
    TokenizerPair,
    check_tokenizers,
    load_tokenizers,
    save_tokenizers,
    singles_of,
    source_files,
    train_tokenizers,
)

Texts = Callable[[], Iterator[str]]


def expected_vocabulary(tokenizer: Any) -> int:
    """The size that a tokenizer's settings ask for; a vocabulary without a limit counts as 1,000."""
    tokenizer = getattr(tokenizer, "inner", tokenizer)
    size = tokenizer.check() if isinstance(tokenizer, FromFiles) else getattr(tokenizer, "vocab_size", None)
    return int(size or 1000)


def checked_tokenizer(tokenizer: Any, run_dir: str | Path, spelling: Callable[[str], str]) -> Any:
    """The settings of a tokenizer that fits; those of the run itself once it has checkpoints: it needs no other file.

    Raises DragomanError as `check_tokenizers`."""
    if any(isinstance(one, FromFiles) for one in singles_of(tokenizer)) and checkpoint.list_checkpoints(Path(run_dir)):
        return ReuseConfig(run=str(run_dir))
    check_tokenizers(tokenizer, spelling)
    return tokenizer


def check_positions(model: Any, max_tokens: int) -> None:
    """Raises DragomanError where learned positions end before the longest sentence does, its <s> or </s> included."""
    position = getattr(model, "position", None)
    if isinstance(position, LearnedConfig) and max_tokens + 1 > position.max_len:
        raise Error.WRONG_SETTING(
            f"corpus.max_tokens ({max_tokens}), and one more for <s> or </s>, is more than model.position.max_len "
            f"({position.max_len})",
            "raise that, or lower corpus.max_tokens",
        )


def kept_tokenizers(
    directory: Path, made_from: list[Any], tokenizer: Any, src: Texts, tgt: Texts = lambda: iter(())
) -> TokenizerPair:
    """Those in a run's `directory` if they were `made_from` the same text and settings; otherwise learnt now: by the
    settings `tokenizer`, from what `src` and `tgt` read.

    Where the run has checkpoints they are never learnt again: the weights mean nothing with other tokens, and
    `init_run_dir` has seen that text and settings are the same.
    """
    if files := source_files(tokenizer) if not checkpoint.list_checkpoints(directory.parent) else []:
        made_from = [*made_from, [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]]
    identity = hashlib.sha256(json.dumps(made_from).encode()).hexdigest()
    marker = directory / "made-from.txt"
    learnt_so = marker.is_file() and marker.read_text(encoding="utf-8").strip() == identity
    if learnt_so or checkpoint.list_checkpoints(directory.parent):
        return load_tokenizers(directory)
    if any(not isinstance(one, FromFiles) for one in singles_of(tokenizer)):
        say("learning the tokenizer")
    tokenizers = train_tokenizers(tokenizer, src, tgt)
    with writing(directory):
        marker.unlink(missing_ok=True)  # until the new ones are all there, nothing says what these are made from
        atomic_io.remove(directory)  # of other types there may be other files
        save_tokenizers(tokenizers, directory)
        atomic_io.write_text(marker, identity + "\n")
    return tokenizers
