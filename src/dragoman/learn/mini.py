"""The reader's own Transformer: `mini_transformer.py` grows by some pieces in each chapter, and each is checked.

`mini_solution.py` is the reference. It says which pieces there are, in which chapter, and what a learner gets of each.
"""

import ast
import functools
import inspect
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.config import parse
from dragoman.errors import Error
from dragoman.learn import mini_solution as reference
from dragoman.learn import module_file
from dragoman.learn.diagnosis import copied, described, difference
from dragoman.learn.exercise import ROUNDS, Wrong
from dragoman.learn.language import translated, translated_code
from dragoman.learn.limited import limited, reason
from dragoman.models.families import TransformerConfig
from dragoman.models.transformer import Transformer as DragomanTransformer
from dragoman.runs.atomic_io import read_yaml, replace_text

PATH = Path("mini_transformer.py")
"""The reader's file, in the current folder."""
HEAD = '''"""My own Transformer. `dragoman learn N` adds the pieces of chapter N, `dragoman learn check N` checks them.

Shapes are written (batch, length, features). A mask is True where a query may look.
"""'''
NOT_WRITTEN = "raise NotImplementedError"
IMPORT = "from torch import Tensor, nn"
"""The reference's last import. A reader's file imports `F` beside it, as the files of answers do."""


@dataclass(frozen=True)
class Piece:
    """A function or a class of the reference that the reader writes, too."""

    name: str
    draw: Callable[[random.Random], tuple[Any, ...]]
    """The inputs of a round."""
    use: Callable[..., Any] = lambda piece, *inputs: piece(*inputs)
    """The value that an answer gives for them."""

    rounds: int = ROUNDS

    @property
    def solution(self) -> Any:
        return getattr(reference, self.name)

    @property
    def chapter(self) -> int:
        return next(number for number, (_, names) in _outline().items() if self.name in names)

    def stub(self) -> str:
        """The part that the reader gets: signatures and tasks. Of a class also `__init__`, whose names the check
        knows."""
        source = inspect.getsource(self.solution)
        lines, node = source.splitlines(), ast.parse(source).body[0]
        assert isinstance(node, ast.FunctionDef | ast.ClassDef)
        if isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name != "__init__"]
        else:
            methods = [node]
        for method in reversed(methods):
            blanks = " " * (method.col_offset + 4)
            lines[method.body[0].end_lineno : method.end_lineno] = [blanks + NOT_WRITTEN]
        return "\n".join(lines) + "\n"

    def wrong_answers(self) -> list[tuple[Any, str]]:
        """The known mistakes, as functions or classes, and what is said of each."""
        source = inspect.getsource(self.solution)
        return [
            (_with_names(source.replace(old, new), self.name), message)
            for old, others in _mistakes()[self.name].items()
            for new, message in others.items()
        ]

    def check(self, answer: Any, seed: int | None = None) -> None:
        """Grade an answer on inputs that nobody has seen. Raises Wrong with what to look at."""
        rng, results = random.Random(seed), []
        for _ in range(self.rounds):
            torch.manual_seed(rng.randrange(2**31))
            inputs = self.draw(rng)
            results.append((inputs, self._value(answer, inputs)))
        for inputs, value in results:
            if problem := difference(self.use(self.solution, *copied(inputs)), value):
                raise Wrong(translated(self._known_mistake(results)) or problem)

    def _value(self, answer: Any, inputs: tuple[Any, ...]) -> Any:
        try:
            return self.use(answer, *copied(inputs))
        except (NotImplementedError, Wrong):
            raise
        except Exception as error:
            line = module_file.line_in(error, PATH)
            place = f"{PATH}:{line}" if line else f"{self.name}({', '.join(described(one) for one in inputs)})"
            raise Wrong(f"{place}: {reason(error)}") from error

    def _known_mistake(self, results: Sequence[tuple[tuple[Any, ...], Any]]) -> str:
        for answer, message in self.wrong_answers():
            try:
                if all(difference(self.use(answer, *copied(inputs)), value) == "" for inputs, value in results):
                    return message
            except Exception:
                continue
        return ""


