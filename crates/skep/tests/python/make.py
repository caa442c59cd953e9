"""Archive files as warcio's writer makes them, of everything an indexer can trip over: make.py FOLDER SEED RECORDS.

Every file holds the same odd parts in combinations drawn from the seed; gzip and plain, WARC/1.0 and WARC/1.1.
"""

import gzip
import io
import random
import sys
import uuid

from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

URLS = [
    "http://example.com/",
    "https://example.com",
    "http://www.example.com/Path/To?B=2&a=1&&c",
    "http://WWW2.Example.COM:80/a//b/../c/./d;jsessionid=0123456789abcdef0123456789abcdef?x=y",
    "https://example.com:8443/?",
    "http://example.com/?q=one two&r=%7e%E9",
    "http://example.com/%7Euser/caf%C3%A9/%zz/%",
    "http://example.com/café/日本語?ключ=значение#раздел",
    "http://münchen.example/",
    "http://xn--mnchen-3ya.example/a#fragment",
    "http://user:secret@example.com/private",
    "http://192.0.2.7/index.html",
    "http://[2001:db8::1]:8080/six",
    "http://example.co.uk./trailing.",
    "http://example.com/a?phpsessid=0123456789abcdef0123456789abcdef&b=c",
    "http://example.com/\"quoted\"\\backslash",
    "HTTP://EXAMPLE.COM/UPPER",
    "ftp://ftp.example.com/pub/file.txt",
    "dns:example.com",
    "whois://whois.example.com/example.com",
    "urn:uuid:00000000-0000-4000-8000-000000000001",
    "mailto:someone@example.com",
    "metadata://gnu.org/software/wget/warc/MANIFEST.txt",
    "screenshot:http://example.com/",
    "<http://example.com/in-brackets>",
    "file:///home/someone/a%20file.html",
    "data:text/plain,hello",
    "http://example.com/emoji/\U0001F41D",
    "https://example.com/" + "long/" * 300,
]

DATES = [
    "1996-12-31T23:59:59Z",
    "2020-01-02T03:04:05Z",
    "2020-01-02T03:04:05.1Z",
    "2020-01-02T03:04:05.123456Z",
    "2020-01-02T03:04:05.999999999Z",
    "2024-02-29T00:00:00Z",
    "2016-01-11T23:24Z",
    "2016-01-11",
]

MEDIA = [
    None,
    "",
    "text/html",
    "text/html; charset=utf-8",
    "TEXT/HTML ;charset=utf-8",
    "application/xhtml+xml,text/html",
    "text/html\tcharset",
    ";charset=utf-8",
    "application/octet-stream",
    "image/svg+xml",
    "text/html\r\n charset=folded",
    "café/thé",
    "unk",
    "\"quoted\"",
    "text/ht\x1cml",
]

FIRST_LINES = [
    "HTTP/1.1 200 OK",
    "HTTP/1.1 200",
    "HTTP/1.0 301 Moved Permanently",
    "HTTP/1.1  404  Not Found",
    "HTTP/1.1 204 No Content",
    "HTTP/2 200",
    "HTTP/1.1 999 Odd",
    "HTTP/1.1 two hundred",
    "HTTP/1.1",
    "ICY 200 OK",
    "<html>no head at all",
    "HTTP/1.1\t200\tOK",
    "",
]

BODIES = [
    b"",
    b"x",
    b"<html>hello</html>",
    b"line\r\n\r\nWARC/1.0\r\nWARC-Type: response\r\n\r\n",
    bytes(range(256)) * 40,
    gzip.compress(b"encoded" * 100, mtime=0),
    b"5\r\nhello\r\n0\r\n\r\n",
    b"\r\n\r\n\r\n",
]

NOISE = [b"\n", b"\r", b" ", b"\t", b":", b";", b"\x00", b"\xff", b"\xc3\xa9", b"\x0b", b"\x1c", b"\xc2\xa0", b"\xc2\x85", b"\x7f"]

TYPES = ["response"] * 6 + ["revisit"] * 2 + ["resource", "metadata", "request", "warcinfo", "conversion", "continuation"]


class Bare(WARCWriter):
    """Adds no digests: then an indexer must compute them."""

    def ensure_digest(self, record, block=True, payload=True):
        pass


