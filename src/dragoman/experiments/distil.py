"""The work of `dragoman distil`: a small and fast model that learns from a large one.

Sequence-level knowledge distillation (Kim and Rush 2016, section 3.2): the teacher translates the source text, and the
student is trained on its translations. They are simpler than what people write, and always of one style, so a model of
few layers can learn them, and a narrow beam finds them. Most of the time of a translation goes into the decoder,
which runs once for each token: a deep encoder with a decoder of one or two layers is as good and far faster (Kasai et
al. 2021, "Deep Encoder, Shallow Decoder"; Kim et al. 2019, "From Research to Production and Back"). A student as wide
as its teacher begins with some of its layers.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman import config, export
from dragoman.analysis.report import write_report
from dragoman.errors import DragomanError, Error, writing
from dragoman.evaluation.comparison import Compared, compare_models
from dragoman.experiments.diversify import MADE_FROM, identity, translate_into, whole_lines
from dragoman.inference.loading import build_model, corpus_settings
from dragoman.inference.search_translator import SearchTranslator
from dragoman.languages.codes import same_languages
from dragoman.models.families import Seq2SeqModel, TransformerConfig
from dragoman.models.transformer import Transformer
from dragoman.progress import Progress, say
from dragoman.runs import atomic_io, checkpoint
from dragoman.runs.atomic_io import read_json
from dragoman.runs.directory import TOKENIZER, check_run_dir
from dragoman.runs.lock import locked
from dragoman.runs.new_run import write_run
from dragoman.special_tokens import PAD_ID
from dragoman.tasks import recipes
from dragoman.tasks.auto_recipe import default_recipe
from dragoman.tasks.fine_tuning import sample
from dragoman.text.lines import find, read_lines
from dragoman.text.tokenizers.pair import ReuseConfig, save_tokenizers

TEXT = "taught"
"""The folder of a student's run that has the text it learns from."""

MAX_VOCAB_SIZE = 32_000
"""Of a teacher, that a student takes over; in place of a larger one it learns one from its own text."""

MAX_COMPARED_SENTENCES = 1000
"""Sentences that both translate in the end, at most."""


