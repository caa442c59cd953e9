"""What pywb shows of an archive: replay.py INDEX FOLDER...

INDEX is a file, or the address of an OutbackCDX server; FOLDERs hold the archive's files.
Reads URLs of pages from standard input, one a line, a time and a space before it where a certain version is meant; prints one JSON object
a line, in the same order:
  status    of the page as pywb rewrites it
  body      SHA-256 of its body as it was fetched
  embeds    [URL, kind, status, SHA-256 of the body as it was fetched] of every picture, style and script of this page, asked for where the
            rewritten page has them
"""

from gevent import monkey

monkey.patch_all(thread=False)

import hashlib
import json
import logging
import re
import sys
import tempfile
from html.parser import HTMLParser
from urllib.parse import urljoin

from pywb.apps.frontendapp import FrontEndApp
from werkzeug.test import Client

logging.disable(logging.CRITICAL)
# A page or part of it, where pywb has it: http://localhost/mirror/20240101000000im_/http://example.org/a.png; joining URLs may have made
# one of the two slashes within.
PLACE = re.compile(r"http://localhost(/mirror/(\d*)(?:[a-z]+_)?/)(https?:)//?(.*)", re.S)


class Embeds(HTMLParser):
    """pywb leaves relative links as they are: where the page is, they lead to where its parts are."""

    def __init__(self, page):
        super().__init__()
        self.page, self.found = "http://localhost" + page, []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "img":
            self.add("picture", attributes.get("src"))
        elif tag == "object":
            self.add("picture", attributes.get("data"))
        elif tag == "script":
            self.add("script", attributes.get("src"))
        elif tag == "link" and "stylesheet" in (attributes.get("rel") or "").split():
            self.add("style", attributes.get("href"))

    def add(self, kind, url):
        place = PLACE.fullmatch(urljoin(self.page, url).partition("#")[0]) if url else None
        if place:
            found = (kind, f"{place[3]}//{place[4]}", place[1], place[2])
            if found not in self.found:
                self.found.append(found)


def main(index, folders):
    answers, sys.stdout = sys.stdout, sys.stderr  # pywb's own talk must not stand between the answers
    if index.startswith("http:"):
        # As pywb's manual says it for OutbackCDX: no address of replay, so that bodies come from the files.
        ask = index + "?url={url}&closest={closest}&sort=closest"
        index = {"type": "cdx", "api_url": ask, "replay_url": ""}
    collection = {"index": index, "archive_paths": [folder + "/" for folder in folders]}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        json.dump({"framed_replay": False, "collections": {"mirror": collection}}, config)
        config.flush()
        app = FrontEndApp(config_file=config.name)
    client = Client(app.handle_request)

    def get(path):
        answer = client.get(path, follow_redirects=False, base_url="http://localhost")
        return answer.status_code, answer.get_data()

    def fetched(url, time):
        status, body = get(f"/mirror/{time}id_/{url}")
        return hashlib.sha256(body).hexdigest() if status == 200 else f"{status} for the body as it was fetched"

    for line in sys.stdin:
        time, _, url = line.rstrip("\n").rpartition(" ")
        time = time or "2"
        page = f"/mirror/{time}/{url}"
        status, body = get(page)
        embeds = Embeds(page)
        embeds.feed(body.decode("utf-8", "replace"))
        told = [[part, kind, get(place + part)[0], fetched(part, time)] for kind, part, place, time in embeds.found]
        print(json.dumps({"status": status, "body": fetched(url, time), "embeds": told}), file=answers, flush=True)


main(sys.argv[1], sys.argv[2:])
