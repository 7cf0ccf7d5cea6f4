"""The state of a server: everything that its handlers share, from its start to its stop."""

import contextlib
import ctypes
import gc
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError, Error
from dragoman.inference.nearest_neighbours import by_run
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.base import Seq2SeqModel
from dragoman.pipeline.options import TranslateOptions
from dragoman.progress import say
from dragoman.runs import checkpoint
from dragoman.serve.clients import Gate
from dragoman.serve.database import LOCK_WAIT_S
from dragoman.serve.documents import DocumentTasks
from dragoman.serve.explainer import Explainer
from dragoman.serve.fairness import FairThreads, Shares
from dragoman.serve.glossaries import Glossaries
from dragoman.serve.memories import CorrectionMemories
from dragoman.serve.metrics import Metrics
from dragoman.serve.processor import REQUEST_SECONDS, after_the_event_loop
from dragoman.serve.scheduler import BatchScheduler
from dragoman.serve.service import ServedRun, Service
from dragoman.serve.settings import Settings
from dragoman.serve.store import Store

MAX_HANDLERS = 32
"""Handlers at once: they parse, read and write the store and files, or wait for their turn to. Were there few threads,
those of clients who wait would be all of them."""
MAX_WAITING = 64
"""Requests at once that are tokenised, wait for the scheduler, or explain their translations."""
COUNT_SECONDS = 1.0
"""Seconds after which characters that keys have used are written down."""


