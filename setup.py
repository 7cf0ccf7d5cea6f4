"""The folders of the repository that a wheel has too: recipes, and the pages that help texts and messages name.

In the repository they stand beside `src`, where people look for them, once: links in git are plain files on Windows.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDERS = ("recipes", "docs")
LEFT_OUT = ("__pycache__", "pictures", "site.py", "theme")


class WithFolders(build_py):
    """Puts them into the package, where `version.folder_of` looks for them."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for name in FOLDERS:
                place = Path(self.build_lib, "dragoman", name)
                shutil.rmtree(place, ignore_errors=True)
                shutil.copytree(name, place, ignore=shutil.ignore_patterns(*LEFT_OUT))


setup(cmdclass={"build_py": WithFolders})
