"""The settings of a training."""

from typing import Annotated, Literal

from dragoman.backends.compile import CompileName
from dragoman.config import Field, OneOf, settings
from dragoman.device import PrecisionName
from dragoman.errors import Error
from dragoman.runs.loggers import LOGGERS
from dragoman.training.ema import AveragingConfig, EmaConfig, LastConfig
from dragoman.training.nonfinite import AbortConfig, NonFiniteConfig
from dragoman.training.optim import AdamWConfig, OptimizerConfig
from dragoman.training.schedules import LinearConfig, ScheduleConfig

Metric = Literal["loss", "perplexity", "bleu", "chrf", "accuracy", "bits_per_character"]


@settings
class TrainingConfig:
    """The settings of a training. Steps are optimizer steps."""

    max_steps: int = Field(default=5000, ge=1)  #: Length of the training. [steps]
    max_epochs: int | None = Field(default=None, ge=1)
    """Length of the training in the place of `max_steps`; null: `max_steps` says it. [epochs]"""
    batch_tokens: int = Field(default=2048, ge=1)
    """Limit of rows times the longer side of a micro-batch, padding included. [positions]"""
    workspace: Annotated[int, Field(ge=1)] | Literal["auto"] | None = None
    """Memory that a micro-batch may take on its way forward and back: the largest `batch_tokens` that keeps to it is
    looked for before the first step, by trials, and the run keeps it (Marian's `--mini-batch-fit`); `auto`: most
    of what is free; null: `batch_tokens` as it is. [MiB]"""
    batch_sentences: int | None = Field(default=None, ge=1)
    """Limit of rows of a micro-batch, beside `batch_tokens`; null: none. [sentences]"""
    micro_batches: int = Field(default=1, ge=1)
    """Micro-batches whose gradients are summed before each step (gradient accumulation). Several processes divide them
    among themselves."""
    reduce: Literal["exact", "fast"] = "exact"
    """The sum over micro-batches. `exact`: along a fixed tree, so that a run's bytes do not depend on the number of
    processes; `fast`: between processes while gradients are computed (PyTorch's DDP): equal up to rounding, and to the
    last bit only with as many processes."""
    optimizer: OptimizerConfig = Field(default_factory=AdamWConfig)  #: The optimizer.
    schedule: ScheduleConfig = Field(default_factory=LinearConfig)
    """The learning rate of each step; it has the rate itself too (`lr`)."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of the target's probability that is spread over the vocabulary."""
    r_drop: float = Field(default=0.0, ge=0)
    """Weight of the divergence between two passes with other dropout, the alpha of Liang et al. 2021; 0: one pass. Two
    take twice the time and memory: halve `batch_tokens` where that is too much."""
    freeze: list[str] = Field(default_factory=list)
    """Parts of the model whose weights stay as they are, by the beginning of their parameters' names
    (`encoder_layers`, `src_embedding`; `dragoman inspect parameters` lists them), or `embeddings`: both sides'."""
    gradient_checkpointing: bool = False
    """Keep the inputs of layers alone for the backward pass and compute what is inside again: about a third more time
    for much less memory, and the same gradients. Attention models only."""
    clip_norm: float = Field(default=1.0, ge=0)  #: Largest norm of the whole gradient; 0: no limit.
    averaging: AveragingConfig = Field(default_factory=EmaConfig)
    """Weight averaging: which weights are validated and translated with."""
    precision: PrecisionName = "auto"
    """Number format of forward and backward passes; weights stay float32. `auto`: the device's best. In `float16`, for
    GPUs without bfloat16, the loss is scaled; steps whose gradient overflows are left out and counted."""
    compile: CompileName = "auto"
    """`layers`: each kind of layer is compiled for all shapes by torch.compile; `graphs`: and recorded as CUDA graphs,
    one for each shape of a batch, so for language models and images, whose batches have few; `auto`: layers on an
    NVIDIA GPU. Recurrent models are left as they are."""
    backend: Literal["auto", "kernels", "textbook"] = "auto"
    """`auto`: fast twins of layers and losses, those for this processor too; `kernels`: in float32 too those in C (with
    AVX2), faster, with other random numbers for dropout; `textbook`: all as in `nn/`, `models/` and `loss.py`, slower,
    to step through with a debugger."""
    not_finite: NonFiniteConfig = Field(
        default_factory=AbortConfig
    )  #: Reaction to a loss or gradient that is not finite.
    validate_every: int = Field(default=500, ge=1)
    """Interval between validations; a checkpoint is written after each. [steps]"""
    validate_seconds: float | None = Field(default=None, gt=0)
    """Interval between validations by the clock, besides those by steps; it grows to a fifth of the time that is spent,
    and to ten times what a validation takes. What the clock decides is kept in RUN/pace.json, so that a run that is
    killed does the same again; two runs may differ. null: by steps alone. [seconds]"""
    validation_beam_size: int = Field(default=1, ge=1)  #: Beam of validation decoding; 1: greedy. [hypotheses]
    best_by: list[Metric] = Field(default_factory=list)
    """Figures of a validation that the best checkpoint goes by, the first one first, then the next of equals; without
    any: the task's score (BLEU, accuracy, or the loss). The loss comes last. BLEU below 1 counts as 0."""
    patience: int | None = Field(default=None, ge=1)
    """Validations in a row without a new best before training stops; null: never. [validations]"""
    patience_on: Literal["best", "any", "all"] = "best"
    """The figures that `patience` waits for: `best`: the order of `best_by`; `any`, `all`: one, or each, of the
    figures in `best_by`, but for BLEU below 1."""
    min_improvement: float = Field(default=0.0, ge=0)
    """Least gain of a figure over its best, or loss of the loss, for `patience` to begin anew; the best checkpoint is
    the best without it."""
    keep_last: int = Field(default=2, ge=1)  #: Newest checkpoints that are kept.
    keep_best: int = Field(default=1, ge=1)  #: Best checkpoints that are kept, beside the newest.
    log_every: int = Field(default=50, ge=1)  #: Interval between lines of the log. [steps]
    loggers: list[Annotated[str, OneOf(LOGGERS)]] = Field(default_factory=lambda: ["tensorboard"])
    """Programs to watch the training with: `tensorboard` (RUN/tensorboard), `wandb`, `mlflow`. One that fails is left
    out, and the training goes on."""
    samples: int = Field(default=4, ge=0)
    """Validation sentences whose translations are shown during training. [sentences]"""

    def __post_init__(self) -> None:
        if isinstance(self.averaging, LastConfig) and self.keep_last < self.averaging.checkpoints - 1:
            raise ValueError(
                f"averaging the last {self.averaging.checkpoints} checkpoints needs keep_last of at least "
                f"{self.averaging.checkpoints - 1}, it is {self.keep_last}"
            )
        if self.gradient_checkpointing and self.compile == "graphs":
            raise ValueError("gradient_checkpointing computes layers again, which graphs do not: set compile to layers")


def check_division(training: TrainingConfig, processes: int) -> None:
    """Raises DragomanError where a step's micro-batches cannot be divided among so many processes."""
    count = training.micro_batches
    if processes == 1:
        return
    more = -(-count // processes) * processes
    powers = training.reduce != "exact" or all(number & (number - 1) == 0 for number in (count, processes))
    if count % processes == 0 and powers:
        return
    if training.reduce == "exact":
        if processes & (processes - 1):
            raise Error.WRONG_SETTING(
                f"{processes} processes: with training.reduce=exact it is a power of two (2, 4, 8), or set "
                "training.reduce=fast"
            )
        more = max(processes, 1 << (count - 1).bit_length())
    tokens = max(1, training.batch_tokens * count // more)
    raise Error.WRONG_SETTING(
        f"training.micro_batches={count} cannot be divided among {processes} processes"
        f"{' (for training.reduce=exact both are powers of two)' if count % processes == 0 else ''}: "
        f"training.micro_batches={more} training.batch_tokens={tokens} takes steps of the same size"
    )
