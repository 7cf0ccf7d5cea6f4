"""The keys of Hugging Face's config.json and generation_config.json: taken, without effect, or a reason to refuse.

Every key is in one of these tables. A key in none of them is refused by its name, as nobody here knows what it does.
The search that is taken is the one that `generate` makes when it is called without any settings.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import config
from dragoman.errors import Error
from dragoman.export.huggingface import EARLY_STOPPING
from dragoman.export.origin import Origin
from dragoman.runs.atomic_io import read_json


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODEL_TAKEN = _names(
    """
    activation_dropout activation_function attention_dropout bos_token_id d_model decoder_attention_heads
    decoder_ffn_dim decoder_layers decoder_start_token_id decoder_vocab_size dropout encoder_attention_heads
    encoder_ffn_dim encoder_layers eos_token_id hidden_size max_position_embeddings model_type num_attention_heads
    num_hidden_layers pad_token_id scale_embedding share_encoder_decoder_embeddings tie_word_embeddings vocab_size
    """
)
"""Keys of config.json that make the model; values that a family cannot have are refused where they are used."""
MODEL_UNUSED = _names(
    """
    _name_or_path add_bias_logits add_final_layer_norm architectures attn_implementation classif_dropout
    classifier_dropout cls_token_id decoder_layerdrop do_blenderbot_90_layernorm encoder_layerdrop extra_layer_norm
    extra_pos_embeddings finetuning_task gradient_checkpointing id2label init_std initializer_range
    keys_to_ignore_at_inference label2id layernorm_variant mask_token_id normalize_before normalize_embedding num_labels
    output_attentions output_hidden_states output_past prefix problem_type return_dict sep_token_id
    static_position_embeddings task_specific_params tokenizer_class torchscript transformers_version unk_token_id
    use_bfloat16 use_cache _num_labels _attn_implementation_autoset
    """
)
"""Keys of config.json that change no translation: labels, versions, training, what a result holds besides, and
settings of transformers 2 and 3 that each architecture has fixed since."""
MODEL_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False, True),  # an encoder-decoder has it
    "chunk_size_feed_forward": (0,),
    "dtype": ("float32", "float16", "bfloat16", "float64", "auto"),
    "force_bos_token_to_be_generated": (False,),
    "is_decoder": (False,),
    "is_encoder_decoder": (True,),
    "pruned_heads": ({},),
    "tie_encoder_decoder": (False,),
    "torch_dtype": ("float32", "float16", "bfloat16", "float64", "auto"),
}
"""Keys of config.json that change nothing at these values, and would at any other."""
SEARCH_TAKEN = _names(
    """
    bad_words_ids begin_suppress_tokens bos_token_id decoder_start_token_id early_stopping eos_token_id
    forced_bos_token_id forced_eos_token_id length_penalty max_length max_new_tokens min_length min_new_tokens
    no_repeat_ngram_size num_beams num_return_sequences pad_token_id repetition_penalty suppress_tokens top_k
    """
)
"""Keys of generation_config.json that `search` takes, or refuses for their values."""
SEARCH_UNUSED = _names(
    """
    _from_model_config _commit_hash transformers_version use_cache cache_implementation cache_config max_cache_len
    temperature top_p min_p top_h typical_p epsilon_cutoff eta_cutoff remove_invalid_values output_attentions
    output_scores output_logits return_dict_in_generate num_assistant_tokens num_assistant_tokens_schedule
    assistant_confidence_threshold max_matching_ngram_size assistant_lookbehind target_lookbehind
    assistant_ensemble_weight compile_config disable_compile
    """
)
"""Keys of generation_config.json that change no translation: caches and compilation, settings of sampling (which
itself is refused) and of an assistant (which no file brings), and what a result holds besides."""
SEARCH_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "diversity_penalty": (0,),
    "do_sample": (False,),
    "encoder_no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1,),
    "guidance_scale": (1,),
    "is_assistant": (False,),
    "low_memory": (False,),
    "num_beam_groups": (1,),
    "output_hidden_states": (False, True),
    "penalty_alpha": (0,),
    "renormalize_logits": (False,),
    "token_healing": (False,),
    "use_mtp": (False,),
}
"""Keys of generation_config.json that change nothing at these values, and are refused at any other."""
STOPPING = {theirs: ours for ours, theirs in EARLY_STOPPING.items()}


class Ids(NamedTuple):
    """The ids that a search there has to know."""

    pad: int
    unk: int
    start: int
    eos: int
    first: frozenset[int] = frozenset()
    """The ids that `forced_bos_token_id` may name: the id that is used, or any language's id where a language can be
    chosen."""


def of_model(folder: Path) -> list[str]:
    """Reasons to refuse that config.json gives by its keys alone."""
    path = folder / "config.json"
    settings = read_json(path, dict)
    known = MODEL_TAKEN | MODEL_UNUSED
    searches = SEARCH_TAKEN | SEARCH_UNUSED | SEARCH_NEUTRAL.keys()  # of versions that had no other file for them
    return [
        *_unknown({name: value for name, value in settings.items() if name not in searches}, known, MODEL_NEUTRAL, path)
    ]


def read_search(folder: Path) -> tuple[dict[str, Any], Path]:
    """The settings of the search, and the file that has them: config.json where there is no other."""
    if (path := folder / "generation_config.json").exists():
        return read_json(path, dict), path
    path = folder / "config.json"
    known = SEARCH_TAKEN | SEARCH_UNUSED | SEARCH_NEUTRAL.keys()
    return {name: value for name, value in read_json(path, dict).items() if name in known}, path


def _unknown(
    settings: Mapping[str, Any], known: frozenset[str], neutral: Mapping[str, tuple[Any, ...]], path: Path
) -> Iterator[str]:
    for name, value in settings.items():
        if value is None or name in known or (name in neutral and value in neutral[name]):
            continue
        yield f"{path.name}: {name}: {_shown(value)} {'changes' if name in neutral else 'may change'} what it computes"


def _shown(value: Any) -> str:
    return text if len(text := repr(value)) <= 40 else f"{text[:40]}..."


def search(generation: Mapping[str, Any], path: Path, ids: Ids, given: int) -> tuple[dict[str, Any], list[str]]:
    """Our settings of the search that `generate` makes of theirs, and reasons why they are not the whole truth.

    `given`: the number of tokens that a translation begins with whatever the model says.
    """
    generation = {name: value for name, value in generation.items() if value is not None}
    reasons = [*_unknown(generation, SEARCH_TAKEN | SEARCH_UNUSED, SEARCH_NEUTRAL, path)]
    taken: dict[str, Any] = {}
    parts = (_beam(generation, ids), _lengths(generation, given), _bans(generation, ids), _ids(generation, ids))
    for name, value in (pair for part in parts for pair in part):
        if isinstance(value, Refused):
            reasons.append(f"{path.name}: {name}: {value}")
        else:
            taken[name] = value
    return taken, reasons


class Refused(str):
    """The reason why a setting has no counterpart here."""


Parts = Iterator[tuple[str, Any]]
"""Settings of ours with their values, or theirs with the `Refused`."""


def _number(generation: Mapping[str, Any], name: str, default: float, least: float, kind: type = int) -> Any:
    value = generation.get(name, default)
    kinds = (int,) if kind is int else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value < float("inf"):
        return Refused(f"{_shown(value)} is no number from {least:g} on")
    return kind(value)


def _beam(generation: Mapping[str, Any], ids: Ids) -> Parts:
    beam = _number(generation, "num_beams", 1, 1)
    yield ("num_beams", beam) if isinstance(beam, Refused) else ("beam_size", beam)
    alpha = _number(generation, "length_penalty", 1.0, 0.0, float)
    if isinstance(top_k := _number(generation, "top_k", 50, -1, float), Refused):  # of sampling, and compared always
        yield "top_k", top_k
    stopping = generation.get("early_stopping", False)
    if not isinstance(stopping, bool | str) or stopping not in STOPPING:
        yield "early_stopping", Refused(f"{_shown(stopping)} is none of {', '.join(map(str, STOPPING))}")
    elif beam != 1:
        yield "stopping", STOPPING[stopping]
    if isinstance(alpha, Refused):
        yield "length_penalty", Refused(f"{alpha}; ours favours no short translations")
    elif beam != 1:
        yield "length_penalty", {"type": "average", "alpha": alpha} if alpha else {"type": "none"}
    returned = _number(generation, "num_return_sequences", 1, 1)
    yield "num_return_sequences" if isinstance(returned, Refused) else "n_best", returned
    ngram = _number(generation, "no_repeat_ngram_size", 0, 0)
    if ngram == 1 and ids.start == ids.eos:
        ngram = Refused("1, where a translation begins with </s>: it would never end")
    yield "no_repeat_ngram_size" if isinstance(ngram, Refused) else "no_repeat_ngram", ngram
    penalty = _number(generation, "repetition_penalty", 1.0, 1.0, float)
    if penalty != 1.0 and beam == 1:
        penalty = Refused(f"{penalty}: a greedy search there scales logits where ours scales log probabilities")
    elif penalty != 1.0 and ids.start == ids.eos:
        penalty = Refused(f"{penalty}: it makes </s> less probable, as a translation begins with it")
    yield "repetition_penalty", penalty


def _lengths(generation: Mapping[str, Any], given: int) -> Parts:
    """Theirs counts what a translation begins with; ours leaves out `<s>`, and from the longest the tags."""
    name = "max_new_tokens" if "max_new_tokens" in generation else "max_length"
    if name in generation:
        longest = _number(generation, name, 0, 0)
        if not isinstance(longest, Refused):
            longest -= given + (name == "max_length")
            longest = longest if longest >= 1 else Refused(f"{generation[name]} leaves no token for a translation")
        if isinstance(longest, Refused):
            yield name, longest
        else:
            yield from (("max_length_ratio", 0.0), ("max_length_extra", longest))
    name = "min_new_tokens" if "min_new_tokens" in generation else "min_length"
    shortest = _number(generation, name, 0, 0)
    if isinstance(shortest, Refused):
        yield name, shortest
    else:
        yield "min_length", max(0, shortest - (name == "min_length"))


def _bans(generation: Mapping[str, Any], ids: Ids) -> Parts:
    """`<pad>` and `<s>` are never written here, and `<unk>` need not be; other tokens are free."""
    never = {ids.pad, ids.start} - {ids.eos}
    free = {"bad_words_ids": {*never, ids.unk}, "suppress_tokens": {*never, ids.unk}, "begin_suppress_tokens": never}
    single = generation.get("bad_words_ids", [[ids.eos]])
    if not isinstance(single, list) or not single or not all(isinstance(item, list) and item for item in single):
        yield "bad_words_ids", Refused(f"{_shown(single)} is no list of lists of ids")
        single = []
    words = [item for item in single if item != [ids.eos]]  # which it leaves out
    banned = {"bad_words_ids": [item[0] if len(item) == 1 else item for item in words]}
    banned |= {name: generation.get(name, []) for name in ("suppress_tokens", "begin_suppress_tokens")}
    for name, values in banned.items():
        if not isinstance(values, list):
            yield name, Refused(f"{_shown(values)} is no list of ids")
        elif others := [value for value in values if type(value) is not int or value not in free[name]]:
            yield name, Refused(f"{_shown(others)}: no setting here forbids these tokens")
        elif ids.unk in values:
            yield "ban_unk", True


def _ids(generation: Mapping[str, Any], ids: Ids) -> Parts:
    start = generation.get("decoder_start_token_id", generation.get("bos_token_id"))
    for name, value, allowed in (
        ("eos_token_id", generation.get("eos_token_id"), (ids.eos, [ids.eos])),
        ("decoder_start_token_id", start, (ids.start,)),
        ("pad_token_id", generation.get("pad_token_id"), (ids.pad, None)),
        ("forced_eos_token_id", generation.get("forced_eos_token_id"), (ids.eos, [ids.eos], None)),
    ):
        if repr(value) not in map(repr, allowed):  # False is no 0, which may be </s>
            yield name, Refused(f"{_shown(value)}, where the model has {_shown(allowed[0])}")
    if type(begin := generation.get("bos_token_id", 0)) is not int:
        yield "bos_token_id", Refused(f"{_shown(begin)} is no id")
    first = generation.get("forced_bos_token_id")
    if first is not None and first not in [*ids.first]:
        yield "forced_bos_token_id", Refused(f"{_shown(first)}: no translation of this model begins with it here")


def require_same(taken: Mapping[str, Any], origin: Origin, path: Path) -> None:
    """Raises DragomanError where a file beside an export of ours was given another search than the export has."""
    ours = config.to_dict(origin)["decoding"]
    for name, value in taken.items():
        if not name.startswith("max_length") and ours[name] != value:
            raise Error.CONFLICT(f"{name} is {_shown(value)} here and {_shown(ours[name])} in dragoman.json", file=path)
