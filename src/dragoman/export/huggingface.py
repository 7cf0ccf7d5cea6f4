"""A run of the Transformer as a folder that Hugging Face's `transformers` loads, with no code of ours.

`AutoModelForSeq2SeqLM.from_pretrained(folder)` and `AutoTokenizer.from_pretrained(folder)` are all that it takes. What
holds a model is an architecture of theirs whose every operation is ours; `huggingface_weights` says which:

- Marian is post-norm, Pegasus pre-norm, both with Vaswani's sinusoid, all sines before all cosines. (M2M100's has other
  frequencies.) A model whose sinusoid is interleaved is written with the dimensions of its residual path in another
  order: embeddings, norms, and the sides of the projections that read or write it.
- Blenderbot is pre-norm with a table of learned positions, which also holds no positions, as zeros.
- BART is post-norm and mBART pre-norm with a norm on the embeddings; their table begins with two rows that are never
  looked up, and holds any positions, the sinusoid among them, up to the longest sentence.

`generate` with the written generation config is our search: the same candidates, the same penalty on a length that
counts `</s>`, the same bans, and the same stopping rule (`early_stopping="never"` for `exact`). What differs:

- One `max_length` for all sentences, that of the longest source, where ours is each sentence's own. It bounds what
  an unfinished hypothesis may still reach, so searches of short sentences go on for much longer; `load` gives every
  sentence its own, and so should whoever calls `generate` and does not want to wait (or `early_stopping=False`, whose
  stopping rule can be beaten).
- At the longest length, unfinished hypotheses compete with finished ones and may drive them out; ours are returned
  only where none is finished. `load` prefers the finished among the `num_beams` that are left. A trained model seldom
  gets there; one that has learnt little does, with a length penalty of `alpha: 1`.
- Ties go to whatever `topk` finds first, where ours go to the better prefix and the smaller id.
- n-best lists may hold a text twice; `load` leaves out the second.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from dragoman.decoding.penalties import AveragePenalty, NoPenalty
from dragoman.decoding.search import DecodingConfig, default_max_lengths
from dragoman.errors import Error, not_installed
from dragoman.export import huggingface_tokenizer, huggingface_weights
from dragoman.export.huggingface_tokenizer import Vocabulary
from dragoman.export.origin import write_origin
from dragoman.inference.long_input import split_long
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.models.transformer import Transformer
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID

BATCH_SENTENCES = 32
"""The most positions that the engine of `load` gives to `generate` at once."""


def problems(translator: SearchTranslator) -> list[str]:
    """Why no architecture of Hugging Face holds this translator, one line each with what to change in the recipe."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [f"a {type(model).__name__} has no architecture there: train with model {{type: transformer}}"]
    return [
        *huggingface_weights.problems(model),
        *huggingface_tokenizer.problems(translator.tokenizers),
        *_decoding_problems(translator.decoding),
    ]


def write(translator: SearchTranslator, folder: Path, quantize: str | None = None) -> None:
    """Write the model (safetensors), the tokenizer and their settings into an existing empty folder.

    `quantize`: `float16` or `bfloat16`, the type that weights are kept and loaded in; None: float32.

    Raises DragomanError for other types, for a translator with `problems`, and when transformers is not installed.
    """
    if reasons := problems(translator):
        raise Error.CANNOT_EXPORT(f"Hugging Face cannot hold this model: {'; '.join(reasons)}")
    if quantize not in DTYPES:
        raise Error.UNKNOWN_NAME(
            f"`quantize` {quantize}: Hugging Face's files hold {', '.join(filter(None, DTYPES))}; for int8, export "
            "to ctranslate2 or onnx"
        )
    transformers = transformers_library()
    model, vocabulary = cast(Transformer, translator.model), Vocabulary.of(translator.tokenizers)
    length = _positions(translator)
    settings = {**huggingface_weights.config(model, vocabulary, length), **SPECIAL_IDS}
    architecture = huggingface_weights.architecture(model)
    with quietly(), torch.random.fork_rng(devices=[]):
        theirs = getattr(transformers, architecture.model)(getattr(transformers, architecture.config)(**settings))
        theirs.load_state_dict(huggingface_weights.weights(model, vocabulary, length, theirs.state_dict()))
        theirs.generation_config = transformers.GenerationConfig(**_generation(translator))
        theirs.to(DTYPES[quantize]).save_pretrained(folder)
        longest = translator.max_src_tokens + 1
        huggingface_tokenizer.save(translator.tokenizers, translator.normalize, longest, model.src_end, folder)
    write_origin(translator, folder)


