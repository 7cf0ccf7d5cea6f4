"""Small models of Hugging Face at random weights, saved as their own tools save them, each with a tokenizer of its kind
learnt from text in ten scripts."""

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sentencepiece as spm
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from dragoman.importing.import_run import import_model
from dragoman.inference.search_translator import SearchTranslator
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID

SCRIPTS = [
    "the dog runs over a wet street and a woman looks at the sea",
    "der Hund läuft über die nasse Straße und eine Frau sieht das Meer",
    "собака бежит по мокрой улице и женщина смотрит на море",
    "ο σκύλος τρέχει στον βρεγμένο δρόμο και μια γυναίκα κοιτάζει",
    "الكلب يركض في الشارع المبلل وامرأة تنظر إلى البحر",
    "הכלב רץ ברחוב הרטוב ואישה מסתכלת על הים",
    "कुत्ता गीली सड़क पर दौड़ता है और एक महिला समुद्र देखती है",
    "狗 在 潮湿的 街上 跑 一个 女人 看着 大海",
    "犬 は 濡れた 通り を 走り 女性 が 海 を 見る",
    "개가 젖은 거리를 달리고 여자가 바다를 본다",
]
WORDS = [line.split() for line in SCRIPTS]
ODD = [
    "", " ", "  two  spaces ", "tab\there", "line\nbreak", "\u00a0", "\u200b", "e\u0301", "\ufb01ne", "\u2460\u2461",
    "\U0001f600 \U0001f469\u200d\U0001f469\u200d\U0001f467", "<s>", "</s>", "<pad> x", "<unk>", "\u2581", "a\u2581b",
    ">>deu<<", ">> x <<", "__de__", "deu_Latn", "de_DE x", "<mask>", "\ufeffx", "\u0130", "\u00df", "\ufdfa", "A" * 300,
    "....!!!???", "http://a.b/c?d=e&f", "\uff11\uff12\uff13", "\u2163", "\u202eabc",
]  # fmt: skip


def sentences(count: int, seed: int = 1) -> Iterator[str]:
    """Sentences of words of one script each, some with characters that no vocabulary has."""
    rng = random.Random(seed)
    for _ in range(count):
        words = rng.choices(rng.choice(WORDS), k=rng.randint(1, 9))
        if rng.random() < 0.2:
            words.insert(rng.randrange(len(words) + 1), rng.choice(["Ωß", "龘", "qzx", "𝔘", "ꙮ", "7%"]))
        yield " ".join(words)


def strings(count: int) -> Iterator[str]:
    """Sentences, odd strings, both glued together, and strings of any characters at all."""
    rng = random.Random(5)
    for number, sentence in enumerate(sentences(count, seed=3)):
        kind = number % 5
        if kind == 3:
            sentence = rng.choice(ODD) + rng.choice(["", " ", sentence]) + rng.choice(ODD)
        if kind == 4:
            code_points = (rng.choice([rng.randrange(32, 127), rng.randrange(160, 0xD7FF)]) for _ in range(12))
            sentence = "".join(map(chr, code_points))
        yield sentence


def sentencepiece(folder: Path, name: str, size: int, lines: list[str], kind: str = "unigram") -> Path:
    path = folder / name
    with path.open("wb") as stream:
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=stream, vocab_size=size, model_type=kind,
            hard_vocab_limit=False, minloglevel=2,
        )  # fmt: skip
    return path


def pieces_of(path: Path) -> list[str]:
    processor = spm.SentencePieceProcessor(model_file=str(path))
    return [processor.IdToPiece(index) for index in range(3, processor.GetPieceSize())]


LINES = list(sentences(2000))


def settings(vocab_size: int, **changes: Any) -> dict[str, Any]:
    """Settings of a small model that all of their architectures have."""
    return {
        "vocab_size": vocab_size, "d_model": 32, "encoder_layers": 2, "decoder_layers": 3,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
        "activation_function": "relu", "scale_embedding": True, "max_position_embeddings": 90, **changes,
    }  # fmt: skip