# -- how each piece is used --------------------------------------------------------------------------------------------

SIZES = {"d_model": 16, "num_heads": 4, "d_ff": 24}


def _module(piece: Any, sizes: Sequence[int], inputs: Sequence[Any], of_reference: type[nn.Module]) -> Any:
    """The output of a fresh module of the answer's class with the weights that the reference draws."""
    torch.manual_seed(5)
    model, answer = of_reference(*sizes), piece(*sizes)
    for weight in model.parameters():  # norms and biases too: a fresh model has ones and zeros there
        weight.data.add_(torch.randn_like(weight) * 0.2)
    try:
        answer.load_state_dict(model.state_dict())
    except RuntimeError:
        message = "the names and sizes that `__init__` gave are needed: the check sets the weights by them"
        raise Wrong(translated(message)) from None
    return answer.eval()(*inputs)


def _used_as(name: str) -> Callable[..., Any]:
    return lambda piece, sizes, *inputs: _module(piece, sizes, inputs, getattr(reference, name))


@functools.lru_cache(8)
def _toy_model(seed: int) -> Any:
    """A model over eleven entries whose guesses are sure enough for searches to differ."""
    torch.manual_seed(seed)
    model = reference.Transformer(11, 11, **SIZES, num_layers=1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
        model.output.weight[reference.EOS] += 0.2
    return model


def _trained(piece: Callable[..., Any], seed: int, warmup: int) -> list[Any]:
    """The losses of a few steps with dropout, and the weights after them."""
    torch.manual_seed(seed)
    model = reference.Transformer(11, 11, **SIZES, num_layers=1, dropout=0.1).eval()
    pairs = [(_ids(random.Random(number)), _ids(random.Random(number + 9))) for number in range(4)]
    batches = [reference.batch(pairs[:2]), reference.batch(pairs[2:])]
    torch.manual_seed(seed)
    losses = piece(model, batches, 5, warmup)
    return [losses, model.output.weight.detach()]


def _ids(rng: random.Random) -> list[int]:
    return [rng.randrange(4, 11) for _ in range(rng.randrange(1, 6))]


def _padded(rng: random.Random) -> Tensor:
    return torch.randint(4, 11, (3, 5)).masked_fill(
        torch.arange(5) >= torch.tensor([5, rng.randrange(1, 5), 2])[:, None], 0
    )


def _draw_attention(rng: random.Random) -> tuple[Any, ...]:
    mask = torch.rand(2, 1, 4, 5) < 0.6
    mask[..., 0] = True
    heads = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 6)
    return (*heads, mask) if rng.random() < 0.8 else heads


def _draw_layer(rng: random.Random) -> tuple[Any, ...]:
    mask = reference.padding_mask(_padded(rng))
    return tuple(SIZES.values()), torch.randn(3, 5, 16), mask


def _draw_decoder_layer(rng: random.Random) -> tuple[Any, ...]:
    sizes, memory, memory_mask = _draw_layer(rng)
    return sizes, torch.randn(3, 4, 16), reference.causal_mask(4), memory, memory_mask


def _draw_heads(rng: random.Random) -> tuple[Any, ...]:
    _, memory, mask = _draw_layer(rng)
    return (16, rng.choice([2, 8])), torch.randn(3, 5, 16), memory, mask


def _draw_transformer(rng: random.Random) -> tuple[Any, ...]:
    return (11, 12, *SIZES.values(), rng.choice([1, 2])), _padded(rng), torch.randint(4, 12, (3, 6))


def _draw_search(rng: random.Random) -> tuple[Any, ...]:
    return rng.randrange(8), torch.tensor([[*_ids(rng), 3]]), rng.choice([2, 3, 5])


