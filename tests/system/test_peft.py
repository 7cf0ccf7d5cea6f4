"""Adapters in PEFT's format: what is written is loaded by PEFT itself, what PEFT wrote becomes a run, and the rest is
refused by its name."""

import itertools
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file, save_file

peft = pytest.importorskip("peft")

from tests.errors import raises_error  # noqa: E402
from tests.system.test_export_huggingface import SMALL, logits_of  # noqa: E402

from dragoman.config import parse, to_dict  # noqa: E402
from dragoman.errors import Error  # noqa: E402
from dragoman.export import export, huggingface  # noqa: E402
from dragoman.export import peft as peft_format  # noqa: E402
from dragoman.importing.import_run import import_model  # noqa: E402
from dragoman.inference.loading import base_model, build_model, model_settings  # noqa: E402
from dragoman.inference.search_translator import SearchTranslator  # noqa: E402
from dragoman.runs import checkpoint  # noqa: E402
from dragoman.runs.new_run import write_run  # noqa: E402
from dragoman.tasks import recipes  # noqa: E402
from dragoman.tasks.adapter import LoraConfig, add_adapter, facts  # noqa: E402
from dragoman.text.corpus import DemoSource  # noqa: E402
from dragoman.text.tokenizers.pair import load_tokenizers, save_tokenizers, train_tokenizers  # noqa: E402

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]

VARIANTS: dict[str, dict[str, Any]] = {
    "pegasus, reordered": {},
    "marian": {"norm_placement": "post", "position": {"type": "sinusoidal", "layout": "half_split"}},
    "bart": {"embedding_norm": True, "norm_placement": "post", "position": {"type": "learned", "max_len": 48}},
}


def random_run(folder: Path, variant: dict[str, Any]) -> Path:
    """A run with random weights, none of which is at the value that it would have by default."""
    pairs = list(itertools.islice(DemoSource(split="train").pairs(), 300))
    files = {"type": "files", "src": "imported.de", "tgt": "imported.en"}
    recipe = parse(recipes.TranslationRecipe, {
        "run_dir": str(folder), "corpus": {"src_lang": "de", "tgt_lang": "en", "train": files, "valid": files},
        "tokenizer": {"type": "sentencepiece", "vocab_size": 200}, "model": {"type": "transformer", **SMALL, **variant},
        "decoding": {"beam_size": 2},
    })  # fmt: skip
    tokenizers = train_tokenizers(
        recipe.tokenizer, lambda: iter(pair.src for pair in pairs), lambda: iter(pair.tgt for pair in pairs)
    )
    torch.manual_seed(1)
    weights = checkpoint.weights(build_model(recipe.model, tokenizers))
    write_run(
        folder, recipe, {name: one + 0.1 * torch.randn_like(one) for name, one in weights.items()}, "imported", "random"
    )
    save_tokenizers(tokenizers, folder / "tokenizer")
    return folder


def random_adapter(base: Path, run: Path, **settings: Any) -> Path:
    """A run that is an adapter of `base`, at random."""
    wanted = LoraConfig(**{"r": 3, **settings})
    model = build_model(model_settings(base), load_tokenizers(base / "tokenizer"))
    add_adapter(model, wanted)
    torch.manual_seed(2)
    factors = {name: 0.3 * torch.randn_like(tensor) for name, tensor in model.named_parameters()}
    recipe = replace(cast(Any, recipes.of_run(base)), run_dir=str(run), init_from=str(base), adapter=wanted)
    write_run(run, recipe, factors, "imported", "random", state=facts(wanted, checkpoint.select(base)))
    shutil.copytree(base / "tokenizer", run / "tokenizer")
    return run


@pytest.fixture(scope="module", params=VARIANTS)
def base(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("base") / "run", VARIANTS[request.param])


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_run(tmp_path_factory.mktemp("marian") / "run", VARIANTS["marian"])


def theirs_of(base: Path, folder: Path) -> Any:
    """The base as a model of Hugging Face."""
    translator = SearchTranslator.load(base, device="cpu")
    folder.mkdir(exist_ok=True)
    huggingface.write(translator, folder)
    return huggingface.load(folder, translator).model


