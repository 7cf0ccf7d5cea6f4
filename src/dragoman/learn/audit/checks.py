"""The properties that a Transformer or an LSTM for translation should have, asked of a learner's own model.

Each check yields the faults that it finds. Most need nothing but the model as a function of ids; where they find
something, the record of the run (`trace.py`) says where it begins.
"""

import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.learn.audit import attention
from dragoman.learn.audit.finding import Finding, number
from dragoman.learn.audit.losses import loss_of, losses
from dragoman.learn.audit.recurrent import cells
from dragoman.learn.audit.subject import BATCH, SRC_LEN, TGT_LEN, TGT_VOCAB, Subject, of_type, plain_operations
from dragoman.learn.audit.trace import Axis, Call, Recorder, apart, first_difference, first_leak

LAST = [BATCH - 1]
ROW = Axis(BATCH, BATCH, LAST, LAST)
"""The last sentence of a batch in both runs."""


def numbers(subject: Subject) -> Iterator[Finding]:
    """Logits are numbers, also without padding."""
    logits, calls = subject.traced(subject.src(), tgt(subject))
    if bool(logits.isfinite().all()):
        return
    for call in calls:
        if call.value is not None and call.value.is_floating_point() and bool(call.value.isnan().any()):
            values = {"share": f"{float(logits.isnan().float().mean()):.0%}"}
            yield Finding("nan", call.place, values)
            return


def registered(subject: Subject) -> Iterator[Finding]:
    """The optimizer sees all weights."""
    model = subject.model
    _, calls = subject.traced(subject.src(), tgt(subject))
    own = {id(one) for one in model.parameters()}
    for call in calls:
        for one in call.inputs:
            if isinstance(one, nn.Parameter) and id(one) not in own:
                yield Finding("weights-unregistered", call.place, {"shape": tuple(one.shape)})
                return


def evaluation(subject: Subject) -> Iterator[Finding]:
    """In evaluation the same input gives the same logits."""
    src, tgt_in = subject.src(), tgt(subject)
    with torch.no_grad(), of_type(subject.dtype):
        runs = []
        for seed in (1, 2, 1):
            torch.manual_seed(seed)
            with plain_operations(), Recorder(subject.path.resolve().parent) as recorder:
                output = subject.call(src.T, tgt_in.T) if subject.time_first else subject.call(src, tgt_in)
            runs.append((output, recorder.calls))
    one, other, again = (_first(output) for output, _ in runs)
    off = apart(one, other)
    if off > subject.tolerance and apart(one, again) <= subject.tolerance:  # else a state is kept between calls
        call = first_difference(runs[0][1], runs[1][1], [], subject.tolerance)
        drops = {"bernoulli", "native_dropout", "rand", "rand_like"}
        place = next((one.place for one in runs[0][1] if one.name in drops), call[0].place if call else None)
        yield Finding("dropout-in-evaluation", place, {"off": number(off)})


def calls_apart(subject: Subject) -> Iterator[Finding]:
    """Nothing is kept from one call to the next."""
    first, calls = subject.traced(subject.src(), tgt(subject))
    subject.output(subject.src(seed=8), tgt(subject, seed=9))
    again, calls_again = subject.traced(subject.src(), tgt(subject))
    if (off := apart(first, again)) > subject.tolerance:
        call = first_difference(calls, calls_again, [], subject.tolerance)
        yield Finding("state-kept", call[0].place if call else None, {"off": number(off)})


