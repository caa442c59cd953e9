"""FastWARC reads files to their ends and verifies every digest: verify.py FILE...

Prints one JSON object a file: how many records of each kind, and what is wrong.
"""

import collections
import json
import sys

from fastwarc.warc import ArchiveIterator

for path in sys.argv[1:]:
    kinds, wrong = collections.Counter(), []
    with open(path, "rb") as file:
        for record in ArchiveIterator(file, parse_http=False):
            kind = record.headers.get("WARC-Type")
            kinds[kind] += 1
            if not record.verify_block_digest():
                wrong.append(f"block at {record.stream_pos}")
            if kind == "response":
                record.parse_http()
                if not record.verify_payload_digest():
                    wrong.append(f"payload at {record.stream_pos}")
    print(json.dumps({"kinds": kinds, "wrong": wrong}), flush=True)
