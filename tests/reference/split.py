"""`kernels.split` with sets."""


def draw_validation(rows, order, wanted):
    """Documents set aside: each label of theirs still has a document that is not."""
    train, aside = set(range(len(rows))), []
    for doc in order:
        if len(aside) == wanted:
            break
        others = train - {doc}
        if all(any(label in rows[other] for other in others) for label in rows[doc]):
            train = others
            aside.append(doc)
    return sorted(aside)