@pytest.mark.parametrize(
    "targets", ["all-linear", ["query_proj", "value_proj"], ["decoder_layers.0.feed_forward.contract"]]
)
def test_peft_computes_what_our_adapter_does(base: Path, targets: Any, tmp_path: Path) -> None:
    run = random_adapter(base, tmp_path / "run", target_modules=targets, lora_alpha=5.0)
    export(run, "peft", tmp_path / "peft", sentences=3)  # which has PEFT translate, too
    model = peft.PeftModel.from_pretrained(theirs_of(base, tmp_path / "base"), str(tmp_path / "peft")).eval()
    ours, theirs = logits_of(SearchTranslator.load(run, device="cpu"), model)
    torch.testing.assert_close(theirs, ours, atol=2e-4, rtol=1e-4)
    plain, _ = logits_of(SearchTranslator.load(base, device="cpu"), model)
    assert (plain - ours).abs().max() > 0.01
    back = import_model(tmp_path / "peft", tmp_path / "back", base=base)
    ours, theirs = (checkpoint.load_group(checkpoint.select(one), "model") for one in (run, back))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert to_dict(recipes.of_run(back).adapter) == to_dict(recipes.of_run(run).adapter) or targets == "all-linear"


SETTINGS: list[dict[str, Any]] = [
    {"target_modules": ["q_proj", "fc2"]},
    {"target_modules": r".*decoder.*\.fc1"},
    {"target_modules": "all-linear", "exclude_modules": ["lm_head"], "use_rslora": True},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=["ends", "pattern", "all"])
