/*
 * The PTX of the serving engine's kernels: `mix` replaces each word of a block by one made of it and a salt, `poke` writes one word to an
 * address. The driver compiles them at load, so no nvcc is needed; the fake card runs `poke`. Constant text; any thread may read it.
 */
#ifndef TESTS_GPU_SERVING_ENGINE_KERNELS_H
#define TESTS_GPU_SERVING_ENGINE_KERNELS_H

#include "poke_kernel.h"

static const char serving_engine_ptx[] =
	".version 7.0\n"
	".target sm_70\n"
	".address_size 64\n"
	".visible .entry mix(.param .u64 block, .param .u32 words, .param .u32 salt)\n"
	"{\n"
	"  .reg .u64 %at, %offset;\n"
	"  .reg .u32 %i, %group, %width, %lane, %words, %salt, %word;\n"
	"  .reg .pred %past;\n"
	"  ld.param.u64 %at, [block];\n"
	"  ld.param.u32 %words, [words];\n"
	"  ld.param.u32 %salt, [salt];\n"
	"  mov.u32 %group, %ctaid.x;\n"
	"  mov.u32 %width, %ntid.x;\n"
	"  mov.u32 %lane, %tid.x;\n"
	"  mad.lo.u32 %i, %group, %width, %lane;\n"
	"  setp.ge.u32 %past, %i, %words;\n"
	"  @%past bra done;\n"
	"  mul.wide.u32 %offset, %i, 4;\n"
	"  add.u64 %at, %at, %offset;\n"
	"  ld.global.u32 %word, [%at];\n"
	"  mad.lo.u32 %word, %word, 1664525, %salt;\n"
	"  st.global.u32 [%at], %word;\n"
	"done:\n"
	"  ret;\n"
	"}\n"
	POKE_PTX;

#endif
