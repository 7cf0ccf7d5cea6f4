"""The work of `dragoman import`: a model of another program written as a run directory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman import config
from dragoman.alignment.learnt_memory import copy_links
from dragoman.errors import Error, writing
from dragoman.export import origin
from dragoman.export import peft as peft_format
from dragoman.importing import ctranslate2, eole, fairseq, huggingface, marian
from dragoman.importing.base import Imported, converter_for
from dragoman.importing.peft import import_adapter
from dragoman.runs import checkpoint
from dragoman.runs.directory import TOKENIZER
from dragoman.runs.new_run import write_run
from dragoman.tasks import recipes
from dragoman.tasks.translation.job import TranslationRecipe
from dragoman.text.corpus import CorpusConfig
from dragoman.text.sources.files import FilesSource
from dragoman.text.tokenizers.pair import save_tokenizers, tokenizer_settings


def import_model(
    folder: Path,
    run: Path,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    spm: Sequence[Path] = (),
    base: Path | None = None,
) -> Path:
    """Write the model of a folder of another program as the new run directory `run`; return it.

    It can do what a run can but train on: begin another run with it (`--init-from`). Languages may be left out for what
    `dragoman export` wrote. `spm`: the SentencePiece model of a folder of another than Hugging Face, or one
    for each side. `base`: the run that an adapter in PEFT's format corrects; the new run needs it.

    Raises DragomanError where `run` is there, or with the reasons why the model cannot be represented exactly.
    """
    if run.exists():
        raise Error.ALREADY_THERE("is there already", "name a new run directory", file=run)
    if not folder.is_dir():
        if folder.suffix in (".pt", ".npz") and folder.is_file():
            raise Error.CANNOT_IMPORT(
                "a file, where a folder is read", converter_for(folder.parent, folder), file=folder
            )
        raise Error.MISSING_FILE("no such folder", file=folder)
    if (folder / peft_format.CONFIG).is_file():
        if base is None:
            raise Error.MISSING_OPTION("an adapter of PEFT's", "name the run that it corrects as `base`", file=folder)
        return import_adapter(folder, run, base)
    if base is not None:
        raise Error.CONFLICT(f"`base` goes with an adapter, which has an {peft_format.CONFIG}", file=folder)
    door = _door(folder)
    if spm and (door is huggingface or len(spm) > 2):
        raise Error.CONFLICT("`spm`: once or for each side; not with Hugging Face, whose folders have their own")
    if door is huggingface:
        imported = huggingface.load(folder, src_lang, tgt_lang)
    else:
        imported = door.load(folder, src_lang, tgt_lang, spm)
    recipe = _recipe(imported, run)
    weights = checkpoint.weights(imported.model)
    with writing(run):
        write_run(run, recipe, weights, "imported", str(folder))
        save_tokenizers(imported.tokenizers, run / TOKENIZER)
        copy_links(folder / origin.TOKENIZER, run)
    recipes.of_run(run)  # it reads as any other
    return run


def _door(folder: Path) -> Any:
    """The module that reads a folder. Raises DragomanError if no module does."""
    if (folder / "model.bin").is_file():
        return ctranslate2
    if fairseq.is_fairseq(folder):
        return fairseq
    if eole.is_eole(folder):
        return eole
    if (folder / "config.json").is_file():
        return huggingface
    if marian.is_marian(folder):
        return marian
    raise Error.CANNOT_IMPORT(
        "no model that can be imported: CTranslate2 has a model.bin, Hugging Face a config.json, Marian a model.npz, "
        "eole a vocab.json beside a model.00.safetensors",
        converter_for(folder),
        file=folder,
    )


def _recipe(imported: Imported, run: Path) -> TranslationRecipe:
    """The recipe as far as it is known; of the text that the model was trained on there is only a name."""
    src_lang, tgt_lang = imported.languages
    text = FilesSource(src=f"imported.{src_lang}", tgt=f"imported.{tgt_lang}")
    corpus = config.to_dict(CorpusConfig(src_lang=src_lang, tgt_lang=tgt_lang, train=text, valid=text))
    limits = (imported.max_tokens, imported.model.max_target_length and imported.model.max_target_length - 1)
    longest = min(limit for limit in (*limits, imported.max_tokens or corpus["max_tokens"]) if limit is not None)
    data = {
        "run_dir": str(run),
        "corpus": {**corpus, "normalize": imported.normalize, "max_tokens": longest},
        "tokenizer": tokenizer_settings(imported.tokenizers),
        "model": config.to_dict(imported.settings),
        "decoding": imported.decoding,
    }
    return config.parse(TranslationRecipe, data, "the imported run")
