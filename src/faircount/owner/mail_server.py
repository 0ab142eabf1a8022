"""The owner's mail server: where it is, how the connection is protected, and the account there."""

import ipaddress
import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from faircount.core.errors import FaircountError, ParameterError, RefusedError, UnreachableError

STARTTLS = "starttls"
TLS = "tls"
NO_ENCRYPTION = "none"
PORTS = {STARTTLS: 587, TLS: 465, NO_ENCRYPTION: 25}

MAILS_PER_MINUTE = 60.0
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class MailServer:
    """The owner's mail server.

    host, port: where it is; port 0 is the usual one
    security: starttls, tls from the first byte, or none
    user, password: the account there, if it needs one
    certificates: file of certificates to trust, for a server with its own certificate authority
    """

    host: str
    port: int = 0
    security: str = STARTTLS
    user: str = ""
    password: str = field(default="", repr=False)
    certificates: str | None = None

    def __post_init__(self) -> None:
        if self.security not in PORTS:
            names = ", ".join(PORTS)
            message = f"the security of the mail server is one of {names}"
            raise ParameterError(message).with_code("mail_security", names=names)
        # Half of an account would fail only at the mail server, after the owner has waited for it.
        if bool(self.user) != bool(self.password):
            message = "give both a user and a password for the mail server, or neither"
            raise ParameterError(message).with_code("mail_account")
        # check: no-plain-password - anybody on the way could read the owner's mail password
        if self.password and self.security == NO_ENCRYPTION and not is_loopback(self.host):
            raise RefusedError(
                f"the password would travel to {self.host} unencrypted: choose {STARTTLS} or {TLS}"
            ).with_code("mail_plain_password", host=self.host)

    def connect(self) -> smtplib.SMTP:
        """Open a connection and log in."""
        try:
            context = ssl.create_default_context(cafile=self.certificates)
            connection = self._open(context)
            try:
                self._log_in(connection, context)
            # Closed also on Ctrl-C: mail servers allow few connections of one account.
            except BaseException:
                connection.close()
                raise
        # The server's own sentence is left out here: some quote the user's name in it.
        except smtplib.SMTPAuthenticationError:
            message = f"{self.host} refuses the user or the password for sending mail"
            raise FaircountError(message).with_code("mail_login", host=self.host) from None
        except (OSError, smtplib.SMTPException) as problem:
            message = f"no mail can be sent through {self.host}: {problem}"
            raise UnreachableError(message).with_code("mail_away", host=self.host) from None
        return connection

    def _open(self, context: ssl.SSLContext) -> smtplib.SMTP:
        port = self.port or PORTS[self.security]
        if self.security == TLS:
            return smtplib.SMTP_SSL(self.host, port, timeout=TIMEOUT_SECONDS, context=context)
        return smtplib.SMTP(self.host, port, timeout=TIMEOUT_SECONDS)

    def _log_in(self, connection: smtplib.SMTP, context: ssl.SSLContext) -> None:
        # A server that does not offer encryption is refused here: an attacker on the way could have
        # removed the offer.
        if self.security == STARTTLS:
            try:
                connection.starttls(context=context)
            except smtplib.SMTPNotSupportedError:
                raise self._plain_only() from None
        if self.user:
            connection.login(self.user, self.password)

    def _plain_only(self) -> FaircountError:
        port = self.port or PORTS[self.security]
        message = (
            f"{self.host} does not offer STARTTLS on port {port}. If it expects TLS at once, "
            f"usually on port {PORTS[TLS]}, say --smtp-security {TLS}; if it is a relay in your "
            f"own network without encryption, --smtp-security {NO_ENCRYPTION} (on the dashboard "
            "FAIRCOUNT_SMTP_SECURITY)"
        )
        return FaircountError(message).with_code("mail_plain_only", host=self.host, port=port)


@dataclass(frozen=True)
class MailSettings:
    """What the owner has configured for mails.

    sender: the address that they come from
    server: the mail server; None if there is none
    rate: mails per minute, at most
    """

    sender: str = ""
    server: MailServer | None = None
    rate: float = MAILS_PER_MINUTE

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> "MailSettings":
        """From the environment variables that `faircount survey mail` reads as well."""
        sender = variables.get("FAIRCOUNT_MAIL_FROM", "")
        host = variables.get("FAIRCOUNT_SMTP_HOST", "")
        try:
            rate = float(variables.get("FAIRCOUNT_MAIL_RATE", MAILS_PER_MINUTE))
            port = int(variables.get("FAIRCOUNT_SMTP_PORT", 0))
        except ValueError:
            message = "FAIRCOUNT_MAIL_RATE and FAIRCOUNT_SMTP_PORT are numbers"
            raise ParameterError(message).with_code("mail_rate") from None
        if not host:
            return cls(sender, None, rate)
        user = variables.get("FAIRCOUNT_SMTP_USER", "")
        server = MailServer(
            host,
            port,
            variables.get("FAIRCOUNT_SMTP_SECURITY", STARTTLS),
            user,
            # Without an account the password in the environment is for something else.
            variables.get("FAIRCOUNT_SMTP_PASSWORD", "") if user else "",
        )
        return cls(sender, server, rate)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
