#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/modules.h"
#include "tests/callsite/plugs.h"

static int dummy(void)
{
    return 1;
}

START_TEST(executable_is_found_by_its_code)
{
    tn_module_info m;
    char exe[1024] = "";
    ck_assert_int_gt(readlink("/proc/self/exe", exe, sizeof exe - 1), 0);
    ck_assert_int_eq(tn_module_of((const void *)(uintptr_t)dummy, &m), 1);
    ck_assert_int_eq(m.is_main, 1);
    ck_assert_str_eq(m.path, exe);
    ck_assert_uint_gt(m.build_id_bytes, 0);
    ck_assert_uint_ge((uint64_t)(uintptr_t)dummy, m.segment);
    ck_assert_uint_lt((uint64_t)(uintptr_t)dummy, m.segment_end);
    ck_assert_uint_le(m.segment_end, m.end);
}
END_TEST

START_TEST(library_has_the_loaders_base_and_its_own_build_id)
{
    tn_module_info m, again;
    void *h = dlopen(plug_path("libplug_a.so"), RTLD_NOW);
    ck_assert_ptr_nonnull(h);
    void *p = dlsym(h, "plug_call");
    struct link_map *map = NULL;
    ck_assert_int_eq(dlinfo(h, RTLD_DI_LINKMAP, &map), 0);
    ck_assert_int_eq(tn_module_of(p, &m), 1);
    ck_assert_uint_eq(m.base, map->l_addr);
    ck_assert_int_eq(m.is_main, 0);
    ck_assert_int_eq(m.hashed, 0);
    ck_assert_str_eq(tn_basename(m.path), "libplug_a.so");
    ck_assert_int_eq(tn_module_of((const char *)p + 1, &again), 1);
    ck_assert_mem_eq(m.build_id, again.build_id, sizeof m.build_id);
    void *other = dlopen(plug_path("libplug_b.so"), RTLD_NOW);
    ck_assert_ptr_nonnull(other);
    ck_assert_int_eq(tn_module_of(dlsym(other, "plug_call"), &again), 1);
    ck_assert_mem_ne(m.build_id, again.build_id, sizeof m.build_id);
}
END_TEST

static tn_module_info info_of(const char *file)
{
    tn_module_info m;
    void *h = dlopen(plug_path(file), RTLD_NOW);
    ck_assert_msg(h != NULL, "%s", dlerror());
    ck_assert_int_eq(tn_module_of(dlsym(h, "plug_call"), &m), 1);
    return m;
}

/* Equal names, different code; and equal code under a second path of the same name. */
START_TEST(without_build_id_name_and_code_count)
{
    tn_module_info a = info_of("noid_a/libnoid.so"), b = info_of("noid_b/libnoid.so"), same = info_of("noid_c/libnoid.so"), named = info_of("noid_d/libother.so");
    ck_assert_int_eq(a.hashed, 1);
    ck_assert_int_eq(b.hashed, 1);
    ck_assert_uint_eq(a.build_id_bytes, 8);
    ck_assert_mem_ne(a.build_id, b.build_id, 8);
    ck_assert_mem_eq(a.build_id, same.build_id, 8);
    ck_assert_uint_ne(a.base, same.base);
    ck_assert_mem_ne(a.build_id, named.build_id, 8);
}
END_TEST

START_TEST(vdso_is_a_module)
{
    tn_module_info m;
    uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (!vdso) /* some sandboxes have none */
        return;
    ck_assert_int_eq(tn_module_of((const void *)(vdso + 64), &m), 1);
    ck_assert_uint_eq(m.base, vdso);
    ck_assert_uint_gt(m.build_id_bytes, 0);
}
END_TEST

START_TEST(anonymous_code_is_no_module)
{
    tn_module_info m;
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    ck_assert_int_eq(tn_module_of(p, &m), 0);
    ck_assert_int_eq(tn_module_of(NULL, &m), 0);
}
END_TEST

START_TEST(names_are_exact)
{
    static const char *const cuda[] = { "libcuda.so", "libcuda.so.1", "/usr/lib/libcuda.so.580.65.06" };
    static const char *const cudart[] = { "libcudart.so", "/usr/local/cuda/lib64/libcudart.so.13", "libcudart.so.13.0.48", "libcudart-9335f6a2.so.12.1.105" };
    static const char *const nvml[] = { "libnvidia-ml.so", "/x/libnvidia-ml.so.1", "libnvidia-ml.so.580.65.06" };
    static const char *const none[] = { "", "libcuda", "libcuda.so1", "libcuda.so.", "libcuda.so.1.bak", "libcudadebugger.so.1", "libcuda.so/other.so", "xlibcuda.so", "libcudart_static.a",
                                        "libcudart_static.so", "libcudart", "libcudart-.so.12", "libcudart-ab.txt", "libcudnn.so.9", "libcublas.so.13", "libcurl.so.4", "libnvidia-ml", "libnvidia-mlx.so.1" };
    for (size_t i = 0; i < sizeof cuda / sizeof cuda[0]; i++)
        ck_assert_msg(tn_is_libcuda(cuda[i]) && !tn_is_libcudart(cuda[i]) && !tn_is_nvml(cuda[i]), "%s", cuda[i]);
    for (size_t i = 0; i < sizeof cudart / sizeof cudart[0]; i++)
        ck_assert_msg(tn_is_libcudart(cudart[i]) && !tn_is_libcuda(cudart[i]) && !tn_is_nvml(cudart[i]), "%s", cudart[i]);
    for (size_t i = 0; i < sizeof nvml / sizeof nvml[0]; i++)
        ck_assert_msg(tn_is_nvml(nvml[i]) && !tn_is_libcuda(nvml[i]) && !tn_is_libcudart(nvml[i]), "%s", nvml[i]);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        ck_assert_msg(!tn_is_libcuda(none[i]) && !tn_is_libcudart(none[i]) && !tn_is_nvml(none[i]), "%s", none[i]);
    ck_assert_str_eq(tn_basename("/a/b"), "b");
    ck_assert_str_eq(tn_basename("b"), "b");
    ck_assert_str_eq(tn_basename("a/"), "");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("modules");
    TCase *t = tcase_create("modules");
    suite_add_tcase(s, t);
    tcase_add_test(t, executable_is_found_by_its_code);
    tcase_add_test(t, library_has_the_loaders_base_and_its_own_build_id);
    tcase_add_test(t, without_build_id_name_and_code_count);
    tcase_add_test(t, vdso_is_a_module);
    tcase_add_test(t, anonymous_code_is_no_module);
    tcase_add_test(t, names_are_exact);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
