"""The folder of an encoder is data: what would run code, open other files or take all memory is refused before that."""

import json
import os
import shutil

import numpy as np
import pytest
import torch

from labelwise import Encoder
from labelwise.config import EncoderConfig
from labelwise.errors import LabelwiseError, StorageError, UsageError
from labelwise.features.encoder_checks import (
    check_config,
    check_tokenizer,
    check_weights,
    is_finite,
    library_refusals,
    plain_name,
)
from labelwise.features.encoder_folder import check_files, checksum, load_encoder
from tests.features.tiny import write_model
from tests.storage.opened import heard


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder that labelwise saved."""
    folder = tmp_path_factory.mktemp("encoders")
    write_model(folder / "first", "bert")
    Encoder.load(EncoderConfig(name=str(folder / "first"), max_length=16)).save(folder / "saved")
    return folder / "saved"


@pytest.fixture
def folder(saved, tmp_path):
    """A copy to be changed."""
    return shutil.copytree(saved, tmp_path / "encoder")


def change(file, **entries):
    """Add entries to a JSON file; `...` removes one."""
    about = json.loads(file.read_text()) if file.exists() else {}
    about = {name: value for name, value in {**about, **entries}.items() if value is not ...}
    file.write_text(json.dumps(about))


def change_header(folder, edit):
    """Change the header of the weights, with right checksums in encoder.json."""
    file = folder / "model.safetensors"
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    edit(header)
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    change(folder / "encoder.json", files={file.name: checksum(file)})


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "processor_config.json"])
@pytest.mark.parametrize("code", ["code.C", "someone/repo--code.C"])
def test_code_of_a_folder_is_refused_before_transformers_sees_it(folder, monkeypatch, name, code):
    ran = folder / "ran"
    (folder / "code.py").write_text(
        f"open({str(ran)!r}, 'w').close()\nfrom transformers import BertConfig\nclass C(BertConfig): pass\n"
    )
    change(folder / name, auto_map={"AutoConfig": code, "AutoTokenizer": [code, None], "AutoModel": code})
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on standard input"))
    with pytest.raises(StorageError, match=rf"{name}: the entry auto_map names Python code of its own"):
        load_encoder(folder)
    change(folder / name, model_type="other")
    with pytest.raises(StorageError, match="the entry auto_map names Python code of its own"):
        load_encoder(folder)
    assert not ran.exists()


@pytest.mark.parametrize(
    ("file", "entries", "message"),
    [
        (
            "config.json",
            {"quantization_config": {"quant_method": "bitsandbytes"}},
            "would have other code or files used",
        ),
        ("config.json", {"text_config": {"auto_map": {"AutoConfig": "c.C"}}}, "text_config.auto_map names Python code"),
        ("config.json", {"transformers_weights": "../other.safetensors"}, "transformers_weights would have other code"),
        ("config.json", {"configuration_files": ["config.4.0.0.json"]}, "configuration_files would have other code"),
        ("config.json", {"attn_implementation": "kernels-community/flash-attn"}, "only eager and sdpa are read"),
        ("config.json", {"_attn_implementation": {"": "flex_attention"}}, "only eager and sdpa are read"),
        ("config.json", {"num_hidden_layers": 10**6}, "num_hidden_layers is 1000000, which is more than the weights"),
        ("config.json", {"hidden_size": 2**40}, "hidden_size is 1099511627776, which is more"),
        ("config.json", {"vocab_size": 10**9}, "vocab_size is 1000000000, which is more"),
        ("config.json", {"num_labels": 10**9}, "num_labels is 1000000000, which is more"),
        ("config.json", {"intermediate_size": 2**20, "num_hidden_layers": 500}, "it asks for [0-9,]+ numbers, but the"),
        ("config.json", {"layer_norm_eps": float("inf")}, "layer_norm_eps is inf"),
        ("config.json", {"model_type": ["bert"]}, "names no model_type"),
        ("config.json", {"model_type": "clip_vision_model"}, "cannot be read as an encoder|reads no texts"),
        ("config.json", {"num_attention_heads": 0}, "cannot be read as an encoder"),
        ("config.json", {"hidden_act": "no such function"}, "cannot be read as an encoder"),
        ("config.json", {"hidden_act": 3}, "cannot be read as an encoder"),
        ("config.json", {"max_position_embeddings": 8}, "max_length is 16|cannot be read as an encoder"),
        ("tokenizer_config.json", {"vocab_file": "/etc/passwd"}, "names '/etc/passwd', a file outside of the folder"),
        ("tokenizer_config.json", {"fast_tokenizer_files": ["a.json"]}, "fast_tokenizer_files would have other code"),
        ("tokenizer_config.json", {"sp_model_kwargs": {"model_file": "/x"}}, "sp_model_kwargs would have other code"),
        ("tokenizer_config.json", {"model_max_length": "many"}, "model_max_length is no number"),
        ("encoder.json", {"files": {"../x": {"bytes": 0, "sha256": ""}}}, "files has the entry '../x'"),
        ("encoder.json", {"files": {"/etc/passwd": {"bytes": 0, "sha256": ""}}}, "files has the entry '/etc/passwd'"),
        ("encoder.json", {"files": []}, "there is .* where a table"),
        ("encoder.json", {"config": 3}, "there is 3 where a table"),
        ("encoder.json", {"version": "2"}, "version is no whole number"),
        ("adapter_config.json", {"base_model_name_or_path": "someone/repo"}, "holds an adapter of another model"),
    ],
)
def test_entries_that_no_encoder_needs_are_refused(folder, file, entries, message):
    change(folder / file, **entries)
    with pytest.raises(LabelwiseError, match=message):
        load_encoder(folder)


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, "[" * 100 + "]" * 100, "3", "[]", '{"a": ', "9" * 5000])
@pytest.mark.parametrize("name", ["config.json", "encoder.json", "tokenizer.json", "tokenizer_config.json"])
def test_json_that_is_no_table_is_refused(folder, name, text):
    (folder / name).write_text(text)
    with pytest.raises(StorageError, match=name):
        load_encoder(folder)


def tokenizer_with(folder, **entries):
    change(folder / "tokenizer.json", **entries)


def test_tokenizers_that_fail_or_blow_up_texts_are_refused(folder):
    split = {"type": "Split", "pattern": {"Regex": "(?<a"}, "behavior": "Removed", "invert": False}
    tokenizer_with(folder, pre_tokenizer=split)
    with pytest.raises(UsageError, match="cannot be read as an encoder"):
        load_encoder(folder)
    double = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    tokenizer_with(folder, pre_tokenizer=None, normalizer={"type": "Sequence", "normalizers": [double] * 30})
    with pytest.raises(StorageError, match="its normalizer makes texts 1e\\+09 times as long"):
        load_encoder(folder)
    tokenizer_with(folder, normalizer=None, post_processor={"type": "TemplateProcessing", "single": [0] * 100})
    with pytest.raises(StorageError, match=r"post_processor\.single has 100 entries"):
        load_encoder(folder)
    tokenizer_with(folder, post_processor=None, added_tokens=[{"id": 1 << 31, "content": "[UNK]"}])
    with pytest.raises(StorageError, match=r"a token has the number 2\.14748e\+09, but there are [0-9]+ tokens"):
        load_encoder(folder)


def test_a_token_beyond_the_embeddings_is_refused(folder):
    about = json.loads((folder / "tokenizer.json").read_text())
    about["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [70_000]
    (folder / "tokenizer.json").write_text(json.dumps(about))
    with pytest.raises(LabelwiseError, match="the tokenizer gives the token 70000"):
        load_encoder(folder)
    about["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [5000]
    (folder / "tokenizer.json").write_text(json.dumps(about))
    with pytest.raises(StorageError, match=r"gives the token 5000, but the encoder .* knows 27"):
        load_encoder(folder)


def test_links_pipes_and_devices_are_refused(folder, tmp_path):
    weights = folder / "model.safetensors"
    shutil.move(weights, tmp_path / "elsewhere")
    weights.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link that leaves the folder"):
        load_encoder(folder)
    weights.unlink()
    weights.symlink_to("/dev/zero")
    with pytest.raises(StorageError, match="is a link that leaves the folder"):
        load_encoder(folder)
    weights.unlink()
    os.mkfifo(weights)
    with pytest.raises(StorageError, match="it is no regular file"):
        load_encoder(folder)


def test_the_hubs_cache_may_have_links(saved, tmp_path):
    snapshot = tmp_path / "models--user--tiny" / "snapshots" / "abc"
    (tmp_path / "models--user--tiny" / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, file in enumerate(saved.iterdir()):
        shutil.copy(file, tmp_path / "models--user--tiny" / "blobs" / str(number))
        (snapshot / file.name).symlink_to(f"../../blobs/{number}")
    assert load_encoder(snapshot).embed(["a"]).shape == (1, 32)


def test_a_folder_that_is_gone_is_not_looked_for_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelwise.features.pretrained._from_hub", lambda name: pytest.fail("asked the hub"))
    from pathlib import Path

    with pytest.raises(StorageError, match="matcher/encoder is missing"):
        load_encoder(Path("matcher") / "encoder")
    (tmp_path / "matcher" / "encoder").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"holds no config\.json"):
        load_encoder(Path("matcher") / "encoder")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_finite_are_refused(folder, value):
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-4:] = np.float32(value).tobytes()
    file.write_bytes(content)
    change(folder / "encoder.json", files={file.name: checksum(file)})
    with pytest.raises(StorageError, match="are not all finite"):
        load_encoder(folder)


@pytest.mark.parametrize("kind", ["F16", "BF16", "F32", "F64"])
@pytest.mark.parametrize("offset", [0, 1])
def test_finite_numbers_of_every_type(kind, offset):
    dtype = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64}[kind]
    values = torch.full(((1 << 20) + 5,), 1.5, dtype=dtype)
    values[7] = torch.finfo(dtype).max
    values[8] = -torch.finfo(dtype).max

    def content():
        whole = np.zeros(values.nbytes + 1, np.uint8)
        whole[offset : offset + values.nbytes] = values.view(torch.uint8).numpy()
        return whole[offset : offset + values.nbytes]

    assert is_finite(content(), kind)
    for wrong in ("nan", "inf", "-inf"):
        values[-1] = float(wrong)
        assert not is_finite(content(), kind)


def test_a_header_that_does_not_fit_the_file_is_refused(folder, saved):
    name = "encoder.layer.0.output.dense.weight"
    edits = [
        lambda header: header[name].update(shape=[64, 64]),
        lambda header: header[name].update(dtype="F8"),
        lambda header: header[name].update(data_offsets=[0, 1 << 60]),
        lambda header: header[name].update(data_offsets=[-4, 4]),
        lambda header: header[name].update(shape=[-32, -64]),
        lambda header: header[name].update(shape="x"),
        lambda header: header.update({name: []}),
        lambda header: header.pop(name),
    ]
    for edit in edits:
        shutil.copy(saved / "model.safetensors", folder / "model.safetensors")
        change_header(folder, edit)
        with pytest.raises(StorageError, match=r"model\.safetensors"):
            load_encoder(folder)
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)
    change(folder / "encoder.json", files={})
    with pytest.raises(StorageError, match="not a valid safetensors file"):
        load_encoder(folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(UsageError, match=r"it has no model\.safetensors"):
        load_encoder(folder)


@pytest.mark.parametrize("name", ["../saved/model.safetensors", "/x/model.safetensors", "a.bin", 3, ".."])
def test_an_index_of_weights_names_files_of_the_folder(folder, name):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    change(folder / "encoder.json", files={})
    with pytest.raises(StorageError, match="which is no safetensors file of the folder"):
        load_encoder(folder)


def test_weights_in_several_files_are_read(folder, saved):
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    parts = {f"model-{number}.safetensors": dict(list(tensors.items())[number::2]) for number in (0, 1)}
    for file, part in parts.items():
        save_file(part, folder / file, metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    weight_map = {name: file for file, part in parts.items() for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    change(folder / "encoder.json", files={})
    texts = ["the law of fishing", "red shoe"]
    np.testing.assert_array_equal(load_encoder(folder).embed(texts), load_encoder(saved).embed(texts))


def test_names_of_files():
    assert plain_name("model.safetensors")
    assert not any(map(plain_name, ["", ".", "..", "../x", "a/b", "a\\b", "/x", "a\0b", None, 3]))


def test_files_are_compared_with_their_checksums(folder):
    check_files(folder)
    change(folder / "encoder.json", files={"model.safetensors": {"bytes": 1, "sha256": "x"}})
    with pytest.raises(StorageError, match="is missing or damaged"):
        check_files(folder)


def test_what_libraries_raise_becomes_a_sentence():
    class PanicException(BaseException):
        """As of Rust code."""

    for err in (PanicException("failed\nand more"), KeyError("x"), Exception("plain"), ImportError("no module")):
        with (
            pytest.raises(UsageError, match=r"^it cannot be read \(.*\); give another$"),
            library_refusals("it cannot be read", "give another"),
        ):
            raise err
    with pytest.raises(KeyboardInterrupt), library_refusals("", ""):
        raise KeyboardInterrupt
    with pytest.raises(MemoryError), library_refusals("", ""):
        raise MemoryError


def test_nothing_outside_of_the_folder_is_opened_and_nothing_started(saved):
    """Beside the folder: Python, its packages, /proc and /sys, which torch reads to count processors."""
    found = heard(
        "import sys\nfrom pathlib import Path\nfrom labelwise.features.encoder_folder import load_encoder\n"
        "assert load_encoder(Path(sys.argv[1])).embed(['a red shoe']).shape == (1, 32)",
        first="import tempfile, torch, transformers; tempfile.gettempdir()",  # which writes a file, to see where it may
        arguments=[str(saved)],
    )
    assert found.outside(saved) == []
    assert [path for path in found.written if str(path) != "/dev/null"] == []
    assert found.events == []
    assert saved / "config.json" in found.opened


def _step(kind, **entries):
    return {"type": kind, **entries}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            {"normalizer": _step("Sequence", normalizers=[_step("Replace", pattern={"Regex": ""}, content="xx")] * 9)},
            "its normalizer makes texts 3e\\+05 times as long",
        ),
        ({"normalizer": _step("Sequence", normalizers=[_step("NFKC")] * 1000)}, "have 1,002 steps"),
        ({"pre_tokenizer": _step("Sequence", pretokenizers=[_step("Whitespace")] * 1000)}, "have 1,002 steps"),
        ({"model": {"vocab": {}, "dropout": 0.5}}, "model.dropout is 0.5, so that tokens are random"),
        ({"model": {"vocab": {}, "max_input_chars_per_word": 10**12}}, "max_input_chars_per_word is 1000000000000"),
        ({"added_tokens": [{"id": i, "content": f"t{i}"} for i in range(20_001)]}, "added_tokens has 20,001 entries"),
        ({"added_tokens": [{"id": 1, "content": "x" * 10_001}]}, "a token with more than 10,000 letters"),
    ],
)
def test_tokenizers_that_take_minutes_or_are_random_are_refused(folder, entries, message):
    change(folder / "tokenizer.json", **entries)
    with pytest.raises(StorageError, match=message):
        check_tokenizer(folder)


def test_tables_that_keep_transformers_busy_are_refused(folder):
    change(folder / "config.json", num_labels=10**6)
    with pytest.raises(StorageError, match="num_labels is 1000000, which is more than the weights"):
        check_config(folder, check_weights(folder))
    change(folder / "tokenizer_config.json", added_tokens_decoder={str(i): {"content": f"{i}"} for i in range(20_001)})
    with pytest.raises(StorageError, match="added_tokens_decoder has 20,001 entries"):
        check_tokenizer(folder)
