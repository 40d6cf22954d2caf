/* What counts as a call, what as a declaration or a mention, and what as nothing. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/census/scan_text.h"

static const char *const wrappers[] = {"MyMalloc", "CHECK_ALLOC", "pool_alloc", NULL};

#define SAYS(text, wanted) ck_assert_str_eq(uses_of(text, sizeof(text) - 1, wrappers), wanted)

START_TEST(calls)
{
    SAYS("cudaMalloc(&p, 1);", "1 call cudaMalloc");
    SAYS("x = cudaMalloc (&p, 1) == 0 ? 1 : 0;", "1 call cudaMalloc");
    SAYS("cudaMalloc(&p, 1); cudaFree(p);", "1 call cudaMalloc; 1 call cudaFree");
    SAYS("cudaMalloc\n(\n&p,\n1);", "1(1-4) call cudaMalloc");
    SAYS("f(cudaMalloc(&a, 1), cudaMalloc(&b, 2));", "1 call cudaMalloc; 1 call cudaMalloc");
    SAYS("return cudaMalloc(&p, 1);", "1 call cudaMalloc");
    SAYS("if (x) cudaMalloc(&p, 1); else cudaFree(p);", "1 call cudaMalloc; 1 call cudaFree");
    SAYS("do cudaFree(p); while (0);", "1 call cudaFree");
    SAYS("if (ok && cudaMalloc(&p, 1) == 0) {}", "1 call cudaMalloc");
    SAYS("ok && cudaFree(p);", "1 call cudaFree");
    SAYS("x = n * MyMalloc(4);", "1 call MyMalloc");
    SAYS("x = (float *)MyMalloc(4);", "1 call MyMalloc");
    SAYS("case 1: cudaFree(p); label: cudaFree(p);", "1 call cudaFree; 1 call cudaFree");
    SAYS("auto *p = static_cast<T *>(MyMalloc(4));", "1 call MyMalloc");
    SAYS("int y = a < b ? 0 : c > MyMalloc(4);", "1 call MyMalloc");
    SAYS("if (a < 3 && b > MyMalloc(4)) {}", "1 call MyMalloc");
    SAYS("Foo::Foo() : p_(MyMalloc(4)) {}", "1 call MyMalloc");
    SAYS("T p{MyMalloc(4)};", "1 call MyMalloc");
    SAYS("auto f = [&] { return cudaMalloc(&p, 1); };", "1 call cudaMalloc");
    SAYS("cuMemAlloc_v2(&d, 1); cuMemAlloc(&d, 1); cudaFreeAsync_ptsz(p, s);", "1 call cuMemAlloc; 1 call cuMemAlloc; 1 call cudaFreeAsync");
    SAYS("cuArrayCreate(&a, &d);", "1 call cuArrayCreate");
    SAYS("xcudaMalloc(p); cudaMallocX(p); cuda_malloc(p); \xc3\xa9" "cudaMalloc(p);", "");
}
END_TEST

START_TEST(templates_and_qualified)
{
    SAYS("cudaMalloc<float>(&p, 1);", "1 call cudaMalloc");
    SAYS("cudaMalloc<std::vector<std::pair<int, T>>>(&p, 1);", "1 call cudaMalloc");
    SAYS("cudaMalloc<\n float\n>(&p, 1);", "1(1-3) call cudaMalloc");
    SAYS("cudaMalloc < 3;", "1 mention cudaMalloc");
    SAYS("::cudaMalloc(&p, 1); return ::cudaFree(p);", "1 call cudaMalloc; 1 call cudaFree");
    SAYS("ns::inner::cudaMalloc(&p, 1);", "1 call cudaMalloc");
    SAYS("x = ns::pool<T>::pool_alloc(1);", "1 call pool_alloc");
    SAYS("obj.cudaMalloc(&p, 1); driver->cuMemAlloc(&d, 1);", "1 call member cudaMalloc; 1 call member cuMemAlloc");
    SAYS("this->template pool_alloc<T>(1); a.b::pool_alloc(1);", "1 call member pool_alloc; 1 call member pool_alloc");
    SAYS("MyMalloc<<<1, 2>>>(p);", "1 call MyMalloc");
    SAYS("(cudaMalloc)(&p, 1); return (cudaFree)(p);", "1 call cudaMalloc; 1 call cudaFree");
}
END_TEST

START_TEST(declarations)
{
    SAYS("cudaError_t cudaMalloc(void **p, size_t n);", "1 declaration cudaMalloc");
    SAYS("extern __host__ cudaError_t CUDARTAPI cudaMalloc(void **p, size_t n);", "1 declaration cudaMalloc");
    SAYS("static inline void *MyMalloc(size_t n)\n{ void *p; cudaMalloc(&p, n); return p; }", "1 declaration MyMalloc; 2 call cudaMalloc");
    SAYS("struct block *pool_alloc(int n);", "1 declaration pool_alloc");
    SAYS("Block *pool_alloc(int n);", "1 declaration pool_alloc");
    SAYS("Block const &pool_alloc(int n);", "1 declaration pool_alloc");
    SAYS("std::vector<T> pool_alloc(int n);", "1 declaration pool_alloc");
    SAYS("std::unique_ptr<T[], D> ns::Pool::pool_alloc(int n) {}", "1 declaration pool_alloc");
    SAYS("ns::Block *ns::Pool::pool_alloc(int n) {}", "1 declaration pool_alloc");
    SAYS("[[nodiscard]] Block *pool_alloc(int);", "1 declaration pool_alloc");
    SAYS("extern \"C\" Block *pool_alloc(int);", "1 declaration pool_alloc");
    SAYS("template <typename T> T *pool_alloc(int);", "1 declaration pool_alloc");
    SAYS("class P { public: Block *pool_alloc(int); virtual void cudaFree(void *); };", "1 declaration pool_alloc; 1 declaration cudaFree");
    SAYS("auto pool_alloc(int) -> void *;", "1 declaration pool_alloc");
    SAYS("#define cudaMalloc(p, n) MyMalloc(p, n)\n", "1 declaration cudaMalloc; 1 call macro MyMalloc");
    SAYS("#define cudaMalloc hipMalloc\n", "1 declaration cudaMalloc");
}
END_TEST

START_TEST(mentions)
{
    SAYS("f = cudaMalloc; g = &cudaFree;", "1 mention cudaMalloc; 1 mention cudaFree");
    SAYS("cudaError_t (*cudaMalloc)(void **, size_t);", "1 mention cudaMalloc");
    SAYS("WRAP(cudaMalloc)(&p, 1); decltype(cudaFree)(x);", "1 mention cudaMalloc; 1 mention cudaFree");
    SAYS("using ns::cudaMalloc; hook(cudaFree, p);", "1 mention cudaMalloc; 1 mention cudaFree");
    SAYS("#ifdef cudaMalloc\n#undef cudaMalloc\n#endif\n#if defined(cudaFree)\n#endif\n",
         "1 mention cudaMalloc; 2 mention cudaMalloc; 4 mention cudaFree");
    SAYS("#define ALLOCATOR cudaMalloc\n(p);", "1 mention macro cudaMalloc");
    SAYS("cudaMalloc", "1 mention cudaMalloc");
    SAYS("#pragma weak cudaMalloc\n#error cudaMalloc(1)\n#include <cudaMalloc(p)>\n#include \"cudaFree(p)\"\n", "");
}
END_TEST

START_TEST(comments_and_literals)
{
    SAYS("// cudaMalloc(p)\n/* cudaMalloc(p)\ncudaMalloc(p) */ cudaFree(p);", "3 call cudaFree");
    SAYS("// cudaMalloc(p) \\\ncudaMalloc(p)\ncudaFree(p);", "3 call cudaFree");
    SAYS("// cudaMalloc(p) \\  \r\ncudaMalloc(p)\r\ncudaFree(p);", "3 call cudaFree");
    SAYS("/\\\n/ cudaMalloc(p)\n/\\\n* cudaMalloc(p) *\\\n/ cudaFree(p);", "5 call cudaFree");
    SAYS("cuda\\\nMalloc(p);", "1(1-2) call cudaMalloc");
    SAYS("\"cudaMalloc(p)\" \"\\\" cudaMalloc(p)\" L\"cudaMalloc(p)\" u8\"cudaMalloc(\" cudaFree(p);", "1 call cudaFree");
    SAYS("\"a\\\ncudaMalloc(p)\" cudaFree(p);", "2 call cudaFree");
    SAYS("R\"(cudaMalloc(p) \" \\)\" cudaFree(p);", "1 call cudaFree");
    SAYS("u8R\"xy(cudaMalloc(p))\"\n)x\" )xy\" cudaFree(p);", "2 call cudaFree");
    SAYS("R\"(a\\\n//)\" cudaFree(p);", "2 call cudaFree");
    SAYS("'\"'; cudaMalloc(p); '\\''; cudaFree(p); '\\\\';", "1 call cudaMalloc; 1 call cudaFree");
    SAYS("x = 1'000'000; cudaMalloc(p); y = 0x1'f; cudaFree(p);", "1 call cudaMalloc; 1 call cudaFree");
    SAYS("\"not closed\ncudaMalloc(p); it's\ncudaFree(p);", "2 call cudaMalloc; 3 call cudaFree");
    SAYS("x = \"a\"_cudaFree(p); y = 1_cudaFree(p); \"a\"cudaFree(p);", "1 call cudaFree");
    SAYS("a = b / c; cudaMalloc(p); d = e /\n f; /**/ cudaFree(p); /* //", "1 call cudaMalloc; 2 call cudaFree");
    SAYS("#include <sys/*.h>\ncudaMalloc(p); /* */", "2 call cudaMalloc");
}
END_TEST