def rows_apart(subject: Subject) -> Iterator[Finding]:
    """A sentence does not depend on the others of its batch, nor on its row."""
    src, tgt_in = subject.src(), tgt(subject)
    other_src, other_tgt = subject.src(seed=5), tgt(subject, seed=6)
    other_src[LAST], other_tgt[LAST] = src[LAST], tgt_in[LAST]
    (one, calls), (other, other_calls) = subject.traced(src, tgt_in), subject.traced(other_src, other_tgt)
    if (off := apart(one[LAST], other[LAST])) > subject.tolerance:
        call = first_difference(calls, other_calls, [ROW], subject.tolerance)
        if (
            call
            and call[0].name in attention.SOFTMAXES
            and (wrong := attention.wrong_axis(call[0], (SRC_LEN, TGT_LEN)))
        ):
            yield wrong
            return
        yield Finding("rows-mixed", call[0].place if call else None, {"off": number(off)})
        return
    same = subject.output(src[LAST * BATCH], tgt_in[LAST * BATCH])
    if (off := apart(same[0], same[-1])) > subject.tolerance:
        calls = subject.traced(src[LAST * BATCH], tgt_in[LAST * BATCH])[1]
        first = next((one for one in calls if _rows_differ(one.value, subject)), None)
        yield Finding("row-counts", first.place if first else None, {"off": number(off)})


def _rows_differ(value: Tensor | None, subject: Subject) -> bool:
    """True for vectors of all positions that differ between the first and the last sentence."""
    dim = 1 if subject.time_first else 0
    if (
        value is None
        or not value.is_floating_point()
        or value.dim() != 3
        or value.size(dim) != BATCH
        or value.size(1 - dim) == 1
    ):
        return False
    return apart(value.select(dim, 0), value.select(dim, -1)) > subject.tolerance


def future(subject: Subject) -> Iterator[Finding]:
    """No position of the target sees a later one."""
    src, tgt_in = subject.src(), tgt(subject)
    length = tgt_in.size(1)
    logits, calls = subject.traced(src, tgt_in)
    for place in range(length - 1, 0, -1):
        other = tgt_in.clone()
        other[:, place] = torch.where(other[:, place] == 6, 7, 6)
        changed, other_calls = subject.traced(src, other)
        off = apart(logits[:, :place], changed[:, :place])
        if off > subject.tolerance:
            first = int((logits - changed)[:, :place].abs().amax(dim=(0, 2)).gt(subject.tolerance).nonzero()[0])
            call = first_leak(calls, other_calls, length, place, subject.tolerance)
            named = None
            if call is not None:
                index = next(number for number, one in enumerate(calls) if one is call)
                earlier = [one for one in attention.softmaxes(calls) if one <= index]
                named = attention.wrong_axis(calls[earlier[-1]], [length]) if earlier else None
            values = {"first": first, "place": place, "off": number(off)}
            yield named or Finding("future", call.place if call else None, values)
            return


def past(subject: Subject) -> Iterator[Finding]:
    """Each token of the target is seen from its own position on, to the end."""
    src, tgt_in = subject.src(), tgt(subject)
    logits = subject.output(src, tgt_in)
    other = tgt_in.clone()
    other[:, 1] = torch.where(other[:, 1] == 6, 7, 6)
    change = (logits - subject.output(src, other)).abs().amax(dim=(0, 2))
    blind = [place for place in range(1, len(change)) if float(change[place]) < 1e-9]
    if blind:
        yield Finding("past", None, {"place": blind[0], "off": number(float(change[blind[0]]))})


def source_padding(subject: Subject) -> Iterator[Finding]:
    """Padding behind a source changes nothing."""
    if subject.same_length:
        return
    long, middle, short = subject.src(), subject.src(8, seed=3), subject.src(5, seed=4)
    rows = torch.cat([long[:1], subject.padded(middle[:1], SRC_LEN), subject.padded(short[:1], SRC_LEN)])
    tgt_in = tgt(subject)
    alone, calls = subject.traced(short[[0] * BATCH], tgt_in)
    among, other_calls = subject.traced(rows, tgt_in)
    off = apart(alone[LAST], among[LAST])
    if off <= subject.tolerance:
        return
    axes = [ROW, Axis(5, SRC_LEN, range(5), range(5))]
    found_pair = first_difference(calls, other_calls, axes, subject.tolerance)
    if found_pair is not None:
        index = next(number for number, one in enumerate(other_calls) if one is found_pair[1])
        if named := attention.of_padding(other_calls, index, [SRC_LEN, 8, 5]):
            values = {**named.values, "off": number(off)}
            yield Finding(named.key, named.place, values)
            return
    yield Finding("source-padding", found_pair[0].place if found_pair else None, {"off": number(off)})


