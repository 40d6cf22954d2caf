/* PTX of the kernel `poke`, which writes a word to an address: a piece for the texts of kernels beside it. Constant text. */
#ifndef TESTS_GPU_POKE_KERNEL_H
#define TESTS_GPU_POKE_KERNEL_H

#define POKE_PTX \
	".visible .entry poke(.param .u64 where)\n" \
	"{\n" \
	"  .reg .u64 %at;\n" \
	"  .reg .u32 %word;\n" \
	"  ld.param.u64 %at, [where];\n" \
	"  mov.u32 %word, 7;\n" \
	"  st.global.u32 [%at], %word;\n" \
	"  ret;\n" \
	"}\n"

#endif
