/*
 * The PTX of three small kernels, under the names and parameters that the fake GPU carries out by itself: fake_fill
 * (to, byte, bytes), fake_add (to, value, 32-bit words), fake_copy (to, from, bytes). The driver compiles them at
 * load, so no nvcc is needed. One block of any width. Constant text; any thread may read it.
 */
#ifndef TESTS_GENERATOR_KERNELS_H
#define TESTS_GENERATOR_KERNELS_H

#define LOOP_BEGIN(count) \
	"  .reg .u32 %t, %n;\n  .reg .u64 %i, %step, %limit, %at, %base;\n  .reg .pred %end;\n" \
	"  mov.u32 %t, %tid.x;\n  cvt.u64.u32 %i, %t;\n  mov.u32 %n, %ntid.x;\n  cvt.u64.u32 %step, %n;\n" \
	"  ld.param.u64 %base, [to];\n  ld.param.u64 %limit, [" count "];\n" \
	"again:\n  setp.ge.u64 %end, %i, %limit;\n  @%end bra done;\n"
#define LOOP_END "  add.u64 %i, %i, %step;\n  bra again;\ndone:\n  ret;\n}\n"

static const char generator_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry fake_fill(.param .u64 to, .param .u8 value, .param .u64 bytes)\n{\n"
	"  .reg .u16 %v;\n  ld.param.u8 %v, [value];\n"
	LOOP_BEGIN("bytes")
	"  add.u64 %at, %base, %i;\n  st.global.u8 [%at], %v;\n"
	LOOP_END
	".visible .entry fake_add(.param .u64 to, .param .u32 value, .param .u64 words)\n{\n"
	"  .reg .u32 %v, %w;\n  ld.param.u32 %v, [value];\n"
	LOOP_BEGIN("words")
	"  shl.b64 %at, %i, 2;\n  add.u64 %at, %base, %at;\n"
	"  ld.global.u32 %w, [%at];\n  add.u32 %w, %w, %v;\n  st.global.u32 [%at], %w;\n"
	LOOP_END
	".visible .entry fake_copy(.param .u64 to, .param .u64 from, .param .u64 bytes)\n{\n"
	"  .reg .u64 %source;\n  .reg .u16 %v;\n  ld.param.u64 %source, [from];\n"
	LOOP_BEGIN("bytes")
	"  add.u64 %at, %source, %i;\n  ld.global.u8 %v, [%at];\n"
	"  add.u64 %at, %base, %i;\n  st.global.u8 [%at], %v;\n"
	LOOP_END;

#endif
