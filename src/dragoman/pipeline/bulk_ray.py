"""Bulk translation on a Ray cluster: its autoscaling and placement, our blocks and our exactly-once.

Ray Data calls `BlockWorker` on actors, which it places, restarts and adds as the cluster grows. What they write are the
same blocks as those of any other worker, on a folder that all machines share.
"""

import logging
import os
from pathlib import Path
from typing import Any

import torch

from dragoman.errors import Error, not_installed
from dragoman.pipeline.bulk import Blocks, Manifest, Work, do_block
from dragoman.pipeline.lines import OutputFormat, translating
from dragoman.pipeline.options import TranslateOptions
from dragoman.progress import Progress, say

MAX_ROUNDS = 5
"""Times that what is left is given out again: blocks that a worker on another command was at and died."""


class BlockWorker:
    """An actor: a translator in memory, and a place in the text."""

    def __init__(
        self, source: str, folder: str, manifest: Manifest, options: TranslateOptions, form: OutputFormat
    ) -> None:
        self.work = Work(Path(source), Path(folder), manifest.decoding, manifest.block_lines)
        self.blocks = Blocks(self.work.source, self.work.manifest.block_lines)
        self.translate = translating(options, form)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {"lines": [do_block(self.work, self.blocks, int(block), self.translate) for block in batch["item"]]}


def run_on_ray(work: Work, options: TranslateOptions, form: OutputFormat, workers: int) -> None:
    """Translate what is left by so many actors, of the cluster that RAY_ADDRESS names, or of this machine alone.

    An actor has one core, or as many as OMP_NUM_THREADS says: Ray places it where they are free, and gives it so many
    threads.
    """
    threads = torch.get_num_threads() if "OMP_NUM_THREADS" in os.environ else 1
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise not_installed("`ray` needs a library", "ray") from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.init(ignore_reinit_error=True, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        with Progress(f"translating {work.source.name}", work.manifest.lines) as bar:
            for _ in range(MAX_ROUNDS):
                if not (left := work.left()):
                    break
                done = ray.data.from_items(left, override_num_blocks=len(left)).map_batches(
                    BlockWorker,
                    batch_size=1,
                    compute=ray.data.ActorPoolStrategy(size=min(workers, len(left))),
                    num_cpus=threads,
                    fn_constructor_args=(
                        str(work.source.resolve()),
                        str(work.folder.resolve()),
                        work.manifest,
                        options,
                        form,
                    ),
                )
                for row in done.iter_rows():
                    bar.advance(int(row["lines"]))
    finally:
        ray.shutdown()
    if not work.join():
        raise Error.INCOMPLETE(f"{len(work.left()):,} blocks are left", "run the same command again", file=work.folder)
    say(f"{work.output}: {work.manifest.lines:,} lines")
