"""A mail server for tests: mailbox.py FOLDER PORT [CERTIFICATE KEY]. Says its port, then puts each mail into FOLDER as JSON."""

import asyncio
import email
import email.policy
import json
import os
import ssl
import sys

from aiosmtpd.smtp import SMTP


class Mailbox:
    def __init__(self, folder):
        self.folder = folder
        self.count = len(os.listdir(folder))

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        events = [
            json.loads(line)
            for part in mail.iter_attachments()
            for line in part.get_payload(decode=True).decode().splitlines()
        ]
        told = {
            "id": mail["Message-ID"],
            "from": mail["From"],
            "to": envelope.rcpt_tos,
            "subject": mail["Subject"],
            "text": mail.get_body().get_content(),
            "events": events,
        }
        self.count += 1
        path = os.path.join(self.folder, f"{os.getpid()}-{self.count}")
        with open(path + ".new", "w") as file:
            json.dump(told, file)
        os.rename(path + ".new", path + ".json")
        return "250 kept"


async def main(folder, port, *shown):
    mailbox = Mailbox(folder)
    loop = asyncio.get_running_loop()
    secure = None
    if shown:
        secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        secure.load_cert_chain(*shown)
    server = await loop.create_server(lambda: SMTP(mailbox, hostname="localhost"), "127.0.0.1", port, ssl=secure)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
