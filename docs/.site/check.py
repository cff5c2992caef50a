"""Checks the built site: every link has a target, and nothing is fetched from another host.

python docs/.site/check.py site
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
FETCHED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "manifest", "modulepreload"}
IN_STYLES = re.compile(r"url\(\s*['\"]?(?!data:)([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """The anchors, links and fetched files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect anchors and links of a tag."""
        values = {name: value or "" for name, value in attrs}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        relations = set(values.get("rel", "").split())
        for name, value in values.items():
            if (tag, name) in FETCHED or (tag == "link" and name == "href" and relations & FETCHED_LINKS):
                self.fetched.append(value)
            elif tag == "a" and name == "href":
                self.links.append(value)
            elif name == "style":
                self.fetched += urls(value)


def urls(style: str) -> Iterator[str]:
    """The addresses that a style sheet fetches."""
    return (a or b for a, b in IN_STYLES.findall(style))


def problems(site: Path) -> Iterator[str]:
    """Each problem of the site, as a sentence."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site} has no page; build it first"
    for file, page in pages.items():
        if file.name == "404.html":  # its links are for a server
            continue
        for link in page.fetched:
            yield from missing(site, file, link, pages, outside=False)
        for link in page.links:
            yield from missing(site, file, link, pages, outside=True)
    for file in sorted(site.rglob("*.css")):
        for link in urls(file.read_text(encoding="utf-8")):
            yield from missing(site, file, link, pages, outside=False)


def missing(site: Path, file: Path, link: str, pages: dict[Path, Page], *, outside: bool) -> Iterator[str]:
    """The problem of a link, if it has one."""
    parts, where = urlsplit(link), file.relative_to(site)
    if parts.scheme == "data" or (outside and parts.scheme in ("http", "https", "mailto")):
        return
    if parts.scheme or parts.netloc:
        yield f"{where}: {link} would be fetched from elsewhere"
        return
    target = file if not parts.path else (file.parent / unquote(parts.path)).resolve()
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        yield f"{where}: {link} leads nowhere"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
        yield f"{where}: {link} leads to no such place"


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1]).resolve()))
    print("\n".join(found) or f"{sys.argv[1]}: every link has a target, nothing is fetched from another host")
    sys.exit(bool(found))
