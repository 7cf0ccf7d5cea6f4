"""Doctests in the reference as code (an extension of Griffe)."""

import re
from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Put each block of a docstring that begins with `>>>` into a fence."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object, once."""
        if obj.docstring and "```pycon" not in obj.docstring.value:
            blocks = re.compile(r"^>>> .*(?:\n(?!\n).*)*", re.MULTILINE)
            obj.docstring.value = blocks.sub(lambda match: f"```pycon\n{match[0]}\n```", obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Change that of the package itself."""
        self.on_object(obj=pkg)
