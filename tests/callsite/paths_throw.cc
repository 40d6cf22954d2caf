// Steps of a path that throw and catch. See paths.h: a hook is left by an exception from below it, frames with destructors are on the way, and the path
// goes on in a handler.
#include <cstdint>

#include "tests/callsite/paths.h"

namespace {

struct thrown {
    std::uint32_t site;
};

struct counts {
    path *p;
    explicit counts(path *of) : p(of) {}
    ~counts() { p->left -= 0; }
};

__attribute__((noinline)) std::uint32_t catches(path *p)
{
    p->throws++;
    try {
        std::uint32_t r = path_next(p);
        p->throws--;
        return r;
    } catch (const thrown &t) {
        p->throws--;
        p->kinds |= PATH_THROWN;
        return t.site;
    }
}

// The path goes on inside the handler, with an exception in flight.
__attribute__((noinline)) std::uint32_t goes_on_in_handler(path *p)
{
    try {
        throw thrown{ 1 };
    } catch (const thrown &) {
        p->kinds |= PATH_CAUGHT;
        std::uint32_t r = path_next(p);
        __asm__ __volatile__("" ::: "memory");
        return r;
    }
}

__attribute__((noinline)) std::uint32_t throws(path *p)
{
    std::uint32_t r = path_next(p);
    if (p->throws > 0)
        throw thrown{ r };
    return r;
}

__attribute__((noinline)) std::uint32_t with_destructor(path *p)
{
    counts c(p);
    std::uint32_t r = path_next(p);
    __asm__ __volatile__("" ::: "memory");
    return r;
}

} // namespace

extern "C" const path_step steps_throw[4] = { catches, goes_on_in_handler, throws, with_destructor };
