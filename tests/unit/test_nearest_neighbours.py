"""Nearest-neighbour translation: the mixture of the paper, a text found again, no part played by neighbouring lines."""

import copy
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error
from tests.unit.test_translator import LINES, run  # noqa: F401 (a fixture)
from typer.testing import CliRunner

import dragoman
from dragoman.cli.main import app
from dragoman.errors import Error
from dragoman.experiments.corrections import Corrections
from dragoman.experiments.datastore import make_datastore
from dragoman.inference import nearest_neighbours
from dragoman.inference.loading import build_model
from dragoman.inference.nearest_neighbours import (
    OWN_TOKEN,
    NearestNeighbours,
    build,
    load,
    load_all,
    looking_up,
    tuned,
    tuned_by_itself,
)
from dragoman.inference.scoring import score
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.ensemble import Ensemble
from dragoman.models.families import MODELS
from dragoman.runs.directory import languages_of
from dragoman.serve.corrections import Correction
from dragoman.serve.store import Store

pytest.importorskip("faiss")

TARGETS = ["a bird sings .", "the dog runs today .", "we see the cat .", "a cat and a dog ."]


def ids(translator: SearchTranslator, pairs: list[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
    tokenizers = translator.tokenizers
    return [(tokenizers.src.encode(src), tokenizers.tgt.encode(tgt)) for src, tgt in pairs]


def with_datastores(translator: SearchTranslator, stores: dict[int, Any]) -> SearchTranslator:
    other = copy.copy(translator)
    other.model = looking_up(translator.model, stores)
    return other


@pytest.fixture(scope="module")
def translator(run: Path) -> SearchTranslator:  # noqa: F811
    return SearchTranslator.load(run, device="cpu", beam_size=3)


@pytest.fixture(scope="module")
def store(translator):
    found = build(translator.model, ids(translator, list(zip(LINES, TARGETS, strict=True))), "digest")
    return replace(found, config=replace(found.config, k=4, temperature=0.01, weight=0.9))


def test_a_model_that_knows_nothing_says_what_the_datastore_says(translator, store):
    assert translator.translate(LINES) != TARGETS
    assert with_datastores(translator, {0: store}).translate(LINES) == TARGETS


def test_the_mixture_is_that_of_the_paper(translator, store):
    settings = replace(store.config, k=5, temperature=2.0, weight=0.25)
    hidden = torch.randn(3, 16, generator=torch.Generator().manual_seed(1))
    output = translator.model.output
    mixed = NearestNeighbours(output, replace(store, config=settings))(hidden).exp().detach().numpy()
    keys = store.index.reconstruct_n(0, store.index.ntotal)
    own = output(hidden).softmax(-1).detach().numpy()
    for row, probs, found in zip(hidden.numpy(), own, mixed, strict=True):
        distances = ((keys - row) ** 2).sum(axis=1)
        nearest = distances.argsort()[:5]
        shares = np.exp(-distances[nearest] / 2.0)
        expected = 0.75 * probs
        np.add.at(expected, store.tokens[nearest], 0.25 * shares / shares.sum())
        np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_of_corrections_the_weight_falls_with_the_distance_and_their_own_words_count_alone(translator):
    pairs = ids(translator, list(zip(LINES, TARGETS, strict=True)))
    store = build(translator.model, pairs, "digest", corrections=True)
    plain = build(translator.model, pairs, "digest")
    output, keys = translator.model.output, torch.from_numpy(store.index.reconstruct_n(0, store.index.ntotal))
    said = output(keys).argmax(dim=-1).numpy()
    assert (store.tokens == np.where(said == plain.tokens, OWN_TOKEN, plain.tokens)).all()
    place = int(np.flatnonzero(store.tokens != OWN_TOKEN)[0])
    others = ((keys - keys[place]) ** 2).sum(dim=1)
    others[place] = torch.inf
    reach = float(others.min()) / 4
    asked = replace(store, config=replace(store.config, k=1, temperature=1.0, weight=0.8, reach=reach))
    step = torch.nn.functional.normalize(torch.ones(16), dim=0) * reach**0.5
    hidden = torch.stack([keys[place], keys[place] + step / 2, keys[place] + step * 1.01])
    own, mixed = (layer(hidden).softmax(-1).detach() for layer in (output, NearestNeighbours(output, asked)))
    right = torch.zeros_like(own)
    right[:, store.tokens[place]] = 1
    for row, weight in enumerate((0.8, 0.8 * 0.75, 0.0)):
        torch.testing.assert_close(mixed[row], (1 - weight) * own[row] + weight * right[row])
    half = replace(asked, tokens=np.full_like(asked.tokens, OWN_TOKEN))  # nothing was corrected
    torch.testing.assert_close(NearestNeighbours(output, half)(hidden).softmax(-1), own)
    most = replace(asked, config=replace(asked.config, k=3, temperature=1e3, reach=1e9))
    most = replace(most, tokens=np.where(np.arange(len(plain.tokens)) == place, most.tokens, OWN_TOKEN))
    mixed = NearestNeighbours(output, most)(hidden).softmax(-1).detach()
    torch.testing.assert_close(mixed[1], own[1])  # two of three are the model's
    assert mixed[0, most.tokens[place]] > 0.75  # but what is the same counts alone


@pytest.mark.parametrize("count", [1, 2, 4])
def test_corrections_are_said_again_be_they_ever_so_few(translator, count):
    pairs = list(zip(LINES, TARGETS, strict=True))[:count]
    corrections = [ids(translator, [pair]) for pair in pairs]
    other = ids(translator, list(zip(LINES[::-1], translator.translate(LINES), strict=True)))
    store = build(translator.model, [pair for group in corrections for pair in group], "digest", corrections=True)
    store = tuned_by_itself(store, translator.model, corrections, other)
    assert store.config.reach is not None
    assert (store.config.nats == 0) == (count == 1)  # there is no other to look one up among
    assert with_datastores(translator, {0: store}).translate(LINES[:count]) == TARGETS[:count]


def test_a_correction_is_looked_up_among_the_others_alone(translator):
    read = nearest_neighbours._read(translator.model, ids(translator, list(zip(LINES * 2, TARGETS * 2, strict=True))))
    own = nearest_neighbours._among_others(read, read.rows % 4)  # each text twice, as one correction
    assert own.distances.min() > 1e-3
    assert nearest_neighbours._among_others(read, read.rows).distances[:, 0].max() < 1e-3
    assert len(nearest_neighbours._among_others(read, read.rows * 0).probs) == 0


@pytest.mark.parametrize("exact", [True, False])
def test_neighbours_in_a_batch_do_not_change_a_translation(translator, monkeypatch, exact):
    if not exact:
        monkeypatch.setattr(nearest_neighbours, "MAX_KEYS_SEARCHED_EXACTLY", 10)
    pairs = [(f"{LINES[a % 4]} {LINES[b]}"[:30], f"{TARGETS[b]} {TARGETS[a % 4]}") for a in range(25) for b in range(4)]
    store = build(translator.model, ids(translator, pairs), "digest")
    asked = with_datastores(translator, {0: replace(store, config=replace(store.config, temperature=1.0, weight=0.5))})
    lines = [*LINES, *(src for src, _ in pairs[:20])]
    together = asked.n_best(lines)
    assert [asked.n_best([line])[0] for line in lines] == together
    # Scoring reads a translation at once, the search token by token: the same distribution.
    for line, found in zip(LINES, together, strict=False):
        [scored] = score(asked, [(line, found[0].text)])
        if len(asked.tokenizers.tgt.encode(found[0].text)) < 8:
            assert scored.log_prob == pytest.approx(found[0].log_prob, abs=1e-3)


def test_an_lstm_looks_up_too(translator):
    torch.manual_seed(1)
    sizes = {"d_model": 16, "num_encoder_layers": 1, "num_decoder_layers": 1}
    lstm = SearchTranslator(
        build_model(MODELS["recurrent"](**sizes), translator.tokenizers),
        translator.tokenizers,
        decoding=translator.decoding,
    )
    store = build(lstm.model, ids(lstm, list(zip(LINES, TARGETS, strict=True))), "digest")
    asked = with_datastores(
        lstm, {0: replace(store, config=replace(store.config, k=2, temperature=0.001, weight=0.95))}
    )
    assert asked.translate(LINES) == TARGETS


def test_the_mixture_is_chosen_by_held_out_pairs(translator, store):
    pairs = ids(translator, list(zip(LINES, TARGETS, strict=True)))
    helped = tuned(store, translator.model, pairs).config
    assert helped.weight == max(nearest_neighbours.WEIGHTS)
    assert helped.nats_with < helped.nats
    other = replace(store, tokens=np.full_like(store.tokens, 3))  # it says nothing but </s>
    useless = tuned(other, translator.model, [(src, tgt * 4) for src, tgt in pairs])
    assert useless.config.weight == 0
    assert looking_up(translator.model, {0: useless}) is translator.model


def test_it_is_kept_in_a_folder_for_one_checkpoint(run, translator, tmp_path):  # noqa: F811
    for name, lines in (("a.en", LINES * 4), ("a.de", TARGETS * 4)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in [*lines, ""]), encoding="utf-8")
    files = [
        f"--src={tmp_path}/a.en",
        f"--tgt={tmp_path}/a.de",
        f"--valid-src={tmp_path}/a.en",
        f"--valid-tgt={tmp_path}/a.de",
    ]
    folder = tmp_path / "store"
    command = ["datastore", str(run), *files, "-o", str(folder), "--device", "cpu"]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    assert "16 pairs in" in told.stdout
    assert "nats a token with it" in told.stdout
    with raises_error(Error.ALREADY_THERE, "store"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    out = tmp_path / "out"
    CliRunner().invoke(app, ["translate", str(run), f"--datastore={folder}", f"-i{tmp_path}/a.en", f"-o{out}"])
    expected = SearchTranslator.load(run, device="cpu", datastores=[folder]).translate(LINES)
    assert out.read_text(encoding="utf-8").splitlines()[:4] == expected == TARGETS
    files = [f"--src={tmp_path}/a.en", f"--ref={tmp_path}/a.de", "--no-checks", "--metric=exact_match", "--json"]
    scored = CliRunner().invoke(app, ["evaluate", str(run), f"--datastore={folder}", *files])
    assert scored.exit_code == 0, scored.output
    assert '"exact_match": 100.0' in scored.stdout
    with raises_error(Error.MISSING_FILE):
        load(tmp_path)
    settings = (folder / "datastore.json").read_text()
    (folder / "datastore.json").write_text(settings.replace('"weights": "', '"weights": "0'))
    with raises_error(Error.MISMATCH, "store"):
        load_all([folder], run, "best", [])
    (folder / "datastore.json").write_text(settings)
    damaged = shutil.copytree(folder, tmp_path / "damaged")
    (damaged / "keys.faiss").write_bytes((folder / "keys.faiss").read_bytes()[:100])
    with raises_error(Error.DAMAGED, "damaged"):
        load(damaged)
    shutil.copy(folder / "keys.faiss", damaged)
    np.save(damaged / "tokens.npy", np.zeros(3, dtype=np.int32))
    with raises_error(Error.DAMAGED, "damaged"):
        load(damaged)


def test_a_datastore_of_corrections_at_each_door(run, tmp_path):  # noqa: F811
    for name, lines in (("v.en", LINES), ("v.de", TARGETS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    valid = [f"--valid-src={tmp_path}/v.en", f"--valid-tgt={tmp_path}/v.de", "--device=cpu"]
    (tmp_path / "c.tsv").write_text(f"{LINES[0]}\t{TARGETS[0]}\n", encoding="utf-8")
    store = Store(tmp_path / "serve.sqlite")
    languages = languages_of(run)
    store.corrections.add(Correction(*languages, LINES[0], TARGETS[0]))
    store.corrections.add(Correction(*languages, LINES[1], "x"), "anna", "pending")
    store.close()
    for name in ("c.tsv", "serve.sqlite"):
        folder = tmp_path / f"{name}.store"
        told = CliRunner().invoke(app, ["datastore", str(run), f"{tmp_path}/{name}", *valid, "-o", str(folder)])
        assert told.exit_code == 0, told.output
        assert "1 pairs in" in told.stdout
        assert dragoman.load(run, device="cpu", datastores=[folder]).translate(LINES[:1]) == TARGETS[:1]
    out = tmp_path / "out"
    CliRunner().invoke(app, ["translate", str(run), f"--datastore={folder}", f"-i{tmp_path}/v.en", f"-o{out}"])
    assert out.read_text(encoding="utf-8").splitlines()[0] == TARGETS[0]
    with raises_error(Error.CONFLICT):
        both = [f"{tmp_path}/c.tsv", f"--src={tmp_path}/v.en", f"--tgt={tmp_path}/v.de", f"-o{tmp_path}/new"]
        CliRunner().invoke(app, ["datastore", str(run), *both, *valid], catch_exceptions=False)


def test_of_a_correction_of_several_sentences_each_is_in_the_datastore(run, tmp_path):  # noqa: F811
    files = []
    for name, lines in (("v.en", LINES), ("v.de", TARGETS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        files.append(tmp_path / name)
    given = Corrections(tmp_path / "c", [("A cat. The dog runs.", "A bird. We see it."), ("A cat. A dog.", "A bird!")])
    store = make_datastore(run, tmp_path / "s", corrections=given, valid=(files[0], files[1]), device="cpu")
    assert store.config.pairs == 4


def test_in_an_ensemble_each_model_has_its_own(run, translator, store):  # noqa: F811
    both = SearchTranslator(
        Ensemble([translator.model, SearchTranslator.load(run, device="cpu").model]),
        translator.tokenizers,
        decoding=translator.decoding,
    )
    alone, twice = with_datastores(both, {1: store}), with_datastores(both, {0: store, 1: store})
    assert twice.translate(LINES) == TARGETS
    pairs = list(zip(LINES, TARGETS, strict=True))
    scores = [[item.log_prob for item in score(each, pairs)] for each in (both, alone, twice)]
    assert scores[0] < scores[1] < scores[2]


def test_refusals(translator, store, monkeypatch):
    with raises_error(Error.MISMATCH):
        with_datastores(translator, {0: replace(store, index=type("Index", (), {"d": 3}))})
    with raises_error(Error.EMPTY):
        build(translator.model, [], "digest")
    monkeypatch.setitem(sys.modules, "faiss", None)
    with raises_error(Error.NOT_INSTALLED):
        build(translator.model, ids(translator, [("a cat", "a dog")]), "digest")