def target_padding(subject: Subject) -> Iterator[Finding]:
    """Padding behind a target changes nothing before it."""
    if subject.same_length:
        return
    src, short = subject.src(), subject.tgt(4, seed=4)
    alone, calls = subject.traced(src, short)
    among, other_calls = subject.traced(src, subject.padded(short, TGT_LEN))
    if (off := apart(alone, among[:, :4])) > subject.tolerance:
        axes = [Axis(4, TGT_LEN, range(4), range(4))]
        pair = first_difference(calls, other_calls, axes, subject.tolerance)
        yield Finding("target-padding", pair[0].place if pair else None, {"off": number(off)})


def source(subject: Subject) -> Iterator[Finding]:
    """Every token of the source changes the logits, and so does their order."""
    src, tgt_in = subject.src(), tgt(subject)
    logits = subject.output(src, tgt_in)
    for place in range(src.size(1) - 1):
        other = src.clone()
        other[:, place] = torch.where(other[:, place] == 6, 7, 6)
        off = apart(logits, subject.output(other, tgt_in))
        if off < 1e-12:
            yield Finding("source-unread", None, {"place": place, "off": number(off)})
            return
    other = src.clone()
    other[:, [0, 1, 2]] = src[:, [2, 0, 1]]
    if (off := apart(logits, subject.output(other, tgt_in))) < 1e-9:
        yield Finding("order", None, {"off": number(off)})


def positions(subject: Subject) -> Iterator[Finding]:
    """A table of sines and cosines has pairs of one rate, and no two rows alike."""
    for table, place in _tables(subject):
        half = table.size(1) // 2
        ways = {
            "in turn": (table[:, 0 : 2 * half : 2], table[:, 1 : 2 * half : 2]),
            "in two halves": (table[:, :half], table[:, half : 2 * half]),
        }
        off = min(float((sin**2 + cos**2 - 1).abs().max()) for sin, cos in ways.values())
        if off > 1e-3:
            yield Finding("positions-unpaired", place, {"off": number(off)})
            return
        unit = F.normalize(table[:50], dim=1)
        alike = float((unit @ unit.T).fill_diagonal_(0.0).max())
        if alike > 0.9999:
            yield Finding("positions-alike", place, {"alike": f"{alike:.5f}"})
            return


def _tables(subject: Subject) -> Iterator[tuple[Tensor, Any]]:
    """Fixed tables whose first row is of zeros and ones: sin 0 and cos 0."""
    _, calls = subject.traced(subject.src(), tgt(subject))
    every = [*subject.building, *calls]
    waves = [call for call in every if call.name in ("sin", "cos")]
    place = waves[-1].place if waves else None
    values = [*subject.model.buffers()]
    values += [one for module in subject.model.modules() for one in vars(module).values() if isinstance(one, Tensor)]
    values += [call.value for call in calls if call.value is not None]
    for value in values:
        table = value.detach().squeeze()
        if table.dim() == 2 and len(table) >= 3 and table.size(1) >= 4 and table.is_floating_point() and waves:
            first, ones = table[0], int((table[0] == 1).sum())
            begins = bool(((first == 0) | (first == 1)).all()) and 0 < ones < len(first)
            if begins and float(table.abs().max()) <= 1 and not bool(((table == 0) | (table == 1)).all()):
                yield table.double(), place
                return


def embeddings(subject: Subject) -> Iterator[Finding]:
    """Words are about as large as the positions that are added to them."""
    _, calls = subject.traced(subject.src(), tgt(subject))
    tables = [table for table, _ in _tables(subject)]
    for call in calls:
        if call.name != "add" or len(call.inputs) < 2 or not tables:
            continue
        one, other = call.inputs[:2]
        if one.shape[-1:] != other.shape[-1:] or one.dim() < 2 or other.dim() < 2:
            continue
        sizes = [float(each.detach().double().square().mean().sqrt()) for each in (one, other)]
        rows = other.detach().double().reshape(-1, other.size(-1))
        if any(
            table.size(1) == rows.size(1) and len(table) >= 3 and apart(table[:3], rows[:3]) < 1e-4
            for table in tables
            if len(rows) >= 3
        ):
            ratio = sizes[0] / max(sizes[1], 1e-12)
            if ratio < 0.36:
                yield Finding("embedding-scale", call.place, {"ratio": number(ratio)})
            return


