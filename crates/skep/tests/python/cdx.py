"""What cdx_toolkit gets from an index server: cdx.py SOURCE REPLAY

Prints one JSON object: captures of a URL, of everything below it, of a time, by a filter; what it fetches of each; how many there are about.
"""

import hashlib
import json
import sys

import cdx_toolkit

source, replay = sys.argv[1:]
server = cdx_toolkit.CDXFetcher(source=source, wb=replay)


def told(captures):
    return [[one["timestamp"], one["url"], one.get("status", "-"), one.get("digest", "-")] for one in captures]


HOME = "http://example.org/"
print(
    json.dumps(
        {
            "exact": told(server.get(HOME)),
            "few": told(server.get(HOME, limit=2)),
            "below": told(server.iter("example.org/*")),
            "domain": told(server.iter("*.example.org", limit=100)),
            "between": told(server.get(HOME, from_ts="2018", to="2019")),
            "filtered": told(server.iter("example.org/*", filter="mime:image/png")),
            "absent": told(server.iter("http://absent.example/")),
            "about": server.get_size_estimate("example.org/*"),
            "bodies": [
                [one["timestamp"], hashlib.sha256(one.content).hexdigest()]
                for one in server.get(HOME)
                if one.get("status") == "200"
            ],
        }
    )
)