class Verbatim(StatusAndHeaders):
    """The head of a revisit as it is; the writer takes nothing else of one."""

    def __init__(self, head):
        super().__init__("verbatim", [])
        self.head = head

    def compute_headers_buffer(self, header_filter=None):
        self.headers_buff = self.head


def http_block(chance, kind):
    if kind == "request":
        body = chance.choice([b"", b"a=1&b=2", b'{"json": true}'])
        method = chance.choice(["GET", "POST", "PUT"])
        return f"{method} /?q HTTP/1.1\r\nHost: example.com\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    if chance.random() < 0.03:
        return b""
    end = "\n" if chance.random() < 0.1 else "\r\n"
    lines = [chance.choice(FIRST_LINES) if chance.random() < 0.5 else "HTTP/1.1 200 OK"]
    media = chance.choice(MEDIA)
    if media is not None:
        lines.append(chance.choice(["Content-Type: ", "content-type:", "CONTENT-TYPE : "]) + media)
    body = chance.choice(BODIES)
    extra = ["Server: odd", "No colon here", "X-Latin: caf\xe9", "Transfer-Encoding: chunked", "Content-Type: second/one",
             "Set-Cookie: a=b", ": no name", "Location: http://example.com/elsewhere", "Content-Encoding: gzip"]
    lines[1:1] = chance.sample(extra, chance.randrange(4))
    head = end.join(lines)
    head = head.encode("latin-1") if chance.random() < 0.3 and all(ord(c) < 256 for c in head) else head.encode()
    if chance.random() < 0.03:
        return head  # the head never ends
    return head + (end * 2).encode() + (b"" if kind == "revisit" else body)


def with_noise(chance, block):
    if chance.random() < 0.7:
        return block
    at = chance.randrange(len(block) + 1)
    return block[:at] + chance.choice(NOISE) + block[at + chance.randrange(4):]


def record(chance, version):
    kind = chance.choice(TYPES)
    url = chance.choice(URLS)
    headers = [("WARC-Type", kind), ("WARC-Record-ID", f"<urn:uuid:{uuid.UUID(int=chance.getrandbits(128))}>")]
    about_nothing = kind in ("resource", "metadata") and chance.random() < 0.1
    if kind != "warcinfo" and not about_nothing:
        headers.append(("WARC-Target-URI", url))
    headers.append(("WARC-Date", chance.choice(DATES)))
    if kind in ("response", "revisit", "request"):
        media = f"application/http; msgtype={'request' if kind == 'request' else 'response'}"
        block = with_noise(chance, http_block(chance, kind))
        if url.startswith("dns:"):
            media, block = "text/dns", b"20200102030405\nexample.com. 60 IN A 192.0.2.7\n"
    elif kind == "warcinfo":
        media, block = "application/warc-fields", b"software: odd\r\n"
    else:
        media, block = chance.choice(MEDIA[2:9] + ["application/warc-fields"]), chance.choice(BODIES)
    if kind == "revisit":
        headers.append(("WARC-Profile", f"http://netpreserve.org/warc/{version}/revisit/identical-payload-digest"))
    if kind == "revisit" and chance.random() < 0.8 or chance.random() < 0.1:
        digest = chance.choice(["sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "sha256:" + "0a" * 32, "md5:odd", "nothing"])
        headers.append(("WARC-Payload-Digest", digest))
    head = StatusAndHeaders("", headers, protocol="WARC/" + version)
    http = None
    if kind == "revisit" and block:
        http, block = Verbatim(block), b""
    return ArcWarcRecord("warc", kind, head, io.BytesIO(block), http, media, len(block), payload_length=len(block))


def main(folder, seed, count):
    for version in ("1.0", "1.1"):
        for compressed in (False, True):
            for writer in (WARCWriter, Bare):
                name = f"{version}-{writer.__name__.lower()}.warc" + (".gz" if compressed else "")
                chance = random.Random(f"{seed} {name}")
                with open(f"{folder}/{name}", "wb") as file:
                    out = writer(file, gzip=compressed, warc_version=version)
                    for _ in range(count):
                        out.write_record(record(chance, version))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