def marian(folder: Path, tags: bool = False, separate: bool = False, **changes: Any) -> Any:
    """OPUS-MT: two SentencePiece models over one vocab.json that lacks some of their pieces; `<pad>` comes last."""
    half = len(LINES) // 2
    files = [
        sentencepiece(folder, "source.spm", 400, LINES[:half]),
        sentencepiece(folder, "target.spm", 300, LINES[half:], "bpe"),
    ]
    languages = [">>deu<<", ">>fra<<"] if tags else []

    def table(*paths: Path) -> dict[str, int]:
        pieces = list(dict.fromkeys(piece for path in paths for piece in pieces_of(path)))[:-20]
        names = ["</s>", "<unk>", *pieces, *languages]
        return {name: index for index, name in enumerate(names)}

    tables = [table(files[0]), table(files[1])] if separate else [table(*files)]
    size = max(map(len, tables))
    for names in tables:
        for index in range(len(names), size):
            names[f"unused{index}"] = index
        names["<pad>"] = size
    paths = [folder / "vocab.json", folder / "target_vocab.json"]
    for path, names in zip(paths, tables, strict=False):
        path.write_text(json.dumps(names, ensure_ascii=False), encoding="utf-8")
    told = {"target_vocab_file": str(paths[1]), "separate_vocabs": True} if separate else {}
    tokenizer = transformers.MarianTokenizer(*map(str, files), str(paths[0]), **told)
    more = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": size + 1} if separate else {}
    config = transformers.MarianConfig(
        **settings(size + 1, pad_token_id=size, eos_token_id=0, decoder_start_token_id=size, **more, **changes)
    )
    return save(folder, transformers.MarianMTModel(config), tokenizer)


def m2m100(folder: Path, **changes: Any) -> Any:
    """M2M100: SentencePiece and vocab.json, a hundred tags behind them, eight rows that nobody uses."""
    model = sentencepiece(folder, "sentencepiece.bpe.model", 500, LINES, "bpe")
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(model)[:-20]]
    path = folder / "vocab.json"
    path.write_text(json.dumps({name: index for index, name in enumerate(names)}), encoding="utf-8")
    tokenizer = transformers.M2M100Tokenizer(str(path), str(model), src_lang="en", tgt_lang="de")
    config = transformers.M2M100Config(
        **settings(len(names) + len(tokenizer.lang_token_to_id) + 8, decoder_start_token_id=2, **changes)
    )
    return save(folder, transformers.M2M100ForConditionalGeneration(config), tokenizer)


def _bpe(size: int, byte_level: bool = False) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges."""
    learner = Tokenizer(models.BPE(unk_token="<unk>"))
    learner.pre_tokenizer = (
        pre_tokenizers.ByteLevel(add_prefix_space=False) if byte_level else pre_tokenizers.Metaspace()
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    learner.train_from_iterator(LINES, trainer)
    learnt = json.loads(learner.to_str())["model"]
    return learnt["vocab"], [tuple(merge) for merge in learnt["merges"]]


def nllb(folder: Path, **changes: Any) -> Any:
    """NLLB: the architecture of M2M100, and a tokenizer of their library with two hundred tags."""
    vocabulary, merges = _bpe(600)
    tokenizer = transformers.NllbTokenizer(vocab=vocabulary, merges=merges, src_lang="eng_Latn", tgt_lang="deu_Latn")
    config = transformers.M2M100Config(**settings(len(tokenizer) + 3, decoder_start_token_id=2, **changes))
    return save(folder, transformers.M2M100ForConditionalGeneration(config), tokenizer)


def _unigram(folder: Path) -> list[tuple[str, float]]:
    model = sentencepiece(folder, "unigram.model", 500, LINES)
    processor = spm.SentencePieceProcessor(model_file=str(model))
    learnt = [(processor.IdToPiece(index), processor.GetScore(index)) for index in range(3, processor.GetPieceSize())]
    model.unlink()
    return [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *learnt]


def mbart(folder: Path, **changes: Any) -> Any:
    """mBART of 25 languages: a source ends with `</s>` and its tag, and the decoder starts with the target's."""
    tokenizer = transformers.MBartTokenizer(vocab=_unigram(folder), src_lang="en_XX", tgt_lang="ro_RO")
    start = tokenizer.convert_tokens_to_ids("ro_RO")
    config = transformers.MBartConfig(**settings(len(tokenizer), decoder_start_token_id=start, **changes))
    return save(folder, transformers.MBartForConditionalGeneration(config), tokenizer)


