"""Trip counts and numbers of blocks that follow from a kernel's arguments."""

from __future__ import annotations

from collections.abc import Mapping

from twillgpu.errors import InputError, nearest
from twillgpu.frontend.generic import MlirOp, MlirValue
from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.frontend.trips import trip_count


def trips_of(kernel: Kernel, known: Mapping[str, int]) -> int:
    """Return the trip count of the kernel's loop for known values of its scalar arguments.

    Raises:
        InputError: a name is no argument, or the bounds depend on something else.
    """
    names = {argument.name for argument in kernel.arguments}
    for name in known:
        if name not in names:
            raise InputError(f"--set {name}", f"kernel {kernel.name} has no such argument", nearest(name, names))
    if kernel.loop.trip_count is not None and not known:
        return kernel.loop.trip_count
    loop = kernel.loop
    before = tuple(_mlir(index, op) for index, op in enumerate(kernel.before))
    found = trip_count(before, (loop.lower, loop.upper, loop.step), known)
    if found is None:
        raise InputError(
            "--set",
            f"the trip count of {loop.name} does not follow from {', '.join(sorted(known)) or 'the kernel'}",
            "set every argument that its bounds depend on, or give --trips",
        )
    return found


def _mlir(index: int, op: KernelOp) -> MlirOp:
    return MlirOp(
        index=index,
        line=0,
        opcode=op.opcode,
        operands=op.operands,
        results=tuple(MlirValue(name=result.name, type="") for result in op.results),
        attributes=op.attributes,
    )
