"""Why a host could not be reached, in words that differ, each with the one thing to do."""

from __future__ import annotations

from enum import StrEnum

from opsconsole.errors import OpsConsoleError


class Unreach(StrEnum):
    """The kinds of "no". The value is the word that people read."""

    NEVER_SEEN = "never seen"
    REFUSED = "refused"
    TIMED_OUT = "timed out"
    NO_ROUTE = "no route"
    DNS = "name not found"
    AUTH_FAILED = "auth failed"
    HOST_KEY_CHANGED = "host key changed"
    HOST_KEY_UNKNOWN = "host key unknown"
    PROXY_FAILED = "jump host failed"
    CLOSED = "closed"
    DROPPED = "dropped before login"
    NO_SHELL = "no shell"
    NO_PYTHON = "no python"
    STATE_DIR = "state directory"
    FENCED = "fenced"
    OTHER_STORE = "other store"
    PROTOCOL = "protocol"
    LOCAL_LIMIT = "local limit"
    CONFIG = "ssh config"


# Waiting does not mend these: a person has to act, and trying often can lock an account.
NEEDS_A_PERSON = frozenset(
    {
        Unreach.AUTH_FAILED,
        Unreach.HOST_KEY_CHANGED,
        Unreach.HOST_KEY_UNKNOWN,
        Unreach.NO_SHELL,
        Unreach.NO_PYTHON,
        Unreach.FENCED,
        Unreach.OTHER_STORE,
        Unreach.CONFIG,
    }
)

ADVICE: dict[Unreach, str] = {
    Unreach.NEVER_SEEN: "Wait for the first connection, or press Ctrl-R to try now.",
    Unreach.REFUSED: "Check that sshd runs there and that the port in the inventory is right.",
    Unreach.TIMED_OUT: "Check that the host is up: ping it, then look at its console or its BMC.",
    Unreach.NO_ROUTE: "Check the network or the VPN from this machine to the host.",
    Unreach.DNS: "Check the address in the inventory, or give an IP address.",
    Unreach.AUTH_FAILED: "Log in by hand with ssh -v, and check user: and identity: in the inventory.",
    Unreach.HOST_KEY_CHANGED: "Ask who reinstalled the host before removing the old key with ssh-keygen -R.",
    Unreach.HOST_KEY_UNKNOWN: "Log in once by hand with ssh and compare the fingerprint.",
    Unreach.PROXY_FAILED: "Log in to the jump host by hand with ssh.",
    Unreach.CLOSED: "Nothing to do at once: it is tried again. If it stays, read the host's sshd log.",
    Unreach.DROPPED: "It is tried again. If it stays: MaxStartups in its sshd_config, fail2ban, or a firewall.",
    Unreach.NO_SHELL: "Give the account a login shell and remove a ForceCommand that hides it.",
    Unreach.NO_PYTHON: "Install Python 3.8 or newer on the host, or set python: in the inventory.",
    Unreach.STATE_DIR: "Free space in the state directory or set state_dir: to a local, writable path.",
    Unreach.FENCED: "A newer leader has spoken to this host. Look who leads: opsconsole queue.",
    Unreach.OTHER_STORE: "If that store's leader is gone for good, take the host over: opsconsole adopt HOST.",
    Unreach.PROTOCOL: "Log in by hand and run the agent; report what it prints.",
    Unreach.LOCAL_LIMIT: "Raise the limit of open files of this machine (ulimit -n).",
    Unreach.CONFIG: "Correct the ssh configuration or the host's entry in the inventory.",
}


class TransportError(OpsConsoleError):
    """No answer from a host.

    `what` was being done, `why` it failed. `outcome_unknown`: the request had left this machine, so it may have been
    carried out: look again, never resend blindly.
    """

    def __init__(
        self,
        host: str,
        what: str,
        why: str,
        kind: Unreach,
        *,
        advice: str | None = None,
        outcome_unknown: bool = False,
        stderr: str | None = None,
        exit_status: int | None = None,
    ) -> None:
        super().__init__(
            f"{host}: {what}: {kind}: {why}" if why else f"{host}: {what}: {kind}",
            host=host,
            command=what,
            advice=advice or ADVICE[kind],
            stderr=stderr,
            exit_status=exit_status,
        )
        self.what = what
        self.why = why
        self.kind = kind
        self.outcome_unknown = outcome_unknown


def plain(text: str | bytes, limit: int = 300) -> str:
    """Foreign text on one line: no control characters, at most `limit` characters, its end kept."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else "…" + line[1 - limit :]
