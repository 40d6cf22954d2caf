/* Names as a person reads them, and frames that belong to a layer. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_fold.h"
#include "report/report_owner.h"
#include "report/report_short_name.h"

START_TEST(short_names)
{
    static const char *const names[][2] = {
        {"main", "main"},
        {"main.cold", "main"},
        {"step.constprop.0", "step"},
        {"std::vector<int> ns::make<float>(int, char const*) const", "ns::make"},
        {"ns::C::operator()(int) const", "ns::C::operator()"},
        {"bool operator< <int>(A<int> const&, B)", "operator<"},
        {"std::ostream& operator<<(std::ostream&, X)", "operator<<"},
        {"operator new(unsigned long)", "operator new"},
        {"x::operator new[](unsigned long)", "x::operator new[]"},
        {"ns::X::operator std::string<char>() const", "ns::X::operator std::string"},
        {"(anonymous namespace)::f(int)", "(anonymous)::f"},
        {"foo(int)::{lambda(float)#1}::operator()(float) const", "foo::{lambda#1}::operator()"},
        {"void thrust::detail::copy<a, b>(c) [clone .constprop.0]", "thrust::detail::copy"},
        {"<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend", "<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend"},
        {"decltype(auto) foo<int>(int)", "foo"},
        {"a::b<&(c::operator-><int>())>::d()", "a::b::d"},
        {"A::~A()", "A::~A"},
        {"std::function<void (int)>::operator()(int) const", "std::function::operator()"},
        {"unsigned long long a::b<(c)3>(int (*)(int))", "a::b"},
        /* What cannot be taken apart stays whole. */
        {"broken<", "broken<"}, {"f(int", "f(int"}, {"", ""}, {"()", "()"}, {"{lambda(", "{lambda("}, {"operator", "operator"}, {" ", " "},
    };
    char out[256];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ck_assert_str_eq(tn_short_name(names[i][0], out, sizeof(out)), names[i][1]);
    ck_assert_str_eq(tn_short_name("abcdef(int)", out, 4), "abc");
    ck_assert_str_eq(tn_short_name("abcdef", out, 1), "");
}
END_TEST

/* Any text at all: it ends, in bounds. */
START_TEST(short_names_of_anything)
{
    static const char *const pieces[] = {"<", ">", "(", ")", "{", "}", "operator", " ", "::", "a", "->", "<<", "lambda", "#1", "~", ",", "(anonymous namespace)", "new"};
    char text[400], out[64];
    srand(11);
    for (unsigned i = 0; i < 20000; i++) {
        text[0] = 0;
        for (unsigned k = (unsigned)rand() % 16; k > 0; k--)
            strcat(text, pieces[(unsigned)rand() % (sizeof(pieces) / sizeof(pieces[0]))]);
        memset(out, 'x', sizeof(out));
        tn_short_name(text, out, 1 + (unsigned)rand() % 63);
        ck_assert_ptr_nonnull(memchr(out, 0, sizeof(out)));
        ck_assert_uint_le(strlen(out), strlen(text));
    }
}
END_TEST

START_TEST(layers)
{
    static const struct { const char *module, *function, *layer; } cases[] = {
        {"engine", "load_weights", NULL},
        {"libtorch_cuda.so", "at::native::empty_cuda", NULL},
        {"libc10_cuda.so", "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc", "PyTorch's allocator"},
        {"libtorch_cpu.so", "at::_ops::empty_memory_format::call", "PyTorch's dispatcher"},
        {"engine", "std::vector::push_back", "the C++ standard library"},
        {"engine", "operator new", "the C++ standard library"},
        {"libstdc++.so.6", NULL, "the C++ standard library"},
        {"libc.so.6", "__libc_start_main", "the C library"},
        {"libcublas.so.13", NULL, NULL},
        {"python3.12", "main", "CPython"},
        {"libpython3.11.so.1.0", NULL, "CPython"},
        {"app_with_python_inside", "_PyEval_EvalFrameDefault", "CPython"},
        {"python_engine", "main", NULL},
        {"_ctypes.cpython-312-x86_64-linux-gnu.so", NULL, "ctypes"},
        {"memory.cpython-312.so", "__pyx_pw_4cupy_4cuda_6memory_6malloc", "CuPy's memory pool"},
        {"memory.cpython-312.so", "__pyx_pw_4cupy_4core_sum", NULL},
        {"engine", "thrust::detail::copy", "Thrust and CUB"},
        {"xla_extension.so", "tsl::GpuCudaMallocAsyncAllocator::AllocateRaw", "XLA's allocator"},
        {"engine", "standard::thing", NULL},
        {NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *layer = tn_fold_layer(cases[i].module, cases[i].function);
        ck_assert_msg(layer == cases[i].layer || (layer && cases[i].layer && strcmp(layer, cases[i].layer) == 0), "%s %s: %s",
                      cases[i].module ? cases[i].module : "-", cases[i].function ? cases[i].function : "-", layer ? layer : "none");
    }
}
END_TEST

START_TEST(passed_modules)
{
    static const char *const passed[] = {"/usr/lib/libcuda.so.1", "libcuda.so.580.159.04", "/x/libcudart.so.13", "libnvidia-ml.so.1",
                                         "/opt/libtenure.so", "libffi.so.8", "_ctypes.cpython-312.so"};
    static const char *const owners[] = {"/usr/lib/libcublas.so.13", "libcudnn.so.9", "libtorch_cuda.so", "/opt/engine", "libcuda_helper.so", "libcudaq.so"};
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
        ck_assert_msg(tn_owner_is_passed(passed[i]), "%s", passed[i]);
    for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
        ck_assert_msg(!tn_owner_is_passed(owners[i]), "%s", owners[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fold");
    TCase *tc = tcase_create("fold");
    tcase_add_test(tc, short_names);
    tcase_add_test(tc, short_names_of_anything);
    tcase_add_test(tc, layers);
    tcase_add_test(tc, passed_modules);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
