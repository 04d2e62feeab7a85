"""Two listings of one kernel, joined: groups, live registers, spills, order."""

from twillgpu.emit.record import Run
from twillgpu.emit.sass import group_code, instructions

LINES = """
.text.kernel:
\t//## File "/here/out.py", line 30
        /*0000*/                   USETMAXREG.DEALLOC.CTAPOOL 0xf0 ;
\t//## File "/here/out.py", line 5
        /*0010*/                   HGMMA.64x128x16.F32 R24, gdesc[UR12], RZ, !UPT ;
        /*0020*/                   HGMMA.64x128x16.F32 R24, gdesc[UR16], R24 ;
\t//## File "/library/standard.py", line 10
        /*0030*/                   FADD R1, R2, R3 ;
\t//## File "/here/out.py", line 2
        /*0040*/             @!P0 MUFU.EX2 R4, R5 ;
\t//## File "/here/out.py", line 6
        /*0050*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0060*/                   STL [R1], R9 ;
\t//## File "/here/out.py", line 30
        /*0070*/                   USETMAXREG.DEALLOC.CTAPOOL 0x18 ;
\t//## File "/here/out.py", line 11
        /*0080*/                   UTMALDG.2D [UR8], [UR4] ;
"""
LIVES = """
        /*0000*/                   USETMAXREG.DEALLOC.CTAPOOL 0xf0 ;            // |       |      |      |     |
        /*0010*/                   HGMMA.64x128x16.F32 R24, gdesc[UR12], RZ, !UPT ;  // |   69  |   1  |   18 |     |
        /*0020*/                   HGMMA.64x128x16.F32 R24, gdesc[UR16], R24 ;  // |   71  |   1    |   18   |    |
        /*0030*/                   FADD R1, R2, R3 ;                            // |  131  |   1    |   39   |    |
        /*0040*/             @!P0 MUFU.EX2 R4, R5 ;                             // |  130  |   1    |   39   |    |
        /*0050*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;              // |  100  |   1    |   39   |    |
        /*0060*/                   STL [R1], R9 ;                               // |  100  |   1    |   39   |    |
        /*0070*/                   USETMAXREG.DEALLOC.CTAPOOL 0x18 ;            // |       |        |        |    |
        /*0080*/                   UTMALDG.2D [UR8], [UR4] ;                    // |    4  |        |    6   |    |
"""
FUNCTIONS = {"softmax": (4, 8), "load": (10, 12), "kernel": (20, 40)}


def test_code_of_other_lines_belongs_to_the_group_around_it() -> None:
    code = instructions(LINES, LIVES, "/here/out.py", FUNCTIONS)
    assert [one.function for one in code] == ["kernel", *["softmax"] * 6, "kernel", "load"]


def test_the_code_of_a_group() -> None:
    code = instructions(LINES, LIVES, "/here/out.py", FUNCTIONS)
    softmax = group_code("softmax", tuple(one for one in code if one.function == "softmax"))
    assert (softmax.maxreg, softmax.live_registers, softmax.spills, softmax.instructions) == (240, 131, 1, 6)
    assert softmax.order == (
        Run(kind="tensor", count=2),
        Run(kind="exp", count=1),
        Run(kind="drain", count=1),
    )
    assert softmax.counts == (("HGMMA", 2), ("MUFU", 1), ("STL", 1), ("WARPGROUP", 1))
    load = group_code("load", tuple(one for one in code if one.function == "load"))
    assert (load.maxreg, load.live_registers, load.order) == (24, 4, (Run(kind="load", count=1),))


def test_a_group_without_code() -> None:
    empty = group_code("none", ())
    assert (empty.maxreg, empty.live_registers, empty.order) == (0, 0, ())
