// A C++ host that throws through our hooks while our libunwind is in the process: the exceptions must stay with libgcc_s, whose
// _Unwind_RaiseException libunwind also exports.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>

extern "C" {
struct tn_journal;
int tn_callsite_start(tn_journal *journal, const char *own_dir);
std::uint32_t tn_callsite(const void *caller, const void *frame, std::uint16_t outer_api);
tn_journal *mock_journal(void);
}

static int failed;

static void check(bool ok, const char *name)
{
    std::printf("%s %s\n", ok ? "ok" : "not ok", name);
    failed |= !ok;
}

static __attribute__((noinline)) std::uint32_t hook()
{
    std::uint32_t site = tn_callsite(__builtin_return_address(0), __builtin_frame_address(0), 1);
    __asm__ __volatile__("" ::: "memory");
    return site;
}

static __attribute__((noinline)) int thrower(int depth)
{
    if (depth > 0)
        return thrower(depth - 1) + 1;
    if (hook() == 0)
        return 0;
    throw std::runtime_error("thrown");
}

static bool is_in_libgcc(const char *symbol)
{
    Dl_info info;
    void *p = dlsym(RTLD_DEFAULT, symbol);
    return p && dladdr(p, &info) && std::strstr(info.dli_fname, "libgcc_s") != nullptr;
}

int main()
{
    int caught = 0;
    check(tn_callsite_start(mock_journal(), nullptr) == 0, "libunwind_is_open");
    check(dlopen("libunwind.so.8", RTLD_NOW | RTLD_NOLOAD) != nullptr, "libunwind_is_in_the_process");
    for (int i = 0; i < 1000; i++) {
        try {
            thrower(i % 20);
        } catch (const std::runtime_error &e) {
            caught += std::strcmp(e.what(), "thrown") == 0;
        }
    }
    check(caught == 1000, "a_thousand_throws_are_caught");
    check(is_in_libgcc("_Unwind_RaiseException"), "raise_is_libgccs");
    check(is_in_libgcc("_Unwind_Resume"), "resume_is_libgccs");
    return failed;
}
