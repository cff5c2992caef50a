"""UTF-8 bytes to hashed terms, and back to their letters.

A block of documents lies in one byte buffer. `hash_words`, or `fold_characters` and `hash_windows`, turn it into
a stream of 64-bit term hashes with their spans; `spell_words` and `spell_codes` write the terms of some spans
out again. Terms are told apart by their hash alone: among ten million terms two collide with a probability of
about 3e-6. `add_openings` lets the first words of every document count again, as terms of their own.

Characters are looked up in one table (see `labelwise.features.characters`): the low 21 bits of an entry are the
lower-cased code point, the two high bits say whether it is part of a word and whether it is white space.
"""

import numpy as np

from labelwise.engines.kernel_cache import njit

CODE = np.uint32(0x1FFFFF)
WORD = np.uint32(1 << 31)
SPACE = np.uint32(1 << 30)

_START = np.uint64(0x9AE16A3B2F90404F)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_JOIN = np.uint64(0xC2B2AE3D27D4EB4F)
_OPENING = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def _finish(h):
    """Spread the hash over all bits; zero is kept free as the mark of an empty slot."""
    h ^= h >> _SHIFT
    h *= _JOIN
    h ^= h >> _SHIFT
    return h if h != _ZERO else _ONE


@njit(cache=True, nogil=True)
def _decode(buffer, i):
    """Code point and byte length of the UTF-8 character at `i` (valid by construction, surrogates included)."""
    b = np.uint32(buffer[i])
    if b < 0x80:
        return b, 1
    if b < 0xE0:
        return (b & np.uint32(0x1F)) << np.uint32(6) | np.uint32(buffer[i + 1] & 0x3F), 2
    if b < 0xF0:
        high = (b & np.uint32(0x0F)) << np.uint32(12) | np.uint32(buffer[i + 1] & 0x3F) << np.uint32(6)
        return high | np.uint32(buffer[i + 2] & 0x3F), 3
    high = (b & np.uint32(0x07)) << np.uint32(18) | np.uint32(buffer[i + 1] & 0x3F) << np.uint32(12)
    return high | np.uint32(buffer[i + 2] & 0x3F) << np.uint32(6) | np.uint32(buffer[i + 3] & 0x3F), 4


