"""Labels that a spreadsheet would take for formulas."""

import csv

import numpy as np
import scipy.sparse as sp

from labelwise.predictions import Predictions
from labelwise.predictions.spreadsheets import safe_for_spreadsheets


def test_cells_begin_with_an_apostrophe_instead_of_a_formula(tmp_path):
    names = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "plain", "a=b", "'=quoted"]
    matrix = sp.csr_array(np.linspace(0.9, 0.1, len(names), dtype=np.float32)[None, :])
    predictions = Predictions(matrix, names, ["=id"])
    file = tmp_path / "x.csv"
    safe_for_spreadsheets(predictions).write(file)
    with file.open(newline="", encoding="utf-8") as text:
        rows = list(csv.reader(text))[1:]
    assert [row[2] for row in rows] == [f"'{name}" for name in names[:7]] + names[7:]
    assert {row[0] for row in rows} == {"'=id"}
    assert predictions.labels == names  # the given ones stay
    predictions.write(file)  # and without being asked, files are exact
    with file.open(newline="", encoding="utf-8") as text:
        assert [row[2] for row in list(csv.reader(text))[1:]] == names


def test_documents_without_ids():
    predictions = Predictions(sp.csr_array(np.ones((1, 1), np.float32)), ["a"])
    assert safe_for_spreadsheets(predictions).ids is None
