"""An independent check of schedules, from the definitions."""

from twillgpu.verify.record import Verified, Violation
from twillgpu.verify.rules import RULES, check

__all__ = ["RULES", "Verified", "Violation", "check"]