def attentions(subject: Subject) -> Iterator[Finding]:
    """Scores know the query; in a Transformer they are scaled by the root of a head's size."""
    _, calls = subject.traced(subject.src(), tgt(subject))
    yield from attention.queries(calls)
    if not is_recurrent(calls):
        parameters = {id(one) for one in subject.model.parameters()}
        yield from attention.scale(calls, parameters)


def is_recurrent(calls: Sequence[Call]) -> bool:
    return sum(call.name == "sigmoid" for call in calls) >= TGT_LEN


def recurrence(subject: Subject) -> Iterator[Finding]:
    """An LSTM's cell remembers, and is not its state."""
    _, calls = subject.traced(subject.src(), tgt(subject))
    if is_recurrent(calls):
        yield from cells(calls)


def layers(subject: Subject) -> Iterator[Finding]:
    """Layers have weights of their own, and the optimizer sees them all."""
    model = subject.model
    vocabularies = {subject.src_vocab, TGT_VOCAB}
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if not vocabularies & set(parameter.shape):
            names.setdefault(id(parameter), []).append(name)
    shared = [each for each in names.values() if len(each) > 1]
    if shared:
        values = {"one": shared[0][0], "other": shared[0][1], "count": len(shared) - 1}
        yield Finding("layers-shared", None, values)
    counts: dict[str, int] = {}
    handles = [
        module.register_forward_hook(lambda *_, name=name: counts.update({name: counts.get(name, 0) + 1}))
        for name, module in model.named_modules()
        if name
    ]
    _, calls = subject.traced(subject.src(), tgt(subject))
    for handle in handles:
        handle.remove()
    if not shared and not is_recurrent(calls):
        yield from _used_again(model, counts, calls)


def _used_again(model: nn.Module, counts: dict[str, int], calls: Sequence[Call]) -> Iterator[Finding]:
    """A layer with weights that a pass goes through more than once."""
    for name, module in model.named_modules():
        is_layer = sum(1 for _ in module.parameters()) > 4 or isinstance(module, nn.LayerNorm)
        if is_layer and counts.get(name, 0) > 1 and not isinstance(module, nn.Embedding):
            yield Finding("layers-shared/used", None, {"name": name, "count": counts[name]})
            return


def norms(subject: Subject) -> Iterator[Finding]:
    """The vectors that become logits are normalised, and a sublayer's output is added to its input."""
    _, calls = subject.traced(subject.src(), tgt(subject))
    normed = [call for call in calls if call.name == "native_layer_norm"]
    if not normed or is_recurrent(calls):
        return
    last = next(
        (
            call
            for call in reversed(calls)
            if call.name in ("mm", "addmm", "bmm") and call.value is not None and call.value.size(-1) == TGT_VOCAB
        ),
        None,
    )
    if last is None:
        return
    hidden = next(one for one in last.inputs if one.dim() > 1 and one.size(-1) != TGT_VOCAB)
    size = float(hidden.detach().double().std(dim=-1).mean())
    if not 0.7 < size < 1.4:
        yield Finding("norm-missing", last.place, {"size": number(size)})
    yield from _residuals(calls, hidden.size(-1))


def _residuals(calls: Sequence[Call], d_model: int) -> Iterator[Finding]:
    """Every attention is followed by a sum of its output and its input, before the next attention."""
    softmaxes = attention.softmaxes(calls)
    if not softmaxes:
        return
    ends = [*softmaxes[1:], len(calls)]
    for start, end in zip(softmaxes, ends, strict=True):
        sums = [
            call
            for call in calls[start:end]
            if call.name == "add"
            and len(call.inputs) > 1
            and call.inputs[0].shape == call.inputs[1].shape
            and call.inputs[0].size(-1) == d_model
        ]
        if not sums:
            yield Finding("residual-missing", calls[start].place, {"count": 0})
            return


