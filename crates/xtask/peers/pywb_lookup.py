"""Looks URLs up in a sorted CDXJ file through pywb's index, in process and without a server in between.

    pywb_lookup.py INDEX.cdxj URLS [--seconds 10]

URLS has lines of 14 digits, a space and a URL. Each kind of look-up goes once through the first tenth of the list to warm the
file's pages, then through the list for the given seconds. Prints a JSON object.
"""

import argparse
import json
import time

from pywb.warcserver.index.cdxops import process_cdx
from pywb.warcserver.index.indexsource import FileIndexSource
from pywb.warcserver.index.query import CDXQuery


def look_up(source, params):
    query = CDXQuery(params)
    return list(process_cdx(source.load_index(query.params), query))


def exact(source, url, _time):
    return look_up(source, {"url": url})


def closest(source, url, when):
    return look_up(source, {"url": url, "closest": when, "limit": 1})


def rate(kind, source, wanted, seconds):
    for url, when in wanted[: len(wanted) // 10]:
        kind(source, url, when)
    done = found = 0
    began = time.monotonic()
    while True:
        for url, when in wanted:
            found += bool(kind(source, url, when))
            done += 1
            if done % 64 == 0 and time.monotonic() - began >= seconds:
                return done / (time.monotonic() - began), found / done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("index")
    parser.add_argument("urls")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    with open(options.urls) as lines:
        wanted = [(url, when) for when, url in (line.rstrip("\n").split(" ", 1) for line in lines)]
    source = FileIndexSource(options.index)
    exact_rate, found = rate(exact, source, wanted, options.seconds)
    closest_rate, _ = rate(closest, source, wanted, options.seconds)
    if found < 1:
        raise SystemExit("%.1f %% of the URLs are not in the index" % (100 - found * 100))
    print(json.dumps({"exact_per_s": round(exact_rate), "closest_per_s": round(closest_rate)}))


main()
