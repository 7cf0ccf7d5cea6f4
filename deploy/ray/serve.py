"""Dragoman on Ray Serve: replicas that come and go with the load. Needs `pip install 'dragoman[serve,ray]'`.

    DRAGOMAN_RUNS=/runs/de-en:/runs/en-de serve run deploy.ray.serve:app

Each replica has an engine of its own, with its own batching; Ray spreads requests. A replica refuses what it cannot
do soon (429), and Ray queues no more than `max_queued_requests`.
"""

import os
from pathlib import Path

from ray import serve
from starlette.types import ASGIApp

from dragoman.serve.app import create_app
from dragoman.serve.settings import Settings


def build() -> ASGIApp:
    """The application of one replica; its runs are named by $DRAGOMAN_RUNS, separated by colons."""
    runs = [Path(name) for name in os.environ["DRAGOMAN_RUNS"].split(":")]
    return create_app(Settings(runs=runs, key_required=bool(os.environ.get("DRAGOMAN_KEY_REQUIRED")), load_first=True))


@serve.deployment(
    num_replicas="auto", max_ongoing_requests=256, max_queued_requests=512, ray_actor_options={"num_cpus": 2},
    health_check_period_s=10, graceful_shutdown_timeout_s=25,
)  # fmt: skip
@serve.ingress(build)
class Dragoman:
    """One replica."""


app = Dragoman.bind()
