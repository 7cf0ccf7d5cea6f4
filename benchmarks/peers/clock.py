"""One clock for the training steps of all toolkits."""

import time
from importlib.metadata import version

import torch
from result import Result
from task import Options
from torch import Tensor, nn


class StepClock:
    """Ends the process when the steps that count are over, and prints a `Result`.

    It is told of every optimizer step when that step's batch is there and nothing else of it is done. The time that
    counts goes from there in the first step after the warm-up to there in the step after the last: each step's own
    work, optimizer included, and the making of as many batches, in whatever order a toolkit does these.
    """

    def __init__(self, options: Options, package: str) -> None:
        self.options, self.package = options, package
        self.begun = 0
        self.start = 0.0
        self.real_tokens = self.padded_tokens = self.sentences = 0

    def step(self, model: nn.Module, src: Tensor, tgt_out: Tensor, pad_id: int) -> None:
        """A step begins, on these ids, which are pads or real tokens; `tgt_out` is what is to be predicted."""
        now = time.perf_counter()
        if self.begun == self.options.warm_up:
            self.start = now
        if self.begun == self.options.warm_up + self.options.steps:
            self._end(model, now - self.start)
        if self.begun >= self.options.warm_up:
            self.sentences += len(src)
            for ids in (src, tgt_out):
                self.real_tokens += int((ids != pad_id).sum())
                self.padded_tokens += ids.numel()
        self.begun += 1

    def _end(self, model: nn.Module, seconds: float) -> None:
        result = Result(
            name=self.options.name,
            version=version(self.package),
            torch=torch.__version__,
            shape=self.options.shape_name,
            precision=self.options.precision,
            threads=torch.get_num_threads(),
            parameters=sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
            steps=self.options.steps,
            seconds=seconds,
            real_tokens=self.real_tokens,
            padded_tokens=self.padded_tokens,
            sentences=self.sentences,
        )
        result.show()
        raise SystemExit
