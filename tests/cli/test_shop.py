"""labelwise shop"""


def test_shop_then_stats(labelwise, tmp_path):
    result = labelwise("shop", tmp_path / "shop", "--products", 1000, "--queries", 500)
    assert result.code == 0
    assert "all generated (seed 0)" in result.out
    assert "generated" in labelwise("stats", tmp_path / "shop").out
    assert labelwise("shop", tmp_path / "shop", "--products", 1000, "--queries", 500).code == 2
    assert labelwise("shop", tmp_path / "other", "--products", 3).code == 2