START_TEST(dead_code)
{
    SAYS("#if 0\ncudaMalloc(p);\n#else\ncudaFree(p);\n#endif\ncudaFree(p);", "4 call cudaFree; 6 call cudaFree");
    SAYS("#if 1\ncudaFree(p);\n#elif X\ncudaMalloc(p);\n#else\ncudaMalloc(p);\n#endif\n", "2 call cudaFree");
    SAYS("#if 0\n#if X\ncudaMalloc(p);\n#else\ncudaMalloc(p);\n#endif\n#elif X\ncudaFree(p);\n#endif\n", "8 call cudaFree");
    SAYS("#if X\ncudaMalloc(p);\n#else\ncudaFree(p);\n#endif\n", "2 call cudaMalloc; 4 call cudaFree");
    SAYS("#if (false)\ncudaMalloc(p);\n#endif\n#if 0 || X\ncudaFree(p);\n#endif\n", "5 call cudaFree");
    SAYS("#if 0 // it's \"\ndon't /* \ncudaMalloc(p);\n#endif\ncudaFree(p);", "5 call cudaFree");
    SAYS("#if 0\n#define M cudaMalloc(p)\n#endif\n%:define x\n  #  if 0x0u\ncudaMalloc(p);\n#endif\n", "");
    SAYS("#else\n#endif\n#endif\ncudaFree(p);", "4 call cudaFree");
}
END_TEST

