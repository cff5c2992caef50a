from labelwise.data import load_dataset
from tests.data.examples import write_text


def test_tabs_and_several_text_columns(tmp_path):
    path = write_text(tmp_path / "d.tsv", "title\tbody\ttags\nred\tapple\tfruit|red\nrose\t\tflower\n")
    dataset = load_dataset(path, text_column="title,body", labels_column="tags")
    assert dataset.texts == ["red apple", "rose"]
    assert dataset.labels == ["fruit", "red", "flower"]
