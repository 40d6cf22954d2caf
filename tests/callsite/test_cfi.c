/* The reader of .eh_frame on functions whose tables say what compilers seldom or never do; ordinary code is cfi_test.sh's. Nothing here is called. */
#define _GNU_SOURCE
#include <check.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/cfi.h"

/* Each function has one instruction at which the wanted row holds, after the directives. */
#define FUNCTION(name, directives)                                                                                                         \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\nnop\n" directives "\n.globl " #name "_at\n"   \
            #name "_at:\nnop\nnop\n.cfi_endproc\n.size " #name ", .-" #name "\n");                                                       \
    extern const char name[], name##_at[];

FUNCTION(plain_sp, ".cfi_def_cfa_offset 48")
FUNCTION(plain_fp, ".cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n.cfi_def_cfa_register rbp")
FUNCTION(fp_saved_sp, ".cfi_def_cfa_offset 64\n.cfi_offset rbp, -24")
FUNCTION(fp_same, ".cfi_offset rbp, -16\n.cfi_same_value rbp")
FUNCTION(fp_undefined, ".cfi_undefined rbp")
FUNCTION(fp_in_register, ".cfi_register rbp, r12")
FUNCTION(fp_value, ".cfi_val_offset rbp, -32")
FUNCTION(fp_expression, ".cfi_escape 0x10, 6, 2, 0x77, 8")
FUNCTION(fp_restored, ".cfi_offset rbp, -16\n.cfi_restore rbp")
FUNCTION(fp_far, ".cfi_escape 0x11, 6, 0x7d") /* offset_extended_sf, factored: -3 times -8 */
FUNCTION(fp_negative_far, ".cfi_escape 0x2f, 6, 2")
FUNCTION(cfa_expression, ".cfi_escape 0x0f, 3, 0x77, 8, 0x06")
FUNCTION(cfa_other_register, ".cfi_def_cfa r10, 0")
FUNCTION(cfa_signed, ".cfi_escape 0x12, 7, 0x7c") /* def_cfa_sf: -4 times -8 */
FUNCTION(cfa_expression_gone, ".cfi_escape 0x0f, 3, 0x77, 8, 0x06\nnop\n.cfi_def_cfa rsp, 24")
FUNCTION(ra_undefined, ".cfi_undefined rip")
FUNCTION(ra_elsewhere, ".cfi_offset rip, -40")
FUNCTION(ra_in_register, ".cfi_register rip, rdx")
FUNCTION(remembered, ".cfi_def_cfa_offset 32\n.cfi_offset rbp, -16\n.cfi_remember_state\nnop\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\nnop\n.cfi_restore_state")
FUNCTION(signal_frame, ".cfi_signal_frame\n.cfi_def_cfa_offset 48")
FUNCTION(unknown_opcode, ".cfi_escape 0x2d")
FUNCTION(argument_size, ".cfi_escape 0x2e, 16\n.cfi_def_cfa_offset 24")
FUNCTION(far_row, ".fill 300, 1, 0x90\n.cfi_def_cfa_offset 40\n.fill 70000, 1, 0x90\n.cfi_def_cfa_offset 56")
__asm__(".text\n.globl no_table_at\nno_table_at:\nnop\nnop\n");
extern const char no_table_at[];

static tn_cfi_rule rule_at(const void *at)
{
    tn_cfi_rule r;
    memset(&r, 0xee, sizeof r);
    tn_cfi_rule_of((uint64_t)(uintptr_t)at + 1, &r);
    return r;
}

