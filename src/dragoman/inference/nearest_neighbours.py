"""Nearest-neighbour translation (kNN-MT): before each token, look up what was said in the most similar places.

A datastore holds, for every target token of a parallel text, the decoder's hidden state before it (the key) and the
token (the value). In a search each hidden state h looks for the k keys that are nearest to it; their tokens are a
second distribution, which is mixed with the model's own (Khandelwal et al. 2021, "Nearest Neighbor Machine
Translation", equations 3 and 4):

    p(y) = (1 - weight) * p_model(y)  +  weight * sum of softmax(-distance² / temperature) over neighbours that say y

In a datastore of a few corrections the weight falls linearly with the distance of the nearest key, to 0 at `reach`. If
the model says a neighbour's token by itself, the share of this neighbour goes to the model. If most of the neighbours
are such, all shares go to the model. So text that is unlike all corrections is translated as without the datastore, and
tokens that nobody corrected speak against tokens that somebody corrected. (Zheng et al. 2021, "Adaptive Nearest
Neighbor Machine Translation", learn such weights from many pairs; with few pairs, the distances of other text say what
is near.)

The weights of the model stay as they are. Distances are looked up in an inverted file of faiss, which looks at the
PROBED_LISTS nearest of its lists alone, row by row: what a row finds does not depend on the others.
"""

import copy
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dragoman import config
from dragoman.config import Field, settings
from dragoman.data.batch import collate
from dragoman.data.eval_batches import BATCH_TOKENS, eval_batches
from dragoman.errors import Error, not_installed
from dragoman.inference.translation import Ids
from dragoman.models.base import Seq2SeqModel
from dragoman.models.ensemble import Ensemble
from dragoman.progress import Progress
from dragoman.runs import checkpoint
from dragoman.runs.atomic_io import read_json, write_json
from dragoman.special_tokens import PAD_ID

INDEX, TOKENS, SETTINGS = "keys.faiss", "tokens.npy", "datastore.json"

MAX_KEYS_SEARCHED_EXACTLY = 20_000
"""Up to so many keys are compared with all queries, without an index."""
KEYS_A_LIST = 100
"""Keys of each list that the centres of the lists are learnt from, at most."""
PROBED_LISTS = 16
"""Lists that are looked at for each state; 64 lower the loss by another 0.002 nats (benchmarks/log/2026-11.md,
"2026-11-27: nearest neighbours, minimum Bayes risk over runs, a second search")."""
ROWS_AT_ONCE = 16
"""Below 20 rows faiss measures each row by itself; above it multiplies matrices, which may round a row by its
neighbours."""
COUNTS, TEMPERATURES, WEIGHTS = (4, 8, 16, 32, 64), (0.1, 0.2, 0.5, 1.0, 2.0), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
"""The values that are tried; temperatures as parts of the usual distance of the nearest key."""
FEW_COUNT, FEW_WEIGHTS, REACHES = 8, (0.5, 0.7, 0.9), (0.05, 0.1, 0.2, 0.3)
"""The same for a datastore of corrections; reaches as shares of other text that have a key within reach."""
FEW_ROWS = 2000
"""Tokens of corrections that are looked up among the other corrections, at most."""
OWN_TOKEN = -1
"""In the place of a token that the model says by itself before it."""


@settings
class DatastoreConfig:
    """The content of `datastore.json`: what a datastore was made of, and how its neighbours are mixed in."""

    format: int = 1
    weights: str  #: SHA-256 of the model's weights.
    pairs: int  #: Pairs of text in it.
    tokens: int  #: Target tokens in it.
    k: int = Field(default=8, ge=1)  #: Neighbours of each token.
    temperature: float = Field(default=10.0, gt=0)
    """Divisor of the distances, with `reach` times the nearest distance; a larger one spreads wider."""
    weight: float = Field(default=0.0, ge=0, lt=1)  #: Share of the neighbours in the mixture.
    reach: float | None = Field(default=None, gt=0)  #: Squared distance at which the weight is 0; none: it never falls.
    nats: float = 0.0  #: Loss a token on the text that it was tuned on, without neighbours.
    nats_with: float = 0.0  #: The same with them.


