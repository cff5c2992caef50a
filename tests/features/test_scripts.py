"""Texts without spaces between words are found, and tf-idf counts their characters by itself."""

import random

import numpy as np
import pytest

from labelwise import Dataset, LinearTree, UsageError, describe
from labelwise.config import TfidfConfig
from labelwise.data.stats import statistics_table
from labelwise.features.scripts import lacks_spaces, unspaced_share
from labelwise.features.tfidf import Tfidf
from labelwise.tuning.choice import opening
from labelwise.tuning.sizes import Sizes

CHINESE = ["今天的足球比赛非常精彩，教练很高兴。", "新的电脑软件运行得很快"]
JAPANESE = ["この赤い靴はとても歩きやすいです", "コンピューターの画面が壊れました"]
THAI = ["วันนี้อากาศดีมากเราไปเที่ยวทะเล", "รองเท้าวิ่งสีแดงคู่ใหม่"]
KOREAN = ["오늘은 날씨가 아주 좋습니다", "빨간 운동화를 샀어요"]
EUROPEAN = ["Rote Laufschuhe für Straße und Wald", "Красные кроссовки", "κόκκινα παπούτσια", "chaussures rouges"]
CUT = ["今天 的 足球 比赛 非常 精彩", "新 的 电脑 软件 运行 得 很 快"]


@pytest.mark.parametrize("texts", [CHINESE, JAPANESE, THAI, ["红色连衣裙", "跑鞋"]])
def test_texts_without_spaces_are_found(texts):
    assert unspaced_share(texts) == 1
    assert lacks_spaces(texts)


@pytest.mark.parametrize("texts", [KOREAN, EUROPEAN, CUT, [], ["", " "], ["12 345", "!?"], [None, 3]])
def test_other_texts_are_not(texts):
    assert unspaced_share(texts) == 0
    assert not lacks_spaces(texts)


def test_some_foreign_words_change_nothing():
    texts = ["the word for dog is 犬 in this language", "we saw many dogs and cats"]
    assert 0 < unspaced_share(texts) < 0.1
    plain, chosen = Tfidf(TfidfConfig(analyzer="word", ngram_range=(1, 1))), Tfidf()
    assert (plain.fit_transform(texts) != chosen.fit_transform(texts)).nnz == 0
    assert plain.settings_ == chosen.settings_
    assert plain.feature_names() == chosen.feature_names()


def sentences(n, seed=0):
    """Made-up Chinese sentences of three subjects: characters of the subject among common ones."""
    draw = random.Random(seed)
    subjects, common = (
        ["足球比赛进球员教练", "电脑软件程序键盘屏", "米饭厨师蔬菜炒锅味"],
        "今天我们看到一个很好新东西在这里大家说",
    )
    labels = [draw.randrange(3) for _ in range(n)]
    texts = []
    for label in labels:
        letters = draw.choices(subjects[label], k=4) + draw.choices(common, k=10)
        draw.shuffle(letters)
        texts.append("".join(letters))
    return texts, [[f"subject {label}"] for label in labels]


def test_the_default_learns_texts_without_spaces_and_says_so():
    (texts, labels), (new, truth), remarks = sentences(400), sentences(200, seed=1), []

    def on_event(name, values):
        remarks.extend([values["text"]] if name == "remark" else [])

    model = LinearTree().fit(texts, labels, on_event=on_event)
    found = [row[0][0] if row else None for row in model.predict(new, top_k=1)]
    assert np.mean([name == true for name, [true] in zip(found, truth, strict=True)]) > 0.97
    assert sum("no spaces between words" in remark and "--analyzer word" in remark for remark in remarks) == 1
    assert dict(model.facts())["features"].endswith("tf-idf of the texts' characters")
    words = LinearTree(analyzer="word").fit(texts, labels).predict(new, top_k=1)
    assert np.mean([row[0][0] == true if row else False for row, [true] in zip(words, truth, strict=True)]) < 0.6


def test_a_saved_model_keeps_the_choice(tmp_path):
    texts, labels = sentences(60)
    model = LinearTree().fit(texts, labels)
    model.save(tmp_path / "model")
    loaded = LinearTree.load(tmp_path / "model")
    assert (loaded.tfidf_.settings_.analyzer, loaded.tfidf_.settings_.ngram_range) == ("char", (1, 3))
    assert list(loaded.predict(texts[:5])) == list(model.predict(texts[:5]))


def test_a_stream_of_texts_is_looked_at_and_read_once():
    texts, _ = sentences(30)
    assert (Tfidf().fit_transform(iter(texts)) != Tfidf().fit_transform(texts)).nnz == 0


def test_characters_come_in_ones_to_threes_where_nothing_else_is_asked_for():
    assert Tfidf(TfidfConfig(analyzer="char")).fit(["abc"]).feature_names() == ["a", "ab", "abc", "b", "bc", "c"]
    assert Tfidf(TfidfConfig(ngram_range=(2, 2))).fit(["红色鞋子"]).feature_names() == sorted(["红色", "色鞋", "鞋子"])


def test_an_opening_of_words_is_refused_where_there_are_none():
    with pytest.raises(UsageError, match="no spaces between words, so there are no first words; leave it out"):
        Tfidf(TfidfConfig(opening=5)).fit(CHINESE)
    texts, labels = sentences(20)
    data = Dataset.from_frame({"text": [text * 200 for text in texts], "labels": labels})
    assert opening(Sizes.of(data)) == 0


def test_a_mixed_corpus_counts_words_and_says_what_else_there_is():
    texts, labels = sentences(20)
    remarks = []
    texts = [f"{text} and some twenty more letters" for text in texts]
    LinearTree().fit(texts, labels, on_event=lambda name, values: remarks.append(values.get("text", "")))
    assert any("of the letters belong to scripts without spaces" in remark for remark in remarks)


def test_statistics_name_the_share_of_letters_without_spaces():
    texts, labels = sentences(20)
    statistics = describe({"train": Dataset.from_frame({"text": texts, "labels": labels})})
    assert statistics.unspaced_share == 1
    column = [str(cell) for column in statistics_table(statistics).columns for cell in column.cells]
    assert "letters of scripts without spaces" in column
    assert "train counts characters" in column