def nearest(decoding: DecodingConfig) -> DecodingConfig:
    """These settings: its generation config says them all, or `problems` says why not."""
    return decoding


def load(folder: Path, translator: SearchTranslator) -> "HuggingFaceEngine":
    """The written model, run by `transformers`. Of `translator`, only how it cuts, joins and limits is asked."""
    return HuggingFaceEngine(folder, translator)


class HuggingFaceEngine:
    """`generate` over whole texts, as a `SearchTranslator` is over its search."""

    def __init__(self, folder: Path, translator: SearchTranslator) -> None:
        transformers = transformers_library()
        with quietly():
            self.model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True).eval()
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.decoding, self.max_src_tokens = translator.decoding, translator.max_src_tokens
        self.longest = self.model.generation_config.max_length - 1
        self._joined = translator._joined
        self.end = int(cast(Transformer, translator.model).src_end)
        self.given = list(translator.tokenizers.tgt.before)
        marian = type(self.tokenizer).__name__ == "MarianTokenizer"
        before = translator.tokenizers.src.pieces(getattr(translator.tokenizers.src, "before", ())) if marian else []
        self.tag = "".join(before)

    def n_best(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """The best translations of each sentence, as `SearchTranslator.n_best`."""
        parts = [self._parts(sentence) for sentence in sentences]
        translations = iter(self._search(list(itertools.chain.from_iterable(parts))))
        return [self._joined(list(itertools.islice(translations, len(of_sentence)))) for of_sentence in parts]

    def ids(self, text: str) -> list[int]:
        """The ids that the encoder reads of a text, `</s>` among them."""
        return list(self.tokenizer(self.tag + text, verbose=False)["input_ids"])

    def _parts(self, sentence: str) -> list[str]:
        if not sentence.strip() or not self._count(sentence):
            return []
        if self._count(sentence) <= self.max_src_tokens:
            return [sentence]
        return split_long(sentence, self._count, self.max_src_tokens)

    def _count(self, text: str) -> int:
        return len(self.ids(text)) - self.end

    @torch.inference_mode()
    def _search(self, texts: list[str]) -> list[list[Translation]]:
        """The translations of texts. Texts of the same length go together: no padding, the same longest result."""
        encoded = [self.ids(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda row: len(encoded[row]))
        results: list[list[Translation]] = [[] for _ in texts]
        for _, of_length in itertools.groupby(order, key=lambda row: len(encoded[row])):
            rows = list(of_length)
            for start in range(0, len(rows), BATCH_SENTENCES):
                chunk = rows[start : start + BATCH_SENTENCES]
                src = torch.tensor([encoded[row] for row in chunk])
                for row, translations in zip(chunk, self._generate(src), strict=True):
                    results[row] = translations
        return results

    def _generate(self, src: Tensor) -> list[list[Translation]]:
        beams = self.decoding.beam_size
        mask = torch.ones_like(src)
        longest = min(int(default_max_lengths(mask.bool(), self.decoding)[0]), self.longest)
        out = self.model.generate(
            input_ids=src,
            attention_mask=mask,
            max_length=1 + longest + len(self.given),
            num_return_sequences=beams,
            return_dict_in_generate=True,
            output_scores=beams > 1,
            output_logits=beams == 1,
        )
        written = out.sequences[:, 1:]  # without <s>
        if beams == 1:
            log_probs = torch.stack(out.logits, dim=1).log_softmax(dim=-1).gather(2, written[:, :, None])[:, :, 0]
            ended = (written == EOS_ID).int().cumsum(dim=1) - (written == EOS_ID).int()  # before the token
            log_probs[:, : len(self.given)] = 0.0
            values = log_probs.masked_fill(ended > 0, 0.0).sum(dim=1).tolist()
        else:
            values = out.sequences_scores.tolist()
        candidates = [self._translation(ids, value) for ids, value in zip(written.tolist(), values, strict=True)]
        return [self._best(candidates[first : first + beams]) for first in range(0, len(candidates), beams)]

    def _translation(self, ids: list[int], value: float) -> tuple[bool, Translation]:
        """(finished?, translation). `value`: the score of a beam, or the log probability where there is one only."""
        finished = EOS_ID in ids
        length = ids.index(EOS_ID) + 1 if finished else len(ids)
        divisor = self.decoding.length_penalty.divisor(length)
        score, log_prob = (value, value * divisor) if self.decoding.beam_size > 1 else (value / divisor, value)
        text = self.tokenizer.decode(ids[:length], skip_special_tokens=True)
        return finished, Translation(text, score, log_prob)

    def _best(self, beam: list[tuple[bool, Translation]]) -> list[Translation]:
        possible = [(finished, item) for finished, item in beam if item.score > -1e5]  # what is lower is a free place
        any_finished = any(finished for finished, _ in possible)
        kept = [item for finished, item in possible if finished or not any_finished][: self.decoding.n_best]
        return list({item.text: item for item in reversed(kept)}.values())[::-1]


def _decoding_problems(decoding: DecodingConfig) -> list[str]:
    reasons = [
        f"decoding.{name} is not in its generation config: leave it at {getattr(DecodingConfig(), name)}"
        for name in ("coverage_penalty", "diversity", "no_source_ngram", "patience", "sampling", "mbr", "word_penalty")
        if getattr(decoding, name) != getattr(DecodingConfig(), name)
    ]
    if decoding.stopping not in EARLY_STOPPING:
        reasons.append(f"decoding.stopping {decoding.stopping} is not in its search: {', '.join(EARLY_STOPPING)} are")
    if not isinstance(decoding.length_penalty, AveragePenalty | NoPenalty):
        reasons.append(
            f"decoding.length_penalty {{type: {decoding.length_penalty.type}}} is not in its search: set "
            "decoding.length_penalty to {type: average, alpha: ...}"
        )
    if not decoding.ban_unk:
        reasons.append("decoding.ban_unk: false: its tokenizer leaves out unknown tokens, where ours shows ⁇: set true")
    if decoding.beam_size == 1 and decoding.repetition_penalty > 1.0:
        reasons.append(
            "decoding.repetition_penalty: its greedy search scales logits where ours scales log probabilities: set it "
            "to 1, or beam_size to 2 or more"
        )
    return reasons


def _longest_target(translator: SearchTranslator) -> int:
    """Tokens, `</s>` among them, that a translation of the longest source may have."""
    longest = default_max_lengths(torch.ones(1, translator.max_src_tokens + 1, dtype=torch.bool), translator.decoding)
    limit = translator.model.max_target_length
    return int(longest) if limit is None else min(int(longest), limit)


def _positions(translator: SearchTranslator) -> int:
    """The number of positions that the exported model has."""
    limit = translator.model.max_target_length
    return max(translator.max_src_tokens + 1, _longest_target(translator)) if limit is None else limit


def _generation(translator: SearchTranslator) -> dict[str, Any]:
    decoding = translator.decoding
    settings: dict[str, Any] = {
        **SPECIAL_IDS,
        "forced_bos_token_id": next(iter(translator.tokenizers.tgt.before), None),
        "max_length": 1 + _longest_target(translator) + len(translator.tokenizers.tgt.before),  # <s> among it
        "num_beams": decoding.beam_size,
        "num_return_sequences": decoding.n_best,
        "do_sample": False,
        "suppress_tokens": [PAD_ID, UNK_ID, BOS_ID],
    }
    if decoding.beam_size > 1:
        penalty = decoding.length_penalty
        settings |= {
            "early_stopping": EARLY_STOPPING[decoding.stopping],
            "length_penalty": penalty.alpha if isinstance(penalty, AveragePenalty) else 0.0,
        }
    if decoding.min_length:
        settings["min_new_tokens"] = decoding.min_length
    if decoding.no_repeat_ngram:
        settings["no_repeat_ngram_size"] = decoding.no_repeat_ngram
    if decoding.repetition_penalty > 1.0:
        settings["repetition_penalty"] = decoding.repetition_penalty
    return settings


def transformers_library() -> Any:
    """The library, imported when it is needed. Raises DragomanError where it is not installed."""
    try:
        import transformers
    except ImportError as error:
        raise not_installed("Hugging Face needs transformers", "huggingface") from error
    return transformers


@contextmanager
def quietly() -> Iterator[None]:
    """Neither bars nor advice from the library."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


EARLY_STOPPING: dict[str, bool | str] = {"exact": "never", "likely": False, "full": True}
"""`early_stopping` there of each `stopping`."""
SPECIAL_IDS = {
    "pad_token_id": PAD_ID,
    "bos_token_id": BOS_ID,
    "eos_token_id": EOS_ID,
    "decoder_start_token_id": BOS_ID,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
}
"""For the model and for `generate`; some architectures force a last token unless told otherwise."""

DTYPES = {None: torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
"""Number formats of the weights."""
