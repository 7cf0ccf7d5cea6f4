"""Look inside: pictures and tables of what a model is made of and what it does.

Some need nothing (`positions`, `masks`, `batch`, `schedules`, `smoothing`, `norms`), some a run (`attention`, `decode`,
`lengths`), some a run or a recipe (`parameters`, `architecture`, `trace`). A picture is written as what its name ends
in: .png, .svg or .pdf. A command that draws several adds to the name given what each of them shows.
"""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dragoman.analysis import lengths as by_length
from dragoman.analysis import positions as schemes
from dragoman.analysis.architecture import architecture_figure
from dragoman.analysis.attention import attention_figure
from dragoman.analysis.examples import words_of
from dragoman.analysis.figure import check_suffix, save
from dragoman.analysis.masks import masks_figure, sentence_masks
from dragoman.analysis.norms import normed_batch, norms_figure
from dragoman.analysis.parameters import parameter_counts, parameter_table, parameters_figure
from dragoman.analysis.printed import batch_text, masks_text, norms_text, positions_text, smoothing_text
from dragoman.analysis.schedules import noam_curves, other_curves, plateau_curve, schedules_figure
from dragoman.analysis.search_tree import search_figure, search_table
from dragoman.analysis.smoothing import smoothing_figure
from dragoman.analysis.trace import trace as traced
from dragoman.analysis.trace import trace_table
from dragoman.backends.accelerate import exchange
from dragoman.cli.options import BeamSize, Device, Run, Which, given
from dragoman.errors import Error, writing
from dragoman.inference.attention_maps import attention_arrays, attention_of, check_choice
from dragoman.inference.loading import load_parts
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.watched_search import watch_search
from dragoman.progress import say
from dragoman.tasks import recipes
from dragoman.text.corpus import FilesSource
from dragoman.text.normalize import NORMALIZERS
from dragoman.text.tokenizers.pair import TokenizerPair, load_tokenizers

app = typer.Typer(no_args_is_help=True, help=__doc__)