START_TEST(macros)
{
    SAYS("#define CHECK_ALLOC(p, n) check(cudaMalloc(p, n))\nCHECK_ALLOC(&p,\n 1);",
         "1 declaration CHECK_ALLOC; 1 call macro cudaMalloc; 2(2-3) call CHECK_ALLOC");
    SAYS("#define M(p) do { \\\n cudaMalloc(p, 1); \\\n } while (0)\ncudaFree(p);", "2 call macro cudaMalloc; 4 call cudaFree");
    SAYS("f(\n#define M ) cudaMalloc(p)\n cudaFree(p));", "2 call macro cudaMalloc; 3(1-3) call cudaFree");
    SAYS("#define M(cudaMalloc) g(1)\n#define N (cudaFree(p))\n", "2 call macro cudaFree");
    SAYS("#define M(x) #x cuda##Malloc(p)\n", "");
}
END_TEST

START_TEST(extents)
{
    SAYS("CHECK(\n  cudaMalloc(&p,\n    1));", "2(1-3) call cudaMalloc");
    SAYS("CHECK(a,\n  [&] {\n  cudaMalloc(&p,\n 1);\n  cudaFree(p); });", "3(3-4) call cudaMalloc; 5 call cudaFree");
    SAYS("CHECK(f(\n cudaMalloc(&a),\n cudaMalloc(&b))\n);", "2(1-4) call cudaMalloc; 3(1-4) call cudaMalloc");
    SAYS("if (a(\n#ifdef X\n cudaMalloc(p, 1)) {\n#else\n cudaMalloc(p, 2)) {\n#endif\n}", "3(1-3) call cudaMalloc; 5 call cudaMalloc");
}
END_TEST

