"""``twillgpu cache``: what the cache holds, and clearing it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from twillgpu.cli_output import Output
from twillgpu.errors import InputError
from twillgpu.store.cache import Cache
from twillgpu.store.listing import cache_text, entry_values
from twillgpu.store.record import Entry

SCHEMA = "twillgpu-cache/1"
SHOWN = ("report", "source", "schedule")


@click.command("cache")
@click.argument("key", metavar="[KEY]", required=False, default="")
@click.option("--clear", is_flag=True, help="Remove the entries, and the files that were emitted for them.")
@click.option("--show", type=click.Choice(SHOWN), help="Print this of the one entry that KEY names.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("-o", "file", metavar="FILE", type=click.Path(path_type=Path), help="Write to FILE.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def command(key: str, file: Path | None, *, clear: bool, show: str | None, as_json: bool, force: bool) -> None:
    """List the schedules and emitted kernels in the user's cache folder (TWILLGPU_CACHE_DIR names another one).

    KEY, or the beginning of one, chooses entries; without it, all are listed, or cleared with --clear.
    """
    output = Output(file=file, force=force)
    cache, now = Cache(), time.time()
    chosen = cache.entries(key)
    if key and not chosen:
        raise InputError(f"cache {key}", "no entry has a key that begins so", "list them with twillgpu cache")
    if show is not None:
        output.deliver(_shown(chosen, key, show))
        return
    if clear:
        count = cache.clear(key)
        answer = {"schema": SCHEMA, "cleared": count, "folder": str(cache.folder)}
        said = f"{count} {'entry' if count == 1 else 'entries'} cleared in {cache.folder}\n"
    else:
        entries = [entry_values(entry, now) for entry in chosen]
        answer = {"schema": SCHEMA, "folder": str(cache.folder), "entries": entries}
        said = cache_text(chosen, str(cache.folder), now)
    output.deliver(json.dumps(answer, indent=2) + "\n" if as_json else said)


def _shown(entries: tuple[Entry, ...], key: str, part: str) -> str:
    if len(entries) != 1:
        raise InputError(f"cache {key}".strip(), f"it names {len(entries)} entries", "give the key of one")
    text = str(getattr(entries[0], part))
    if not text:
        why = entries[0].declined or "it was not asked for"
        raise InputError(f"cache {key}", f"the entry has no {part}: {why}", "show its report")
    return text