@pytest.mark.parametrize("name", ["default", "other"])
def test_an_adapter_of_peft_becomes_a_run(base: Path, settings: dict[str, Any], name: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    config = peft.LoraConfig(task_type="SEQ_2_SEQ_LM", r=2, lora_alpha=7, init_lora_weights=False, **settings)
    model = peft.get_peft_model(theirs_of(base, tmp_path / "base"), config, adapter_name=name).eval()
    model.save_pretrained(tmp_path / "peft")
    folder = tmp_path / "peft" / ("" if name == "default" else name)
    run = import_model(folder, tmp_path / "run", base=base)
    ours, theirs = logits_of(SearchTranslator.load(run, device="cpu"), model)
    torch.testing.assert_close(theirs, ours, atol=2e-4, rtol=1e-4)
    shared = SearchTranslator.load(run, device="cpu", base=base_model(run))
    torch.testing.assert_close(logits_of(shared, model)[0], ours, atol=2e-4, rtol=1e-4)


def written(marian: Path, tmp_path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Path:
    """A folder of PEFT's after a change of its config and tensors."""
    run = random_adapter(marian, tmp_path / "source", target_modules=["query_proj"])
    export(run, "peft", tmp_path / "peft", verify=False)
    config = json.loads((tmp_path / "peft" / peft_format.CONFIG).read_text())
    tensors = load_file(tmp_path / "peft" / peft_format.WEIGHTS)
    change(config, tensors)
    (tmp_path / "peft" / peft_format.CONFIG).write_text(json.dumps(config))
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, tmp_path / "peft" / peft_format.WEIGHTS)
    return tmp_path / "peft"


def renamed(tensors: dict[str, Any], change: Callable[[str], str]) -> None:
    for name in list(tensors):
        tensors[change(name)] = tensors.pop(name)


TAKEN: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "a name of the adapter in the keys": lambda config, tensors: renamed(
        tensors, lambda name: name.replace(".weight", ".default.weight")
    ),
    "wrapped twice": lambda config, tensors: renamed(tensors, lambda name: peft_format.PREFIX + name),
    "in bfloat16": lambda config, tensors: tensors.update({name: one.bfloat16() for name, one in tensors.items()}),
    "settings of later versions that are off": lambda config, tensors: config.update(
        use_dora=False, new=None, rank_pattern={}, alora_invocation_tokens=None
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_other_spellings_are_taken(marian: Path, tmp_path: Path, case: str) -> None:
    run = import_model(written(marian, tmp_path, TAKEN[case]), tmp_path / "run", base=marian)
    assert SearchTranslator.load(run, device="cpu").translate(["ich möchte ein bier"])


def first(tensors: dict[str, Any], end: str = "lora_A.weight") -> str:
    return next(name for name in tensors if name.endswith(end))


def _set(tensors: dict[str, Any], name: str, tensor: torch.Tensor) -> None:
    tensors[name] = tensor


def _drop(tensors: dict[str, Any], name: str) -> None:
    del tensors[name]


REFUSED: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], None], Error, str]] = {
    "DoRA": (lambda config, tensors: config.update(use_dora=True), Error.CANNOT_IMPORT, "use_dora"),
    "bias": (lambda config, tensors: config.update(bias="lora_only"), Error.CANNOT_IMPORT, "bias"),
    "modules_to_save": (lambda config, tensors: config.update(modules_to_save=["lm_head"]), Error.CANNOT_IMPORT,
                        "modules_to_save"),
    "ranks by layer": (lambda config, tensors: config.update(rank_pattern={"q_proj": 4}), Error.CANNOT_IMPORT,
                       "rank_pattern"),
    "a base that was changed": (lambda config, tensors: config.update(init_lora_weights="pissa"), Error.CANNOT_IMPORT,
                                "init_lora_weights"),
    "another method": (lambda config, tensors: config.update(peft_type="IA3"), Error.CANNOT_IMPORT, "peft_type"),
    "a rank that is none": (lambda config, tensors: config.update(r=0), Error.CANNOT_IMPORT, "r"),
    "a rank that is not theirs": (lambda config, tensors: config.update(r=2), Error.CANNOT_IMPORT, "r"),
    "a layer that is not there": (lambda config, tensors: config["target_modules"].append("FAKE"), Error.CANNOT_IMPORT,
                                  "FAKE"),
    "tied embeddings": (
        lambda config, tensors: _set(tensors, "base_model.model.lm_head.lora_A.weight", torch.ones(3, 16)),
        Error.CANNOT_IMPORT, "base_model.model.lm_head.lora_A.weight"),
    "another width": (
        lambda config, tensors: tensors.update({name: torch.ones(3, 24) for name in list(tensors) if "lora_A" in name}),
        Error.MISMATCH, "decoder_layers.0.cross_attention.query_proj"),
    "transposed": (
        lambda config, tensors: tensors.update({name: one.T.contiguous() for name, one in tensors.items()}),
        Error.MISMATCH, "decoder_layers.0.cross_attention.query_proj"),
    "half of a pair": (lambda config, tensors: _drop(tensors, first(tensors, "lora_B.weight")), Error.MISMATCH,
                       "decoder_layers.0.cross_attention.query_proj"),
    "empty shards": (lambda config, tensors: _set(tensors, first(tensors), torch.ones(0)), Error.MISMATCH,
                     "decoder_layers.0.cross_attention.query_proj"),
    "nothing": (lambda config, tensors: tensors.clear(), Error.CANNOT_IMPORT, "peft"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_taken_over_is_refused_by_its_name(marian: Path, tmp_path: Path, case: str) -> None:
    change, code, name = REFUSED[case]
    folder = written(marian, tmp_path, change)
    with raises_error(code, name):
        import_model(folder, tmp_path / "run", base=marian)
    assert not (tmp_path / "run").exists()


def test_another_base_of_the_same_shape_is_refused(marian: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(marian, tmp_path / "other"))
    weights = checkpoint.load_inference_weights(checkpoint.select(other))
    shutil.rmtree(other / "checkpoints")
    checkpoint.save(other, 0, {"model": {name: one + 1 for name, one in weights.items()}}, {"step": 0})
    folder = written(marian, tmp_path, lambda config, tensors: None)
    with raises_error(Error.MISMATCH, "other"):
        import_model(folder, tmp_path / "run", base=other)


def test_a_pickle_is_not_opened_and_a_base_has_to_be_named(marian: Path, tmp_path: Path) -> None:
    folder = written(marian, tmp_path, lambda config, tensors: None)
    with raises_error(Error.MISSING_OPTION, "base"):
        import_model(folder, tmp_path / "run")
    (folder / peft_format.WEIGHTS).rename(folder / "adapter_model.bin")
    with raises_error(Error.MISSING_FILE, peft_format.WEIGHTS):
        import_model(folder, tmp_path / "run", base=marian)
    with raises_error(Error.CANNOT_EXPORT, "adapter.r"):
        export(marian, "peft", tmp_path / "none")
