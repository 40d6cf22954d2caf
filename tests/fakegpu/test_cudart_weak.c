/* A weak reference to a runtime name in a program that links no cudart.
 *
 * Natively it is NULL, and a library that is opened later does not change that;
 * with a library in front of the program that defines the name (here the fake
 * runtime itself, by LD_PRELOAD) it is that definition. The program runs itself
 * once more for the second case. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <check.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma weak cudaMalloc
#pragma weak cudaFree

/* Through a variable, or the compiler may decide that a function's address is never NULL. */
static void *volatile weak_malloc;

static int is_null(void)
{
    *(cudaError_t (*volatile *)(void **, size_t))(void *)&weak_malloc = cudaMalloc;
    return weak_malloc == NULL;
}

START_TEST(a_weak_reference_without_a_runtime_is_null)
{
    ck_assert(is_null());
}
END_TEST

START_TEST(opening_a_runtime_later_does_not_fill_it)
{
    ck_assert_ptr_nonnull(dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL));
    ck_assert(is_null());
}
END_TEST

START_TEST(a_preloaded_definition_fills_it)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        char self[4096];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

        if (n <= 0)
            _exit(20);
        self[n] = 0;
        setenv("LD_PRELOAD", "libcudart.so.13", 1);
        execl(self, self, "--is-filled", (char *)NULL);
        _exit(21);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite;
    TCase *all;
    SRunner *runner;
    int failed;

    (void)argv;
    if (argc > 1) {
        void *p;

        return !is_null() && cudaMalloc(&p, 64) == cudaSuccess && cudaFree(p) == cudaSuccess ? 0
                                                                                            : 1;
    }
    suite = suite_create("weak");
    all = tcase_create("weak");
    tcase_add_test(all, a_weak_reference_without_a_runtime_is_null);
    tcase_add_test(all, opening_a_runtime_later_does_not_fill_it);
    tcase_add_test(all, a_preloaded_definition_fills_it);
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
