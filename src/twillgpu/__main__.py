"""``python -m twillgpu``."""

from twillgpu.cli import main

main()