@njit(cache=True, nogil=True)
def _encode(code, out, at):
    """Write a code point as UTF-8 at `out[at:]` and return the place after it."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | (code >> 6)
        out[at + 1] = 0x80 | (code & 0x3F)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | (code >> 12)
        out[at + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[at + 2] = 0x80 | (code & 0x3F)
        return at + 3
    out[at] = 0xF0 | (code >> 18)
    out[at + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[at + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[at + 3] = 0x80 | (code & 0x3F)
    return at + 4


@njit(cache=True, nogil=True)
def hash_words(buffer, doc_starts, doc_ends, table, min_length, n_min, n_max, most_words):
    """Hashes of the word n-grams of every document, in order, with their byte spans.

    Parameters
    ----------
    buffer : (n_bytes,) uint8
    doc_starts, doc_ends : (n_docs,) int64, what is read of the buffer for each document
    table : (0x110000,) uint32
    min_length : words of fewer characters are skipped
    n_min, n_max : shortest and longest n-gram
    most_words : words of a document that are read, from its beginning

    Returns
    -------
    hashes : (n_terms,) uint64
    starts, ends : (n_terms,) uint32, the span of bytes from the first word's start to the last word's end
    indptr : (n_docs + 1,) int64
    """
    # A word and the gap after it take two bytes at least; pages never touched cost nothing.
    most = (buffer.size // 2 + doc_ends.size + 1) * (n_max - n_min + 1)
    hashes = np.empty(most, np.uint64)
    starts = np.empty(most, np.uint32)
    ends = np.empty(most, np.uint32)
    indptr = np.zeros(doc_ends.size + 1, np.int64)
    recent_hash = np.empty(n_max, np.uint64)
    recent_start = np.empty(n_max, np.uint32)
    out = 0
    for doc in range(doc_ends.size):
        i = doc_starts[doc]
        end = doc_ends[doc]
        n_words = 0
        while i < end and n_words < most_words:
            # skip to the next word
            code, size = _decode(buffer, i)
            entry = table[code]
            if not entry & WORD:
                i += size
                continue
            start = i
            length = 0
            h = _START
            while entry & WORD:
                h = (h ^ np.uint64(entry & CODE)) * _STEP
                length += 1
                i += size
                if i >= end:
                    break
                code, size = _decode(buffer, i)
                entry = table[code]
            if length < min_length:
                continue
            h = _finish(h)
            if n_max == 1:
                n_words += 1
                hashes[out] = h
                starts[out] = start
                ends[out] = i
                out += 1
                continue
            recent_hash[n_words % n_max] = h
            recent_start[n_words % n_max] = start
            n_words += 1
            for n in range(n_min, min(n_max, n_words) + 1):
                first = n_words - n
                g = recent_hash[first % n_max]
                for j in range(first + 1, n_words):
                    g = _finish(g * _STEP + recent_hash[j % n_max])
                hashes[out] = g
                starts[out] = recent_start[first % n_max]
                ends[out] = i
                out += 1
        indptr[doc + 1] = out
    return hashes[:out], starts[:out], ends[:out], indptr


@njit(cache=True, nogil=True)
def add_openings(hashes, starts, ends, indptr, more_hashes, more_starts, more_ends, more_indptr):
    """The terms of every document followed by those of its opening, which become other terms than these.

    Parameters
    ----------
    hashes, starts, ends, indptr : what `hash_words` returns for the documents
    more_hashes, more_starts, more_ends, more_indptr : the same for their openings

    Returns
    -------
    hashes, starts, ends, indptr : of both
    opening : (n_terms,) bool, whether it is an opening's
    """
    n_terms = hashes.size + more_hashes.size
    all_hashes = np.empty(n_terms, np.uint64)
    all_starts = np.empty(n_terms, np.uint32)
    all_ends = np.empty(n_terms, np.uint32)
    opening = np.zeros(n_terms, np.bool_)
    out = 0
    for doc in range(indptr.size - 1):
        for token in range(indptr[doc], indptr[doc + 1]):
            all_hashes[out] = hashes[token]
            all_starts[out] = starts[token]
            all_ends[out] = ends[token]
            out += 1
        for token in range(more_indptr[doc], more_indptr[doc + 1]):
            all_hashes[out] = _finish(more_hashes[token] * _STEP + _OPENING)
            all_starts[out] = more_starts[token]
            all_ends[out] = more_ends[token]
            opening[out] = True
            out += 1
    return all_hashes, all_starts, all_ends, indptr + more_indptr, opening


@njit(cache=True, nogil=True)
def fold_characters(buffer, doc_ends, table, bounded):
    """Code points of every document, lower-cased, in pieces that no character n-gram crosses.

    A piece is a whole document with runs of white space made one space or, if `bounded`, one word with a space
    on both sides.

    Returns
    -------
    codes : (n_codes,) uint32
    piece_ends : (n_pieces,) int64
    doc_pieces : (n_docs + 1,) int64, the pieces of each document
    """
    # The worst case is one-letter words, which become three codes for two bytes.
    codes = np.empty(buffer.size + buffer.size // 2 + 3 * doc_ends.size, np.uint32)
    piece_ends = np.empty(buffer.size // 2 + 2 * doc_ends.size + 1, np.int64)
    doc_pieces = np.zeros(doc_ends.size + 1, np.int64)
    space = np.uint32(32)
    out = 0
    n_pieces = 0
    i = 0
    for doc in range(doc_ends.size):
        end = doc_ends[doc]
        n_spaces = 0
        inside = False  # only used when bounded: inside a word
        while i < end:
            code, size = _decode(buffer, i)
            i += size
            entry = table[code]
            if entry & SPACE:
                n_spaces += 1
                if bounded:
                    if inside:
                        codes[out] = space
                        out += 1
                        piece_ends[n_pieces] = out
                        n_pieces += 1
                        inside = False
                elif n_spaces == 1:
                    codes[out] = code
                    out += 1
                else:
                    codes[out - 1] = space
                continue
            n_spaces = 0
            if bounded and not inside:
                codes[out] = space
                out += 1
                inside = True
            codes[out] = entry & CODE
            out += 1
        if bounded:
            if inside:
                codes[out] = space
                out += 1
                piece_ends[n_pieces] = out
                n_pieces += 1
        else:
            piece_ends[n_pieces] = out
            n_pieces += 1
        doc_pieces[doc + 1] = n_pieces
    return codes[:out], piece_ends[:n_pieces], doc_pieces


@njit(cache=True, nogil=True)
def hash_windows(codes, piece_ends, doc_pieces, n_min, n_max, bounded):
    """Hashes of the character n-grams of every document, with their spans in `codes`.

    A bounded piece that is not longer than n counts once as a whole, for the first such n only, as
    scikit-learn's char_wb does; an unbounded one has no n-gram longer than itself.

    Returns as `hash_words`.
    """
    most = 0
    begin = 0
    for p in range(piece_ends.size):
        size = piece_ends[p] - begin
        begin = piece_ends[p]
        for n in range(n_min, n_max + 1):
            most += max(size - n + 1, 1)
    hashes = np.empty(most, np.uint64)
    starts = np.empty(most, np.uint32)
    ends = np.empty(most, np.uint32)
    indptr = np.zeros(doc_pieces.size, np.int64)
    out = 0
    begin = 0
    for doc in range(doc_pieces.size - 1):
        for p in range(doc_pieces[doc], doc_pieces[doc + 1]):
            end = piece_ends[p]
            size = end - begin
            for start in range(begin, end):
                h = _START
                for stop in range(start, min(start + n_max, end)):
                    h = (h ^ np.uint64(codes[stop])) * _STEP
                    if stop - start + 1 >= n_min:
                        hashes[out] = _finish(h)
                        starts[out] = start
                        ends[out] = stop + 1
                        out += 1
            if bounded and 0 < size < n_min:
                h = _START
                for stop in range(begin, end):
                    h = (h ^ np.uint64(codes[stop])) * _STEP
                hashes[out] = _finish(h)
                starts[out] = begin
                ends[out] = end
                out += 1
            begin = end
        indptr[doc + 1] = out
    return hashes[:out], starts[:out], ends[:out], indptr


@njit(cache=True, nogil=True)
def spell_words(buffer, table, min_length, starts, ends):
    """Write word n-grams out: lower-cased, joined by single spaces.

    Parameters
    ----------
    buffer, table, min_length : as given to `hash_words`
    starts, ends : (n_terms,) byte spans in `buffer`

    Returns
    -------
    letters : (n_bytes,) uint8
    sizes : (n_terms,) int64
    """
    most = np.int64(0)
    for term in range(starts.size):
        most += 4 * (np.int64(ends[term]) - np.int64(starts[term])) + 1
    letters = np.empty(most, np.uint8)
    sizes = np.empty(starts.size, np.int64)
    out = 0
    for term in range(starts.size):
        begin = out
        i = np.int64(starts[term])
        end = np.int64(ends[term])
        while i < end:
            word = out
            if out > begin:
                letters[out] = 32
                out += 1
            length = 0
            while i < end:
                code, size = _decode(buffer, i)
                entry = table[code]
                i += size
                if not entry & WORD:
                    break
                out = _encode(entry & CODE, letters, out)
                length += 1
            if length < min_length:
                out = word
        sizes[term] = out - begin
    return letters[:out].copy(), sizes


@njit(cache=True, nogil=True)
def spell_codes(codes, starts, ends):
    """Write character n-grams out as UTF-8; returns as `spell_words`."""
    most = np.int64(0)
    for term in range(starts.size):
        most += 4 * (np.int64(ends[term]) - np.int64(starts[term]))
    letters = np.empty(most, np.uint8)
    sizes = np.empty(starts.size, np.int64)
    out = 0
    for term in range(starts.size):
        begin = out
        for i in range(starts[term], ends[term]):
            out = _encode(codes[i], letters, out)
        sizes[term] = out - begin
    return letters[:out].copy(), sizes
