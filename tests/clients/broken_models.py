"""Models of Hugging Face with one thing broken, imported here and loaded by transformers: what it refuses is refused.

    python -m tests.clients.broken_models COUNT [--seed N] [--log FILE] [--show]

Each draw takes a small model at random weights, of any family that is imported, and changes one thing in its weights,
its config.json or its generation_config.json, or nothing. Then

- an import ends with a run or with an error of ours, never with a traceback;
- it is refused where transformers refuses the folder, or would draw a weight at random;
- where both take it, greedy and beam translations are equal, with the settings of the file and with others.

It prints what came of the draws, and ends with 1 where one was wrong. With `--log` the same command again does what is
missing: draws that a line of the file has are not done twice, unless they were wrong.
"""

import argparse
import collections
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.system import hub_models
from tests.system.hub_models import FAMILIES, Both

from dragoman.decoding.penalties import AveragePenalty
from dragoman.errors import DragomanError, Error
from dragoman.importing.import_run import import_model

TEXTS = list(hub_models.sentences(40, seed=41))
NEW_TOKENS = 24
"""The longest translation, where a file tells none."""
TIE = 1e-4
"""Scores that are nearer than this are equal in float32."""


class Template:
    """A model of a family as it is saved, in memory."""

    def __init__(self, name: str, folder: Path, rng: random.Random) -> None:
        self.name, self.folder, self.languages = name, folder, FAMILIES[name][2]
        make, options, _ = FAMILIES[name]
        layers = {"encoder_layers": rng.randint(1, 2), "decoder_layers": rng.randint(1, 2), "d_model": 16}
        sizes = {"encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "max_position_embeddings": 60}
        folder.mkdir()
        self.tokenizer = make(folder, **{**options, **layers, **sizes, "encoder_attention_heads": 2,
                                         "decoder_attention_heads": 2})  # fmt: skip
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.search = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
        self.tensors = load_file(folder / "model.safetensors")


class Draft:
    """The parts of a folder, which a break changes before they are written."""

    def __init__(self, template: Template, rng: random.Random) -> None:
        self.rng, self.template = rng, template
        self.tensors = {name: tensor.clone() for name, tensor in template.tensors.items()}
        self.config, self.search = dict(template.config), dict(template.search)
        self.metadata: dict[str, str] | None = {"format": "pt"}
        self.parts = 1

    def a_name(self, *parts: str) -> str:
        """The name of a tensor, any or one with such a part."""
        names = sorted(name for name in self.tensors if not parts or any(part in name for part in parts))
        return self.rng.choice(names or sorted(self.tensors))

    def write(self, folder: Path) -> None:
        for path in self.template.folder.iterdir():
            if path.name not in ("config.json", "generation_config.json", "model.safetensors"):
                shutil.copy(path, folder / path.name)
        (folder / "config.json").write_text(json.dumps(self.config), encoding="utf-8")
        if self.search:
            (folder / "generation_config.json").write_text(json.dumps(self.search), encoding="utf-8")
        tensors = {name: tensor.contiguous() for name, tensor in self.tensors.items()}
        if self.parts == 1:
            save_file(tensors, folder / "model.safetensors", metadata=self.metadata)
            return
        names, places = sorted(tensors), {}
        for part in range(self.parts):
            file = f"model-{part + 1:05}-of-{self.parts:05}.safetensors"
            save_file({name: tensors[name] for name in names[part :: self.parts]}, folder / file, self.metadata)
            places |= dict.fromkeys(names[part :: self.parts], file)
        index = {"metadata": {}, "weight_map": places}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


# -- what is broken ------------------------------------------------------------------------------------------------

Break = Callable[[Draft], str]
"""Changes a draft, and says what it changed."""


def nothing(draft: Draft) -> str:
    return ""


def a_tensor_less(draft: Draft) -> str:
    name = draft.a_name() if draft.rng.random() < 0.7 else draft.a_name("bias", "embed", "shared", "lm_head")
    del draft.tensors[name]
    return name


def a_tensor_more(draft: Draft) -> str:
    layer = draft.a_name("layers.0")
    name = draft.rng.choice([
        "adapter.weight", "model.encoder.version", "encoder.version", "decoder.version", "lm_head.bias",
        "model.encoder.embed_positions.weights", "model.encoder.layer_norm.weight",
        "model.encoder.layernorm_embedding.weight",
        layer.replace("layers.0", "layers.7"), layer.replace("layers.0", "layers.9"), f"model.{layer}",
        "classification_head.dense.weight", "model.decoder.embed_positions.weight", layer.removeprefix("model."),
    ])  # fmt: skip
    draft.tensors[name] = torch.randn(16)
    return name


def a_shape(draft: Draft) -> str:
    name = draft.a_name() if draft.rng.random() < 0.6 else draft.a_name("bias", "embed", "shared", "norm")
    tensor = draft.tensors[name]
    ways: list[Callable[[], torch.Tensor]] = [
        lambda: torch.cat([tensor, tensor[:1]]), lambda: tensor[:-1], lambda: tensor[:0], lambda: tensor.flatten(),
        lambda: tensor.flatten()[0], lambda: tensor[None], lambda: tensor.mT if tensor.dim() > 1 else tensor[:, None],
        lambda: tensor.flatten()[:1], lambda: torch.cat([tensor, tensor[..., :1]], dim=-1) if tensor.dim() else tensor,
    ]  # fmt: skip
    draft.tensors[name] = draft.rng.choice(ways)()
    return f"{name} {tuple(tensor.shape)} -> {tuple(draft.tensors[name].shape)}"


def a_type(draft: Draft) -> str:
    dtype = draft.rng.choice(
        [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64, torch.bool, torch.float8_e4m3fn]
    )
    names = [draft.a_name()] if draft.rng.random() < 0.5 else list(draft.tensors)
    for name in names:
        draft.tensors[name] = draft.tensors[name].to(dtype)
    return f"{names[0]} and {len(names) - 1} more: {dtype}"


def a_number(draft: Draft) -> str:
    name, value = draft.a_name(), draft.rng.choice([float("nan"), float("inf"), -float("inf"), 1e30, 0.0])
    tensor = draft.tensors[name]
    tensor.view(-1)[draft.rng.randrange(tensor.numel())] = value
    return f"{name}: {value}"


def other_ends(draft: Draft) -> str:
    """Embeddings or a head of their own, equal or not to what they are tied with."""
    base = draft.tensors[draft.a_name("shared", "embed_tokens")]
    added = []
    for name in ("lm_head.weight", "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight",
                 "model.shared.weight"):  # fmt: skip
        if draft.rng.random() < 0.5:
            other = base.clone() if draft.rng.random() < 0.5 else base + 0.1 * torch.randn_like(base)
            draft.tensors[name] = other
            added.append(name)
    if draft.rng.random() < 0.3:
        draft.tensors.pop("model.shared.weight", None)
        added.append("no shared")
    return ", ".join(added)


def names(draft: Draft) -> str:
    share = draft.rng.choice([0.5, 1.0, 1.0])
    draft.tensors = {
        name.removeprefix("model.") if draft.rng.random() < share else name: tensor
        for name, tensor in draft.tensors.items()
    }
    if draft.rng.random() < 0.2:
        old = draft.a_name()
        draft.tensors[draft.rng.choice([f"model.{old}", old.upper(), f"{old} ", ""])] = draft.tensors.pop(old)
    return f"{share:.0%} without a prefix"


def layers(draft: Draft) -> str:
    side = draft.rng.choice(["encoder", "decoder"])
    count = draft.config[f"{side}_layers"]
    own = [name for name in draft.tensors if name.startswith(f"model.{side}.layers.{count - 1}.")]
    if draft.rng.random() < 0.5:
        for name in own:
            draft.tensors[name.replace(f"layers.{count - 1}.", f"layers.{count}.")] = draft.tensors[name].clone()
        draft.config[f"{side}_layers"] += draft.rng.choice([0, 1, 2])
        return f"{side}: a layer more, {draft.config[f'{side}_layers']} told"
    for name in own:
        del draft.tensors[name]
    return f"{side}: a layer less"


def files(draft: Draft) -> str:
    draft.metadata = draft.rng.choice([None, {"format": "pt"}, {"format": "tf"}, {"format": "np"}, {"x": "y"}])
    draft.parts = draft.rng.randint(1, 3)
    return f"{draft.parts} files, {draft.metadata}"


SETTINGS: dict[str, list[Any]] = {
    "activation_function": ["gelu", "relu", "silu", "swish", "gelu_new", "quick_gelu", "tanh", "nonsense", None],
    "architectures": [["BartModel"], ["MarianForCausalLM"], None],
    "auto_map": [{"AutoModelForSeq2SeqLM": "evil.Evil"}],
    "bos_token_id": [0, 3, None, 10**6],
    "chunk_size_feed_forward": [0, 2],
    "d_model": [15, 17, 32, 0, None, "16"],
    "decoder_attention_heads": [1, 2, 3, 4, 0, 16],
    "decoder_ffn_dim": [19, 21],
    "decoder_layerdrop": [0.5],
    "decoder_start_token_id": [0, 1, 2, 5, None, -1, 10**6],
    "decoder_vocab_size": [10, None, 1000],
    "dropout": [0.5, 0, 2.0],
    "dtype": ["float16", "bfloat16", "int8", "nonsense", None],
    "encoder_attention_heads": [1, 2, 4, 8, 16, 5],
    "encoder_ffn_dim": [19, 0],
    "encoder_layers": [0, 3, 20, -1],
    "eos_token_id": [0, 1, 2, 7, None, [2], [1, 2]],
    "force_bos_token_to_be_generated": [True, False],
    "hidden_act": ["tanh"],
    "id2label": [{"0": "a"}],
    "init_std": [0.5],
    "is_decoder": [True],
    "is_encoder_decoder": [False],
    "layer_norm_eps": [0.1],
    "max_position_embeddings": [10, 59, 61, 10**5],
    "model_type": ["marian", "bart", "mbart", "m2m_100", "pegasus", "blenderbot", "t5", "blenderbot-small", None],
    "normalize_before": [True, False],
    "num_beams": [3, 1],
    "num_hidden_layers": [1, 2, 3],
    "pad_token_id": [0, 1, 5, None, -1, 10**6],
    "pruned_heads": [{}, {"0": [0]}],
    "quantization_config": [{"quant_method": "bitsandbytes", "load_in_8bit": True}],
    "scale_embedding": [True, False, None],
    "share_encoder_decoder_embeddings": [True, False],
    "tie_encoder_decoder": [True],
    "tie_word_embeddings": [True, False, None],
    "torch_dtype": ["float32", "float16"],
    "use_cache": [False],
    "vocab_size": [1, 0, 10**5],
    "what": [1, None],
}
"""Values of keys of config.json."""


def a_setting(draft: Draft) -> str:
    name = draft.rng.choice(sorted(SETTINGS))
    value = draft.rng.choice(SETTINGS[name])
    if name == "vocab_size" and draft.rng.random() < 0.5:
        value = draft.config["vocab_size"] + draft.rng.choice([-1, 1])
    draft.config[name] = value
    return f"{name}: {value}"


SEARCHES: dict[str, list[Any]] = {
    "bad_words_ids": [[["pad"]], [["unk"]], [["eos"]], [["pad"], ["unk"]], [[7]], [[7, 8]], [], "x", [[]], {}],
    "begin_suppress_tokens": [[], [7], {}, "x", ["pad"], ["unk"], ["eos"]],
    "bos_token_id": [0, 5, None],
    "cache_implementation": ["dynamic", "nonsense"],
    "decoder_start_token_id": [0, 3, None],
    "diversity_penalty": [0.0, 0.5],
    "do_sample": [True, False],
    "early_stopping": [True, False, "never", "sometimes"],
    "encoder_no_repeat_ngram_size": [0, 2],
    "encoder_repetition_penalty": [1.0, 1.5],
    "eos_token_id": [0, 1, 2, None, [2], []],
    "exponential_decay_length_penalty": [[5, 1.5], None],
    "forced_bos_token_id": [0, 5, "eos", None, 10**6, []],
    "forced_eos_token_id": ["eos", 5, None, ["eos"], []],
    "guidance_scale": [1.0, 2.0],
    "length_penalty": [0.0, 0.6, 1.0, 2.0, -1.0, "x"],
    "max_length": [5, 20, 30, 1, 0, -3, "x"],
    "max_new_tokens": [1, 8, 20, 0],
    "min_length": [0, 1, 4, 8, -1, 100],
    "min_new_tokens": [3, 6],
    "no_repeat_ngram_size": [0, 1, 2, 3],
    "num_beam_groups": [1, 2],
    "num_beams": [1, 2, 4, 0, None, "x"],
    "num_return_sequences": [1, 2, 3],
    "output_scores": [True],
    "pad_token_id": [0, 1, None],
    "penalty_alpha": [0.6],
    "prompt_lookup_num_tokens": [3],
    "remove_invalid_values": [True],
    "renormalize_logits": [True, False],
    "repetition_penalty": [1.0, 1.3, 0.7],
    "sequence_bias": [[[[5], -2.0]], [], {}],
    "constraints": [[]],
    "force_words_ids": [[]],
    "stop_strings": [["x"]],
    "suppress_tokens": [["pad"], ["unk"], ["pad", "unk"], [7, 8], [], ["eos"], {}, "x", [[7]]],
    "temperature": [0.5],
    "top_k": [10],
    "use_cache": [False],
    "what": [1],
}
"""Values of keys of generation_config.json; names stand for their ids."""


def a_search(draft: Draft) -> str:
    ids = {name: getattr(draft.template.tokenizer, f"{name}_token_id") for name in ("pad", "unk", "eos")}

    def told(value: Any) -> Any:
        return [told(item) for item in value] if isinstance(value, list) else ids.get(value, value) \
            if isinstance(value, str) else value  # fmt: skip

    changed = {}
    for name in draft.rng.sample(sorted(SEARCHES), draft.rng.choice([1, 1, 2, 3])):
        changed[name] = told(draft.rng.choice(SEARCHES[name]))
    if draft.rng.random() < 0.5:
        changed.setdefault("num_beams", 3)
    if draft.rng.random() < 0.2:  # as older versions told it
        draft.config |= {**draft.search, **changed}
        draft.search = {}
    draft.search = {**draft.search, **changed} if draft.search else {}
    return f"{changed}{'' if draft.search else ' in config.json'}"


BREAKS: list[tuple[Break, int]] = [
    (nothing, 1), (a_tensor_less, 2), (a_tensor_more, 2), (a_shape, 3), (a_type, 1), (a_number, 1), (other_ends, 3),
    (names, 2), (layers, 1), (files, 1), (a_setting, 4), (a_search, 6),
]  # fmt: skip


# -- what comes of it ----------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """Of one draw: `wrong` is empty where all is well."""

    what: str
    result: str
    wrong: str
    message: str = ""


def draw(template: Template, rng: random.Random, folder: Path) -> Outcome:
    """Break a model of a template in an empty folder, and compare."""
    draft = Draft(template, rng)
    [chosen] = rng.choices([name for name, _ in BREAKS], [weight for _, weight in BREAKS])
    what = f"{template.name}: {chosen.__name__}: {chosen(draft)}"
    (folder / "theirs").mkdir()
    draft.write(folder / "theirs")
    refusal, unsure, model = theirs(folder / "theirs")
    try:
        import_model(folder / "theirs", folder / "run", *template.languages)
    except DragomanError as error:
        result = (
            "both refuse" if refusal else "refused, where transformers is not sure" if unsure else "refused here alone"
        )
        return Outcome(what, result, ("\n" in str(error) and "a message of several lines") or "", str(error))
    except Exception:
        return Outcome(what, "traceback", traceback.format_exc())
    if refusal or unsure:
        return Outcome(what, "taken", f"transformers: {refusal or unsure}")
    both = Both(folder, template.languages, model, template.tokenizer)
    told = draft.search or draft.config
    return Outcome(what, *compared(both, told, [TEXTS[rng.randrange(len(TEXTS))] for _ in range(3)]))


def theirs(folder: Path) -> tuple[str, str, Any]:
    """(Why transformers refuses a folder, what it draws at random or leaves out, the model)."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(None):
            warnings.simplefilter("ignore")
            model, info = transformers.AutoModelForSeq2SeqLM.from_pretrained(
                folder, output_loading_info=True, dtype=torch.float32, local_files_only=True, trust_remote_code=False
            )
    except Exception as error:
        return f"{type(error).__name__}: {error}", "", None
    unsure = {name: sorted(map(str, found)) for name, found in info.items() if found and name != "unexpected_keys"}
    return "", str(unsure) if unsure else "", model


def compared(both: Both, told: dict[str, Any], texts: list[str]) -> tuple[str, str]:
    """(Result, what is wrong): translations with the settings of the file, greedy, and with a beam of 3."""
    given = len(getattr(both.ours.tokenizers.tgt, "before", ()))
    longest: dict[str, Any] = {}
    if told.get("max_length") is None and told.get("max_new_tokens") is None:
        longest = {"max_length_ratio": 0.0, "max_length_extra": NEW_TOKENS - given}
    limit = {"max_new_tokens": NEW_TOKENS} if longest else {}
    runs: list[tuple[dict[str, Any], dict[str, Any]]] = [({}, {})]
    if told.get("repetition_penalty") in (None, 1.0) and (told.get("num_return_sequences") or 1) == 1:
        runs.append(({"beam_size": 1}, {"num_beams": 1}))
        stops = {"stopping": "likely", "length_penalty": AveragePenalty(alpha=0.6)}
        runs.append(({"beam_size": 3, **stops}, {"num_beams": 3, "early_stopping": False, "length_penalty": 0.6}))
    counts: collections.Counter[str] = collections.Counter()
    for ours, settings in runs:
        translator = both.ours.with_decoding(**longest, **ours)
        for text in texts:
            try:
                expected = generated(both, text, told, translator.decoding.ban_unk, {**limit, **settings})
            except Exception as error:
                return "taken", f"generate: {type(error).__name__}: {error}"
            if expected is None:
                counts["cut"] += 1
                continue
            try:
                [found] = translator.n_best([text])
            except DragomanError as error:
                if error.code is not Error.DIVERGED:
                    raise
                return "taken, and its numbers overflow", ""
            if found and found[0].text == expected[0]:
                counts["equal"] += 1
            elif found and expected[1] is not None and abs(found[0].score - expected[1]) < TIE:
                counts["near ties"] += 1
            else:
                return "taken", f"{settings}: {text!r}: {expected} there, {found} here"
    return "equal" if counts["equal"] else "taken, and all cut", ""


def generated(both: Both, text: str, told: dict[str, Any], ban_unk: bool, settings: dict[str, Any]) -> Any:
    """(Text, score or None) of `generate`; None where it came to its longest length."""
    config, model = both.model.config, both.model
    never = {config.pad_token_id, config.decoder_start_token_id} - {config.eos_token_id}
    never |= {both.tokenizer.unk_token_id} if ban_unk else set()
    banned = sorted({*never, *(told.get("suppress_tokens") or [])})
    src = torch.tensor([both.src_ids(text)])
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        out = model.generate(
            src, attention_mask=torch.ones_like(src), suppress_tokens=banned, forced_bos_token_id=both.forced(),
            return_dict_in_generate=True, output_scores=True, **settings,
        )  # fmt: skip
    written = out.sequences[0, 1:].tolist()
    new = settings.get("max_new_tokens") or told.get("max_new_tokens")
    limit = new if new else told["max_length"] - 1
    if config.eos_token_id not in written or written.index(config.eos_token_id) + 1 >= limit:
        return None
    scores = getattr(out, "sequences_scores", None)
    return both.ours.tokenizers.tgt.decode(both.ours_of(written)), None if scores is None else float(scores[0])


def draws(numbers: Iterable[int], seed: int) -> Iterator[Outcome]:
    """The draws of these numbers, families in turn; each is a pure function of the seed and its number."""
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        templates: dict[str, Template] = {}
        for number in numbers:
            family = list(FAMILIES)[number % len(FAMILIES)]
            if family not in templates:
                templates[family] = Template(family, folder / str(len(templates)), random.Random(seed))
            rng = random.Random(f"{seed} {number}")
            torch.manual_seed(rng.randrange(2**32))
            (folder / "draw").mkdir()
            yield draw(templates[family], rng, folder / "draw")
            shutil.rmtree(folder / "draw")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--log", type=Path, help="a line of JSON for each draw; those that it has are not done again")
    parser.add_argument("--show", action="store_true", help="what was refused here alone")
    given = parser.parse_args()
    torch.set_num_threads(1)
    log = given.log
    lines = log.read_text(encoding="utf-8").splitlines() if log and log.exists() else []
    outcomes = {line["number"]: Outcome(*line["outcome"]) for line in map(json.loads, lines)}
    numbers = [number for number in range(given.count) if number not in outcomes or outcomes[number].wrong]
    begun = time.monotonic()
    for number, outcome in zip(numbers, draws(numbers, given.seed), strict=True):
        outcomes[number] = outcome
        if outcome.wrong:
            print(f"WRONG {number} {outcome.what}\n      {outcome.wrong}", flush=True)
        elif given.show and outcome.result == "refused here alone":
            print(f"{outcome.what}\n      {outcome.message}", flush=True)
        if log:
            with log.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"number": number, "outcome": outcome}) + "\n")
        if time.monotonic() - begun > given.seconds:
            break
    counts = collections.Counter(outcome.result for outcome in outcomes.values())
    wrong = sum(bool(outcome.wrong) for outcome in outcomes.values())
    print(f"seed {given.seed}: {counts.total()} draws, {wrong} wrong; {dict(counts)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
