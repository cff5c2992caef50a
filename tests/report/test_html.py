"""HTML is escaped, whatever a name or a text holds."""

import json

from labelwise.report.html import join, json_script, short, table, tag
from tests.report.reading import Page


def test_html_is_escaped_by_construction():
    assert tag("p", "<b>", tag("i", "&"), class_='a"b', data_x=None) == '<p class="a&quot;b">&lt;b&gt;<i>&amp;</i></p>'
    assert join("<", None, 3) == "&lt;3"
    assert "&lt;td&gt;" in table(["<td>"], [["<td>"]])
    hard = ["</script>", "<!--", "\u2028", "&amp;", "é"]
    page = Page(json_script("x", hard))
    assert json.loads(page.all("script", id="x")[0][1]) == hard
    assert page.errors == []
    assert short("  one\n two three", 9) == "one two…"
    assert short("x" * 20, 5) == "xxxx…"
