"""Triton's own passes up to the point where warp specialization and pipelining would begin.

The ops are then the real machine ops with final layouts, and the loop is one iteration in SSA form. The order is
that of ``CUDABackend.make_ttgir`` of Triton 3.6 and 3.9, cut before its latency assignment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from triton._C.libtriton import ir, nvidia, passes
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

from twillgpu.frontend.binding import Bound

CAPABILITIES = {"sm_80": 80, "sm_90a": 90, "sm_100a": 100}
"""Compute capability of each target, as Triton writes it."""

_STRAY = re.compile(r"nvvm\.kernel, |, nvvm\.kernel|nvvm\.kernel")
_Pass = Callable[[Any], None]


def kernel_to_generic(bound: Bound, capability: int) -> str:
    """Return the TTGIR of a bound kernel in MLIR's generic form, with debug locations.

    Raises what Triton raises: ``CompilationError`` from its front end, ``RuntimeError`` from a pass.
    """
    target = GPUTarget("cuda", capability, 32)
    backend = make_backend(target)
    options = backend.parse_options({"num_warps": bound.num_warps})
    context = _context(backend)
    source = ASTSource(bound.function, bound.signature, bound.constants, bound.attributes)
    functions = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, functions, backend.get_module_map(), context)
    module = backend.make_ttir(module, {}, options, capability)
    manager = ir.pass_manager(module.context)
    for add in _pipeline(capability, bound.num_warps):
        add(manager)
    manager.run(module, "make_ttgir")
    return _generic(module, context)


def text_to_generic(path: Path) -> str:
    """Return pretty-printed TTGIR in generic form; raises ``RuntimeError`` where Triton cannot parse it."""
    context = _context(make_backend(GPUTarget("cuda", 90, 32)))
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    return _generic(module, context)


def _context(backend: Any) -> Any:  # noqa: ANN401  # Triton is untyped
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return context


def _pipeline(capability: int, num_warps: int) -> tuple[_Pass, ...]:
    return (
        lambda manager: passes.ttir.add_convert_to_ttgpuir(manager, f"cuda:{capability}", num_warps, 32, 1),
        passes.ttgpuir.add_coalesce,
        lambda manager: passes.ttgpuir.add_f32_dot_tc(manager, True),
        *_block_clusters(),
        passes.ttgpuir.add_remove_layout_conversions,
        passes.ttgpuir.add_optimize_thread_locality,
        passes.ttgpuir.add_accelerate_matmul,
        passes.ttgpuir.add_remove_layout_conversions,
        lambda manager: passes.ttgpuir.add_optimize_dot_operands(manager, True),
        nvidia.passes.ttnvgpuir.add_optimize_descriptor_encoding,
        passes.ttir.add_loop_aware_cse,
        passes.ttgpuir.add_fuse_nested_loops,
        passes.common.add_canonicalizer,
        passes.ttir.add_triton_licm,
        *(_tensor_memory() if capability >= 100 else _register_accumulators()),
        passes.common.add_canonicalizer,
        passes.ttir.add_loop_aware_cse,
    )


def _block_clusters() -> tuple[_Pass, ...]:
    """Return the passes that place data in a cluster of blocks; Triton replaced them after 3.6."""
    if hasattr(nvidia.passes.ttnvgpuir, "add_plan_cta"):
        return (nvidia.passes.ttnvgpuir.add_plan_cta,)
    return (
        nvidia.passes.ttnvgpuir.add_assign_cga_layouts,
        passes.ttgpuir.add_remove_layout_conversions,
        nvidia.passes.ttnvgpuir.add_optimize_cta_locality,
    )


def _tensor_memory() -> tuple[_Pass, ...]:
    return (
        passes.ttgpuir.add_optimize_accumulator_init,
        lambda manager: passes.ttgpuir.add_hoist_tmem_alloc(manager, False),
        nvidia.passes.ttnvgpuir.add_promote_lhs_to_tmem,
    )


def _register_accumulators() -> tuple[_Pass, ...]:
    return (passes.common.add_canonicalizer, passes.ttgpuir.add_combine_tensor_select_and_if)


def _generic(module: Any, context: Any) -> str:  # noqa: ANN401  # Triton is untyped
    """Print in generic form: MLIR's printer falls back to it for a module that fails verification, so a unit
    attribute that the verifier refuses on a module goes in for the time of printing.
    """
    module.set_attr("nvvm.kernel", ir.builder(context).get_unit_attr())
    return _STRAY.sub("", str(module))
