"""The parts of a translator, read from run directories."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from dragoman import config
from dragoman.decoding.base import DecodingConfig
from dragoman.errors import Error
from dragoman.models.ensemble import Ensemble
from dragoman.models.families import ModelConfig, Seq2SeqModel
from dragoman.nn import lora
from dragoman.runs import adapter, checkpoint
from dragoman.runs.directory import read_run, require_alike
from dragoman.special_tokens import PAD_ID
from dragoman.text.corpus import CorpusConfig
from dragoman.text.tokenizers.pair import TokenizerPair, load_tokenizers


class Loaded(NamedTuple):
    """A model, its tokenizers, and the settings of its corpus."""

    model: Seq2SeqModel
    tokenizers: TokenizerPair
    corpus: CorpusConfig
    max_src_tokens: int


def load_parts(
    run_dir: Path, which: str, ensemble: Sequence[str | Path] = (), base: Seq2SeqModel | None = None
) -> Loaded:
    """The parts of a translation run: checkpoint `best`, `last` or a step; `ensemble`: further runs (their best).

    `base`: the model that the run is an adapter of, whose tensors are shared; None: an adapter is merged into its base.

    Raises DragomanError when a run holds no checkpoint that verifies or the runs do not fit together.
    """
    corpus, tokenizers = corpus_settings(run_dir), load_tokenizers(run_dir / "tokenizer")
    tokenizers = tokenizers.between(corpus.src_lang, corpus.tgt_lang)
    longest = [corpus.max_tokens]
    model = _model(run_dir, which, tokenizers) if base is None else _adapted(base, checkpoint.select(run_dir, which))
    if ensemble:
        others = [Path(other) for other in ensemble]
        for other in others:
            require_alike(run_dir, other)
            longest.append(corpus_settings(other).max_tokens)
        model = Ensemble([model, *(_model(other, "best", tokenizers) for other in others)])
    return Loaded(model, tokenizers, corpus, min(longest))


def corpus_settings(run_dir: Path) -> CorpusConfig:
    recipe = read_run(run_dir, "translation")
    return config.parse(CorpusConfig, recipe.get("corpus", {}), f"{run_dir / 'config.yaml'}: corpus")


@config.settings
class _Search:
    """The settings of a run that can be changed when it is used."""

    decoding: DecodingConfig


def decoding_settings(run_dir: Path, changes: Sequence[str], options: Mapping[str, Any]) -> DecodingConfig:
    """The search settings of a run, changed by text ("decoding.beam_size=8") and by options ({"beam_size": 8}).

    Option `alpha` is set in the run's own length penalty. Raises DragomanError for a change to anything but the
    search, and for what is changed by both.
    """
    changed = config.override({"decoding": read_run(run_dir, "translation").get("decoding", {})}, changes, _Search)
    if not isinstance(changed["decoding"], dict) or len(changed) > 1:
        raise Error.UNKNOWN_SETTING(
            f"{' '.join(changes)}: a run is made; only decoding.SETTING=VALUE can be changed here"
        )
    given = {"decoding.length_penalty" if name == "alpha" else f"decoding.{name}" for name in options}
    for change in changes:
        key = change.partition("=")[0].strip()
        if any(f"{key}.".startswith(f"{name}.") for name in given):
            raise Error.CONFLICT(f"{change}: also set by a command-line option", "use only one of them")
    settings = {**changed["decoding"], **options}
    if "alpha" in options:  # of the length penalty that is set
        penalty = changed["decoding"].get("length_penalty", {})
        kind = {} if penalty.get("type", "none") == "none" else penalty
        settings["length_penalty"] = {"type": "average", **kind, "alpha": settings.pop("alpha")}
    return config.parse(DecodingConfig, settings, "decoding settings")


def build_model(model: Any, tokenizers: TokenizerPair) -> Seq2SeqModel:
    """The model of a recipe's `model:` for these vocabularies, freshly initialised."""
    built: Seq2SeqModel = model.build(
        src_vocab_size=tokenizers.src.vocab_size,
        tgt_vocab_size=tokenizers.tgt.vocab_size,
        shared_vocab=tokenizers.shared,
        pad_id=PAD_ID,
    )
    return built


def model_settings(run_dir: Path) -> Any:
    """The `ModelConfig` of a run."""
    recipe = read_run(run_dir, "translation")
    union = cast(Any, ModelConfig)  # which mypy does not take for a type
    return config.parse(union, recipe.get("model", {}), f"{run_dir / 'config.yaml'}: model")


def _model(run_dir: Path, which: str, tokenizers: TokenizerPair) -> Seq2SeqModel:
    """The model of a run with the weights of a checkpoint."""
    settings = model_settings(run_dir)
    return checkpoint.restored(checkpoint.select(run_dir, which), lambda: build_model(settings, tokenizers))


def base_model(run_dir: Path, which: str = "best") -> Seq2SeqModel | None:
    """The model that an adapter belongs to; None for a run that is no adapter."""
    path = checkpoint.select(run_dir, which)
    if checkpoint.adapter_of(path) is None:
        return None
    corpus, tokenizers = corpus_settings(run_dir), load_tokenizers(run_dir / "tokenizer")
    tokenizers, settings = tokenizers.between(corpus.src_lang, corpus.tgt_lang), model_settings(run_dir)
    return checkpoint.restored(checkpoint.base_of(path), lambda: build_model(settings, tokenizers)).eval()


def _adapted(base: Seq2SeqModel, path: Path) -> Seq2SeqModel:
    """A model with the corrections of a checkpoint beside the layers of `base`, of its type and on its device."""
    corrects, factors = checkpoint.adapter_of(path), checkpoint.load_own_weights(path)
    model = lora.sharing(base)
    for name in adapter.layers(factors, checkpoint.shapes(base), str(path)):
        lora.add_lora(model, [name], factors[name + adapter.A].size(0), (corrects or {})["scale"])
        layer = cast(lora.LoRALinear, model.get_submodule(name))
        layer.to(layer.base_layer.weight)
    lora.load_factors(model, factors)
    return cast(Seq2SeqModel, model.eval())
