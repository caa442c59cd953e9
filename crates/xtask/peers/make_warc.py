"""Writes the HTML pages of a folder as one .warc.gz: request, response and metadata records, one gzip member each.

    make_warc.py FOLDER OUT.warc.gz --bytes 500000000 [--seed 1]

Each folder directly under FOLDER becomes one host. When all files are written and the archive is still too small, the next
round visits them again under other dates and another path, as a crawler would months later. Same folder, same seed: same
bytes.
"""

import argparse
import datetime
import io
import mimetypes
import os
import random
import re
import uuid

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

BODY_BYTES_MAX = 8_000_000
LINKS_MAX = 200
LINK = re.compile(rb"""(?:href|src)\s*=\s*["']([^"'#>]{1,300})""", re.IGNORECASE)


def pages(folder):
    for host in sorted(os.listdir(folder)):
        top = os.path.join(folder, host)
        for place, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(place, name)
                page = name.lower().endswith((".html", ".htm"))
                if page and os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) <= BODY_BYTES_MAX:
                    yield host, os.path.relpath(path, top), path


class Crawl:
    def __init__(self, out, seed):
        self.writer = WARCWriter(out, gzip=True, warc_version="WARC/1.1")
        self.chance = random.Random(seed)
        self.now = datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone.utc)
        self.records = 0

    def identity(self):
        return "<urn:uuid:%s>" % uuid.UUID(int=self.chance.getrandbits(128), version=4)

    def write(self, kind, url, date, block, http=None, content_type=None, to=None, extra=()):
        headers = {"WARC-Record-ID": self.identity(), "WARC-Date": date}
        if to:
            headers["WARC-Concurrent-To"] = to
        headers.update(extra)
        record = self.writer.create_warc_record(
            url, kind, payload=io.BytesIO(block), length=len(block), http_headers=http,
            warc_content_type=content_type or "", warc_headers_dict=headers)
        self.writer.write_record(record)
        self.records += 1
        return headers["WARC-Record-ID"]

    def visit(self, host, path, body, round_number):
        self.now += datetime.timedelta(milliseconds=self.chance.randint(40, 900))
        date = self.now.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        http_date = self.now.strftime("%a, %d %b %Y %H:%M:%S GMT")
        prefix = "" if round_number == 0 else "round-%d/" % round_number
        url = "https://%s.example.org/%s%s" % (host, prefix, path.replace(" ", "%20"))
        mime = mimetypes.guess_type(path)[0] or "application/octet-stream"
        address = {"WARC-IP-Address": "198.51.100.%d" % (hash_of(host) % 250 + 1)}
        answer = StatusAndHeaders("200 OK", [
            ("Date", http_date),
            ("Server", "nginx/1.24.0"),
            ("Content-Type", mime + ("; charset=utf-8" if mime.startswith("text/") else "")),
            ("Content-Length", str(len(body))),
            ("Last-Modified", "Tue, 02 Jan 2024 10:11:12 GMT"),
            ("Connection", "keep-alive"),
            ("ETag", '"%012x-%x"' % (self.chance.getrandbits(48), len(body))),
            ("Strict-Transport-Security", "max-age=31536000"),
            ("Vary", "Accept-Encoding"),
            ("Accept-Ranges", "bytes"),
        ], protocol="HTTP/1.1")
        response = self.write("response", url, date, body, http=answer, extra=address)
        question = StatusAndHeaders("GET /%s%s HTTP/1.1" % (prefix, path), [
            ("Host", host + ".example.org"),
            ("User-Agent", "Mozilla/5.0 (compatible; bench)"),
            ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            ("Accept-Encoding", "identity"),
            ("Connection", "keep-alive"),
        ], is_http_request=True)
        self.write("request", url, date, b"", http=question, to=response, extra=address)
        lines = ["fetchTimeMs: %d" % self.chance.randint(5, 400)]
        if mime == "text/html":
            for link in LINK.findall(body)[:LINKS_MAX]:
                lines.append("outlink: " + link.decode("utf-8", "replace"))
        block = ("\r\n".join(lines) + "\r\n").encode()
        self.write("metadata", url, date, block, content_type="application/warc-fields", to=response)


def hash_of(text):
    return sum((index + 1) * ord(letter) for index, letter in enumerate(text))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--bytes", type=int, default=500_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    beside = options.out + ".part"
    with open(beside, "wb") as out:
        crawl = Crawl(out, options.seed)
        info = crawl.writer.create_warcinfo_record(os.path.basename(options.out), {"software": "make_warc.py"})
        info.rec_headers.replace_header("WARC-Record-ID", crawl.identity())
        info.rec_headers.replace_header("WARC-Date", "2024-03-01T00:00:00Z")
        crawl.writer.write_record(info)
        round_number = 0
        while out.tell() < options.bytes:
            before = crawl.records
            for host, path, file in pages(options.folder):
                with open(file, "rb") as body:
                    crawl.visit(host, path, body.read(), round_number)
                if out.tell() >= options.bytes:
                    break
            if crawl.records == before:
                raise SystemExit("no pages under " + options.folder)
            crawl.now += datetime.timedelta(days=90)
            round_number += 1
        size = out.tell()
    os.rename(beside, options.out)
    print("records=%d bytes=%d" % (crawl.records + 1, size))


main()
