"""Shapes in signatures are checked here (jaxtyping with beartype) and cost nothing elsewhere."""

import os
import signal

import jaxtyping

# The models of tests are so small that a second thread only waits for the first; the tests themselves run side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts a job in the background with Ctrl-C ignored, and all its children inherit that: no test of Ctrl-C could
# pass. With a handler of our own here, the processes that tests start have the usual one again.
signal.signal(signal.SIGINT, signal.default_int_handler)

HOOKED = ["nn", "models", "decoding", "data.batch", "training.loss", "training.r_drop"]
with jaxtyping.install_import_hook([f"dragoman.{module}" for module in HOOKED], "beartype.beartype"):
    import dragoman.data.batch
    import dragoman.decoding.search
    import dragoman.models
    import dragoman.training.loss
    import dragoman.training.r_drop  # noqa: F401
