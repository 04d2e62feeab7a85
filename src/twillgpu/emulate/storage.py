"""The copies of every ring on numbers, and which of them share bytes."""

from __future__ import annotations

from twillgpu.emulate.memory import MemDesc
from twillgpu.lower.record import Ring, WarpProgram

Slot = tuple[str, int]
"""A ring and one of its copies."""


class Storage:
    """SMEM and TMEM of a block. A copy keeps its own array: what shares its bytes is poison once it is written."""

    def __init__(self, program: WarpProgram) -> None:
        self.rings = {ring.name: ring for ring in program.rings}
        self._tiles = {slot: MemDesc.new(ring.tile.shape, ring.tile.dtype) for slot, ring in _slots(program)}
        places = {slot: _place(ring, slot[1]) for slot, ring in _slots(program)}
        self._sharing = {
            slot: [self._tiles[other] for other in places if other != slot and _overlap(places[slot], places[other])]
            for slot in places
        }

    def slot(self, ring: str, instance: int) -> Slot:
        """Return the copy that an instance is in."""
        return ring, instance % self.rings[ring].depth

    def copy(self, slot: Slot) -> MemDesc:
        """Return a tile of its own with what a copy holds."""
        tile = self._tiles[slot]
        return MemDesc(bits=tile.bits.copy(), dtype=tile.dtype)

    def fill(self, slot: Slot, tile: MemDesc) -> None:
        """Write a copy; what shares its bytes is poison from then on."""
        self._tiles[slot].bits[...] = tile.bits
        for other in self._sharing[slot]:
            other.fill_poison()

    def poison(self, slot: Slot) -> None:
        """Begin to write a copy: nobody can rely on what it held."""
        self._tiles[slot].fill_poison()
        for other in self._sharing[slot]:
            other.fill_poison()


def _slots(program: WarpProgram) -> list[tuple[Slot, Ring]]:
    return [((ring.name, copy), ring) for ring in program.rings for copy in range(ring.depth)]


def _place(ring: Ring, copy: int) -> tuple[str, int, int]:
    start = ring.offset_bytes + copy * ring.bytes
    return ring.memory, start, start + ring.bytes


def _overlap(one: tuple[str, int, int], two: tuple[str, int, int]) -> bool:
    return one[0] == two[0] and one[1] < two[2] and two[1] < one[2]