def mbart50(folder: Path, **changes: Any) -> Any:
    """mBART of 50 languages: tags before both sides."""
    tokenizer = transformers.MBart50Tokenizer(vocab=_unigram(folder), src_lang="en_XX", tgt_lang="de_DE")
    forced = tokenizer.convert_tokens_to_ids("fr_XX")
    config = transformers.MBartConfig(
        **settings(len(tokenizer), decoder_start_token_id=2, forced_bos_token_id=forced, **changes)
    )
    return save(folder, transformers.MBartForConditionalGeneration(config), tokenizer)


def bart(folder: Path, forced: int | None = 0, **changes: Any) -> Any:
    """BART: byte-level BPE, `<s>` before a source, and before a target where it is forced."""
    vocabulary, merges = _bpe(700, byte_level=True)
    tokenizer = transformers.BartTokenizer(vocab=vocabulary, merges=merges)
    config = transformers.BartConfig(
        **settings(len(tokenizer), decoder_start_token_id=2, forced_bos_token_id=forced, forced_eos_token_id=None)
        | changes
    )
    return save(folder, transformers.BartForConditionalGeneration(config), tokenizer)


def pegasus(folder: Path, **changes: Any) -> Any:
    """Pegasus: `<pad>` starts a target, and both sides end with `</s>`."""
    pieces = [
        ("<pad>", 0.0),
        ("</s>", 0.0),
        ("<mask_1>", 0.0),
        ("<mask_2>", 0.0),
        *_unigram(folder)[4:],
        ("<unk>", 0.0),
    ]
    tokenizer = transformers.PegasusTokenizer(vocab=pieces)
    config = transformers.PegasusConfig(**settings(len(tokenizer), **changes))
    return save(folder, transformers.PegasusForConditionalGeneration(config), tokenizer)


def save(folder: Path, model: Any, tokenizer: Any) -> Any:
    """Save them beside each other, the model with weights that nothing leaves at zero; the tokenizer."""
    torch.manual_seed(7)
    eos = model.config.eos_token_id
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not (name.endswith("embed_positions.weight") and model.config.model_type in ("marian", "pegasus")):
                parameter.add_(0.2 * torch.randn_like(parameter))  # and a sinusoid stays one
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_(0.0, 0.5)[0, eos] = 7.0
        else:  # the last norm leans towards its vector
            vector = model.lm_head.weight[eos]
            model.model.decoder.layer_norm.bias.add_(vector * (6.0 / vector.square().sum()))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return tokenizer


FAMILIES: dict[str, tuple[Callable[..., Any], dict[str, Any], tuple[str, str]]] = {
    "marian": (marian, {"activation_function": "swish"}, ("en", "de")),
    "marian, several targets": (marian, {"tags": True, "scale_embedding": False}, ("en", "fra")),
    "marian, two tables": (marian, {"separate": True, "activation_function": "gelu"}, ("en", "de")),
    "m2m100": (m2m100, {}, ("en", "de")),
    "m2m100, not tied": (m2m100, {"tie_word_embeddings": False, "encoder_layers": 3, "d_model": 48}, ("de", "fr")),
    "nllb": (nllb, {"activation_function": "gelu"}, ("eng_Latn", "deu_Latn")),
    "mbart": (mbart, {"activation_function": "gelu", "scale_embedding": False}, ("en_XX", "ro_RO")),
    "mbart50": (mbart50, {"activation_function": "gelu_new", "encoder_layers": 1}, ("en_XX", "de_DE")),
    "bart": (bart, {"activation_function": "gelu"}, ("en", "en")),
    "pegasus": (pegasus, {}, ("en", "en")),
    "bart, nothing forced": (bart, {"forced": None, "scale_embedding": True, "decoder_layers": 1}, ("en", "en")),
}
"""Maker, settings, and the languages to import it with."""


