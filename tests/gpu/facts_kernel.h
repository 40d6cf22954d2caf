/*
 * The PTX of two tiny kernels, for the observations that need real device work: `spin` keeps one thread
 * busy for a number of nanoseconds, `poke` writes one word to an address. The driver compiles them at
 * load, so no nvcc is needed. Constant text; any thread may read it.
 */
#ifndef TESTS_GPU_FACTS_KERNEL_H
#define TESTS_GPU_FACTS_KERNEL_H

#include "poke_kernel.h"

static const char facts_ptx[] =
	".version 7.0\n"
	".target sm_70\n"
	".address_size 64\n"
	".visible .entry spin(.param .u64 nanoseconds)\n"
	"{\n"
	"  .reg .u64 %limit, %begin, %now, %gone;\n"
	"  .reg .pred %more;\n"
	"  ld.param.u64 %limit, [nanoseconds];\n"
	"  mov.u64 %begin, %globaltimer;\n"
	"again:\n"
	"  mov.u64 %now, %globaltimer;\n"
	"  sub.u64 %gone, %now, %begin;\n"
	"  setp.lt.u64 %more, %gone, %limit;\n"
	"  @%more bra again;\n"
	"  ret;\n"
	"}\n"
	POKE_PTX;

#endif
