"""Where the cache is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "TWILLGPU_CACHE_DIR"
"""The environment variable that names another folder. It decides where results are kept, never what they are."""


def cache_folder(environment: Mapping[str, str] | None = None, platform: str = sys.platform) -> Path:
    """Return the folder of the cache, which need not exist yet.

    In this order: ``TWILLGPU_CACHE_DIR``; the platform's folder for caches (``XDG_CACHE_HOME`` or ``~/.cache``;
    ``~/Library/Caches``; ``LOCALAPPDATA``) with ``twillgpu`` in it.
    """
    known = os.environ if environment is None else environment
    if known.get(VARIABLE):
        return Path(known[VARIABLE]).expanduser().absolute()
    if platform == "win32":
        base = known.get("LOCALAPPDATA") or "~/AppData/Local"
    elif platform == "darwin":
        base = "~/Library/Caches"
    else:
        # The XDG specification: a path that is not absolute is to be ignored.
        base = known.get("XDG_CACHE_HOME", "")
        base = base if base.startswith("/") else "~/.cache"
    try:
        return Path(base).expanduser().absolute() / "twillgpu"
    except RuntimeError:
        return Path(f"/tmp/twillgpu-{os.getuid()}")  # noqa: S108  # a user without a home
