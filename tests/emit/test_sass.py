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


def test_registers_count_by_name_where_the_disassembler_does_not_count_them() -> None:
    code = instructions(LINES, "", "/here/out.py", FUNCTIONS)
    assert max(one.live_registers for one in code if one.function == "softmax") == 25


LOOP = """
\t//## File "/here/out.py", line 5
.L_x_1:
        /*0000*/                   HGMMA.64x128x16.F32 R24, gdesc[UR12], RZ, !UPT ;
        /*0010*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
        /*0020*/                   MUFU.EX2 R4, R5 ;
        /*0030*/                   LDL R9, [R1] ;
        /*0040*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P2, [UR4], R174 ;
.L_x_2:
        /*0050*/              @!P2 BRA `(.L_x_3) ;
        /*0060*/               @P0 BRA `(.L_x_1) ;
        /*0070*/                   EXIT ;
.L_x_3:
        /*0080*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P2, [UR4], R174 ;
        /*0090*/              @!P2 BRA `(.L_x_3) ;
        /*00a0*/                   BRA `(.L_x_2) ;
"""


def test_the_main_loop_of_a_group() -> None:
    """The retry path of the wait, behind the code, is neither part of the loop nor a loop of its own."""
    code = instructions(LOOP, "", "/here/out.py", FUNCTIONS)
    loop = group_code("softmax", code).loop
    assert loop is not None
    assert (loop.instructions, loop.waits, loop.spills, loop.stores) == (7, 1, 1, 0)
    assert loop.order == (
        Run(kind="tensor", count=1),
        Run(kind="drain", count=1, pending=1),
        Run(kind="exp", count=1),
        Run(kind="wait", count=1),
    )


def test_a_group_without_code() -> None:
    empty = group_code("none", ())
    assert (empty.maxreg, empty.live_registers, empty.order) == (0, 0, ())