def gradients(subject: Subject) -> Iterator[Finding]:
    """Every matrix gets a gradient."""
    src, tgt_in, tgt_out = lesson(subject)
    with Recorder(subject.path.resolve().parent) as recorder:
        value = mean_loss(subject, subject.logits(src, tgt_in), tgt_out)
        value.backward()
    missing = [
        name
        for name, one in subject.model.named_parameters()
        if one.requires_grad and (one.grad is None or (one.dim() > 1 and not bool(one.grad.any())))
    ]
    total = sum(1 for _ in subject.model.parameters())
    subject.model.zero_grad()
    if missing:
        cut = next((call.place for call in recorder.calls if call.name == "detach" and _is_cut(call)), None)
        yield Finding("no-gradient", cut, {"name": missing[0], "count": len(missing), "total": total})


def _is_cut(call: Call) -> bool:
    """True where the learner's line says so; softmax and others detach what they keep for the way back."""
    return call.place is not None and bool(re.search(r"detach|\.data|no_grad|item\(", linecache.getline(*call.place)))


def learning(subject: Subject) -> Iterator[Finding]:
    """A pair of sentences is learnt by heart."""
    src, tgt_in, tgt_out = lesson(subject)
    before = {name: one.detach().clone() for name, one in subject.model.state_dict().items()}
    own = loss_of(subject)
    optimizer = torch.optim.Adam(subject.model.parameters(), lr=2e-3)
    values: list[float] = []
    for _ in range(60):
        logits = subject.logits(src, tgt_in)
        with of_type(subject.dtype):
            loss = own(logits, tgt_out).mean() if own else mean_loss(subject, logits, tgt_out)
        values.append(float(mean_loss(subject, logits.detach(), tgt_out)))
        if not loss.requires_grad or values[-1] < 0.3 * values[0]:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    subject.model.load_state_dict(before)
    if values[-1] > 0.6 * values[0]:
        values_shown = {"count": len(src), "steps": len(values), "first": number(values[0]), "last": number(values[-1])}
        yield Finding("does-not-learn", None, values_shown)


def mean_loss(subject: Subject, logits: Tensor, tgt_out: Tensor) -> Tensor:
    """Cross-entropy of real tokens, of logits or of probabilities."""
    if float(logits.detach().min()) >= 0 and float((logits.detach().sum(dim=-1) - 1).abs().max()) < 1e-4:
        return F.nll_loss(logits.clamp(min=1e-9).log().transpose(1, 2), tgt_out)
    return F.cross_entropy(logits.transpose(1, 2), tgt_out)


def lesson(subject: Subject) -> tuple[Tensor, Tensor, Tensor]:
    """(src, tgt_in, tgt_out) of three pairs without padding."""
    tgt_in = tgt(subject)
    end = torch.full((BATCH, 1), subject.specials["eos"])
    return subject.src(), tgt_in, torch.cat([tgt_in[:, 1:], end], dim=1)


def tgt(subject: Subject, seed: int = 2) -> Tensor:
    return subject.tgt(SRC_LEN if subject.same_length else TGT_LEN, seed=seed)


def _first(output: Any) -> Tensor:
    return next(
        one
        for one in (output if isinstance(output, tuple | list) else [output])
        if isinstance(one, Tensor) and one.dim() == 3
    )


# -- the learner's other functions -------------------------------------------------------------------------------------


def shifted(subject: Subject) -> Iterator[Finding]:
    """`shift(ids)`: what is read is what must be said, one position later."""
    function = subject.space.get("shift")
    if not callable(function):
        return
    ids, (bos, eos) = [5, 9, 7], (subject.specials["bos"], subject.specials["eos"])
    try:
        one, other = function(list(ids))
        tgt_in, tgt_out = list(map(int, one)), list(map(int, other))
    except Exception:
        return
    if (tgt_in, tgt_out) != ([bos, *ids], [*ids, eos]):
        yield Finding("shift", None, {"ids": ids, "tgt_in": tgt_in, "tgt_out": tgt_out, "bos": bos, "eos": eos})


