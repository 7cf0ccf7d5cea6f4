"""Models of Hugging Face as run directories: what was exported comes back bit for bit, and theirs computes as there."""

import contextlib
import json
import pickle
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

transformers = pytest.importorskip("transformers")

from tests.errors import raises_error  # noqa: E402
from tests.system import hub_models  # noqa: E402
from tests.system.hub_models import FAMILIES, Both  # noqa: E402
from tests.system.test_export_huggingface import (  # noqa: E402
    PIECES,
    SEPARATE,
    SRC_LINES,
    VARIANTS,
    exported,
    translator_of,
)

from dragoman.decoding.penalties import AveragePenalty  # noqa: E402
from dragoman.errors import DragomanError, Error  # noqa: E402
from dragoman.export import export  # noqa: E402
from dragoman.importing.import_run import import_model  # noqa: E402
from dragoman.inference.search_translator import SearchTranslator  # noqa: E402
from dragoman.special_tokens import BOS_ID, EOS_ID, PAD_ID  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

STRINGS = 20_000


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Both]:
    made: dict[str, Both] = {}

    def one(name: str) -> Both:
        if name not in made:
            torch.manual_seed(1)  # the first weights shall not depend on the tests before
            made[name] = Both.made(name, tmp_path_factory.mktemp("hub"))
        return made[name]

    return one


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_theirs(name: str, both: Callable[[str], Both]) -> None:
    made = both(name)
    model, tokenizers = made.ours.model, made.ours.tokenizers
    worst = 0.0
    for line in list(hub_models.sentences(40, seed=11)):
        src, tgt = tokenizers.src.encode(line), tokenizers.tgt.encode(line)
        assert src
        mask = torch.ones(1, len(src) + 1, dtype=torch.bool)
        their_src = torch.tensor([made.src_ids(line)])
        their_tgt = torch.tensor([[made.model.config.decoder_start_token_id, *map(made.tgt_order.__getitem__, tgt)]])
        with torch.inference_mode():
            ours = model(torch.tensor([[*src, EOS_ID]]), mask, torch.tensor([[BOS_ID, *tgt]]))
            theirs = made.model(input_ids=their_src, decoder_input_ids=their_tgt).logits
        # Ours knows the entry that is never said as well.
        never = PAD_ID if made.model.config.pad_token_id == made.model.config.decoder_start_token_id else BOS_ID
        if name == "mbart":
            never = BOS_ID
        ids = [index for index in range(tokenizers.tgt.vocab_size) if index != never]
        log_probs = ours.log_softmax(-1)[0][:, ids]
        order = [made.tgt_order[index] for index in ids]
        assert sorted(order) == list(range(theirs.size(-1)))
        worst = max(worst, float((log_probs - theirs.log_softmax(-1)[0][:, order]).abs().max()))
    assert worst < 1e-5


@pytest.mark.parametrize("name", FAMILIES)
def test_ids_are_theirs(name: str, both: Callable[[str], Both]) -> None:
    made = both(name)
    tokenizer, end = made.ours.tokenizers.src, made.ours.model.src_end
    wrong = []
    for text in hub_models.strings(STRINGS):
        if "marian" in name and text.startswith(">>"):
            continue  # a tag there; here a text is a text, and the language is said beside it
        ours, theirs = tokenizer.encode(text), made.src_ids(text)
        if not hasattr(made.tokenizer, "current_spm"):  # theirs may read a special out of a text that spells it
            first, last = len(getattr(tokenizer, "before", ())), len(getattr(tokenizer, "after", ())) + end
            special = {*made.tokenizer.all_special_ids, *made.tokenizer.get_added_vocab().values()}
            unk = made.tokenizer.unk_token_id
            inner = [unk if index in special else index for index in theirs[first : len(theirs) - last]]
            theirs = [*theirs[:first], *inner, *theirs[len(theirs) - last :]]
        expected = [made.src_order[index] for index in ([*ours, EOS_ID] if end else ours)]
        if ours and expected != theirs:
            wrong.append((text, expected, theirs))
    assert wrong[:3] == []


