"""Counters of a server, for Prometheus."""

import functools

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from dragoman.version import __version__

LATENCY_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16)
BATCH_ROW_BUCKETS = (1, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The counters of a server, in a registry of their own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        counter, gauge = functools.partial(Counter, registry=registry), functools.partial(Gauge, registry=registry)
        self.requests = Histogram(
            "dragoman_http_request_duration_seconds", "Time to answer", ["route", "status"], registry=registry,
            buckets=LATENCY_BUCKETS_S,
        )  # fmt: skip
        self.queue_tokens = gauge("dragoman_queue_tokens", "Source tokens of requests that are not done")
        self.tokens_per_second = gauge("dragoman_tokens_per_second", "The measured speed of the engine")
        self.batch_rows = Histogram(
            "dragoman_batch_rows", "Rows of a step", registry=registry, buckets=BATCH_ROW_BUCKETS
        )
        self.tokens = counter("dragoman_tokens", "Tokens read and written", ["pair", "side"])
        self._rejected = counter("dragoman_rejected", "Requests refused", ["reason"])
        self.guard_warnings = counter("dragoman_guard_warnings", "Warnings on translations")
        self.tag_fallback = counter("dragoman_tag_fallback", "Texts whose codes went around the whole")
        self.documents = counter("dragoman_documents", "Documents", ["format", "outcome"])
        self.model = gauge("dragoman_model_info", "The runs that are served", ["pair", "run", "digest"])
        gauge("dragoman_info", "The server", ["version"]).labels(__version__).set(1)

    def rejected(self, reason: str) -> None:
        self._rejected.labels(reason).inc()

    def page(self) -> bytes:
        """All metrics, as Prometheus reads them."""
        return generate_latest(self.registry)
