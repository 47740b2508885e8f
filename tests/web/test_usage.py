"""What `opsconsole web` refuses before it serves anything."""

from __future__ import annotations

import socket
import sys

import pytest

from opsconsole.cli import main
from tests.cli.told import Told


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.7", "gpu01.example.org", "1270.0.1"])
@pytest.mark.parametrize("more", [[], ["--i-have-a-proxy"]])
def test_other_addresses_need_a_proxy_and_its_name(cluster: Told, address: str, more: list[str]) -> None:
    said = cluster.run("web", "--address", address, *more, status=2)
    assert said.startswith(f"opsconsole: {address} can be reached from elsewhere")
    assert "--i-have-a-proxy --public-url https://" in said


def test_a_public_url_is_an_address_of_a_site(cluster: Told) -> None:
    said = cluster.run("web", "--public-url", "ops.example.org/console", status=2)
    assert "'ops.example.org/console' is no address of a site" in said


def test_nobody_writes_where_the_inventory_forbids_it(cluster: Told) -> None:
    cluster.inventory.write_text(cluster.inventory.read_text() + "allow_write: false\n")
    assert "--write: the inventory says allow_write: false" in cluster.run("web", "--write", status=2)


def test_a_port_that_is_taken_is_named(cluster: Told) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = cluster.run("web", "--port", port, status=1)
    assert f"cannot serve at 127.0.0.1 port {port}: Address already in use" in said
    assert "cannot serve at 127.0.0.1 port 70000" in cluster.run("web", "--port", "70000", status=1)


def test_without_its_extra_it_says_what_to_install(
    cluster: Told, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "opsconsole.cli.webserve", raising=False)
    assert main(["web", "--inventory", str(cluster.inventory)]) == 1
    assert "pip install 'opsconsole[web]'" in capsys.readouterr().err