PIECES = {
    one.name: one
    for one in (
        Piece("shift", lambda rng: (_ids(rng),)),
        Piece("attention", _draw_attention),
        Piece("batch", lambda rng: ([(_ids(rng), _ids(rng)) for _ in range(4)],)),
        Piece("padding_mask", lambda rng: (torch.randint(0, 9, (3, 5)),)),
        Piece("causal_mask", lambda rng: (rng.randrange(1, 8),)),
        Piece("loss", lambda rng: (torch.randn(3, 5, 11) * 2, _padded(rng))),
        Piece("MultiHeadAttention", _draw_heads, _used_as("MultiHeadAttention")),
        Piece("positions", lambda rng: (rng.randrange(1, 40), 2 * rng.randrange(1, 9))),
        Piece("EncoderLayer", _draw_layer, _used_as("EncoderLayer")),
        Piece("DecoderLayer", _draw_decoder_layer, _used_as("DecoderLayer")),
        Piece("Transformer", _draw_transformer, _used_as("Transformer"), 6),
        Piece("rate", lambda rng: (rng.randrange(1, 900), rng.choice([64, 512]), rng.choice([100, 400]))),
        Piece("train", lambda rng: (rng.randrange(1000), rng.choice([2, 40])), _trained, 3),
        Piece(
            "greedy", lambda rng: _draw_search(rng)[:2], lambda piece, seed, src: piece(_toy_model(seed), src, 9), 12
        ),
        Piece(
            "beam_search",
            _draw_search,
            lambda piece, seed, src, beam: piece(_toy_model(seed), src, beam, 9),
            12,
        ),
    )
}
"""Every piece by its name, in the order of the reference."""


# -- the reader's file -------------------------------------------------------------------------------------------------


@functools.cache
def _outline() -> dict[int, tuple[str, list[str]]]:
    """(the comment at its head, the names of its pieces) of each chapter that has pieces."""
    source = inspect.getsource(reference)
    heads = {int(head[1]): head for head in re.finditer(r"^# Chapter (\d+): .*$", source, re.MULTILINE)}
    ends = [*[head.start() for head in heads.values()][1:], len(source)]
    return {
        number: (head[0], re.findall(r"^(?:def|class) (\w+)", source[head.end() : end], re.MULTILINE))
        for (number, head), end in zip(heads.items(), ends, strict=True)
    }


@functools.cache
def _mistakes() -> dict[str, dict[str, dict[str, str]]]:
    """By piece: a text of the reference, the text of a common mistake, and what is said of it."""
    return read_yaml(Path(__file__).parent / "exercises/mini_mistakes.yaml")


def _with_names(source: str, name: str) -> Any:
    """The piece `name` of a changed source, among the names of the reference."""
    return module_file.names_of(source, dict(vars(reference)))[name]


def pieces_of(chapter: int) -> list[Piece]:
    """The pieces that a chapter adds."""
    return [PIECES[name] for name in _outline().get(chapter, ("", []))[1]]


def write(chapter: int) -> Path | None:
    """Append to the reader's file what is missing of the chapters up to this one; None: there is nothing yet.

    Raises DragomanError where the file is no Python.
    """
    text = PATH.read_text(encoding="utf-8") if PATH.exists() else ""
    there = _defined(text)
    parts = []
    for number, (head, names) in _outline().items():
        missing = [translated_code(PIECES[name].stub()) for name in names if number <= chapter and name not in there]
        if missing:
            parts += [translated_code(head) + "\n", *missing]
    if parts:
        text = text or translated_code(_head())
        replace_text(PATH, text.rstrip("\n") + "\n\n\n" + "\n\n".join(parts))
    return PATH if PATH.exists() else None


def _head() -> str:
    """The imports and the specials of the reference, below a line that says what the file is."""
    lines = inspect.getsource(reference).splitlines()
    tree = ast.parse("\n".join(lines))
    docstring, *others = tree.body
    last = next(node for node in reversed(others) if isinstance(node, ast.Assign))
    head = "\n".join([HEAD, *lines[docstring.end_lineno : last.end_lineno]])
    return head.replace(IMPORT, f"{IMPORT}\nfrom torch.nn import functional as F", 1)


def _defined(text: str) -> dict[str, str]:
    """The source of each function and class at the top of a file."""
    try:
        nodes = ast.parse(text).body
    except SyntaxError as error:
        raise Error.WRONG_ANSWER(f"SyntaxError: {error.msg}", file=PATH, line=error.lineno) from error
    return {
        one.name: ast.get_source_segment(text, one) or ""
        for one in nodes
        if isinstance(one, ast.FunctionDef | ast.ClassDef)
    }


