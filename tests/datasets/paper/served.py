"""A small stand-in for an archive of the paper's data sets, and a server on this machine that misbehaves on demand."""

import io
import tarfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import scipy.sparse as sp

TRAIN = [
    ("a cat on a mat", [0]),
    ("dogs bark at cats", [0, 1]),
    ("an oak is a tree", [2]),
    ("elm and oak", [2]),
    ("nothing to say of this one", []),
    ("", [1]),
] + [(f"{animal} number {i}", [i % 2]) for i in range(60) for animal in ("cat", "dog")]
TEST = [("a dog", [1]), ("the elm", [2])]
NAMES = ["cats", "dogs", "trees"]


def npz(matrix):
    out = io.BytesIO()
    sp.save_npz(out, matrix)
    return out.getvalue()


def label_matrix(rows):
    Y = np.zeros((len(rows), len(NAMES)), np.float32)
    for row, (_, labels) in enumerate(rows):
        Y[row, labels] = 1
    return sp.csr_matrix(Y)


def features(rows):
    return sp.csr_matrix(np.array([[len(text), 1, *labels[:1]] + [0] * (1 - len(labels[:1])) for text, labels in rows]))


def members(*, texts=True, names=NAMES):
    """The files of an archive, by their path."""
    found = {"output-items.txt": "".join(f"{name}\n" for name in names).encode()}
    for tag, rows in (("trn", TRAIN), ("tst", TEST)):
        found[f"Y.{tag}.npz"] = npz(label_matrix(rows))
        found[f"tfidf-attnxml/X.{tag}.npz"] = npz(features(rows))
        if texts:
            found[f"X.{tag}.txt"] = "".join(f"{text}\n" for text, _ in rows).encode()
    return {f"xmc-base/eurlex-4k/{path}": content for path, content in found.items()}


def packed(files, *more):
    """A tar.gz of files, with further members as they are."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in more:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return out.getvalue()


class Server:
    """What is served, and what was asked."""

    def __init__(self, content):
        self.content, self.tag = content, '"one"'
        self.cut_after = None  # bytes after which a connection ends, once
        self.status, self.redirect = 200, None
        self.with_length = self.with_ranges = True
        self.asked = []
        self.url = ""


@contextmanager
def serving(content):
    what = Server(content)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

        def do_GET(self):
            what.asked.append(self.headers.get("Range"))
            if what.redirect is not None:
                self.send_response(302)
                self.send_header("Location", what.redirect)
                self.end_headers()
                return
            if what.status != 200:
                self.send_error(what.status)
                return
            start = 0
            if self.headers.get("Range") and self.headers.get("If-Range") == what.tag and what.with_ranges:
                start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(what.content) - 1}/{len(what.content)}")
            else:
                self.send_response(200)
            if what.with_length:
                self.send_header("Content-Length", str(len(what.content) - start))
            self.send_header("ETag", what.tag)
            self.end_headers()
            body = what.content[start:]
            if what.cut_after is not None:
                body, what.cut_after = body[: what.cut_after], None
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    what.url = f"http://127.0.0.1:{server.server_port}/eurlex-4k.tar.gz"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield what
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
