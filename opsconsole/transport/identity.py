"""Which user keys are offered, and in which order. Few enough that MaxAuthTries 3 does not bite; never a prompt.

With identities in the inventory (or IdentitiesOnly), only these are offered, by the agent where it holds them. With
IdentityFile alone they come first, then the agent's, at most `MAX_AGENT_KEYS`. Without any: the agent's, then the usual
files of ~/.ssh.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opsconsole.transport.errors import plain

if TYPE_CHECKING:
    import asyncssh

AGENT_TIMEOUT_S = 3.0
AGENT_KEEP_S = 30.0
MAX_AGENT_KEYS = 5
DEFAULT_FILES = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa", "~/.ssh/id_ed25519_sk", "~/.ssh/id_ecdsa_sk")


@dataclass(slots=True)
class Offer:
    """Keys to try in this order; `problems` are sentences for the one who is refused."""

    keys: list[Any] = field(default_factory=list)  # asyncssh.SSHKeyPair
    problems: list[str] = field(default_factory=list)

    def add(self, keys: Sequence[Any]) -> None:
        """Each key once, whoever holds it."""
        known = {key.public_data for key in self.keys}
        for key in keys:
            if key.public_data not in known:
                known.add(key.public_data)
                self.keys.append(key)

    def add_agent(self, keys: Sequence[Any]) -> None:
        """The agent's, up to the cap."""
        self.add(keys[:MAX_AGENT_KEYS])
        if len(keys) > MAX_AGENT_KEYS:
            self.problems.append(
                f"the agent holds {len(keys)} keys and {MAX_AGENT_KEYS} are offered: set identity: in the inventory"
            )


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which keys a host's configuration asks for. `only`: no others of the agent."""

    identities: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    agent_path: str | None = None
    only: bool = False


@dataclass(slots=True)
class KeyFile:
    """A key file as it was read: usable pairs, the public halves to look for in the agent, and what is wrong."""

    pairs: list[Any]
    public: set[bytes]
    problem: str | None
    encrypted: bool = False


def read_key_file(name: str, certificates: Sequence[str] = ()) -> KeyFile:
    """Reads a private key with its certificates. Blocking. A passphrase is never asked for."""
    import asyncssh

    path = Path(name).expanduser()
    public = _public_halves(path)
    try:
        pairs = list(asyncssh.load_keypairs(str(path), certlist=[str(Path(c).expanduser()) for c in certificates]))
    except FileNotFoundError:
        return KeyFile([], public, None if public else f"key file {path} does not exist")
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        if "assphrase" in str(error):
            advice = f"key {path} has a passphrase and no agent holds it: run ssh-add {path}"
            return KeyFile([], public, advice, encrypted=True)
        return KeyFile([], public, None if public else f"key {path} cannot be read: {plain(str(error))}")
    except OSError as error:
        return KeyFile([], public, f"key {path} cannot be read: {error.strerror}")
    return KeyFile(pairs, public | {pair.public_data for pair in pairs}, None)


def _public_halves(path: Path) -> set[bytes]:
    import asyncssh

    found: set[bytes] = set()
    for candidate in (path.with_name(path.name + ".pub"), path):
        try:
            found.add(asyncssh.read_public_key(str(candidate)).public_data)
        except (OSError, asyncssh.KeyImportError):
            continue
    with contextlib.suppress(OSError, asyncssh.KeyImportError):
        found.add(asyncssh.read_certificate(str(path) + "-cert.pub").public_data)
    return found


def _modified_at(name: str) -> float:
    try:
        return os.stat(os.path.expanduser(name)).st_mtime
    except OSError:
        return -1.0


class Keyring:
    """Key files read once, agents asked once and for all hosts. An agent that hangs costs its deadline, no more."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, tuple[str, ...]], tuple[float, KeyFile]] = {}
        self._agents: dict[str, asyncio.Task[tuple[list[Any], str | None]]] = {}
        self._clients: list[asyncssh.SSHAgentClient] = []

    async def offer(self, wanted: Wanted) -> Offer:
        """What to offer a host. Empty with its problems when there is nothing."""
        agent_keys, agent_problem = await self._agent(wanted.agent_path)
        offer = Offer(problems=[agent_problem] if agent_problem else [])
        if not wanted.identities and not wanted.only:
            offer.add_agent(agent_keys)
        for name in wanted.identities or DEFAULT_FILES:
            file = await self._file(name, wanted.certificates)
            held = [key for key in agent_keys if key.public_data in file.public]
            offer.add([*held, *file.pairs])
            if file.problem and not held and (wanted.identities or file.encrypted):
                offer.problems.append(file.problem)
        if wanted.identities and not wanted.only:
            offer.add_agent(agent_keys)
        return offer

    async def _file(self, name: str, certificates: tuple[str, ...]) -> KeyFile:
        """Read again when it changed or was bad, so that a mended key is seen."""
        stamp = _modified_at(name)
        held = self._files.get((name, certificates))
        if held is None or held[0] != stamp:
            held = (stamp, await asyncio.to_thread(read_key_file, name, certificates))
            self._files[name, certificates] = held
        return held[1]

    async def _agent(self, path: str | None) -> tuple[list[Any], str | None]:
        """The agent's keys; asked once in `AGENT_KEEP_S`, shared by all that wait."""
        if not path:
            return [], None
        task = self._agents.get(path)
        if task is None:
            task = asyncio.create_task(self._ask_agent(path))
            self._agents[path] = task
            asyncio.get_running_loop().call_later(AGENT_KEEP_S, self._forget, path, task)
        return await asyncio.shield(task)

    def _forget(self, path: str, task: object) -> None:
        if self._agents.get(path) is task:
            del self._agents[path]

    async def _ask_agent(self, path: str) -> tuple[list[Any], str | None]:
        import asyncssh

        client = asyncssh.SSHAgentClient(path)
        self._clients.append(client)
        try:
            async with asyncio.timeout(AGENT_TIMEOUT_S):
                return list(await client.get_keys()), None
        except TimeoutError:
            return [], f"the ssh agent at {path} does not answer"
        except (OSError, ValueError, EOFError) as error:
            return [], f"the ssh agent at {path} failed: {plain(str(error))}"

    def close(self) -> None:
        for task in self._agents.values():
            task.cancel()
        for client in self._clients:
            client.close()
