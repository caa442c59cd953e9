"""Every record of archive files as one reader sees it: dump.py warcio|fastwarc FILE...

For each record: its offset, its fields a line each, length and SHA-256 of its block, `=`.
"""

import hashlib
import sys

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator


def by_warcio(file):
    records = ArchiveIterator(file, no_record_parse=True)
    for record in records:
        block = record.raw_stream.read()
        yield records.get_record_offset(), record.rec_headers.headers, block


def by_fastwarc(file):
    for record in FastIterator(file, parse_http=False):
        yield record.stream_pos, list(record.headers.items()), record.reader.read()


reader = {"warcio": by_warcio, "fastwarc": by_fastwarc}[sys.argv[1]]
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        for offset, fields, block in reader(file):
            print(offset)
            for name, value in fields:
                print(f"{name}: {value}")
            print(len(block), hashlib.sha256(block).hexdigest())
            print("=")
