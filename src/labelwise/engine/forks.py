"""What a forked process inherits and cannot use: pools of native threads, whose threads exist in the parent alone."""

from __future__ import annotations

import os
from collections.abc import Callable


class ForkMark:
    """Knows in a forked process whether an ancestor had used something that a fork does not carry over.

    Parameters
    ----------
    adapt
        Called in each such process, at once after the fork.
    """

    def __init__(self, adapt: Callable[[], object]) -> None:
        self.inherited = False
        self._used, self._adapt = False, adapt

    def use(self) -> None:
        """Note that this process uses it from now on."""
        if not self._used:
            self._used = True
            if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
                os.register_at_fork(after_in_child=self._in_child)

    def _in_child(self) -> None:
        self.inherited = True
        self._adapt()
