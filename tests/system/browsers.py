"""The browsers of this machine that pages are opened in; without any, their tests are skipped."""

import os
import shutil
from pathlib import Path
from typing import Any

CHROMIUM = os.environ.get("DRAGOMAN_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None
)
FIREFOX = os.environ.get("DRAGOMAN_FIREFOX")
"""A Firefox that Playwright drives by WebDriver BiDi: not every one goes with every Playwright, so name it."""
_OWN = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache" / "ms-playwright"))
BROWSERS = [
    name
    for name, here in (
        ("chromium", CHROMIUM),
        ("firefox", FIREFOX or any(_OWN.glob("firefox-*"))),
        ("webkit", any(_OWN.glob("webkit-*"))),
    )
    if here
]
"""Chromium as the system has it; Firefox and WebKit as `playwright install firefox webkit` brings them."""


def launch(playwright: Any, name: str) -> Any:
    """Start one of BROWSERS."""
    options: dict[str, dict[str, Any]] = {
        "chromium": {"executable_path": CHROMIUM, "args": ["--no-sandbox"]},
        "firefox": {"executable_path": FIREFOX, "channel": "moz-firefox"} if FIREFOX else {},
        "webkit": {},
    }
    return getattr(playwright, name).launch(**options[name])