class Both:
    """A model of theirs, and the run that was made of it."""

    @classmethod
    def made(cls, name: str, folder: Path) -> "Both":
        """A model of a family, made and imported in an empty folder."""
        make, options, languages = FAMILIES[name]
        (folder / "theirs").mkdir()
        make(folder / "theirs", **options)
        import_model(folder / "theirs", folder / "run", *languages)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder / "theirs")
        return cls(folder, languages, model, transformers.AutoTokenizer.from_pretrained(folder / "theirs"))

    def __init__(self, folder: Path, languages: tuple[str, str], model: Any, tokenizer: Any) -> None:
        """`folder` holds theirs and run."""
        self.folder, self.run, self.languages = folder / "theirs", folder / "run", languages
        self.model, self.tokenizer = model.eval(), tokenizer
        if "en" not in languages or hasattr(tokenizer, "lang_code_to_token"):
            tokenizer.src_lang, tokenizer.tgt_lang = languages
        self.tag = ">>fra<<" if languages[1] == "fra" else ""
        self.ours = SearchTranslator.load(self.run, device="cpu", ban_unk=False)
        self.src_order, self.tgt_order = self.order("src"), self.order("tgt")

    def src_ids(self, text: str) -> list[int]:
        return list(self.tokenizer(self.tag + text, split_special_tokens=True, verbose=False).input_ids)

    def forced(self) -> int | None:
        """The token that a translation has to begin with."""
        config, tokenizer = self.model.config, self.tokenizer
        if config.model_type == "m2m_100" or (config.model_type == "mbart" and config.decoder_start_token_id == 2):
            lang = self.languages[1]
            return int(getattr(tokenizer, "lang_code_to_id", {}).get(lang) or tokenizer.convert_tokens_to_ids(lang))
        return self.model.generation_config.forced_bos_token_id

    def order(self, side: str) -> list[int]:
        """The id there of each id here, by what they are called."""
        config, tokenizer = self.model.config, getattr(self.ours.tokenizers, side)
        special = {PAD_ID: config.pad_token_id, BOS_ID: config.decoder_start_token_id, EOS_ID: config.eos_token_id}
        inner = getattr(tokenizer, "inner", tokenizer)
        if hasattr(inner, "order"):
            return [special.get(index, theirs) for index, theirs in enumerate(inner.order)]
        vocabulary = {**self.tokenizer.encoder, **getattr(self.tokenizer, "lang_token_to_id", {})}
        if side == "tgt" and getattr(self.tokenizer, "separate_vocabs", False):
            vocabulary = self.tokenizer.target_encoder
        found = []
        for index, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size))):
            numbered = re.fullmatch(r"<(\d+)>", piece)  # a row that no entry of their vocabulary has
            name = piece.rstrip("'") if index > 3 else "<unk>"
            there = vocabulary[name] if name in vocabulary or not numbered else int(numbered[1])
            found.append(special.get(index, there))
        return found

    def ours_of(self, theirs: list[int]) -> list[int]:
        """Ids of theirs as ours."""
        back = {theirs: ours for ours, theirs in enumerate(self.tgt_order) if ours > UNK_ID}
        back |= {self.model.config.eos_token_id: EOS_ID, self.model.config.pad_token_id: PAD_ID}
        return [back.get(index, UNK_ID) for index in theirs]
