"""Runs the command line in this process, as a user would type it."""

import json

import pytest

from labelwise import convert, generate_shop
from labelwise.cli import main
from labelwise.datasets.shop import write_shop
from labelwise.models.linear_tree import LinearTree
from tests.features.tiny import write_model


class Result:
    """What a command printed and how it ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def labelwise(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return Result(ended.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def data(tmp_path):
    """Two topics, four labels, ten documents: known by eye."""
    rows = [
        ("the cat sat on the mat", ["animal", "cat"]),
        ("a cat and a dog", ["animal", "cat", "dog"]),
        ("dogs bark", ["animal", "dog"]),
        ("my dog", ["animal", "dog"]),
        ("an oak is a tree", ["plant"]),
        ("oak and elm", ["plant"]),
        ("cat nap", ["animal", "cat"]),
        ("elm street", ["plant"]),
    ]
    folder = tmp_path / "data"
    folder.mkdir()
    for split, part in (("train", rows), ("test", [("the dog sat", ["animal", "dog"]), ("an elm", ["plant", "tree"])])):
        lines = [
            json.dumps({"id": f"{split}{i}", "text": text, "labels": labels}) for i, (text, labels) in enumerate(part)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """A folder of 900 training and 100 test products with 500 queries."""
    folder = tmp_path_factory.mktemp("shop") / "shop"
    write_shop(folder, 1000, 500)
    return folder


@pytest.fixture(scope="session")
def shop_features(shop):
    """The same as features without texts."""
    folder = shop.parent / "features"
    convert(shop, folder, "libsvm")
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A calibrated model of the shop."""
    train, test = generate_shop(1000, 500).values()
    folder = tmp_path_factory.mktemp("model") / "model"
    LinearTree().fit(train.texts, train.Y, label_names=train.labels, validation=test).save(folder)
    return folder


@pytest.fixture(scope="session")
def plain_model(tmp_path_factory):
    """A model that is not calibrated."""
    train = generate_shop(1000, 500)["train"]
    folder = tmp_path_factory.mktemp("plain") / "plain"
    LinearTree(calibrate=False).fit_dataset(train).save(folder)
    return folder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """A tiny encoder with random weights."""
    return write_model(tmp_path_factory.mktemp("encoder") / "tiny", "bert")
