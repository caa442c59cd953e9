"""What three third-party programs say of archive files: cdxj-indexer's sorted index, and where warcio and FastWARC find records.

Reads paths from standard input, one a line; prints one JSON object a line, in the same order:
  index     the text that `cdxj-indexer --sort FILE` writes, or null where it ends with an error
  warcio    [offset, length] of every record, or null
  fastwarc  offset of every record, or null; FastWARC tells no lengths, and gives up on a file in silence
  why       what the first of them to fail says
"""

import io
import json
import logging
import sys

from cdxj_indexer.main import CDXJIndexer
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

logging.disable(logging.CRITICAL)


class Kept(io.StringIO):
    """The indexer closes what it writes to."""

    def close(self):
        pass


def index(path):
    out = Kept()
    CDXJIndexer(out, [path], sort=True).process_all()
    return out.getvalue()


def by_warcio(path):
    with open(path, "rb") as file:
        records = ArchiveIterator(file, no_record_parse=True, arc2warc=False)
        found = []
        for _ in records:
            offset = records.get_record_offset()
            found.append([offset, records.get_record_length()])
        return found


def by_fastwarc(path):
    with open(path, "rb") as file:
        return [record.stream_pos for record in FastIterator(file, parse_http=False)]


def judged(path):
    told = {"why": None}
    for name, ask in (("index", index), ("warcio", by_warcio), ("fastwarc", by_fastwarc)):
        try:
            told[name] = ask(path)
        except Exception as error:
            told[name] = None
            told["why"] = told["why"] or f"{name}: {type(error).__name__}: {error}"
    return told


answers = sys.stdout
sys.stdout = sys.stderr  # the peers' own talk must not stand between the answers
for line in sys.stdin:
    print(json.dumps(judged(line.rstrip("\n"))), file=answers, flush=True)