def verdicts(chapter: int) -> dict[str, str]:
    """The verdict on each piece of a chapter in the reader's file: "right", "not written yet", or what is wrong.

    Each is judged among the reference's other pieces, so that a mistake is said of the piece that makes it.
    """
    if not PATH.exists():
        return {}
    sources = _defined(PATH.read_text(encoding="utf-8"))
    return {piece.name: _verdict(piece, sources) for piece in pieces_of(chapter)}


def _verdict(piece: Piece, sources: dict[str, str]) -> str:
    if piece.name not in sources:
        return translated("there is no {name} in the file any more").format(name=piece.name)
    if NOT_WRITTEN in sources[piece.name]:
        return translated("not written yet")
    try:
        limited(check_file, piece.name)
    except Wrong as wrong:
        return wrong.text
    return translated("right")


def check_whole(path: Path) -> None:
    """Raise DragomanError where a reader's file lacks pieces of which the Transformer is made."""
    sources, names = _defined(path.read_text(encoding="utf-8")), list(PIECES)
    needed = [name for name in names[: names.index("Transformer") + 1] if name not in ("shift", "batch", "loss")]
    missing = [name for name in needed if name not in sources]
    left = missing or [name for name in needed if NOT_WRITTEN in sources[name]]
    if not left:
        return
    words = translated(" has no whole model yet ({names} are not written)")
    if missing:
        words = translated(" has no whole model yet ({names} come in chapters up to {last})")
    last = PIECES["Transformer"].chapter
    hint = translated("until then, dragoman learn check {number}")
    number = max((PIECES[name].chapter for name in sources if name in PIECES and name not in left), default=1)
    raise Error.WRONG_ANSWER(words.format(names=", ".join(left), last=last), hint.format(number=number), file=path)


def check_file(name: str) -> None:
    """Grade a piece of the reader's file. Raises Wrong, or DragomanError where the file does not run."""
    module = module_file.load(PATH)
    answer = getattr(module, name)
    vars(module).update({other: one.solution for other, one in PIECES.items() if other != name})
    PIECES[name].check(answer)


# -- beside Dragoman's -------------------------------------------------------------------------------------------------

NAMES = {
    r"^(src|tgt)_embedding\.": r"\1_embedding.tokens.embedding.",
    r"feed_forward\.0\.": "feed_forward.expand.",
    r"feed_forward\.2\.": "feed_forward.contract.",
    r"norms\.0\.": "self_attention_residual.norm.",
    r"(encoder_layers\.\d+)\.norms\.1\.": r"\1.feed_forward_residual.norm.",
    r"(decoder_layers\.\d+)\.norms\.1\.": r"\1.cross_attention_residual.norm.",
    r"norms\.2\.": "feed_forward_residual.norm.",
}
"""Names of weights in the reference, and in Dragoman's own Transformer."""


def dragoman_model(model: Any) -> DragomanTransformer:
    """Dragoman's own Transformer of the same sizes, with the same weights."""
    layer = model.encoder_layers[0]
    config = parse(
        TransformerConfig,
        {
            "d_model": model.d_model,
            "num_heads": layer.self_attention.num_heads,
            "d_ff": layer.feed_forward[0].out_features,
            "num_encoder_layers": len(model.encoder_layers),
            "num_decoder_layers": len(model.decoder_layers),
            "dropout": layer.dropout.p,
            "tie_embeddings": "none",
        },
    )
    sizes = {"src_vocab_size": model.src_embedding.num_embeddings, "tgt_vocab_size": model.tgt_embedding.num_embeddings}
    built = config.build(**sizes, shared_vocab=False, pad_id=reference.PAD)
    built.load_state_dict({_renamed(name): weight for name, weight in model.state_dict().items()})
    return built.eval()


def _renamed(name: str) -> str:
    for pattern, other in NAMES.items():
        name = re.sub(pattern, other, name)
    return name
