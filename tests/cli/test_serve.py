"""labelwise serve: keys, names of models, and what it refuses before it listens."""

import socket
from pathlib import Path

import pytest

from labelwise.cli.serve import bound_address, example_texts, model_folders
from labelwise.errors import UsageError
from labelwise.serve.keys import Keyring


def test_a_key_is_printed_once(labelwise, tmp_path):
    file = tmp_path / "keys.txt"
    result = labelwise("serve", "--make-key", file, "--admin", "--key-name", "anna")
    assert result.code == 0
    assert "stored nowhere" in result.err
    key = result.out.strip()
    found = Keyring.read(file).find(key.encode())
    assert (found.name, found.role) == ("anna", "admin")
    assert key not in file.read_text()


def test_names_of_models(tmp_path):
    assert model_folders(("a=x", "b=y/z")) == {"a": Path("x"), "b": Path("y/z")}
    assert model_folders((str(tmp_path / "shop"),)) == {"shop": tmp_path / "shop"}
    odd = tmp_path / "n=5"
    odd.mkdir()
    with pytest.raises(UsageError, match="'n=5' is not a model name"):
        model_folders((str(odd),))
    assert model_folders((f"five={odd}",)) == {"five": odd}
    with pytest.raises(UsageError, match="two models are called 'shop'"):
        model_folders(("a/shop", "b/shop"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "no model is given"),
        (("m", "--port", 70000), "--port 70000: give a port from 0 to 65535"),
        (("m", "--batch", 0), "--batch 0: give more than 0"),
        (("m", "--wait-ms", -1), "--wait-ms -1.0: give 0 or more"),
        (("m", "--deadline", "nan"), "--deadline nan: give more than 0"),
        (("m", "--threads", 0), "--threads is 0; it must be a whole number of at least 1"),
        (("m", "--port", 0, "--allowed-hosts", "a:1"), "--allowed-hosts a:1: give names or addresses without a port"),
        (("m", "--host", "999.1.1.1"), "cannot listen on 999.1.1.1:8000"),
    ],
)
def test_wrong_usage(labelwise, arguments, says):
    result = labelwise("serve", *arguments)
    assert result.code == 2
    assert says in result.err
    assert result.err.count("\n") == 1


def test_example_texts(labelwise, tmp_path):
    file = tmp_path / "examples.txt"
    file.write_text("a red mirror\n\n  a play mat \n")
    assert example_texts(file) == ["a red mirror", "a play mat"]
    assert example_texts(None) == []
    file.write_text("\n")
    result = labelwise("serve", "m", "--examples", file)
    assert (result.code, result.err) == (
        2,
        f"labelwise: --examples {file}: it holds no text; give a text file with one text per line\n",
    )
    file.write_bytes(b"caf\xe9")
    assert "it is not UTF-8 text" in labelwise("serve", "m", "--examples", file).err
    assert labelwise("serve", "m", "--examples", tmp_path / "none.txt").code == 1


def test_a_folder_without_a_model_and_a_port_in_use(labelwise, tmp_path):
    result = labelwise("serve", tmp_path, "--port", 0)
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "is not a model" in result.err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = labelwise("serve", tmp_path, "--port", taken.getsockname()[1])
    assert result.code == 2
    assert "cannot listen on 127.0.0.1" in result.err
    assert result.err.endswith("; choose another port with --port\n")
    result = labelwise("serve", tmp_path, "--port", 0, "--keys", tmp_path / "none")
    assert "none: there is no such file" in result.err


def test_the_address_that_a_host_stands_for():
    assert bound_address("127.1", 0) == "127.0.0.1"  # it is this machine, so the header Host is checked
    assert bound_address("", 0) == "0.0.0.0"
    with pytest.raises(UsageError, match="cannot listen on"):
        bound_address("\udcff", 0)