@pytest.mark.parametrize("name", FAMILIES)
def test_beams_are_theirs(name: str, both: Callable[[str], Both]) -> None:
    made = both(name)
    model, config = made.model, made.model.config
    ours = made.ours.with_decoding(
        beam_size=4, length_penalty=AveragePenalty(alpha=0.5), max_length_ratio=0.0, max_length_extra=60, n_best=1
    )
    texts = list(hub_models.sentences(200, seed=21))
    found = [found[0] for found in ours.n_best(texts)]
    never = [config.pad_token_id] if config.pad_token_id != config.eos_token_id else None
    different, unfinished = [], 0
    encoded = [made.src_ids(text) for text in texts]
    for length in sorted(set(map(len, encoded))):  # of one length together: nothing is padded
        rows = [row for row in range(len(texts)) if len(encoded[row]) == length]
        out = model.generate(
            torch.tensor([encoded[row] for row in rows]), num_beams=4, length_penalty=0.5, early_stopping="never",
            max_length=61, do_sample=False, suppress_tokens=never, forced_bos_token_id=made.forced(),
            return_dict_in_generate=True, output_scores=True, forced_eos_token_id=None,
        )  # fmt: skip
        for row, sequence, score in zip(rows, out.sequences.tolist(), out.sequences_scores.tolist(), strict=True):
            if made.model.config.eos_token_id not in sequence[1:]:
                unfinished += 1
                continue
            written = ours.tokenizers.tgt.decode(made.ours_of(sequence[1:]))
            if written != found[row].text:
                different.append((found[row].score - score, texts[row], written, found[row].text))
    # Theirs let an unfinished hypothesis win at the longest length, where ours want one that is finished.
    assert unfinished <= 20
    assert different == []


# -- out again -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["ctranslate2", "huggingface", "onnx"])
@pytest.mark.parametrize("name", FAMILIES)
def test_what_was_imported_goes_out_again(name: str, to: str, both: Callable[[str], Both], tmp_path: Path) -> None:
    made, told = both(name), list[str]()
    export(made.run, to, tmp_path / "out", sentences=60, tell=told.append)  # with its proof
    assert any("60 of 60" in line or "100" in line for line in told), told
    if to == "huggingface":  # and in once more
        again = SearchTranslator.load(import_model(tmp_path / "out", tmp_path / "run"), device="cpu")
        theirs = dict(again.model.named_parameters())
        assert [key for key, ours in made.ours.model.named_parameters() if not torch.equal(ours, theirs[key])] == []
        lines = list(hub_models.sentences(20, seed=31))
        assert [found[0].text for found in again.n_best(lines)] == [
            found[0].text for found in SearchTranslator.load(made.run, device="cpu").n_best(lines)
        ]


@pytest.mark.parametrize("name", ["marian", "marian, several targets", "m2m100"])
def test_a_package_for_argos_has_the_sources_model_and_no_languages(
    name: str, both: Callable[[str], Both], tmp_path: Path
) -> None:
    made, told = both(name), list[str]()
    if name != "marian":
        with raises_error(Error.CANNOT_EXPORT):
            export(made.run, "argos", tmp_path / "out")
        return
    export(made.run, "argos", tmp_path / "out", sentences=60, tell=told.append)
    assert any("60 (100.0%)" in line for line in told), told
    [package] = (tmp_path / "out").glob("*.argosmodel")
    with zipfile.ZipFile(package) as archive:
        [model] = [name for name in archive.namelist() if name.endswith("sentencepiece.model")]
        assert archive.read(model) == (made.folder / "source.spm").read_bytes()


# -- our own exports -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", ["one vocabulary", "two vocabularies"])
@pytest.mark.parametrize("name", VARIANTS)
def test_what_was_exported_comes_back_bit_for_bit(name: str, tokenizer: str, tmp_path: Path) -> None:
    _, variant = VARIANTS[name]
    if tokenizer == "two vocabularies" and variant.get("tie_embeddings", "all") == "all":
        variant = {**variant, "tie_embeddings": "output"}
    made = translator_of(variant, PIECES if tokenizer == "one vocabulary" else SEPARATE, normalize="nfkc")
    translator = made.with_decoding(beam_size=3, length_penalty=AveragePenalty(alpha=0.7))
    exported(translator, tmp_path / "theirs")
    run = import_model(tmp_path / "theirs", tmp_path / "run", "de", "en")
    back = SearchTranslator.load(run, device="cpu")
    ours, theirs = (dict(one.model.named_parameters()) for one in (translator, back))
    assert ours.keys() == theirs.keys()
    assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == []
    assert back.decoding == translator.decoding
    assert back.normalize is translator.normalize
    assert back.max_src_tokens == min(translator.max_src_tokens, (back.model.max_target_length or 10**6) - 1)
    texts = [found[0].text for found in translator.n_best(SRC_LINES)]
    assert [found[0].text for found in back.n_best(SRC_LINES)] == texts


# -- refusals ------------------------------------------------------------------------------------------------------


def refused(folder: Path, run: Path, *languages: str) -> str:
    with pytest.raises(DragomanError) as error:
        import_model(folder, run, *(languages or ("en", "de")))
    assert not run.exists()
    return str(error.value)