class Server:
    """Everything that handlers share."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.limits = settings, settings.limits
        self.metrics = Metrics()
        self.store = Store(settings.store, LOCK_WAIT_S)
        self.memories = CorrectionMemories(self.store.corrections)
        self.service = Service(BatchScheduler(settings.threads, settings.limits.deadline_seconds), self.memories.memory)
        self.gate = Gate(self.store, self.limits, settings.key_required)
        self.explainer = Explainer()
        self.glossaries = Glossaries(self.store, self.limits, self.gate)
        self.tasks = DocumentTasks(self.service, self.metrics, self.limits, settings.work_folder)
        self.bodies = Shares()
        """Bytes of request bodies in memory."""
        processor = self.service.scheduler.processor
        self.handlers = FairThreads(
            MAX_HANDLERS,
            "handler",
            lambda client: processor.used.charge((client, False), REQUEST_SECONDS),
            after_the_event_loop,
        )
        self.request_threads = FairThreads(MAX_WAITING, "request", on_start=after_the_event_loop)
        self.ready = False
        self.stopping = False
        self.problem: DragomanError | None = None
        """Why there is nothing to serve."""
        self.on_problem: Callable[[], None] = lambda: say(f"dragoman: {self.problem}")
        self.service.scheduler.on_batch = self.metrics.batch_rows.observe
        self.service.scheduler.on_done = self._count
        self.service.on_warnings = self.metrics.guard_warnings.inc
        self.bases: dict[str, Seq2SeqModel] = {}
        """Models that served adapters correct, and that are not served themselves, by the digest of their weights."""
        self.loading = threading.Thread(target=self._load, name="loading", daemon=True)
        self._reloading = threading.Lock()

    def start(self) -> None:
        """Start the scheduler, and load the runs behind it."""
        self.service.scheduler.__enter__()
        self.memories.read()
        self.loading.start()

    def unready(self) -> str | None:
        """The reason why nothing can be translated now; None if there is none. (What the problem is, with the paths in
        it, is in the log.)"""
        if self.stopping:
            return "stopping"
        return None if self.ready else "failed" if self.problem else "loading"

    def names_own_file(self, error: DragomanError) -> bool:
        """True if an error is about a file of the server, which is nothing for its clients."""
        own = [path for path in (*self.settings.runs, self.store.path, self.tasks.folder) if path is not None]
        return any(
            str(path.absolute()) in str(error) or (error.file and Path(error.file).is_relative_to(path)) for path in own
        )

    @property
    def is_loading(self) -> bool:
        """True while runs are loaded, the first time or anew."""
        return self.loading.is_alive() or self._reloading.locked()

    def give_up(self) -> None:
        """End the requests and documents under way: whatever looks at its handle raises Cancelled."""
        self.stopping = True
        self.service.scheduler.__exit__()

    def stop(self) -> None:
        """End everything; requests that are under way are given up."""
        self.give_up()
        self.tasks.close()
        for threads in (self.handlers, self.request_threads):
            threads.shutdown()
        self.gate.usage.write(self.store.database.patience)
        self.store.close()
        gc.unfreeze()

    def tidy(self) -> None:
        """Delete old documents, and give the memory back that the C library keeps for later."""
        self.tasks.tidy()
        with contextlib.suppress(OSError, AttributeError, TypeError):  # of glibc alone
            ctypes.CDLL(None).malloc_trim(0)

    def _load(self) -> None:
        try:
            for path in self._in_order():
                self._put(path)
        except Exception as error:
            if self.stopping:
                return
            self.problem = error if isinstance(error, DragomanError) else Error.PROCESS_FAILED(repr(error))
            self.on_problem()
            return
        self.ready = True

    def _put(self, path: Path) -> None:
        started, settings, threads = time.monotonic(), self.settings, self.service.scheduler.num_threads
        run = ServedRun.load(
            TranslateOptions(
                path,
                device=settings.device,
                engine=settings.engine,
                precision=settings.precision,
                threads=threads,
                base=self._base(path),
                datastores=by_run(settings.datastores, settings.runs).get(path, ()),
            )
        )
        run = self._as_variant(run)
        before = self.service.runs.get(run.languages)
        if before is not None and before.path != path:
            say(f"{path}: takes the place of {before.path}: both translate {' to '.join(run.languages)}")
        self.service.put(run)
        self.metrics.model.labels(" ".join(run.languages), str(path), run.digest[:12]).set(1)
        if before is not None:
            with contextlib.suppress(KeyError):
                self.metrics.model.remove(" ".join(before.languages), str(before.path), before.digest[:12])
        stay_out_of_collections()
        say(f"serving {' to '.join(run.languages)} from {path} (loaded in {time.monotonic() - started:.1f} s)")

    def _in_order(self) -> list[Path]:
        """The runs, those first that are no adapters: others may be adapters of them."""
        return sorted(self.settings.runs, key=lambda path: base_digest(path) is not None)

    def _base(self, path: Path) -> Seq2SeqModel | None:
        """The base model of a run that is an adapter, loaded once for all adapters of it; None for a run that is no
        adapter. An adapter that is alone with its base is merged into it, which is faster, and has None, too."""
        digest, settings = base_digest(path), self.settings
        on_it = [one for one in settings.runs if base_digest(one) == digest]
        served = next((run.own.model for run in self.service.runs.values() if run.digest == digest), None)
        if digest is None or settings.engine != "pytorch" or (served is None and len(on_it) < 2):
            return None
        if served is None and digest not in self.bases:
            chosen = checkpoint.base_of(checkpoint.select(path))
            precision: Any = {} if settings.precision is None else {"precision": settings.precision}
            loaded = SearchTranslator.load(
                chosen.parents[1], which=str(checkpoint.step_of(chosen)), device=settings.device, **precision
            )
            self.bases[digest] = loaded.model
        return served or self.bases[digest]

    def _as_variant(self, run: ServedRun) -> ServedRun:
        """An adapter beside its base, or beside another adapter of it, is served under a target language of its own:
        `en-x-manual` of a run that is called `manual` (BCP 47: what follows `x` is private)."""
        digest = base_digest(run.path)
        others = [one for one in self.service.runs.values() if one.path != run.path and one.languages == run.languages]
        if digest is None or not any(digest in (one.digest, base_digest(one.path)) for one in others):
            return run
        src, tgt = run.languages
        name = re.findall("[a-z0-9]{1,8}", run.path.name.lower())
        return replace(run, languages=(src, "-".join([tgt, "x", *name])))

    def reload(self) -> None:
        """Load every run anew; if one fails, the old version stays in service."""
        with self._reloading:
            self.bases.clear()
            for path in self._in_order():
                try:
                    self._put(path)
                except Exception as error:
                    say(f"{path}: could not be reloaded, the version before stays in service: {error}")

    def _count(self, translator: SearchTranslator, src_tokens: int, tgt_tokens: int) -> None:
        pair = " ".join(translator.languages or ("?", "?"))
        self.metrics.tokens.labels(pair, "source").inc(src_tokens)
        self.metrics.tokens.labels(pair, "target").inc(tgt_tokens)


def stay_out_of_collections() -> None:
    """Take all objects that there are out of the garbage collector's later collections. Of a server's million objects
    nearly all are modules and models, which stay: to look at them each second holds everybody up for half a second."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def base_digest(path: Path) -> str | None:
    """The digest of the base weights of an adapter; None for a run that is no adapter, or that cannot be read."""
    held = checkpoint.list_checkpoints(path)
    corrects = checkpoint.adapter_of(held[-1]) if held else None
    return None if corrects is None else str(corrects["base"])
