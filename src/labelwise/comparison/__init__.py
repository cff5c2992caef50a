"""Comparison of several systems on the same documents.

`system` and `splits` describe what is trained and on which data, `measure` measures one system, `worker` does so in a
process of its own, `runner` compares all of them, `results` and `tables` hold and show the results.
"""
