/*
 * The PTX of the engine's two kernels: `poke` writes one word to an address; `deep` has a frame of 2 KiB a thread on the stack. The driver
 * compiles them at load. Constant text; any thread may read it.
 */
#ifndef TESTS_GPU_EXPLAIN_ENGINE_KERNELS_H
#define TESTS_GPU_EXPLAIN_ENGINE_KERNELS_H

#include "../poke_kernel.h"

static const char engine_ptx[] =
	".version 7.0\n"
	".target sm_70\n"
	".address_size 64\n"
	POKE_PTX
	".visible .entry deep(.param .u64 where)\n"
	"{\n"
	"  .local .align 4 .b8 frame[2048];\n"
	"  .reg .u64 %at, %x, %l;\n"
	"  .reg .u32 %word, %t;\n"
	"  ld.param.u64 %at, [where];\n"
	"  mov.u32 %t, %tid.x;\n"
	"  mov.u64 %l, frame;\n"
	"  mul.wide.u32 %x, %t, 4;\n"
	"  add.u64 %l, %l, %x;\n"
	"  st.local.u32 [%l], %t;\n"
	"  ld.local.u32 %word, [%l+8];\n"
	"  st.global.u32 [%at], %word;\n"
	"  ret;\n"
	"}\n";

#endif
