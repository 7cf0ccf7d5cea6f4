"""Dragoman's own Trainer in its own loop."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clock import StepClock
from task import CLIP_NORM, LABEL_SMOOTHING, SHAPES, SPECIALS, parse_options

from dragoman.experiments.bench.batches import subject
from dragoman.special_tokens import PAD_ID
from dragoman.tasks import recipes
from dragoman.tasks.translation.task import TranslationTask
from dragoman.training.loop import Trainer

RECIPE = Path(__file__).parents[2] / "recipes" / "multi30k-en-de-tok.yaml"


def recipe_of(shape_name: str, precision: str) -> Any:
    shape = SHAPES[shape_name]
    return recipes.load(
        RECIPE,
        [
            f"model.d_model={shape.d_model}",
            f"model.d_ff={shape.d_ff}",
            f"model.num_heads={shape.num_heads}",
            f"model.num_encoder_layers={shape.num_encoder_layers}",
            f"model.num_decoder_layers={shape.num_decoder_layers}",
            f"model.dropout={shape.dropout}",
            f"training.batch_tokens={shape.batch_tokens}",
            f"training.label_smoothing={LABEL_SMOOTHING}",
            f"training.clip_norm={CLIP_NORM}",
            f"training.precision={precision}",
            "training.backend=kernels",  # the fast layers of bfloat16 in float32 too
            "device=cpu",
        ],
    )


def translation_task(trainer: Trainer) -> TranslationTask:
    """The task on the recipe's own corpus; what stands in for one that is not there would not do."""
    task = trainer.task
    if not isinstance(task, TranslationTask):
        raise SystemExit(f"the corpus of {RECIPE.name} is not there: point DRAGOMAN_DATA at the folder that has it")
    return task


def pieces_of(task: TranslationTask) -> list[str]:
    tokenizer = task.tokenizers.src
    return tokenizer.pieces(range(len(SPECIALS), tokenizer.vocab_size))


def main() -> None:
    options = parse_options("dragoman", __doc__)
    with subject(recipe_of(options.shape_name, options.precision)) as trainer:
        task = translation_task(trainer)
        if pieces_of(task) != options.corpus.read_pieces():
            raise SystemExit(f"{options.corpus.pieces} has other pieces than the recipe learns: run prepare.py again")
        clock, batches = StepClock(options, "dragoman"), trainer.training_step.batches

        def timed_batches(step: int) -> Sequence[tuple[int, Sequence[Any]]]:
            made = batches(step)
            ((_, (batch,)),) = made  # these shapes have one micro-batch in a step
            clock.step(trainer.model, batch.src, batch.tgt_out, PAD_ID)
            return made

        trainer.training_step.batches = timed_batches  # type: ignore[method-assign]
        trainer.stop_when = lambda step: step > options.warm_up + options.steps
        trainer.train()
    raise SystemExit("the steps are over, and the clock was not told of them: training calls something else now")


if __name__ == "__main__":
    main()