@dataclass(frozen=True)
class StudentSize:
    """The sizes of a student."""

    d_model: int
    num_encoder_layers: int
    num_decoder_layers: int

    def model(self) -> dict[str, Any]:
        return {
            "type": "transformer",
            "d_model": self.d_model,
            "d_ff": 4 * self.d_model,
            "num_heads": max(4, self.d_model // 64),
            "num_encoder_layers": self.num_encoder_layers,
            "num_decoder_layers": self.num_decoder_layers,
            "dropout": DROPOUT,
        }


BEAM_SIZE = 2
"""Of a student's search: wider ones win a tenth of a point and cost as much again (benchmarks/log/2026-11.md,
"2026-11-26: students")."""

DROPOUT = 0.1
"""Of a student: a teacher's translations are hard to learn by heart."""

SIZES = {"tiny": StudentSize(128, 4, 1), "small": StudentSize(256, 6, 1), "base": StudentSize(512, 6, 2)}


@dataclass(frozen=True)
class Distilled:
    """A student's run."""

    result: recipes.Result
    compared: Compared | None = None
    """A comparison with its teacher (which is what was `before`); None: its training was stopped."""
    parameters: tuple[int, int] = (0, 0)
    """The teacher's and the student's."""


def distil(
    teacher: Path,
    run: Path,
    size: str = "tiny",
    *,
    src: Sequence[Path] = (),
    languages: tuple[str | None, str | None] = (None, None),
    engine: str = "pytorch",
    device: str = "auto",
    changes: Sequence[str] = (),
) -> Distilled:
    """Train a student of the run `teacher` in the new run directory `run`; the same again goes on where it stood.

    The student learns what the teacher makes of the sentences that it was trained on, as far as they are still there,
    and of the lines of the files `src`. `languages`: from and to, of a teacher that knows several. `engine`: which the
    teacher translates with. `changes`: settings of the student's recipe, as on the command line.

    Raises DragomanError where there is no text, and where `run` holds what another teacher or other text began.
    """
    if size not in SIZES:
        raise Error.UNKNOWN_NAME(f"`size` {size}", f"known are {', '.join(SIZES)}")
    translator = SearchTranslator.load(check_run_dir(teacher), device=device, languages=languages)
    with locked(run):
        files = _taught(run / TEXT, teacher, translator, src, engine)
        recipe = {**_recipe(teacher, translator, run, size, files), "device": device}
        recipe = config.override(recipe, changes, recipes.TranslationRecipe)
        settings = config.parse(recipes.TranslationRecipe, recipe, "settings of the student")
        if settings.init_from is None and _is_as_wide(translator.model, settings):
            settings = replace(settings, init_from=str(_beginning(settings, teacher, translator, run / TEXT / "start")))
        result = recipes.run(settings, report=write_report)
    if result.outcome.reason == "interrupted":
        return Distilled(result)
    student = SearchTranslator.load(run, device=device)
    sources = {**settings.corpus.test, "validation": settings.corpus.valid}
    name, pairs = next((name, pairs) for name, one in sources.items() if (pairs := sample(one, MAX_COMPARED_SENTENCES)))
    teachers, students = (sum(tensor.numel() for tensor in one.model.parameters()) for one in (translator, student))
    return Distilled(result, compare_models(name, translator, student, pairs), (teachers, students))


def _taught(
    folder: Path, teacher: Path, translator: SearchTranslator, more: Sequence[Path], engine: str
) -> tuple[str, str]:
    """The two files of `folder` that a student is trained on: sentences, and what the teacher makes of them.

    Raises DragomanError where there is no text.
    """
    files = folder / "train.src", folder / "train.tgt"
    request = {
        "teacher": identity(teacher, translator),
        "languages": list(translator.languages or ()),
        "engine": engine,
        "text": [[str(path), _digest(find(str(path)))] for path in more],
    }
    made_from, part = folder / MADE_FROM, folder / "translations.part"
    if made_from.is_file() and read_json(made_from, dict) != request:
        raise Error.OTHER_CONTENT(
            "holds what another teacher, other text or another search began", "name another `run`", file=folder
        )
    if all(path.is_file() for path in files):
        return str(files[0]), str(files[1])
    sentences = list(dict.fromkeys(filter(None, (" ".join(text.split()) for text in _text(teacher, translator, more)))))
    if not sentences:
        raise Error.MISSING_CORPUS(
            "the text that it was trained on is not here", "give text to translate with `src` FILE", file=teacher
        )
    if engine != "pytorch":
        translator = export.engine(teacher, engine, translator)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        atomic_io.replace_text(made_from, atomic_io.to_json(request))
        with Progress("the teacher translates", len(sentences), done=whole_lines(part)) as bar:
            translate_into(part, sentences, translator, bar)
        with part.open(encoding="utf-8", newline="\n") as lines:
            pairs = [pair for pair in zip(sentences, map(str.strip, lines), strict=True) if pair[1]]
        for place, path in enumerate(files):
            atomic_io.replace_text(path, "".join(f"{pair[place]}\n" for pair in pairs))
        atomic_io.remove(part)
    return str(files[0]), str(files[1])


def _text(teacher: Path, translator: SearchTranslator, more: Sequence[Path]) -> Iterator[str]:
    """Sources of the pairs that the teacher was trained on, as far as they are still there, and lines of `more`."""
    try:
        for pair in corpus_settings(teacher).train.unweighted().pairs():
            if pair.languages is None or same_languages(pair.languages, translator.languages):
                yield pair.src
    except DragomanError as error:
        say(f"{teacher}: the text that it was trained on is not read: {error}")
    for path in more:
        yield from read_lines(find(str(path)))


def _is_as_wide(teacher: Seq2SeqModel, student: recipes.TranslationRecipe) -> bool:
    """True if the student's layers are those of its teacher, only fewer, and its vocabulary the same."""
    if not isinstance(teacher, Transformer) or not isinstance(student.model, TransformerConfig):
        return False
    if not isinstance(student.tokenizer, ReuseConfig):
        return False
    few = student.model.build(src_vocab_size=8, tgt_vocab_size=8, shared_vocab=True, pad_id=PAD_ID)
    pairs = (few.encoder_layers, teacher.encoder_layers), (few.decoder_layers, teacher.decoder_layers)
    return all(
        len(own) <= len(theirs) and checkpoint.shapes(own[0]) == checkpoint.shapes(theirs[0]) for own, theirs in pairs
    )


def _beginning(student: recipes.TranslationRecipe, teacher: Path, translator: SearchTranslator, run: Path) -> Path:
    """Write a run for the student to begin with: layers of its teacher, spread over all of them, and all else (Shleifer
    and Rush 2020, "Pre-trained Summarization Distillation", section 3.2)."""
    if run.exists():
        return run
    theirs = checkpoint.weights(translator.model)
    model = build_model(student.model, translator.tokenizers)
    chosen = {
        stack: [place * len(getattr(translator.model, stack)) // len(own) for place in range(len(own))]
        for stack in ("encoder_layers", "decoder_layers")
        if (own := getattr(model, stack))
    }
    weights = {}
    for name in checkpoint.weights(model):
        stack, _, rest = name.partition(".")
        if stack in chosen:
            number, _, rest = rest.partition(".")
            weights[name] = theirs[f"{stack}.{chosen[stack][int(number)]}.{rest}"]
        else:
            weights[name] = theirs[name]
    with writing(run):
        building = run.with_name(run.name + ".building")
        atomic_io.remove(building)
        write_run(building, replace(student, run_dir=str(run)), weights, "layers of", str(teacher), key="layers_of")
        save_tokenizers(translator.tokenizers, building / TOKENIZER)
        building.rename(run)
    return run


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _recipe(
    teacher: Path, translator: SearchTranslator, run: Path, size: str, files: tuple[str, str]
) -> dict[str, Any]:
    """The student's recipe: trained as the teacher was, if that is known, and as suits so much text if not."""
    theirs: Any = recipes.of_run(teacher)
    corpus, plain = theirs.corpus, config.to_dict(theirs)
    assert translator.languages is not None
    valid = bool(sample(corpus.valid, 1)) and same_languages((corpus.src_lang, corpus.tgt_lang), translator.languages)
    recipe = default_recipe(
        *files, str(run), languages=translator.languages, doctor="skip", valid=files if valid else None
    )
    recipe["corpus"] |= {"normalize": corpus.normalize, "max_tokens": translator.max_src_tokens}
    if valid:
        recipe["corpus"] |= {name: plain["corpus"][name] for name in ("valid", "test")}
    tokenizers = translator.tokenizers
    if tokenizers.languages is None and tokenizers.tgt.vocab_size <= MAX_VOCAB_SIZE:
        recipe["tokenizer"] = {"type": "reuse", "run": str(teacher)}
    trained = checkpoint.step_of(checkpoint.select(teacher)) > 0 and not theirs.init_from
    model, own = SIZES[size].model(), theirs.model
    if own.d_model < model["d_model"]:
        say(
            f"the teacher is {own.d_model} wide, and a student of `size` {size} {model['d_model']}: give model.d_model "
            "and model.d_ff for a smaller one"
        )
    if isinstance(own, TransformerConfig) and own.d_model == model["d_model"]:  # as wide: of the same layers
        layers = {name: min(model[name], getattr(own, name)) for name in ("num_encoder_layers", "num_decoder_layers")}
        model = {**plain["model"], **layers, "dropout": DROPOUT}
    elif not tokenizers.shared and recipe["tokenizer"]["type"] == "reuse":
        model["tie_embeddings"] = "output"
    return {
        **recipe,
        "model": model,
        "decoding": {"beam_size": BEAM_SIZE},
        "training": {**plain["training"], "freeze": []} if trained else recipe["training"],
        "evaluation": plain["evaluation"],
    }