RunOrRecipe = Annotated[Path, typer.Argument(help="Run directory, or recipe (YAML).", show_default=False)]
Sentences = Annotated[list[str] | None, typer.Argument(help="Sentences, each in quotes.", show_default=False)]
PairsOfSentences = Annotated[
    list[str] | None,
    typer.Argument(help="Sentence, translation, sentence, translation ... [default: two pairs]", show_default=False),
]
RecipeChanges = Annotated[
    list[str] | None, typer.Argument(help="Changes to a recipe: key.subkey=value ...", show_default=False)
]
OneSentence = Annotated[str, typer.Argument(help="A source sentence, in quotes.", show_default=False)]
Printed = Annotated[bool, typer.Option("--print", help="The numbers, on stdout; a picture only with -o.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="The picture. [default: the command's name .png]")]

EXAMPLES = (("ich möchte ein bier", "i want a beer"), ("guten tag", "hello"))
"""Two pairs of unequal lengths, so that there is padding to see."""

SCHEMES = ("sinusoidal", "rotary", "alibi", "learned")


@app.command()
def positions(
    scheme: Annotated[
        str | None, typer.Option(help=f"{', '.join(SCHEMES)}. [default: all; learned with --run]")
    ] = None,
    d_model: Annotated[int, typer.Option(help="Width of the sinusoidal table; even.", min=8)] = 64,
    length: Annotated[int, typer.Option(help="Positions.", min=8)] = 100,
    d_head: Annotated[int, typer.Option(help="Dimensions that rotary turns, in pairs; even.", min=2)] = 32,
    num_heads: Annotated[int, typer.Option(help="Heads of ALiBi.", min=1)] = 8,
    base: Annotated[
        float, typer.Option(help="Of the sinusoids: the slowest turn once in about 2 pi bases.")
    ] = 10_000.0,
    position: Annotated[
        list[int] | None, typer.Option(help="Rows to print or draw; repeat for several. [default of --print: 0, 1, 2]")
    ] = None,
    printed: Printed = False,
    run: Annotated[Path | None, typer.Option(help="A run with learned positions.", show_default=False)] = None,
    which: Which = "best",
    output: Output = None,
) -> None:
    """Position schemes, four ways to tell a model the order of its tokens: a picture each.

    Attention sees a set; a position must be put into it. *Sinusoidal* adds a vector of waves, from fast (left) to slow
    (right). Look at the lower right: only where each sine has its cosine does the likeness of two positions depend on
    their distance alone, and that is why the paper takes both. Interleaved or half-split is the order of the same
    columns, no more. *Rotary* turns queries and keys instead, like hands of clocks that run at different speeds: the
    curves of the scores coincide wherever one starts. *ALiBi* adds nothing to vectors and takes from each score what
    lies far away, each head with its own slope. *Learned* positions are free numbers: neighbours grow alike where
    training came, and beyond the longest sentence seen they stay noise.

    Example: dragoman inspect positions --scheme rotary --d-head 64 -o rotary.svg
    """
    names = [scheme] if scheme else [name for name in SCHEMES if name != "learned" or run]
    if names[0] not in SCHEMES:
        raise Error.UNKNOWN_NAME(f"--scheme {scheme!r}", f"known are {', '.join(SCHEMES)}")
    if names == ["learned"] and run is None:
        raise Error.MISSING_OPTION("--scheme learned: positions are learned in a run", "give it with --run")
    for name, value in (("--d-model", d_model), ("--d-head", d_head)):
        if value % 2:
            raise Error.WRONG_OPTION(f"{name} {value}: must be even, as a sine has its cosine")
    if not 1 < base < math.inf:
        raise Error.WRONG_OPTION(f"--base {base:g}: a number above 1")
    if min(position or [0]) < 0:
        raise Error.WRONG_OPTION(f"--position {min(position or [0])}: positions are counted from 0")
    if position and not printed and "sinusoidal" not in names:
        raise Error.CONFLICT(f"--position shows rows of the sinusoidal table, not of --scheme {scheme}", "leave one")
    if printed and _only_printed(positions_text(d_model, position or [0, 1, 2], base), output):
        return
    tables = schemes.learned_tables(_as_trained(run, which).model) if "learned" in names and run else {}
    draw = {
        "sinusoidal": lambda: schemes.sinusoidal_figure(length, d_model, base, position or ()),
        "rotary": lambda: schemes.rotary_figure(length, d_head),
        "alibi": lambda: schemes.alibi_figure(length, num_heads),
        "learned": lambda: schemes.learned_figure(tables, length),
    }
    _write(output, "positions", **{name: draw[name]() for name in names})


@app.command()
def masks(
    sentences: Sentences = None,
    run: Annotated[
        Path | None, typer.Option(help="Take the pieces of this run's target tokenizer. [default: words]")
    ] = None,
    printed: Printed = False,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Print them in the other convention: 1 where a key is hidden.")
    ] = False,
    output: Output = None,
) -> None:
    """Who may look at whom, in a batch of sentences: padding, causal, and both joined.

    Sentences of a batch are made equally long with `<pad>`. The *padding* mask hides those columns from everyone. The
    *causal* mask is a triangle: row i, the position that looks, sees itself and what came before, so that all
    positions of a target are trained at once although each is to be predicted from its own past. The encoder needs
    the padding mask alone, a decoder both. Look at the shorter sentence: which cells of the triangle go, and does a
    real token lose any? As none does, Dragoman's decoder makes do with the triangle.

    Example: dragoman inspect masks "ein hund läuft durch das gras ." "guten tag" -o masks.png
    """
    lines = _not_blank(sentences or [src for src, _ in EXAMPLES])
    tokenizers = load_tokenizers(run / "tokenizer") if run else words_of(lines)
    batch_masks = sentence_masks(lines, tokenizers.tgt)
    if (printed or hidden) and _only_printed(masks_text(batch_masks, hidden), output):
        return
    _write(output, "masks", masks_figure(batch_masks))


@app.command()
def batch(
    sentences: PairsOfSentences = None,
    run: Annotated[Path | None, typer.Option(help="Take the tokenizers of this run. [default: words]")] = None,
) -> None:
    """A batch as a model reads it: pieces, ids, source, target in and out, masks.

    Each source ends with `</s>`. The decoder reads `tgt_in`, which begins with `<s>`, and must say `tgt_out`, which is
    the same one step further and ends with `</s>`. Look at one column of both: what is read there, and what is to be
    said. Shorter sentences are filled up with `<pad>`, where the mask is 0.

    Example: dragoman inspect batch "ich möchte ein bier" "i want a beer" "guten tag" "hello"
    """
    texts = _in_pairs(sentences)
    sides = texts[::2], texts[1::2]
    if run:
        pair = load_tokenizers(run / "tokenizer")
    else:
        pair = TokenizerPair(words_of(sides[0]).src, words_of(sides[1]).src, shared=False)
    typer.echo(batch_text(list(zip(*sides, strict=True)), pair))


@app.command()
def schedules(
    d_model: Annotated[list[int] | None, typer.Option(help="Repeat for several. [default: 512, 256]", min=1)] = None,
    warmup: Annotated[list[int] | None, typer.Option(help="Repeat for several. [default: 4000, 8000]", min=1)] = None,
    lr: Annotated[float, typer.Option(help="Peak of the schedules on the right.")] = 1e-3,
    max_steps: Annotated[int, typer.Option(help="Steps to draw.", min=10)] = 20_000,
    output: Output = None,
) -> None:
    """The learning rate at every step: warm-up, peak, decay.

    Left, the Transformer paper's schedule for each d_model and warm-up: it climbs in a straight line for `warmup`
    steps, then falls as one over the square root of the step. A wider model gets a smaller rate; a longer warm-up a
    later and lower peak, and after it the same curve. Right, the schedules whose peak is given: inverse_sqrt never
    comes to rest; linear and cosine reach 0 at the last step; constant stays; plateau halves when validation no longer
    improves (here from the middle of the run on).

    Example: dragoman inspect schedules --d-model 128 --warmup 500 --warmup 2000 --max-steps 5500
    """
    if not 0 < lr < math.inf:
        raise Error.WRONG_OPTION(f"--lr {lr:g}: a rate above 0")
    warmups = warmup or [4000, 8000]
    shared = min(warmups[0], max_steps // 10)
    noam = noam_curves(d_model or [512, 256], warmups, max_steps)
    others = other_curves(lr, shared, max_steps) | {"plateau": plateau_curve(lr, shared, max_steps)}
    _write(output, "schedules", schedules_figure(noam, others, shared))


@app.command()
def smoothing(
    epsilon: Annotated[list[float] | None, typer.Option(help="Repeat for several. [default: 0, 0.1, 0.3]")] = None,
    vocab_size: Annotated[int, typer.Option(help="Words of the vocabulary, right-hand picture.", min=2)] = 8000,
    printed: Annotated[
        int | None,
        typer.Option("--print", min=3, help="Print the targets for a vocabulary of so many words, in both forms."),
    ] = None,
    output: Output = None,
) -> None:
    """Label smoothing: what the loss asks for, and the price of being too sure.

    Without it (ε = 0) the right token is to get all of the probability, which takes infinite logits. With it the target
    keeps 1 - ε and spreads ε evenly over the vocabulary. Look at the right-hand curves: the loss is lowest at a
    confidence of about 1 - ε and rises again beyond, so a model learns to leave room for doubt; and it never reaches
    0, which is why training losses with and without smoothing cannot be compared.

    Example: dragoman inspect smoothing --epsilon 0 --epsilon 0.1 -o smoothing.svg
    """
    epsilons = epsilon or [0.0, 0.1, 0.3]
    for value in epsilons:
        if not 0 <= value < 1:
            raise Error.WRONG_OPTION(f"--epsilon {value:g}: must be at least 0 and below 1")
    if printed and _only_printed(smoothing_text(epsilons, printed, target=min(2, printed - 1)), output):
        return
    _write(output, "smoothing", smoothing_figure(epsilons, loss_vocab_size=vocab_size))


@app.command()
def norms(sentences: Sentences = None, printed: Printed = False, output: Output = None) -> None:
    """LayerNorm and RMSNorm against BatchNorm, on a padded batch of sentences.

    The frame marks cells that are normalised together. LayerNorm takes one token's features, so what a token becomes
    is its own affair; RMSNorm does so too, and leaves the mean where it is. BatchNorm takes one feature through all
    tokens of all sentences, padding included: look at the rows of `<pad>`, and at the number below, how far sentence 1
    changes when its neighbours are gone. That, and batches of one in decoding, is why Transformers do not use it.

    Example: dragoman inspect norms "ein hund läuft durch das gras ." "guten tag"
    """
    normed = normed_batch(
        _not_blank(sentences or ["ein hund läuft durch das gras .", "ich möchte ein bier", "guten tag"])
    )
    if printed and _only_printed(norms_text(*normed), output):
        return
    _write(output, "norms", norms_figure(*normed))


@app.command()
def attention(
    run: Run,
    sentence: OneSentence,
    target: Annotated[
        str | None, typer.Option(help="What the model is to say. [default: its own translation]", show_default=False)
    ] = None,
    layer: Annotated[int | None, typer.Option(help="Only this layer, from 0.", show_default=False)] = None,
    head: Annotated[int | None, typer.Option(help="Only this head, from 0.", show_default=False)] = None,
    kind: Annotated[
        str | None, typer.Option(help="encoder-self, decoder-self or decoder.cross. [default: all]")
    ] = None,
    which: Which = "best",
    device: Device = "auto",
    output: Output = None,
) -> None:
    """Where a model looks: a picture for each kind of attention, a row for each layer, a column for each head.

    Every row of a map is a token that looks and sums to 1; dark is where it looks. In *cross-attention* look for a
    path from top left to bottom right, the word alignment, and where it jumps, the word order. *Decoder
    self-attention* is a triangle, for the future is hidden. In *encoder self-attention* heads specialise: the next
    token, the previous one, `</s>` as a place to rest. What is looked at is not always what decides. A recurrent
    model has one cross-attention map.

    `-o maps.npz` writes NumPy arrays instead of pictures: `encoder.0.self`, `decoder.0.self`, `decoder.0.cross` ...,
    each of (heads, queries, keys), and the tokens of each kind, `decoder.cross.queries` and `decoder.cross.keys`.

    Example: dragoman inspect attention runs/mine "Two dogs run through the grass." --layer 3 --head 0 -o map.png
    """
    kinds = attention_of(SearchTranslator.load(run, which=which, device=device), sentence, target)
    kind = kind.replace("-", ".") if kind is not None else None  # `decoder-cross` is an earlier name
    if kind is not None and kind not in kinds:
        raise Error.UNKNOWN_NAME(f"--kind {kind!r}: this model has {', '.join(kinds)}")
    kinds = {name: maps for name, maps in kinds.items() if kind in (None, name)}
    check_choice(kinds, layer, head)
    if output is not None and output.suffix == ".npz":
        with writing(output), output.open("wb") as file:
            np.savez(file, **attention_arrays(kinds, layer, head))  # type: ignore[arg-type]
        typer.echo(output)
        return
    shown = {name: maps for name, maps in kinds.items() if layer is None or layer < len(maps.layers)}
    _write(output, "attention", **{name: attention_figure(maps, layer, head) for name, maps in shown.items()})


@app.command()
def decode(
    run: Run,
    sentence: OneSentence,
    beam_size: BeamSize = None,
    top: Annotated[int, typer.Option(min=1, help="Next tokens to show of each hypothesis.")] = 10,
    which: Which = "best",
    device: Device = "auto",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A picture of the tree as well.")] = None,
) -> None:
    """A translation as it is searched for, one token at a time: a table, and with -o a tree.

    Each step shows what is *alive*, the next tokens that the model would say, and how all continuations were ranked:
    the best of the beam go on, a `</s>` among them is *finished*, its score the log probability over the divisor of the
    length penalty, and the others are dropped. It stops when nothing that goes on could still become better than what
    is finished. Look at a dropped hypothesis and ask whether a wider beam would have kept it.

    Example: dragoman inspect decode runs/demo "ich möchte ein bier" --beam-size 3 -o tree.svg
    """
    if output is not None:
        check_suffix(output)
    translator = SearchTranslator.load(run, which=which, device=device, **given(beam_size=beam_size))
    watched = watch_search(translator, sentence, top=top)
    typer.echo(search_table(watched))
    if output is not None:
        _write(output, "decode", search_figure(watched))


@app.command()
def parameters(
    run_or_recipe: RunOrRecipe,
    overrides: RecipeChanges = None,
    depth: Annotated[int, typer.Option(help="Levels of modules to show; 0 is the whole model.", min=0)] = 3,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A picture as well.")] = None,
) -> None:
    """Where a model's parameters are: a nested table, and with -o a picture.

    Each number is counted once: a matrix that is used again (tied embeddings) stands where it came first, and the
    other place says `shared`. Layers built alike are one row. Look how much of a small model is embeddings, and what
    tying them saves: `dragoman inspect parameters recipes/multi30k-en-de.yaml model.tie_embeddings=none`.
    """
    counts = parameter_counts(_model(run_or_recipe, overrides or []), depth)
    typer.echo(parameter_table(counts))
    if output:
        _write(output, "parameters", parameters_figure(counts))


@app.command()
def architecture(
    run_or_recipe: RunOrRecipe,
    overrides: RecipeChanges = None,
    output: Output = None,
) -> None:
    """A model as the papers draw it, a box for each part, with the shapes that its weights really have.

    Read it from the bottom: ids become vectors, layers (the frame comes so many times) change them, and a matrix gives
    a score to each entry of the vocabulary. Look at what a setting changes: `model.norm_placement=post` moves the
    norms, `model.position={type: rotary}` takes the positions into attention, `model.num_kv_heads=1` leaves one head
    of keys.

    Example: dragoman inspect architecture recipes/demo.yaml model.norm_placement=post -o demo.svg
    """
    _write(output, "architecture", architecture_figure(_model(run_or_recipe, overrides or [])))


@app.command()
def trace(
    run_or_recipe: RunOrRecipe,
    sentences: PairsOfSentences = None,
    every_call: Annotated[bool, typer.Option("--all", help="Show calls that only repeat others, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    which: Which = "best",
) -> None:
    """Follow one batch through a model, tensor by tensor, under the words of the nine steps.

    Every line is a tensor or a call: its name, its shape (for a module: what goes in → what comes out), its type, where
    it comes from. Read it from the top with the batch size in mind (the first number of nearly every shape), then
    see where lengths become d_model, where heads come in (the attention weights at the end of step 6, the caches of
    step 8), and where the vocabulary does. A recipe is followed with a model that has learnt nothing, and words for
    tokens.

    Example: dragoman inspect trace runs/mine "Ein Hund schläft." "A dog is asleep."
    """
    texts = _in_pairs(sentences)
    is_run = run_or_recipe.is_dir()
    recipe: Any = recipes.of_run(run_or_recipe) if is_run else recipes.load(run_or_recipe)
    if recipe.task != "translation":
        raise Error.WRONG_TASK(
            f"a trace follows models of translation; this is one of {recipe.task}", file=run_or_recipe
        )
    texts = [NORMALIZERS[recipe.corpus.normalize](text) for text in texts]
    if is_run:
        translator = _as_trained(run_or_recipe, which)
        model, tokenizers = translator.model, translator.tokenizers
    else:
        model = _model(run_or_recipe, [])
        tokenizers = words_of(texts, min(model.src_vocab_size, model.tgt_vocab_size))
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    smoothing = recipe.training.label_smoothing
    rows = traced(model, tokenizers, pairs, label_smoothing=smoothing, every_call=every_call)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False))
    else:
        typer.echo(trace_table(rows))


@app.command()
def lengths(
    runs: Annotated[list[Path], typer.Argument(help="Run directories to compare.", show_default=False)],
    src: Annotated[Path, typer.Option(help="Source text of a test set.", show_default=False)],
    ref: Annotated[Path, typer.Option(help="Its reference translation.", show_default=False)],
    edge: Annotated[
        list[int] | None, typer.Option(help="Longest source of a bucket, in words; repeat. [default: 5, 10, 15 ...]")
    ] = None,
    beam_size: BeamSize = None,
    device: Device = "auto",
    output: Output = None,
) -> None:
    """BLEU by the length of the source sentence, for several runs: the picture that shows why attention was invented.

    An encoder without attention must put a sentence of any length into one vector, and its curve falls with the
    length; with attention it falls later or not at all. Buckets with few sentences (hollow points) say little, and
    BLEU of one bucket compares runs, not lengths: long sentences may be harder, or easier, by themselves.

    Example: dragoman inspect lengths runs/lstm runs/transformer --src test.en --ref test.de -o lengths.svg
    """
    # Mistakes are reported before a test set is translated.
    if output is not None:
        check_suffix(output)
    edges = sorted(edge) if edge else by_length.BUCKET_EDGES_WORDS
    by_length.check_edges(edges)
    pairs = list(FilesSource(src=str(src), tgt=str(ref)).pairs())
    runs = list(dict.fromkeys(runs))
    names = [run.resolve().name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run) for run in runs]
    recipe: Any = recipes.of_run(runs[0])
    translators = [SearchTranslator.load(run, device=device, **given(beam_size=beam_size)) for run in runs]
    results = {name: by_length.translated(model, pairs) for name, model in zip(names, translators, strict=True)}
    buckets = by_length.bleu_by_length(results, edges, config=recipe.evaluation, tgt_lang=recipe.corpus.tgt_lang)
    title = recipe.evaluation.metrics(recipe.corpus.tgt_lang, with_ter=False)[0].title
    typer.echo(by_length.lengths_table(buckets, title))
    _write(output, "lengths", by_length.lengths_figure(buckets, title))


# --- shared by the commands ------------------------------------------------------------------------------------------


def _write(output: Path | None, command: str, figure: Any = None, **figures: Any) -> None:
    """Save one or several figures and print their paths; of several, each name becomes part of its file's name."""
    path = output or Path(f"{command}.png")
    check_suffix(path)
    for name, drawn in (figures or {"": figure}).items():
        typer.echo(save(drawn, path.with_stem(f"{path.stem}-{name}") if len(figures) > 1 else path))


def _only_printed(text: str, output: Path | None) -> bool:
    """Print the numbers; True where no picture is asked for beside them."""
    typer.echo(text)
    return output is None


def _in_pairs(sentences: list[str] | None) -> list[str]:
    """Sentences and their translations in turn; the examples, where none are given."""
    texts = _not_blank(sentences or [text for pair in EXAMPLES for text in pair])
    if len(texts) % 2:
        raise Error.UNEQUAL_COUNTS(f"{texts[-1]!r} has no translation behind it", "give each its translation")
    return texts


def _not_blank(sentences: list[str]) -> list[str]:
    if not all(sentence.strip() for sentence in sentences):
        raise Error.BLANK("a sentence to look at must not be blank")
    return sentences


def _as_trained(run: Path, which: str = "best") -> Any:
    """A run, loaded for use, with the textbook's layers, not their fast implementations for inference."""
    task = recipes.of_run(run).task
    loaded: Any = recipes.JOBS[task].inference.load(run, which=which, device="cpu")
    if task == "translation":
        loaded.model = load_parts(run, which).model.eval()
    else:
        exchange(loaded.model, {})
    return loaded


def _model(run_or_recipe: Path, overrides: list[str]) -> Any:
    if not run_or_recipe.is_dir():
        say("the numbers of words and labels depend on the data; shown here: the largest vocabulary, and two labels")
        return recipes.job(recipes.load(run_or_recipe, overrides)).build_untrained()
    if overrides:
        raise Error.CONFLICT(f"a run is what it is; changes ({overrides[0]}) go with a recipe", file=run_or_recipe)
    return _as_trained(run_or_recipe).model