@dataclass(frozen=True)
class Datastore:
    """Keys and their tokens, to be looked up."""

    index: Any
    """faiss's."""
    tokens: np.ndarray[Any, np.dtype[np.int32]]
    config: DatastoreConfig

    def nearest(
        self, hidden: Float[np.ndarray, "rows d_model"], k: int
    ) -> tuple[Float[np.ndarray, "rows k"], Int[np.ndarray, "rows k"]]:
        """(squared distances, tokens) of the k nearest keys of each row, nearest first; inf where there are fewer."""
        _faiss().omp_set_num_threads(1)  # of this thread: a search is one of several
        searches = [
            self.index.search(hidden[start : start + ROWS_AT_ONCE], k) for start in range(0, len(hidden), ROWS_AT_ONCE)
        ]
        distances, places = (np.concatenate(parts) for parts in zip(*searches, strict=True))
        return np.where(places >= 0, distances, np.inf), self.tokens[places]

    def save(self, folder: Path) -> None:
        """Write it into a new folder."""
        folder.mkdir(parents=True)
        _faiss().write_index(self.index, str(folder / INDEX))
        np.save(folder / TOKENS, self.tokens)
        write_json(folder / SETTINGS, config.to_dict(self.config))


class NearestNeighbours(nn.Module):
    """An output layer whose distribution is mixed with the distribution of the nearest keys. Its logits are log
    probabilities."""

    def __init__(self, output: nn.Module, datastore: Datastore) -> None:
        super().__init__()
        self.output, self.datastore = output, datastore

    def forward(self, hidden: Float[Tensor, "*shape d_model"]) -> Float[Tensor, "*shape vocab"]:
        own = self.output(hidden).log_softmax(dim=-1, dtype=torch.float32)
        settings = self.datastore.config
        rows = hidden.detach().reshape(-1, hidden.size(-1)).float().cpu().numpy()
        distances, tokens = self.datastore.nearest(np.nan_to_num(rows), settings.k)
        is_own = torch.from_numpy(tokens == OWN_TOKEN)  # (rows, k)
        ids = torch.from_numpy(np.maximum(tokens, 0).astype(np.int64)).to(own.device)
        shares = torch.from_numpy(-scaled(distances, settings)).softmax(dim=-1)
        given = 1 - torch.where(is_own, shares, 0.0).sum(dim=1)
        shares = torch.where(is_own, 0.0, shares).to(own)
        near = torch.zeros(len(rows), own.size(-1)).to(own).scatter_add_(1, ids, shares).gather(1, ids)
        weight = torch.from_numpy(weights(distances, given.numpy(), settings))
        mixed = own.flatten(0, -2) + (-weight * given)[:, None].log1p().to(own)
        both = torch.logaddexp(mixed.gather(1, ids), near.log() + weight[:, None].log().to(own))
        return mixed.scatter(1, ids, both).view_as(own)  # a token that neighbours say twice is given its sum twice


def scaled(distances: Float[np.ndarray, "rows k"], settings: DatastoreConfig) -> Float[np.ndarray, "rows k"]:
    """Squared distances by the temperature: -log of each neighbour's share, but for a constant of the row."""
    if settings.reach is None:
        return distances / settings.temperature
    return distances / (settings.temperature * np.maximum(distances[:, :1], 1e-9))  # what is the same counts alone


def weights(
    distances: Float[np.ndarray, "rows k"], given: Float[np.ndarray, " rows"], settings: DatastoreConfig
) -> Float[np.ndarray, " rows"]:
    """The neighbours' weight in each row, by the squared distance of the row's nearest key and by the share of
    neighbours that give another token than the model's own: 0 where most give the model's own.
    """
    if settings.reach is None:
        return np.full(len(given), settings.weight)
    return settings.weight * np.clip(1 - distances[:, 0] / settings.reach, 0.0, 1.0) * (given > 0.5)


def settings_of(folder: Path) -> DatastoreConfig:
    """The settings of a datastore. Raises DragomanError where there is none."""
    if not (folder / SETTINGS).is_file():
        raise Error.MISSING_FILE("no datastore is there", f"dragoman datastore RUN -o {folder}", file=folder)
    return config.parse(DatastoreConfig, read_json(folder / SETTINGS, dict), str(folder / SETTINGS))


