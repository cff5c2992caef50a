"""Reads a page as a browser does: elements with their attributes and texts, by the standard library's parser."""

import json
from html.parser import HTMLParser

EMPTY = {"br", "meta", "img", "input", "hr", "link"}


class Page(HTMLParser):
    """The elements of a page, in order, each as (name, attributes, text inside)."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self._open, self.errors = [], [], []
        self.feed(text)
        self.close()
        if self._open:
            self.errors.append(f"never closed: {[element[0] for element in self._open]}")

    def handle_starttag(self, tag, attrs):
        element = [tag, dict(attrs), ""]
        self.elements.append(element)
        if tag not in EMPTY:
            self._open.append(element)

    def handle_endtag(self, tag):
        if not self._open or self._open[-1][0] != tag:
            self.errors.append(f"unexpected </{tag}>")
            return
        self._open.pop()

    def handle_data(self, data):
        for element in self._open:
            element[2] += data

    def all(self, tag, **wanted):
        """Elements of this name with these attributes."""
        return [
            (attributes, text)
            for name, attributes, text in self.elements
            if name == tag and all(attributes.get(key) == value for key, value in wanted.items())
        ]

    def text(self, part):
        """What a section says."""
        return self.all("section", id=part)[0][1]

    def figures(self):
        """The numbers that are marked, by their names."""
        return {
            attributes["data-figure"]: float(text.split()[0])
            for _, attributes, text in self.elements
            if "data-figure" in attributes
        }

    def tree(self):
        """The nodes that the page's program draws."""
        return json.loads(self.all("script", id="tree-data")[0][1])


def read(path):
    page = Page(path.read_text(encoding="utf-8"))
    assert page.errors == []
    return page
