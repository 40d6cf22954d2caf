/* Driver entry points asked for at runtime level. */
#include "test_cudart_common.h"

#include <dlfcn.h>

static void *const mark = (void *)(size_t)0x77;

static void *ask(const char *name, unsigned version, unsigned long long flags,
                 enum cudaDriverEntryPointQueryResult expected)
{
    enum cudaDriverEntryPointQueryResult status = (enum cudaDriverEntryPointQueryResult)99;
    void *p = mark;

    OK(cudaGetDriverEntryPointByVersion(name, &p, version, flags, &status));
    IS(status, expected);
    return p;
}

START_TEST(a_miss_is_a_success_with_null_and_a_status)
{
    ck_assert_ptr_null(ask("cuNoSuchThing", 13000, cudaEnableDefault,
                           cudaDriverEntryPointSymbolNotFound));
    ck_assert_ptr_null(ask("cuMemAllocAsync", 3020, cudaEnableDefault,
                           cudaDriverEntryPointVersionNotSufficent));
}
END_TEST

START_TEST(a_version_above_the_drivers_is_refused_and_touches_nothing)
{
    enum cudaDriverEntryPointQueryResult status = (enum cudaDriverEntryPointQueryResult)99;
    void *p = mark;

    IS(cudaGetDriverEntryPointByVersion("cuMemAlloc", &p, 99000, cudaEnableDefault, &status),
       cudaErrorInvalidValue);
    ck_assert_ptr_eq(p, mark);
    ck_assert_int_eq(status, 99);
}
END_TEST

START_TEST(names_with_a_suffix_are_never_found)
{
    ck_assert_ptr_null(ask("cuMemAlloc_v2", 13000, cudaEnableDefault,
                           cudaDriverEntryPointSymbolNotFound));
    ck_assert_ptr_null(ask("cuMemcpyAsync_ptsz", 13000, cudaEnableDefault,
                           cudaDriverEntryPointSymbolNotFound));
}
END_TEST

START_TEST(dlsym_and_resolver_agree_on_a_variant)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);

    ck_assert_ptr_nonnull(driver);
    ck_assert_ptr_eq(ask("cuMemAlloc", 3020, cudaEnableDefault, cudaDriverEntryPointSuccess),
                     dlsym(driver, "cuMemAlloc_v2"));
    ck_assert_ptr_eq(ask("cuMemcpyAsync", 7000, cudaEnablePerThreadDefaultStream,
                         cudaDriverEntryPointSuccess),
                     dlsym(driver, "cuMemcpyAsync_ptsz"));
    ck_assert_ptr_eq(ask("cuMemcpyAsync", 7000, cudaEnableLegacyStream,
                         cudaDriverEntryPointSuccess),
                     dlsym(driver, "cuMemcpyAsync"));
}
END_TEST

START_TEST(old_and_new_variants_differ)
{
    ck_assert_ptr_ne(ask("cuGetProcAddress", 11030, 0, cudaDriverEntryPointSuccess),
                     ask("cuGetProcAddress", 12000, 0, cudaDriverEntryPointSuccess));
    ck_assert_ptr_ne(ask("cuMemAdvise", 8000, 0, cudaDriverEntryPointSuccess),
                     ask("cuMemAdvise", 12020, 0, cudaDriverEntryPointSuccess));
}
END_TEST

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
                                         unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *status);

START_TEST(the_status_is_optional_and_the_older_name_asks_at_our_version)
{
    void *p = NULL, *q = NULL;

    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &p, 3020, 0, NULL));
    ck_assert_ptr_nonnull(p);
    OK(cudaGetDriverEntryPoint_ptsz("cuMemcpyAsync", &q, cudaEnableDefault, NULL));
    ck_assert_ptr_eq(q, ask("cuMemcpyAsync", CUDART_VERSION, cudaEnablePerThreadDefaultStream,
                            cudaDriverEntryPointSuccess));
}
END_TEST

START_TEST(a_driver_of_an_older_major_version_is_insufficient)
{
    int n = 99;

    environment("FAKEGPU_MODE", "olddriver");
    IS(cudaGetDeviceCount(&n), cudaErrorInsufficientDriver);
    ck_assert_int_eq(n, 0);
    IS(cudaMalloc(&(void *){NULL}, 64), cudaErrorInsufficientDriver);
}
END_TEST

RUN_TESTS("resolver", a_miss_is_a_success_with_null_and_a_status,
          a_version_above_the_drivers_is_refused_and_touches_nothing,
          names_with_a_suffix_are_never_found, dlsym_and_resolver_agree_on_a_variant,
          old_and_new_variants_differ,
          the_status_is_optional_and_the_older_name_asks_at_our_version,
          a_driver_of_an_older_major_version_is_insufficient)
