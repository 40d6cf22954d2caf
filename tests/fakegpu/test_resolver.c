/* cuGetProcAddress: which variant a name, a version and a flag choose, and what a miss looks like. */
#include "test_driver.h"

#include <dlfcn.h>
#include <signal.h>

#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags);

#define MARK ((void *)0x5a5a)

static void *ask(const char *name, int version, cuuint64_t flags)
{
    void *p = MARK;
    CUdriverProcAddressQueryResult st = (CUdriverProcAddressQueryResult)77;
    OK(cuGetProcAddress_v2(name, &p, version, flags, &st));
    ck_assert_int_eq(st == CU_GET_PROC_ADDRESS_SUCCESS, p != NULL);
    return p;
}

static void *symbol(const char *name)
{
    void *p = dlsym(RTLD_DEFAULT, name);
    ck_assert_msg(p != NULL, "%s is not exported", name);
    return p;
}

static int status(const char *name, int version)
{
    void *p = MARK;
    CUdriverProcAddressQueryResult st = (CUdriverProcAddressQueryResult)77;
    OK(cuGetProcAddress_v2(name, &p, version, 0, &st));
    ck_assert_ptr_null(p);
    return (int)st;
}

START_TEST(a_miss_is_a_success_with_null_and_a_status)
{
    ck_assert_int_eq(status("", 13000), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ck_assert_int_eq(status("cuNoSuchThing", 13000), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ck_assert_int_eq(status("cuMemCreate", 9000), CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    ck_assert_int_eq(status("cuMemAllocAsync", 11010), CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}
END_TEST

START_TEST(a_version_above_the_drivers_touches_nothing)
{
    void *p = MARK;
    CUdriverProcAddressQueryResult st = (CUdriverProcAddressQueryResult)77;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2("cuMemAlloc", &p, 13010, 0, &st));
    ck_assert_ptr_eq(p, MARK);
    ck_assert_int_eq((int)st, 77);
}
END_TEST

START_TEST(names_with_a_suffix_are_never_found)
{
    ck_assert_int_eq(status("cuMemAlloc_v2", 13000), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ck_assert_int_eq(status("cuMemAllocAsync_ptsz", 13000), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ck_assert_int_eq(status("cuMemcpy_ptds", 13000), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ck_assert_int_eq(status("cuGetProcAddress_v2", 13000), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}
END_TEST

START_TEST(a_null_output_faults)
{
    CUdriverProcAddressQueryResult st;
    cuGetProcAddress_v2("cuMemAlloc", NULL, 13000, 0, &st);
}
END_TEST

START_TEST(addresses_equal_those_of_dlsym)
{
    ck_assert_ptr_eq(ask("cuMemAlloc", 13000, 0), symbol("cuMemAlloc_v2"));
    ck_assert_ptr_eq(ask("cuMemAlloc", 3020, 0), symbol("cuMemAlloc_v2"));
    ck_assert_ptr_eq(ask("cuMemAlloc", 2000, 0), symbol("cuMemAlloc"));
    ck_assert_ptr_ne(symbol("cuMemAlloc"), symbol("cuMemAlloc_v2"));
    ck_assert_ptr_eq(ask("cuMemAllocAsync", 11020, 0), symbol("cuMemAllocAsync"));
    ck_assert_ptr_eq(ask("cuCtxCreate", 11040, 0), symbol("cuCtxCreate_v3"));
    ck_assert_ptr_eq(ask("cuCtxCreate", 12050, 0), symbol("cuCtxCreate_v4"));
    ck_assert_ptr_eq(ask("cuStreamGetCaptureInfo", 11030, 0), symbol("cuStreamGetCaptureInfo_v2"));
}
END_TEST

START_TEST(the_flag_chooses_the_per_thread_variant)
{
    const cuuint64_t pt = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    ck_assert_ptr_eq(ask("cuMemAllocAsync", 13000, pt), symbol("cuMemAllocAsync_ptsz"));
    ck_assert_ptr_eq(ask("cuMemcpyHtoD", 13000, pt), symbol("cuMemcpyHtoD_v2_ptds"));
    ck_assert_ptr_eq(ask("cuMemAlloc", 13000, pt), symbol("cuMemAlloc_v2")); /* has no stream */
    ck_assert_ptr_eq(ask("cuMemAllocAsync", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM), symbol("cuMemAllocAsync"));
    ck_assert_ptr_ne(symbol("cuMemAllocAsync"), symbol("cuMemAllocAsync_ptsz"));
}
END_TEST

START_TEST(the_resolver_finds_itself_in_both_shapes)
{
    void *p = MARK;
    ck_assert_ptr_eq(ask("cuGetProcAddress", 11030, 0), symbol("cuGetProcAddress"));
    ck_assert_ptr_eq(ask("cuGetProcAddress", 12000, 0), symbol("cuGetProcAddress_v2"));
    OK(cuGetProcAddress_v2("cuMemFree", &p, 13000, 0, NULL)); /* the status is optional */
    ck_assert_ptr_eq(p, symbol("cuMemFree_v2"));
    OK(cuGetProcAddress("cuMemFree", &p, 13000, 0)); /* the older shape, before cuInit too */
    ck_assert_ptr_eq(p, symbol("cuMemFree_v2"));
}
END_TEST

START_TEST(every_row_of_the_table_answers_with_its_symbol)
{
    static const struct { const char *base; int version; const char *name, *pt; int pt_version; } rows[] = {
#define FK_SYMBOL(base, version, name, pt, pt_version) {base, version, name, pt, pt_version},
#include "resolver.def"
#undef FK_SYMBOL
    };
    ck_assert_uint_gt(sizeof rows / sizeof rows[0], 500);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_msg(ask(rows[i].base, rows[i].version, 0) == symbol(rows[i].name), "%s at %d", rows[i].base, rows[i].version);
        if (rows[i].pt[0] != '\0')
            ck_assert_msg(ask(rows[i].base, rows[i].pt_version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) == symbol(rows[i].pt),
                          "%s per thread at %d", rows[i].base, rows[i].pt_version);
    }
}
END_TEST

START_TEST(private_tables_are_not_there)
{
    CUuuid id = {{1, 2, 3}};
    const void *table = MARK;
    ck_assert_int_ne(cuGetExportTable(&table, &id), CUDA_SUCCESS);
    ck_assert_ptr_null(table);
}
END_TEST

START_TEST(an_older_driver_knows_less)
{
    int v;
    setenv("FAKEGPU_MODE", "olddriver", 1);
    OK(cuDriverGetVersion(&v));
    ck_assert_int_eq(v, 12020);
    ck_assert_int_eq(status("cuCtxGetDevResource", 12020), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    void *p = MARK;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2("cuMemAlloc", &p, 13000, 0, NULL));
    ck_assert_ptr_eq(ask("cuCtxCreate", 12020, 0), symbol("cuCtxCreate_v3"));
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, a_miss_is_a_success_with_null_and_a_status);
    tcase_add_test(t, a_version_above_the_drivers_touches_nothing);
    tcase_add_test(t, names_with_a_suffix_are_never_found);
    tcase_add_test_raise_signal(t, a_null_output_faults, SIGSEGV);
    tcase_add_test(t, addresses_equal_those_of_dlsym);
    tcase_add_test(t, the_flag_chooses_the_per_thread_variant);
    tcase_add_test(t, the_resolver_finds_itself_in_both_shapes);
    tcase_add_test(t, every_row_of_the_table_answers_with_its_symbol);
    tcase_add_test(t, private_tables_are_not_there);
    tcase_add_test(t, an_older_driver_knows_less);
}

int main(void) { return run_tests("resolver", fill); }
