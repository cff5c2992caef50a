"""What a piece of Python opens, starts and connects to, told by the audit hooks of a process of its own."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_HOOK = """
import json, os, sys
heard = []
def hear(event, arguments):
    if event == "open" and not isinstance(arguments[0], int):
        heard.append(("open", os.fsdecode(arguments[0]), bool((arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR))))
    elif event.startswith(("subprocess.", "socket.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "pty.")):
        heard.append((event, "", True))
    elif event in ("builtins.input", "pickle.find_class"):
        heard.append((event, str(arguments), True))
{first}
sys.addaudithook(hear)
{code}
print("@heard " + json.dumps(heard))
"""


@dataclass(frozen=True)
class Heard:
    """What audit hooks told."""

    opened: list[Path]
    """Files that were opened, as absolute paths without links, in the order of their first opening."""
    written: list[Path]
    """Those that were opened for writing."""
    events: list[str]
    """Processes, sockets, questions on standard input, and classes out of pickles."""
    output: str

    def outside(self, *folders: Path | str) -> list[Path]:
        """Files that were opened and lie in none of these folders, nor in Python's own or those of packages."""
        own = (
            *folders,
            sys.prefix,
            sys.base_prefix,
            *(path for path in sys.path if path),
            "/proc",
            "/sys",
            "/dev/null",
        )
        known = [Path(folder).resolve() for folder in own]
        known += [Path("/usr/lib"), Path("/lib"), Path("/usr/share/zoneinfo")]
        return [path for path in self.opened if not any(path.is_relative_to(folder) for folder in known)]


def heard(code: str, *, first: str = "", arguments: Sequence[str] = ()) -> Heard:
    """Run Python code in a process with audit hooks; `first` is run before they are set."""
    program = _HOOK.replace("{first}", first).replace("{code}", code)
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, input="y\n" * 100
    )
    assert done.returncode == 0, done.stderr
    output, _, found = done.stdout.rpartition("@heard ")
    events = json.loads(found)
    files = {Path(path).resolve(): writing for event, path, writing in reversed(events) if event == "open"}
    writing = {Path(path).resolve() for event, path, writes in events if event == "open" and writes}
    written = [path for path in files if path in writing]
    return Heard(
        list(files)[::-1], written, [f"{one[0]} {one[1]}".strip() for one in events if one[0] != "open"], output
    )
