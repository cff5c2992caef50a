"""Files are written before anything is printed: an output that fails, as with `| head`, costs no file."""

import errno

import pytest

from labelwise.cli.console import SafeConsole


@pytest.mark.parametrize("command", ["evaluate", "stats", "compare"])
def test_the_file_is_written_though_printing_fails(labelwise, shop, model, tmp_path, monkeypatch, command):
    def closed(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SafeConsole, "print", closed)
    place = tmp_path / "out"
    given = {
        "evaluate": (model, shop, "--bootstrap", 0, "--output", place),
        "stats": (shop, "--output", place),
        "compare": (shop, "--systems", model, "--bootstrap", 0, "--output", place),
    }[command]
    assert labelwise(command, *given, "--quiet").code == 1
    assert (place / "comparison.json" if command == "compare" else place).stat().st_size > 100
