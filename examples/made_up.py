"""Generates small data sets for the tutorials: support tickets with tags, book titles with subjects.

    python examples/made_up.py tickets tickets.csv [--documents 2000]
    python examples/made_up.py library library [--documents 2000]

The first command writes one CSV file (`subject,body,tags`). The second command writes a folder in Annif's format:
train.tsv and test.tsv with `title<TAB><uri> <uri>` on each line, and subjects.tsv, which names the URIs. The same
number of documents gives the same bytes. As in real data, some texts have little information, some labels are missing,
and some are wrong.
"""

from __future__ import annotations

import argparse
import csv
import random
from pathlib import Path

# Problems: the tag, and texts that describe it.
PROBLEMS = {
    "login": ("I cannot log in", "the login page rejects my password", "signing in fails with an error"),
    "password": ("the password reset mail never arrives", "my password is not accepted", "I forgot my password"),
    "billing": ("I was charged twice this month", "my card was declined", "the payment did not go through"),
    "invoice": ("the invoice shows the wrong address", "I need an invoice with a VAT number", "an invoice is missing"),
    "refund": ("please refund the last payment", "I want my money back", "when will the refund arrive"),
    "export": ("the export to CSV stops halfway", "exported files are empty", "I want to export all my data"),
    "import": ("importing a spreadsheet fails", "the import skips half of the rows", "how do I import contacts"),
    "slow": ("pages take a minute to load", "everything is slow since the update", "search is very slow"),
    "crash": ("the app crashes at the start", "it closes by itself", "a crash when I open a file"),
    "permissions": ("a colleague cannot see the project", "who may edit this folder", "I lost my admin rights"),
    "notifications": ("I get far too many mails", "notifications do not arrive", "how do I mute a channel"),
    "api": ("the API answers with 500", "our API key stopped working", "is there a limit on API calls"),
    "webhook": ("webhooks arrive twice", "the webhook times out", "we receive no webhook events"),
    "shipping": (
        "the parcel has not arrived",
        "tracking says it was delivered, but it was not",
        "the delivery is late",
    ),
    "cancellation": ("please close my account", "how do I cancel the subscription", "I cancelled but was charged"),
}
# Platforms: the tag, and texts that name it.
PLACES = {
    "android": ("on my Android phone", "in the Android app"),
    "ios": ("on the iPhone", "on an iPad"),
    "windows": ("on Windows 11", "on a Windows laptop"),
    "browser": ("in Firefox", "in the web browser", "with Chrome"),
}
REMARKS = (
    "",
    "Please help.",
    "This is urgent.",
    "Thanks in advance!",
    "It worked last week.",
    "Has anybody else seen this?",
)
# Texts of tickets that do not name a problem.
VAGUE = ("it does not work any more", "something is broken", "nothing happens", "I need some help with this")

# Subjects, and words of titles about them.
SUBJECTS = {
    "birds": ("birds", "owls", "swallows", "the nightingale"),
    "gardening": ("gardens", "roses", "the kitchen garden", "fruit trees"),
    "seafaring": ("voyages", "sailing ships", "the open sea", "harbours"),
    "railways": ("railways", "steam engines", "the night train", "stations"),
    "cooking": ("cookery", "bread and cakes", "soups", "the winter kitchen"),
    "astronomy": ("the stars", "comets", "the moon", "a small telescope"),
    "folk tales": ("fairy tales", "legends", "songs and stories", "old tales"),
    "painting": ("painters", "watercolours", "portraits", "the light in pictures"),
    "mountains": ("mountains", "glaciers", "high passes", "the summit"),
    "weaving": ("weaving", "looms and wool", "patterns of cloth", "linen"),
    "bees": ("bees", "honey", "the hive", "wild bees"),
    "clocks": ("clocks", "watchmakers", "sundials", "the measure of time"),
    "rivers": ("rivers", "mills and bridges", "the long river", "boats upstream"),
    "children": ("for children", "for young readers", "to read aloud", "for boys and girls"),
    "history": ("a history of", "the origins of", "a hundred years of", "the last days of"),
    "handbooks": ("a handbook of", "the practical guide to", "first lessons in", "an introduction to"),
    "travel": ("travels among", "letters on", "a journey towards", "a year with"),
}
# Regions and times in titles, which have no subject of their own.
LANDS = ("", "", "", " in Norway", " of the south", " in Wales", " on the coast", " of Bohemia", " in the old days")
FORMS = ("history", "handbooks", "travel")
READERS = ("children",)
URI = "https://example.org/subjects/{:03d}"

