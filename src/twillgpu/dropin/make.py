"""From a captured kernel to a cache entry: found in the cache, or searched, emitted and kept."""

from __future__ import annotations

import time
from dataclasses import replace

import twillgpu
from twillgpu.dropin.options import OptimizeOptions
from twillgpu.emit.record import Emission
from twillgpu.emitting import EmitOptions
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import Kernel
from twillgpu.inputs import Priced, load_captured, price_loaded
from twillgpu.machine.record import Machine
from twillgpu.schedule.jsonform import write_schedule
from twillgpu.schedule.record import SearchResult
from twillgpu.store.cache import Cache, shared
from twillgpu.store.key import cache_key
from twillgpu.store.record import Entry
from twillgpu.view.emission import emission_text


def entry_of(kernel: Kernel, machine: Machine, options: OptimizeOptions, *, emit: bool) -> Entry:
    """Return the schedule of a kernel on a machine, and where ``emit`` is set, the source or why there is none.

    Raises:
        TwillError: whatever the stages raise, save that the kernel has no Gluon form, which is ``declined``.
    """
    key = cache_key(kernel, machine, _deciding(options))
    cache = shared() if options.cache else None
    found = cache.get(key) if cache is not None else None
    if found is not None and (not emit or _is_whole(found)):
        return found
    made = _made(key, kernel, machine, options, emit=emit)
    settled = made.ii_cycles is not None or made.status == "infeasible"
    if cache is not None and settled:
        cache.put(made)
    return made


def cache_of(options: OptimizeOptions) -> Cache:
    """Return the cache whose folder emitted files go to."""
    return shared() if options.cache else Cache(usable=False)


def _deciding(options: OptimizeOptions) -> dict[str, object]:
    """Return the options that decide about the result."""
    return {name: getattr(options, name) for name in ("loop", "rows", "limits", "search", "check")}


def _is_whole(entry: Entry) -> bool:
    return bool(entry.source or entry.declined or entry.ii_cycles is None)


def _made(key: str, kernel: Kernel, machine: Machine, options: OptimizeOptions, *, emit: bool) -> Entry:
    started = time.perf_counter()
    priced = price_loaded(load_captured(kernel, machine, kernel.source_file, options.rows), options.limits)
    run = twillgpu.find_schedule(priced, options.search)
    schedule = run.result.schedule
    entry = Entry(
        key=key,
        kernel=kernel.name,
        machine=machine.name,
        status=run.result.status,
        ii_cycles=schedule.ii_cycles if schedule is not None else None,
        schedule=write_schedule(run.problem, run.result, run.limits),
        report=twillgpu.report(run),
        search_seconds=time.perf_counter() - started,
        created=time.time(),
    )
    return _emitted(entry, priced, run.result, options) if emit and schedule is not None else entry


def _emitted(entry: Entry, priced: Priced, result: SearchResult, options: OptimizeOptions) -> Entry:
    started = time.perf_counter()
    try:
        emission = twillgpu.emit_source(priced, result, EmitOptions(check=options.check, search=options.search))
    except UnsupportedError as error:
        return replace(entry, declined=str(error))
    return replace(
        entry,
        source=emission.source,
        ii_cycles=emission.ii_cycles,
        declined=_too_large(emission),
        compiled=emission_text(emission) if emission.rounds else "",
        emit_seconds=time.perf_counter() - started,
    )


def _too_large(emission: Emission) -> str:
    """Return why a block cannot be launched; empty where it can."""
    best = next((one for one in emission.rounds if one.number == emission.best), None)
    limits = [one.message for one in best.findings if one.rule.endswith("_limit")] if best is not None else []
    return "; ".join(limits)
