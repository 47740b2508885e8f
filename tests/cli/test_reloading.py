"""The watch over an inventory's file: what people, editors and full disks do to it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opsconsole.cli.reloading import Watch
from opsconsole.cli.wiring import Place
from opsconsole.site import INVENTORY, INVENTORY_DIGEST

TEXT = """\
hosts:
  - {name: "gpu[1-2]", gpus: 8}
budgets: [{name: olmo, weight: 3}, {name: vision}]
state_dir: state
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def watch(file: Path) -> Watch:
    """Of a process that follows somebody who leads by the file as it is now."""
    place = Place.of(argparse.Namespace(inventory=str(file), cluster=None))
    runtime = place.leader()
    runtime.store.put(INVENTORY, runtime.site.document)
    runtime.store.put(INVENTORY_DIGEST, runtime.site.digest)
    return Watch(place, runtime)


def replaced(file: Path, text: str) -> None:
    """As most editors write."""
    scratch = file.with_suffix(".swp")
    scratch.write_text(text)
    scratch.replace(file)


def written(file: Path, text: str | None) -> None:
    """In place; None removes it."""
    if text is None:
        file.unlink()
    else:
        file.write_text(text)


async def settled(watch: Watch) -> str:
    """What stands about the inventory once the file has been the same for a look."""
    await watch.look()
    await watch.look()
    return watch.runtime.alarms.get("inventory", "")


async def test_the_file_as_it_is_led_by_is_no_news(watch: Watch) -> None:
    assert not await settled(watch) and watch.pending is None


@pytest.mark.parametrize("write", [replaced, written])
async def test_an_edit_is_news_until_it_is_taken_back(
    watch: Watch, file: Path, write: Callable[[Path, str], None]
) -> None:
    write(file, TEXT.replace("weight: 3", "weight: 1"))
    assert "2 changes that nobody has applied" in await settled(watch)
    assert watch.pending is not None
    assert [c.subject for c in watch.pending.changes] == ["olmo", "vision"]
    write(file, TEXT)
    assert not await settled(watch) and watch.pending is None


async def test_a_file_that_is_still_being_written_is_not_read(watch: Watch, file: Path) -> None:
    """The first half of it is a good inventory, too: with one host less."""
    written(file, TEXT.replace("gpu[1-2]", "gpu1"))
    await watch.look()
    written(file, TEXT.replace("gpu[1-2]", "gpu[1-3]"))
    await watch.look()
    assert watch.pending is None
    await watch.look()
    assert watch.pending is not None and [c.subject for c in watch.pending.changes] == ["gpu3"]


async def test_a_wrong_file_is_said_with_its_first_errors_until_it_is_mended(watch: Watch, file: Path) -> None:
    replaced(file, TEXT.replace("gpus: 8", "gpus: eight").replace("weight: 3", "weight: -3"))
    said = await settled(watch)
    assert "the one before stays" in said and f"{file}:2: hosts[0].gpus" in said and f"{file}:3:" in said
    replaced(file, TEXT.replace("gpus: 8", "gpus: 4"))
    assert "2 changes" in await settled(watch)


async def test_a_file_that_is_gone_or_empty_changes_nothing(watch: Watch, file: Path) -> None:
    written(file, "")
    assert "the one before stays" in await settled(watch)
    written(file, None)
    assert "cannot be read" in await settled(watch) and watch.pending is None
    written(file, TEXT)
    assert not await settled(watch)


async def test_comments_and_another_clusters_changes_are_no_news(watch: Watch, file: Path) -> None:
    replaced(file, f"# a comment\n{TEXT}")
    assert not await settled(watch)


async def test_a_cluster_that_is_gone_from_the_file_goes_on(watch: Watch, file: Path) -> None:
    replaced(file, f"name: other\n{TEXT}")
    assert "the one before stays" in await settled(watch)


async def test_what_was_applied_is_no_news_any_more(watch: Watch, file: Path) -> None:
    replaced(file, TEXT.replace("gpus: 8", "gpus: 4"))
    assert await settled(watch)
    applied = Place.of(argparse.Namespace(inventory=str(file), cluster=None)).site()
    watch.runtime.store.put(INVENTORY, applied.document)
    watch.runtime.store.put(INVENTORY_DIGEST, applied.digest)
    assert not await settled(watch)


async def test_an_inventory_that_an_older_version_kept_and_nobody_can_read_is_no_news(watch: Watch, file: Path) -> None:
    watch.runtime.store.put(INVENTORY, '["x.yaml", "hosts: [}"]')
    os.utime(file)
    assert not await settled(watch) and watch.pending is None