START_TEST(odd_bytes)
{
    SAYS("\xef\xbb\xbf" "cudaMalloc(p);", "1 call cudaMalloc");
    SAYS("a;\r\nb;\rcudaMalloc(p);\n", "3 call cudaMalloc");
    SAYS("\0\0cudaMalloc\0(p);\xff\xfe; cudaFree(p);", "1 call cudaMalloc; 1 call cudaFree");
    SAYS("\xff\xfe" "c\0u\0", "unread: it is UTF-16 text, which is not read");
    SAYS("}}})))cudaMalloc(p);((({{{cudaFree(p)", "1 call cudaMalloc; 1 call cudaFree");
    SAYS("\\", "");
    SAYS("cudaMalloc\\", "1 mention cudaMalloc");
    SAYS("R\"(cudaMalloc(p)", "");
    SAYS("R\"12345678901234567(cudaMalloc(p)\" cudaFree(p);", "1 call cudaFree");
}
END_TEST

/* A token may lie across the end of the buffer wherever that is. */
START_TEST(buffer_ends)
{
    static const char *const pieces[] = {"cudaMalloc(p);", "R\"ab(x)a)ab\"", "/*x*/", "//x\\\ny\n", "\"a\\\"b\"", "1'0", "\\   \r\n", "u8R\"(\")\""};
    enum { BUFFER = 256 * 1024 };
    char *text = malloc(BUFFER + 256);
    for (size_t piece = 0; piece < sizeof(pieces) / sizeof(pieces[0]); piece++)
        for (int shift = -24; shift <= 2; shift++) {
            size_t n = (size_t)(BUFFER + shift), length = strlen(pieces[piece]);
            memset(text, ' ', n);
            memcpy(text + n, pieces[piece], length);
            memcpy(text + n + length, "\ncudaFree(p);", 14);
            const char *said = uses_of(text, n + length + 13, wrappers);
            const char *free_at = strstr(said, "call cudaFree");
            ck_assert_msg(free_at != NULL, "piece %zu at %d: %s", piece, shift, said);
            ck_assert_msg((strstr(said, "cudaMalloc") != NULL) == (piece == 0), "piece %zu at %d: %s", piece, shift, said);
        }
    free(text);
}
END_TEST

START_TEST(deep)
{
    size_t n = 3u << 20;
    char *text = malloc(n);
    memset(text, '(', n);
    ck_assert_str_eq(uses_of(text, n, NULL), "unread: its brackets or conditionals are nested too deep");
    for (size_t i = 0; i + 6 <= n; i += 6)
        memcpy(text + i, "#if X\n", 6);
    ck_assert_str_eq(uses_of(text, n - n % 6, NULL), "");
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("scan");
    TCase *t = tcase_create("scan");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, calls);
    tcase_add_test(t, templates_and_qualified);
    tcase_add_test(t, declarations);
    tcase_add_test(t, mentions);
    tcase_add_test(t, comments_and_literals);
    tcase_add_test(t, dead_code);
    tcase_add_test(t, macros);
    tcase_add_test(t, extents);
    tcase_add_test(t, odd_bytes);
    tcase_add_test(t, buffer_ends);
    tcase_add_test(t, deep);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
