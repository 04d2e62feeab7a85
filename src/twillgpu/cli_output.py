"""Where a command's answer goes: standard output, or a file that is never overwritten unasked."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from twillgpu.errors import InputError
from twillgpu.view.text import WIDTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Standard output, or a file. The checks run before any work is done for it.

    Raises ``InputError`` where the file exists and ``force`` is not given, is a directory, or has no folder.
    """

    file: Path | None
    force: bool = False

    def __post_init__(self) -> None:
        if self.file is None:
            return
        if self.file.is_dir():
            raise InputError(f"-o {self.file}", "is a directory", "name a file in it")
        if self.file.exists() and not self.force:
            raise InputError(
                f"-o {self.file}", "the file exists", "name another file, or add --force to overwrite it"
            )
        if not self.file.parent.is_dir():
            raise InputError(f"-o {self.file}", f"there is no folder {self.file.parent}", "create it first")

    @property
    def width(self) -> int:
        """Columns for tables and pictures: those of the terminal, up to 160; 80 where there is none."""
        if self.file is not None or not sys.stdout.isatty():
            return WIDTH
        return max(WIDTH, min(shutil.get_terminal_size().columns, 2 * WIDTH))

    def deliver(self, text: str) -> None:
        """Print or write ``text``; a reader that closes the pipe early (``| head``) is not a mistake."""
        if self.file is not None:
            self._write(self.file, text)
            return
        try:
            click.echo(text, nl=False)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is still buffered goes nowhere, or the interpreter would complain about the pipe when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def deliver_bytes(self, data: bytes) -> None:
        """Write an image to the file, which must be given."""
        if self.file is None:
            raise InputError("-o", "an image needs a file", "name one")
        self._write(self.file, data)

    def _write(self, file: Path, content: str | bytes) -> None:
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        try:
            with file.open("wb" if self.force else "xb") as stream:
                stream.write(data)
        except OSError as error:
            raise InputError(f"-o {file}", f"cannot be written ({error.strerror})", "name another place") from None
