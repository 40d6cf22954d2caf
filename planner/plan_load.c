/* The file as it stands in memory, read to its end: a pipe has no size of its own. */
#define _GNU_SOURCE
#include "planner/plan_load.h"

#include <errno.h>
#include <stdio.h>

#include "ledger/tn_sys.h"

static int fill(int fd, const tn_metadata *hook, char **text, size_t *room, size_t *bytes)
{
    for (;;) {
        if (*bytes == *room) {
            size_t wanted = *room ? *room * 2 : 65536;
            char *grown = hook->resize(hook->self, *text, *room, wanted);
            if (!grown)
                return ENOMEM;
            *text = grown;
            *room = wanted;
        }
        int64_t n = tn_sys_read(fd, *text + *bytes, *room - *bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : 0;
        *bytes += (size_t)n;
        if (*bytes > TN_PLAN_FILE_MAX)
            return EFBIG;
    }
}

/* strerror may translate, and to translate take memory. */
static const char *phrase(int code)
{
    switch (code) {
    case ENOMEM: return "it does not fit into memory";
    case ENOENT: return "there is no such file";
    case EACCES: return "it may not be read";
    case EISDIR: return "it is a folder";
    case EFBIG: return "it is too large for a plan";
    default: return "it cannot be read";
    }
}

tn_error tn_plan_load(const char *path, unsigned flags, const tn_metadata *hook, tn_plan **out, char message[TN_PLAN_MESSAGE])
{
    char *text = NULL;
    size_t room = 0, bytes = 0;
    tn_error error;
    int fd = tn_sys_open(path, O_RDONLY | O_CLOEXEC, 0), code = fd < 0 ? errno : 0;
    *out = NULL;
    if (fd >= 0) {
        code = fill(fd, hook, &text, &room, &bytes);
        (void)tn_sys_close(fd);
    }
    if (code == 0) {
        error = tn_plan_load_text(text, bytes, path, flags, hook, out, message);
    } else {
        error = code == ENOMEM ? TN_E_NOMEM : TN_E_OPEN;
        snprintf(message, TN_PLAN_MESSAGE, "%s: %s", path, phrase(code));
    }
    if (text)
        (void)hook->resize(hook->self, text, room, 0);
    return error;
}
