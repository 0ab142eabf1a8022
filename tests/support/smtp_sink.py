"""A mail server that keeps what it is sent, on a port of this machine, for tests.

It speaks as much SMTP as `smtplib` needs: EHLO, STARTTLS, AUTH PLAIN, MAIL, RCPT, DATA,
NOOP, QUIT.
"""

import base64
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

MAX_LINES = 2000
TIMEOUT = 20.0


@dataclass
class Sink:
    """What a mail server was sent, and how it misbehaves.

    replies: reply code for a recipient, such as 550 or 450
    vanishes_after: recipients after whose mail the connection is cut without a reply
    mails_per_connection: after so many mails it closes the connection between two mails
    refuses_senders: reply code to every MAIL command, if it is not 0
    """

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    was_encrypted: list[bool] = field(default_factory=list)
    connections: int = 0
    replies: dict[str, int] = field(default_factory=dict)
    vanishes_after: set[str] = field(default_factory=set)
    mails_per_connection: int = 1000
    refuses_senders: int = 0
    account: tuple[str, str] | None = None

    @property
    def recipients(self) -> list[str]:
        """To whom it has accepted mails, in order."""
        return [str(mail["To"]) for mail in self.mails]


class _Session(socketserver.StreamRequestHandler):
    server: "_Server"
    timeout = TIMEOUT

    def handle(self) -> None:
        sink = self.server.sink
        sink.connections += 1
        self.encrypted = False
        if self.server.implicit:
            self.encrypt()
        self.recipient = ""
        self.accepted = 0
        self.say("220 sink")
        for _ in range(MAX_LINES):
            line = self.rfile.readline(4096).decode().strip()
            verb = line.split(" ")[0].upper()
            if not verb or not getattr(self, f"do_{verb}", self.unknown)(line):
                return

    def say(self, text: str) -> bool:
        self.wfile.write(text.encode() + b"\r\n")
        return True

    def unknown(self, line: str) -> bool:
        return self.say("500 what?")

    def do_EHLO(self, line: str) -> bool:  # noqa: N802
        offers = ["250-sink", "250-8BITMIME"]
        if self.server.context is not None and not self.encrypted:
            offers.append("250-STARTTLS")
        if self.server.sink.account is not None:
            offers.append("250-AUTH PLAIN")
        return self.say("\r\n".join([*offers, "250 HELP"]))

    def do_STARTTLS(self, line: str) -> bool:  # noqa: N802
        self.say("220 go on")
        self.encrypt()
        return True

    def encrypt(self) -> None:
        assert self.server.context is not None
        self.rfile.close()
        self.request = self.server.context.wrap_socket(self.request, server_side=True)
        self.rfile = self.request.makefile("rb")
        self.wfile = self.request.makefile("wb", 0)
        self.encrypted = True

    def finish(self) -> None:
        """Close the encrypted socket too: the server knows only the plain one."""
        super().finish()
        self.request.close()

    def do_AUTH(self, line: str) -> bool:  # noqa: N802
        sink = self.server.sink
        _, user, password = base64.b64decode(line.split(" ")[2]).decode().split("\0")
        sink.logins.append((user, password))
        return self.say("235 welcome" if (user, password) == sink.account else "535 no")

    def do_MAIL(self, line: str) -> bool:  # noqa: N802
        code = self.server.sink.refuses_senders
        return self.say(f"{code} not from you" if code else "250 ok")

    def do_RCPT(self, line: str) -> bool:  # noqa: N802
        self.recipient = line.split("<")[1].split(">")[0]
        return self.say(f"{self.server.sink.replies.get(self.recipient, 250)} so it is")

    def do_RSET(self, line: str) -> bool:  # noqa: N802
        return self.say("250 ok")

    def do_NOOP(self, line: str) -> bool:  # noqa: N802
        if self.accepted >= self.server.sink.mails_per_connection:
            return False
        return self.say("250 ok")

    def do_QUIT(self, line: str) -> bool:  # noqa: N802
        self.say("221 bye")
        return False

    def do_DATA(self, line: str) -> bool:  # noqa: N802
        self.say("354 go on")
        data = b""
        while (read := self.rfile.readline(8192)) not in (b".\r\n", b""):
            data += read[1:] if read.startswith(b"..") else read
        sink = self.server.sink
        mail = message_from_bytes(data, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        sink.mails.append(mail)
        sink.was_encrypted.append(self.encrypted)
        self.accepted += 1
        if self.recipient in sink.vanishes_after:
            return False
        return self.say("250 kept")


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, sink: Sink, context: ssl.SSLContext | None, implicit: bool) -> None:
        self.sink = sink
        self.context = context
        self.implicit = implicit
        super().__init__(("127.0.0.1", 0), _Session)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that refuses the certificate goes away in the middle: that is expected."""


@contextmanager
def smtp_sink(certificate: Path | None = None, *, implicit: bool = False) -> Iterator[Sink]:
    """Run a mail server while a block runs; with a certificate it offers or demands TLS."""
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    sink = Sink()
    with _Server(sink, context, implicit) as server:
        sink.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield sink
        finally:
            server.shutdown()
            thread.join()
