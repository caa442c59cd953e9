"""A receiver of webhooks that speaks TLS, for tests: hook.py FOLDER CERTIFICATE KEY. Says its port, then puts each body into FOLDER."""

import http.server
import os
import ssl
import sys

folder, certificate, key = sys.argv[1:]


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(os.path.join(folder, f"{len(os.listdir(folder))}.json"), "wb") as file:
            file.write(body)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
secure.load_cert_chain(certificate, key)
server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
server.socket = secure.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