#define ck_rule(name, k, c, ra, f, offset)                   \
    do {                                                     \
        tn_cfi_rule r_ = rule_at(name##_at);                 \
        ck_assert_msg(r_.kind == (k), #name ": kind %d", r_.kind); \
        ck_assert_msg(r_.cfa == (c), #name ": cfa %d", r_.cfa);    \
        ck_assert_int_eq(r_.ra_offset, ra);                  \
        ck_assert_msg(r_.fp == (f), #name ": fp %d", r_.fp); \
        ck_assert_int_eq(r_.fp_offset, offset);              \
    } while (0)
#define ck_none(name, k) ck_rule(name, k, 0, 0, 0, 0)

START_TEST(constants_are_read)
{
    ck_rule(plain_sp, TN_CFI_SP, 48, -8, TN_CFI_FP_SAME, 0);
    ck_rule(plain_fp, TN_CFI_FP, 16, -8, TN_CFI_FP_SAVED, -16);
    ck_rule(fp_saved_sp, TN_CFI_SP, 64, -8, TN_CFI_FP_SAVED, -24);
    ck_rule(cfa_signed, TN_CFI_SP, 32, -8, TN_CFI_FP_SAME, 0);
    ck_rule(cfa_expression_gone, TN_CFI_SP, 24, -8, TN_CFI_FP_SAME, 0);
    ck_rule(ra_elsewhere, TN_CFI_SP, 8, -40, TN_CFI_FP_SAME, 0);
    ck_rule(argument_size, TN_CFI_SP, 24, -8, TN_CFI_FP_SAME, 0);
}
END_TEST

START_TEST(the_frame_pointer_is_followed_or_lost)
{
    ck_rule(fp_same, TN_CFI_SP, 8, -8, TN_CFI_FP_SAME, 0);
    ck_rule(fp_restored, TN_CFI_SP, 8, -8, TN_CFI_FP_SAME, 0);
    ck_rule(fp_far, TN_CFI_SP, 8, -8, TN_CFI_FP_SAVED, 24);
    ck_rule(fp_negative_far, TN_CFI_SP, 8, -8, TN_CFI_FP_SAVED, 16);
    ck_rule(fp_undefined, TN_CFI_SP, 8, -8, TN_CFI_FP_LOST, 0);
    ck_rule(fp_in_register, TN_CFI_SP, 8, -8, TN_CFI_FP_LOST, 0);
    ck_rule(fp_value, TN_CFI_SP, 8, -8, TN_CFI_FP_LOST, 0);
    ck_rule(fp_expression, TN_CFI_SP, 8, -8, TN_CFI_FP_LOST, 0);
}
END_TEST

START_TEST(rows_are_those_of_the_address)
{
    ck_rule(remembered, TN_CFI_SP, 32, -8, TN_CFI_FP_SAVED, -16);
    ck_assert_int_eq(rule_at(far_row).cfa, 8);
    ck_assert_int_eq(rule_at(far_row + 300).cfa, 8);
    ck_assert_int_eq(rule_at(far_row + 301).cfa, 40);
    ck_assert_int_eq(rule_at(far_row + 300 + 70000).cfa, 40);
    ck_rule(far_row, TN_CFI_SP, 56, -8, TN_CFI_FP_SAME, 0);
}
END_TEST

START_TEST(what_is_not_understood_is_other)
{
    ck_none(cfa_expression, TN_CFI_OTHER);
    ck_none(cfa_other_register, TN_CFI_OTHER);
    ck_none(ra_in_register, TN_CFI_OTHER);
    ck_none(signal_frame, TN_CFI_OTHER);
    ck_none(unknown_opcode, TN_CFI_OTHER);
    ck_none(no_table, TN_CFI_OTHER);
    ck_none(ra_undefined, TN_CFI_END);
}
END_TEST

START_TEST(anonymous_memory_is_other)
{
    static const uint64_t nowhere[] = { 0, 1, 4096, UINT64_MAX };
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    ck_assert_int_eq(rule_at(p).kind, TN_CFI_OTHER);
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        ck_assert_int_eq(rule_at((void *)(uintptr_t)nowhere[i]).kind, TN_CFI_OTHER);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cfi");
    TCase *t = tcase_create("cfi");
    suite_add_tcase(s, t);
    tcase_add_test(t, constants_are_read);
    tcase_add_test(t, the_frame_pointer_is_followed_or_lost);
    tcase_add_test(t, rows_are_those_of_the_address);
    tcase_add_test(t, what_is_not_understood_is_other);
    tcase_add_test(t, anonymous_memory_is_other);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
