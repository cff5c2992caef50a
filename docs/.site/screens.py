"""Takes the pictures of pages for README and documentation: a model is trained, served and looked at in Chromium.

python docs/.site/screens.py docs/images

It needs playwright and a Chromium: pip install playwright && playwright install chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

PORT = 8719
TEXT = "Red Cotton Play Mat, Foldable, for Babies"
EXAMPLES = (TEXT, "Steel garden spade with wooden handle", "Framed mirror for the bathroom")


def labelwise(*arguments: str | Path) -> list[str]:
    """A command."""
    return [sys.executable, "-m", "labelwise", *map(str, arguments)]


def main(folder: Path) -> None:
    """Train, serve, take the picture."""
    with TemporaryDirectory() as work:
        data, model, examples = Path(work) / "shop-data", Path(work) / "shop", Path(work) / "examples.txt"
        examples.write_text("\n".join(EXAMPLES))
        subprocess.run(labelwise("shop", data, "--products", "20000", "--queries", "3000"), check=True)
        subprocess.run(labelwise("train", data, model, "--quiet"), check=True)
        server = subprocess.Popen(labelwise("serve", model, "--port", str(PORT), "--examples", examples))
        try:
            wait()
            take(folder / "page.png")
        finally:
            server.terminate()
            server.wait()


def wait() -> None:
    """Wait until the server is ready."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://localhost:{PORT}/ready"):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def take(file: Path) -> None:
    """The page with the labels of a text, the first of them explained."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 760}, color_scheme="light")
        page.goto(f"http://localhost:{PORT}/")
        page.click(".examples button >> nth=0")
        page.click(".label >> nth=0")
        page.wait_for_selector(".why")
        page.evaluate("document.activeElement.blur()")
        page.screenshot(path=str(file))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
