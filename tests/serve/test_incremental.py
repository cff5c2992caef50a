"""A model that grows in place while it is served."""

import shutil

from labelwise import add_labels, generate_shop, load_model

NEW = {"label": "cycling mirror", "examples": ["a mirror for a bicycle", "cycling mirror, black"]}
TEXT = "a black mirror for my bicycle"


def test_new_labels_are_suggested_explained_and_found(serve, folder, tmp_path):
    moving = shutil.copytree(folder, tmp_path / "moving")
    client = serve({"m": moving}, wait_ms=0)

    def suggested():
        (result,) = client.suggest(text=TEXT, top_k=5, explain=True).json()["results"]
        explained = zip(result["suggestions"], result["explanations"], strict=True)
        return {entry["label"]: (entry["probability"], why) for entry, why in explained}

    assert "cycling mirror" not in suggested()
    add_labels(load_model(moving), [NEW], data=generate_shop(600, 200)["train"]).save(moving)
    client.runner.run(client.app.models.reload_all())
    probability, why = suggested()["cycling mirror"]
    assert probability > 0
    assert "mirror" in str(why["words"])
    labels = client("GET", "/v1/labels?q=cycling").json()
    assert labels["labels"] == ["cycling mirror"]
    assert "labels added since" in client("GET", "/v1/model").json()["card"]
