"""Reads every record of a WARC file with warcio, body included.

    read_warcio.py FILE [--digests]

Prints `records= bytes=` (of block bytes) and, with --digests, `bad=`: records whose digests are stated and wrong.
"""

import sys

from warcio.archiveiterator import ArchiveIterator

digests = "--digests" in sys.argv[2:]
records = count = bad = 0
with open(sys.argv[1], "rb") as stream:
    for record in ArchiveIterator(stream, no_record_parse=not digests, check_digests=digests):
        records += 1
        while True:
            block = record.raw_stream.read(65536)
            if not block:
                break
            count += len(block)
        if digests and record.digest_checker.passed is False:
            bad += 1
print("records=%d bytes=%d bad=%d" % (records, count, bad))
