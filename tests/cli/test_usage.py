"""What was typed wrongly: one sentence, exit code 2."""

import pytest

from labelwise.cli import command_class, parse
from labelwise.cli.usage import check_usage


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("train d m --cost abc", "--cost abc: give a number"),
        ("train d m --seed=x", "--seed x: give a whole number"),
        ("train d m --cots 3", "--cots: labelwise train has no such option; did you mean --cost?"),
        ("train d m --frobnicate", "--frobnicate: labelwise train has no such option; see labelwise train --help"),
        ("train d m --text", "--text: labelwise train has no such option; did you mean --text-column?"),
        ("train d m --negatives tmn", "--negatives tmn: give one of tfn, man, tfn+man; did you mean tfn?"),
        ("train d m --cost", "--cost needs a value: --cost FLOAT"),
        ("train d m --cost --tune", "--cost needs a value: --cost FLOAT"),
        (
            "predict m --text -cat",
            "--text needs a value: --text TEXT; one that begins with a dash is written --text='-cat'",
        ),
        ("train d m --tune=yes", "--tune=yes: --tune takes no value; write --tune alone, or leave it out"),
        ("train d m extra", "labelwise train takes DATA and MODEL; 'extra' is one argument too many"),
        ("train", "labelwise train needs DATA and MODEL; see labelwise train --help"),
        ("convert a b", "labelwise convert needs --to jsonl|csv"),
        ("evaluate m d --ks 1 two", "--ks two: give a whole number"),
        ("stats x -q", "-q: labelwise stats has no such option; see labelwise stats --help"),
        ("clean f --min-age soon", "--min-age soon: give a number"),
    ],
)
def test_one_sentence(labelwise, typed, says):
    result = labelwise(*typed.split())
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"labelwise: {says}")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "typed",
    [
        "train d m --cost 0.5 --n_trees 3 --tune --no-calibrate",
        "train --preset=parabel d m --threads 2",
        "predict m - --format jsonl",
        "predict m --text one --text two",
        "evaluate m d --ks 1 3 10 --json",
        "serve a=x b=y --cors https://a.org https://b.org --port 0",
        "remove-labels m one two three",
        "convert a b --to csv --min-df 0.5 --ngram-range 1 2 --no-lowercase",
        "demo",
        "train d m --cost -1",
    ],
)
def test_what_is_right_passes_and_tyro_agrees(typed):
    check_agrees(*typed.split())


@pytest.mark.parametrize(
    "text", ["- a cat", "-- a cat", "- a = b", "-\na cat", "-5 degrees", "-.5", "- --text", "-", ""]
)
def test_a_text_that_begins_with_a_dash_and_no_letter_is_a_value(text):
    assert check_agrees("predict", "m", "--text", text).text == (text,)
    assert check_agrees("predict", "m", f"--text={text}").text == (text,)
    assert check_agrees("predict", "m", f"--text=-{text}").text == (f"-{text}",)


def check_agrees(name, *arguments):
    check_usage(name, command_class(name), arguments)
    command = parse(name, arguments)
    assert isinstance(command, command_class(name))
    return command