def change(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def test_what_cannot_be_represented_is_refused_with_all_reasons(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    hub_models.marian(folder, decoder_ffn_dim=40, activation_function="tanh")
    message = refused(folder, tmp_path / "run")
    assert "ffn_dim is 48 in the encoder and 40 in the decoder" in message
    assert "activation_function: tanh" in message
    tensors = safetensors_of(folder)
    write_safetensors(folder, {**tensors, "adapter.weight": torch.ones(2)})
    change(folder, decoder_ffn_dim=48, activation_function="relu")
    message = refused(folder, tmp_path / "run")
    assert "adapter.weight: nothing here has its part" in message
    assert "model.decoder.layers.0.fc1.weight: it is (40, 32), and by config.json (48, 32)" in message


def test_a_weight_without_a_part_here_is_refused(tmp_path: Path, both: Callable[[str], Both]) -> None:
    folder = copied(both("marian").folder, tmp_path)
    write_safetensors(folder, {**safetensors_of(folder), "adapter.weight": torch.ones(2)})
    assert "adapter.weight: nothing here has its part" in refused(folder, tmp_path / "run")
    tensors = safetensors_of(folder)
    del tensors["adapter.weight"], tensors["model.encoder.layers.0.fc1.bias"]
    write_safetensors(folder, tensors)
    assert "no model.encoder.layers.0.fc1.bias" in refused(folder, tmp_path / "run")
    change(folder, model_type="t5")
    assert "a model of type 't5'; imported are marian" in refused(folder, tmp_path / "run")


def test_a_pickle_is_not_opened(tmp_path: Path, both: Callable[[str], Both]) -> None:
    folder = copied(both("bart").folder, tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Path(tmp_path / "canary")))
    message = refused(folder, tmp_path / "run", "en", "en")
    assert "pytorch_model.bin: a pickle, which may run any code and is not opened" in message
    assert "convert it" in message
    (folder / "pytorch_model.bin").unlink()
    assert "has no model.safetensors" in refused(folder, tmp_path / "run", "en", "en")


def test_languages_that_are_not_there(tmp_path: Path, both: Callable[[str], Both]) -> None:
    assert "no language 'xx' in this model" in refused(both("m2m100").folder, tmp_path / "run", "xx", "de")
    assert "it has deu_Latn" in refused(both("nllb").folder, tmp_path / "run", "eng_Latn", "deu_Cyrl")
    assert "give `tgt_lang` ro_RO" in refused(both("mbart").folder, tmp_path / "run", "en_XX", "de_DE")
    run = import_model(both("mbart50").folder, tmp_path / "run", "en", "de")
    assert SearchTranslator.load(run, device="cpu").languages == ("en_XX", "de_DE")


def test_hostile_folders_are_errors(tmp_path: Path, both: Callable[[str], Both]) -> None:
    rng = random.Random(3)
    honest = both("m2m100").folder
    for number in range(60):
        folder = copied(honest, tmp_path / str(number))
        path = folder / rng.choice(["config.json", "model.safetensors", "vocab.json", "sentencepiece.bpe.model",
                                    "tokenizer_config.json", "generation_config.json"])  # fmt: skip
        data = bytearray(path.read_bytes())
        kind = number % 3
        if kind == 0:
            data = data[: rng.randrange(len(data))]
        elif kind == 1:
            for _ in range(10):
                data[rng.randrange(min(len(data), 2000))] = rng.randrange(256)
        else:
            data = bytearray(rng.randbytes(rng.randrange(400)))
        path.write_bytes(data)
        with contextlib.suppress(DragomanError):  # a change of a weight is none that can be seen
            import_model(folder, folder / "run", "en", "de")
    folder = copied(honest, tmp_path / "large")
    damages: list[dict[str, Any]] = [{"vocab_size": 10**12}, {"d_model": 10**9}, {"encoder_layers": 10**9},
                    {"vocab_size": -1}, {"encoder_attention_heads": 0}, {"d_model": "x"}, {"pad_token_id": 10**9},
                    {"decoder_start_token_id": None}]  # fmt: skip
    for number, changes in enumerate(damages):
        other = copied(folder, tmp_path / "large" / str(number))
        change(other, **changes)
        assert refused(other, tmp_path / "run")


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to / "copy")
    return to / "copy"


def safetensors_of(folder: Path) -> dict[str, Any]:
    return dict(load_file(folder / "model.safetensors"))


def write_safetensors(folder: Path, tensors: dict[str, Any]) -> None:
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
