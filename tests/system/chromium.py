"""The browser of this machine that pages are opened in; None: there is none, and their tests are skipped."""

import os
import shutil

CHROMIUM = os.environ.get("DRAGOMAN_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None
)
