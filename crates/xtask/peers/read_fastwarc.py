"""Reads every record of a WARC file with FastWARC in the fastest way it offers: body inflated, not handed to Python.

    read_fastwarc.py FILE [--digests [--payload]]

Prints `records= bytes=` (of block bytes). With --digests, records whose block digest is absent or wrong are not counted; with
--payload as well, the payload digest of HTTP records is verified too, and the run fails when one is wrong.
"""

import sys

from fastwarc.stream_io import FileStream
from fastwarc.warc import ArchiveIterator

digests = "--digests" in sys.argv[2:]
payload = "--payload" in sys.argv[2:]
records = count = 0
settings = {"parse_http": False, "verify_digests": digests}
try:
    archive = ArchiveIterator(sys.argv[1], inplace=True, **settings)
except TypeError:  # before 1.0 there was no such setting, and files were opened by the caller
    archive = ArchiveIterator(FileStream(sys.argv[1], "rb"), **settings)
for record in archive:
    records += 1
    length = record.content_length
    if payload and record.is_http and "WARC-Payload-Digest" in record.headers:
        record.parse_http()
        if not record.verify_payload_digest():
            raise SystemExit("wrong payload digest at %d" % record.stream_pos)
    record.reader.consume()
    count += length
print("records=%d bytes=%d" % (records, count))
