"""The work of `dragoman import`: a model of another program written as a run directory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman import config
from dragoman.errors import DragomanError, writing
from dragoman.importing import ctranslate2
from dragoman.models.transformer import Transformer
from dragoman.runs import checkpoint
from dragoman.runs.directory import CONFIG, TOKENIZER
from dragoman.runs.log import RunLog
from dragoman.tasks import recipes
from dragoman.tasks.translation.job import TranslationRecipe
from dragoman.text.corpus import CorpusConfig
from dragoman.text.sources.files import FilesSource
from dragoman.text.tokenizers.pair import SeparateConfig, TokenizerPair, save_tokenizers

STEP = 0
"""Of the one checkpoint: nothing was trained here."""


def import_model(folder: Path, run: Path, src_lang: str, tgt_lang: str) -> Path:
    """Write the model of a folder of CTranslate2 as the new run directory `run`, and return it.

    It can do what a run can but train on: begin another run with it (`--init-from`).

    Raises DragomanError where `run` is there, or with the reasons why the model cannot be represented exactly.
    """
    if run.exists():
        raise DragomanError(f"{run}: is there already; name a new run directory")
    if not (folder / "model.bin").is_file():
        raise DragomanError(f"{folder}: no model that can be imported: a folder of CTranslate2 has a model.bin")
    imported = ctranslate2.load(folder)
    recipe = _recipe(imported.settings, imported.model, imported.tokenizers, (src_lang, tgt_lang), run)
    weights = checkpoint.weights(imported.model)
    with writing(run):
        run.mkdir(parents=True)
        (run / CONFIG).write_text(config.to_yaml(recipe), encoding="utf-8")
        save_tokenizers(imported.tokenizers, run / TOKENIZER)
        with RunLog(run, tensorboard=False) as log:
            log.event("imported", of=str(folder))
        checkpoint.save(run, STEP, {"model": weights}, {"step": STEP, "imported": str(folder)})
    recipes.of_run(run)  # it reads as any other
    return run


def _recipe(
    settings: Any, model: Transformer, tokenizers: TokenizerPair, languages: tuple[str, str], run: Path
) -> TranslationRecipe:
    """The recipe as far as it is known; of the text that the model was trained on there is only a name."""
    src, tgt = (config.to_dict(one.config) for one in (tokenizers.src, tokenizers.tgt))
    tokenizer = src if tokenizers.shared else config.to_dict(config.parse(SeparateConfig, {"src": src, "tgt": tgt}, ""))
    text = FilesSource(src=f"imported.{languages[0]}", tgt=f"imported.{languages[1]}")
    corpus = CorpusConfig(src_lang=languages[0], tgt_lang=languages[1], train=text, valid=text)
    if model.max_target_length is not None:
        corpus = replace(corpus, max_tokens=min(corpus.max_tokens, model.max_target_length - 1))
    data = {
        "run_dir": str(run),
        "corpus": config.to_dict(corpus),
        "tokenizer": tokenizer,
        "model": config.to_dict(settings),
    }
    return config.parse(TranslationRecipe, data, "the imported run")