def translations(subject: Subject) -> Iterator[Finding]:
    """A translation is made of the source alone, a token at a time, from <s> on."""
    for name, function in list(subject.space.items()):
        if (
            callable(function)
            and not isinstance(function, type)
            and re.match(r"(greedy|translate|evaluate|bleu|test_bleu|compute_bleu|beam)", name)
        ):
            yield from _translation(subject, name, function)


def _translation(subject: Subject, name: str, function: Callable[..., Any]) -> Iterator[Finding]:
    src, reference = subject.src(6, rows=1), subject.tgt(6, rows=1, seed=12)
    words = reference[0, 1:].tolist()
    turned = (lambda ids: ids.T) if subject.time_first else (lambda ids: ids)
    ended = torch.cat([reference, torch.tensor([[subject.specials["eos"]]])], dim=1)
    batch = [(src[0, :-1].tolist(), words)]
    values = {
        r"^(model|net)$": subject.model, r"src|source": turned(src), r"tgt|trg|target|reference": turned(ended),
        r"pairs|batch|data|corpus": batch, r"max": 8, r"beam": 2,
    }  # fmt: skip
    arguments = {}
    for one in signature(function).parameters.values():
        value = next((value for pattern, value in values.items() if re.search(pattern, one.name.lower())), None)
        if value is None and one.default is Parameter.empty:
            return
        if value is not None:
            arguments[one.name] = value
    try:
        with torch.no_grad(), of_type(subject.dtype), Recorder(subject.path.resolve().parent) as recorder:
            result = function(**arguments)
    except Exception:
        return
    finally:
        subject.model.eval()
    for call in recorder.calls:
        if call.name == "embedding" and _holds(call.inputs[-1], words):
            frames = [frame for frame in call.stack if frame[2] == name]
            place = frames[0][:2] if frames else call.place
            yield Finding("teacher-forced", place, {"name": name, "count": len(words) + 1})
            return
    if name.startswith(("greedy", "translate")) and "beam" not in str(arguments):
        yield from _differs_from_greedy(subject, name, src, result)


def _holds(ids: Tensor, words: list[int]) -> bool:
    """True if these ids have the words in a row, along one dimension or the other."""
    if ids.is_floating_point() or ids.dim() > 2 or ids.numel() < len(words):
        return False
    rows = [ids.flatten().tolist()] if ids.dim() < 2 else [*ids.tolist(), *ids.T.tolist()]
    return any(row[start : start + len(words)] == words for row in rows for start in range(len(row) - len(words) + 1))


def _differs_from_greedy(subject: Subject, name: str, src: Tensor, result: Any) -> Iterator[Finding]:
    bos, eos = subject.specials["bos"], subject.specials["eos"]
    try:
        ids = [int(one) for one in torch.as_tensor(result).flatten()]
    except (TypeError, ValueError, RuntimeError):
        return
    ids = ids[1:] if ids[:1] == [bos] else ids
    ids = ids[: ids.index(eos, 1)] if eos in ids[1:] else ids
    expected = [bos]
    for _ in range(len(ids)):
        expected.append(int(subject.output(src, torch.tensor([expected]))[0, -1].argmax()))
    if ids and expected[1:] != ids:
        same = next(place for place, (one, other) in enumerate(zip(ids, expected[1:], strict=True)) if one != other)
        yield Finding("greedy", None, {"name": name, "ids": ids, "expected": expected[1:], "same": same})


CHECKS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    *(registered, numbers, evaluation, calls_apart, rows_apart, future, past, source_padding, target_padding, source),
    *(positions, embeddings, attentions, recurrence, layers, norms, losses, gradients, learning, shifted, translations),
)
"""In the order in which they are asked."""
