"""An extension for the site: examples in docstrings that start with >>> become code blocks, not quotations."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?m)^( *)>>> .*(?:\n\1\S.*)*")
SECTION = re.compile(r"(?m)^ *Examples\n *-+\n")


class Examples(griffe.Extension):
    """Puts fences around examples outside of a section "Examples"."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the text above such a section; griffe formats the section itself."""
        if obj.docstring is None:
            return
        text = obj.docstring.value
        section = SECTION.search(text)
        end = section.start() if section else len(text)
        obj.docstring.value = EXAMPLE.sub(r"\1```pycon\n\g<0>\n\1```", text[:end]) + text[end:]
