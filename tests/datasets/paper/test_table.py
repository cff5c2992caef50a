"""The table of the paper's data sets."""

import pytest

from labelwise.config.presets import preset_names
from labelwise.datasets.paper import find_set, paper_sets
from labelwise.datasets.paper.download import check_address
from labelwise.errors import UsageError


def test_the_presets_of_the_paper_are_called_like_their_data_sets():
    names = [one.name for one in paper_sets()]
    assert names == ["eurlex-4k", "wiki10-31k", "amazoncat-13k", "wiki-500k", "amazon-670k", "amazon-3m"]
    of_the_paper = [name for name in preset_names() if name[-1] == "k" and name[-2].isdigit()]
    assert set(of_the_paper) <= set(names)
    assert len(of_the_paper) == 4


def test_every_set_has_an_encrypted_address_a_licence_and_a_citation():
    for one in paper_sets():
        check_address(one.address)
        assert one.address.startswith("https://")
        assert one.address.endswith(f"/{one.name}.tar.gz")
        assert one.licence.startswith("no licence is stated")
        assert one.citation[-4:].isdigit()
        assert one.unpacked_gb >= one.archive_gb
        assert one.train > one.test > 0 < one.labels


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(UsageError, match=r"no data set 'Eurlex4k'; did you mean 'eurlex-4k'\? there are: eurlex-4k, "):
        find_set("Eurlex4k")