def load(folder: Path) -> Datastore:
    """The datastore in a folder. Raises DragomanError where there is none, or it is damaged."""
    settings = settings_of(folder)
    try:
        index, tokens = _faiss().read_index(str(folder / INDEX)), np.load(folder / TOKENS, allow_pickle=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise Error.DAMAGED(f"is damaged, make it again ({str(error).splitlines()[-1]})", file=folder) from error
    if not index.ntotal == len(tokens) == settings.tokens:
        raise Error.DAMAGED("is damaged, make it again (keys and tokens are not equally many)", file=folder)
    return Datastore(index, tokens, settings)


def by_run(folders: Sequence[Path], runs: Sequence[Path]) -> dict[Path, list[Path]]:
    """The datastores in folders, by the run that each was made for. Raises DragomanError for a datastore that was made
    for none of these runs.
    """
    runs_of = {checkpoint.inference_digest(checkpoint.select(run)): run for run in runs if folders}
    folders_of: dict[Path, list[Path]] = {}
    for folder in folders:
        if (weights := settings_of(folder).weights) not in runs_of:
            raise Error.MISMATCH("was made with other weights than any of these runs'", "make it again", file=folder)
        folders_of.setdefault(runs_of[weights], []).append(folder)
    return folders_of


def load_all(
    folders: Sequence[str | Path], run: Path, which: str, ensemble: Sequence[str | Path]
) -> dict[int, Datastore]:
    """The datastores in folders by the number of the model that each was made for: 0 is the run's, then the others'.

    Raises DragomanError as `load` does, and for one that was made for none of them.
    """
    chosen = [checkpoint.select(run, which), *(checkpoint.select(Path(other), "best") for other in ensemble)]
    digests = [checkpoint.inference_digest(path) for path in chosen]
    stores = {}
    for folder in map(Path, folders):
        store = load(folder)
        if store.config.weights not in digests:
            raise Error.MISMATCH("was made with other weights than this checkpoint's", "make it again", file=folder)
        stores[digests.index(store.config.weights)] = store
    return stores


def looking_up(model: Seq2SeqModel, stores: Mapping[int, Datastore]) -> Seq2SeqModel:
    """The model, of the same weights, that looks up each token: in an ensemble each model in its own datastore.

    Raises DragomanError where keys and hidden states are of unlike sizes.
    """
    used = {place: store for place, store in stores.items() if store.config.weight}  # tuning may find: it does not help
    if not used:
        return model
    if isinstance(model, Ensemble):
        each = [_looking_up(one, used[place]) if place in used else one for place, one in enumerate(model.models)]
        return Ensemble(each).eval()
    return _looking_up(model, used[0])


def _looking_up(model: Seq2SeqModel, store: Datastore) -> Seq2SeqModel:
    if store.index.d != (size := _d_model(model)):
        raise Error.MISMATCH(f"the datastore's keys have {store.index.d} numbers and the model's states {size}")
    return _with_output(model, NearestNeighbours(_output(model), store))


def build(model: Seq2SeqModel, pairs: Sequence[Ids], weights: str, *, corrections: bool = False) -> Datastore:
    """The datastore of (source ids, target ids), whose mixture is not tuned yet. Of `corrections` those tokens alone
    count that the model does not say by itself.

    Raises DragomanError for a text without a token.
    """
    faiss = _faiss()
    total = sum(1 + len(tgt) for _, tgt in pairs)
    if not pairs:
        raise Error.EMPTY("there is no pair to make a datastore of")
    lists = 1 if total <= MAX_KEYS_SEARCHED_EXACTLY else 2 * round(total**0.5)
    order = np.random.default_rng(1).permutation(len(pairs))  # what centres are learnt from is a fair part
    states, tokens, waiting = _states(model, [pairs[row] for row in order]), [], []
    index = faiss.index_factory(_d_model(model), f"IVF{lists},SQfp16" if lists > 1 else "Flat")
    with Progress("reading", total) as bar:
        for hidden, targets, _ in states:
            tokens.append(np.where(_greedy(model, hidden) == targets, OWN_TOKEN, targets) if corrections else targets)
            bar.advance(len(targets))
            if index.is_trained:
                index.add(hidden)
                continue
            waiting.append(hidden)
            if sum(map(len, waiting)) >= min(total, KEYS_A_LIST * lists):
                bar.say(f"learning {lists:,} lists of keys")
                index.train(np.concatenate(waiting))
                index.add(np.concatenate(waiting))
    if lists > 1:
        index.nprobe = PROBED_LISTS
    return Datastore(index, np.concatenate(tokens), DatastoreConfig(weights=weights, pairs=len(pairs), tokens=total))


def tuned(datastore: Datastore, model: Seq2SeqModel, pairs: Sequence[Ids]) -> Datastore:
    """The datastore with the mixture under which held-out (source ids, target ids) are most probable.

    Weight 0 where none is better than the model alone.
    """
    read = _read(model, pairs)
    away, tokens = datastore.nearest(read.states, max(COUNTS))
    looked_up = _LookedUp(read.probs, away.astype(np.float64), tokens == read.tokens[:, None], tokens == OWN_TOKEN)
    usual = float(np.median(away[:, 0])) or float(away[np.isfinite(away)].mean()) or 1.0
    best = replace(datastore.config, weight=0.0, nats=looked_up.nats(), nats_with=looked_up.nats())
    for k in COUNTS:
        for part in TEMPERATURES:
            for weight in WEIGHTS:
                tried = replace(best, k=k, temperature=part * usual, weight=weight)
                if (nats := looked_up.nats(tried)) < best.nats_with:
                    best = replace(tried, nats_with=nats)
    return replace(datastore, config=best)


def tuned_by_itself(
    datastore: Datastore, model: Seq2SeqModel, corrections: Sequence[Sequence[Ids]], other: Sequence[Ids]
) -> Datastore:
    """The datastore of corrections, each of one pair or more, with a mixture whose weight falls with the distance.

    `other` text, which is to stay as it is, says what is near: the reach is one within which few of its tokens have a
    key. Which one, and the weight, is chosen by the likelihood of each correction when it is looked up among the
    others; where no choice helps that, they have little in common, and it is the shortest reach.
    """
    near = datastore.nearest(_read(model, other).states, 1)[0][:, 0]
    reaches = [max(float(reach), 1e-6) for reach in np.quantile(near, REACHES)]
    read = _read(model, [pair for pairs in corrections for pair in pairs])
    owners = np.repeat(np.arange(len(corrections)), [len(pairs) for pairs in corrections])[read.rows]
    looked_up = _among_others(read, owners)
    config = replace(datastore.config, k=FEW_COUNT, temperature=1.0, nats=looked_up.nats())
    choices = [replace(config, weight=weight, reach=reach) for reach in reaches for weight in FEW_WEIGHTS]
    best = min(choices, key=looked_up.nats)
    if looked_up.nats(best) >= config.nats:
        best = replace(config, weight=max(FEW_WEIGHTS), reach=reaches[0])
    return replace(datastore, config=replace(best, nats_with=looked_up.nats(best)))


class _Read(NamedTuple):
    """The target tokens of some pairs as a model reads them."""

    states: Float[np.ndarray, "tokens d_model"]
    tokens: Int[np.ndarray, " tokens"]
    probs: Float[np.ndarray, " tokens"]
    """The model's probability of each."""
    own: np.ndarray
    """True where the model says it by itself."""
    rows: Int[np.ndarray, " tokens"]
    """The pair of each."""


class _LookedUp(NamedTuple):
    """Tokens, the squared distances of their nearest keys, and whether those say the token, or the model's own."""

    probs: Float[np.ndarray, " tokens"]
    distances: Float[np.ndarray, "tokens k"]
    hits: np.ndarray
    own: np.ndarray

    def nats(self, config: DatastoreConfig | None = None) -> float:
        """The loss a token, of a mixture or of the model alone."""
        if not len(self.probs):
            return 0.0
        if config is None:
            return -float(np.log(self.probs).mean())
        away, hits, own = (part[:, : config.k] for part in self[1:])
        logs = scaled(away, config)
        shares = np.exp(logs[:, :1] - logs)
        near, given = ((shares * part).sum(axis=1) / shares.sum(axis=1) for part in (hits & ~own, ~own))
        weight = weights(away, given, config)
        return -float(np.log((1 - weight * given) * self.probs + weight * near).mean())


def _read(model: Seq2SeqModel, pairs: Sequence[Ids]) -> _Read:
    output, device = _output(model), _device(model)
    parts = []
    for hidden, targets, rows in _states(model, pairs):
        with torch.inference_mode():
            log_probs = output(torch.from_numpy(hidden).to(device)).log_softmax(-1, dtype=torch.float32)
        probs = np.exp(log_probs.cpu().numpy()[np.arange(len(targets)), targets].astype(np.float64))
        parts.append(_Read(hidden, targets, probs, log_probs.argmax(dim=-1).cpu().numpy() == targets, rows))
    return _Read(*map(np.concatenate, zip(*parts, strict=True)))


def _among_others(read: _Read, owners: Int[np.ndarray, " tokens"]) -> _LookedUp:
    """Tokens of corrections, FEW_ROWS at most, looked up among the keys of all other corrections."""
    count = FEW_ROWS if (owners != owners[0]).any() else 0
    chosen = np.random.default_rng(1).permutation(len(owners))[:count]
    distances = np.full((len(chosen), FEW_COUNT), np.inf)
    hits, own = np.zeros((2, *distances.shape), dtype=bool)
    squares = (read.states**2).sum(axis=1)
    for number, row in enumerate(chosen):
        away = np.maximum(squares + squares[row] - 2 * (read.states @ read.states[row]), 0.0)
        away[owners == owners[row]] = np.inf
        nearest = np.argsort(away, kind="stable")[:FEW_COUNT]
        distances[number, : len(nearest)] = away[nearest]
        hits[number, : len(nearest)] = read.tokens[nearest] == read.tokens[row]
        own[number, : len(nearest)] = read.own[nearest]
    return _LookedUp(read.probs[chosen], distances, hits, own)


def _states(model: Seq2SeqModel, pairs: Sequence[Ids]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(hidden states before the target tokens, the tokens, their pairs), batch by batch, `</s>` among them."""
    device, model = _device(model), _with_output(model, nn.Identity())
    model.eval()
    for start in range(0, len(pairs), 4096):
        chunk = pairs[start : start + 4096]
        for rows in eval_batches([max(len(src), len(tgt)) for src, tgt in chunk], BATCH_TOKENS):
            batch = collate([chunk[row] for row in rows])
            with torch.inference_mode():
                hidden = model(*(part.to(device) for part in (batch.src, batch.src_mask, batch.tgt_in)))
            real = batch.tgt_out != PAD_ID
            owners = np.repeat(start + np.array(rows), real.sum(dim=1).numpy())
            yield hidden.float().cpu()[real].numpy(), batch.tgt_out[real].numpy().astype(np.int32), owners


def _greedy(model: Seq2SeqModel, hidden: np.ndarray) -> np.ndarray:
    """The most probable token after each state."""
    with torch.inference_mode():
        logits: Tensor = _output(model)(torch.from_numpy(hidden).to(_device(model)))
    return logits.argmax(dim=-1).cpu().numpy()


def _output(model: Seq2SeqModel) -> nn.Module:
    output = model.output
    assert isinstance(output, nn.Module)  # every family of models ends in one
    return output.output if isinstance(output, NearestNeighbours) else output


def _d_model(model: Seq2SeqModel) -> int:
    weight = _output(model).weight
    assert isinstance(weight, Tensor)
    return weight.size(1)


def _device(model: Seq2SeqModel) -> torch.device:
    return next(model.parameters()).device


def _with_output(model: Seq2SeqModel, output: nn.Module) -> Seq2SeqModel:
    """The model, of the same weights, with another output layer."""
    other = copy.copy(model)
    other._modules = {**model._modules, "output": output}
    return other


def _faiss() -> ModuleType:
    """The library. On macOS it and PyTorch bring an OpenMP each; they get along where faiss takes one thread."""
    on_macos = sys.platform == "darwin"
    if on_macos:
        os.environ.setdefault("KMP_DUPLICATE_LIB_OK", "TRUE")
    try:
        import faiss
    except ImportError as error:
        raise not_installed("a datastore needs faiss", "knn") from error
    if on_macos:
        faiss.omp_set_num_threads(1)
    return faiss
