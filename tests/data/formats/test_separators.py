import pytest

from labelwise.data import load_dataset
from labelwise.data.formats.separators import guess_separator
from tests.data.examples import write_text

PEOPLE = ["Doe, John", "Roe, Jane", "Doe, Jane", "Poe, Edgar", "Wells, Herbert", "UNESCO"]
LISTS = ["red, shoe", "shoe, blue", "blue", "red, mug", "mug, old", "old, red, shoe"]


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        ([], None),
        (["a b"], None),
        (["a,b", "c|d"], "|"),
        (["a, b", "c;d"], ";"),
        (PEOPLE, None),
        (LISTS, ","),
        (PEOPLE[:3], ","),  # too few to tell
        (["Doe, John"] * 5 + ["printer", "network"] * 3, None),  # one name, in many rows
        (["Doe, John"] * 4 + ["printer", "network"] * 3, ","),
        (["Doe, John"] * 5 + ["printer", "network"] * 2, ","),  # in most rows
        (["Doe, John"] * 5 + ["printer", "John"] * 3, ","),
        ([*PEOPLE, "John"], ","),  # a part stands alone
        ([*PEOPLE, "Jane, Doe"], ","),  # a part stands on both sides
        ([*PEOPLE, "a,b"], ","),
        ([*PEOPLE, "a, b, c"], ","),
    ],
)
def test_guesses(cells, separator):
    assert guess_separator(cells).text == separator


def heard_while_loading(path, **options):
    heard = []

    def hear(name, values):
        if name == "remark":
            heard.append(values["text"])

    return load_dataset(path, on_event=hear, **options), heard


def table(cells):
    return "text,labels\n" + "".join(f't,"{cell}"\n' for cell in cells)


def test_names_with_commas_stay_whole_and_that_is_said(tmp_path):
    path = write_text(tmp_path / "d.csv", table(PEOPLE))
    data, heard = heard_while_loading(path)
    assert data.labels == PEOPLE
    assert heard == [
        f"{path}: 'Doe, John' is read as one label, since its parts never stand alone; if a comma separates labels, "
        "pass --label-separator ,"
    ]
    split, heard = heard_while_loading(path, label_separator=",")
    assert (split.labels[:2], heard) == (["Doe", "John"], [])


def test_the_separator_is_said_with_an_example(tmp_path):
    path = write_text(tmp_path / "d.csv", table(["a;b", "c"]))
    data, heard = heard_while_loading(path)
    assert data.labels == ["a", "b", "c"]
    assert heard == [
        f"{path}: labels are separated by ';': 'a;b' is 2 labels; if that is wrong, pass --label-separator"
    ]
    assert load_dataset(path, label_separator="none").labels == ["a;b", "c"]