VAGUE_SHARE, MISSING_SHARE, WRONG_SHARE = 0.1, 0.1, 0.05
"""Shares of texts that do not name their problem, of labels that are missing, and of texts with a wrong label."""


def noisy(draw: random.Random, labels: list[str], all_labels: list[str]) -> list[str]:
    """The labels with some missing and some wrong ones."""
    kept = [label for label in labels if draw.random() >= MISSING_SHARE] or labels[:1]
    other = draw.choice(all_labels)
    return [*kept, other] if draw.random() < WRONG_SHARE and other not in labels else kept


def upper_first(text: str) -> str:
    """A text with a capital first letter; names inside keep their letters."""
    return text[:1].upper() + text[1:]


def ticket(draw: random.Random) -> tuple[str, str, str]:
    """Subject, body and tags of one ticket."""
    tags = draw.sample(list(PROBLEMS), k=draw.choice((1, 1, 2)))
    problems = [draw.choice(VAGUE if draw.random() < VAGUE_SHARE else PROBLEMS[tag]) for tag in tags]
    place = draw.choice(list(PLACES)) if draw.random() < 0.5 else None
    where = f" {draw.choice(PLACES[place])}" if place else ""
    body = f"Hello, {' and '.join(problems)}{where}. {draw.choice(REMARKS)}".strip()
    true = [*tags, *([place] if place else [])]
    return upper_first(problems[0]), body, ";".join(noisy(draw, true, [*PROBLEMS, *PLACES]))


def book(draw: random.Random) -> tuple[str, list[str]]:
    """Title and subjects of one book."""
    things = draw.sample([name for name in SUBJECTS if name not in (*FORMS, *READERS)], k=draw.choice((1, 1, 2)))
    form, reader = draw.choice((*FORMS, None)), draw.choice((*READERS, None, None))
    words = [draw.choice(SUBJECTS[form])] if form else []
    words.append(" and ".join(draw.choice(SUBJECTS[thing]) for thing in things))
    words += [draw.choice(SUBJECTS[reader])] if reader else []
    true = [*things, *filter(None, (form, reader))]
    return upper_first(" ".join(words) + draw.choice(LANDS)), noisy(draw, true, list(SUBJECTS))


def write_tickets(path: Path, n_docs: int) -> None:
    """One CSV file with a header."""
    draw = random.Random(n_docs)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("subject", "body", "tags"))
        writer.writerows(ticket(draw) for _ in range(n_docs))


def write_library(folder: Path, n_docs: int) -> None:
    """Annif's corpus, a tenth of it for testing, and its vocabulary."""
    draw = random.Random(n_docs)
    uris = {name: f"<{URI.format(number)}>" for number, name in enumerate(SUBJECTS, 1)}
    lines = [
        f"{title}\t{' '.join(uris[name] for name in names)}\n" for title, names in (book(draw) for _ in range(n_docs))
    ]
    folder.mkdir(parents=True)
    (folder / "test.tsv").write_text("".join(lines[: n_docs // 10]), encoding="utf-8")
    (folder / "train.tsv").write_text("".join(lines[n_docs // 10 :]), encoding="utf-8")
    names = "".join(f"{uri}\t{name}\n" for name, uri in uris.items())
    (folder / "subjects.tsv").write_text(names, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tickets", "library"))
    parser.add_argument("output", type=Path)
    parser.add_argument("--documents", type=int, default=2000)
    options = parser.parse_args()
    if options.documents < 10:
        parser.error(f"--documents is {options.documents}; give at least 10")
    if options.output.exists():
        parser.error(f"{options.output} exists already; choose another place")
    {"tickets": write_tickets, "library": write_library}[options.what](options.output, options.documents)
    print(f"{options.output}: {options.documents} documents, all generated")


if __name__ == "__main__":
    main()
