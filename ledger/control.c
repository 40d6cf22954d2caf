/* The control block in the recorded process. */
#define _GNU_SOURCE
#include "ledger/control.h"

#include <errno.h>
#include <string.h>

#include "ledger/journal_internal.h"
#include "ledger/tn_sys.h"

#define PATH_BYTES 4096u

static int block_path(const char *journal_path, char out[PATH_BYTES])
{
    size_t length = strlen(journal_path), suffix = strlen(TN_JOURNAL_SUFFIX);
    if (length <= suffix || length >= PATH_BYTES || strcmp(journal_path + length - suffix, TN_JOURNAL_SUFFIX) != 0)
        return 0;
    memcpy(out, journal_path, length - suffix);
    memcpy(out + length - suffix, TN_CONTROL_SUFFIX, sizeof TN_CONTROL_SUFFIX);
    return 1;
}

/* As the journal itself: preallocated before it is mapped (a sparse mapping on a full disk kills at the first store), below the limit on
 * file sizes (beyond it the kernel sends SIGXFSZ), and not mapped in forked children, which must not take their parent's commands. */
static tn_control *map_block(int fd)
{
    const tn_journal_os *os = &tn_journal_real_os;
    if (os->file_size_limit() < (int64_t)TN_CONTROL_BYTES || os->preallocate(fd, 0, TN_CONTROL_BYTES) != 0)
        return NULL;
    return os->map(fd, 0, TN_CONTROL_BYTES);
}

tn_control *tn_control_make(const tn_journal *journal)
{
    static char path[PATH_BYTES]; /* made once in a process, perhaps on a thread with a small stack */
    if (journal == NULL || journal->header == NULL || !block_path(journal->path, path))
        return NULL;
    int saved = errno;
    tn_control *c = NULL;
    int fd = tn_journal_real_os.open_exclusive(path);
    if (fd >= 0) {
        c = map_block(fd);
        if (c == NULL)
            (void)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
        tn_sys_close(fd);
    }
    if (c != NULL) {
        uint64_t magic;
        c->version = TN_CONTROL_VERSION;
        c->bytes = TN_CONTROL_BYTES;
        c->pid = (uint32_t)syscall(SYS_getpid);
        c->slots = TN_CONTROL_SLOTS;
        c->random_id = journal->header->random_id;
        memcpy(&magic, TN_CONTROL_MAGIC, sizeof magic);
        __atomic_store_n((uint64_t *)(void *)c->magic, magic, __ATOMIC_RELEASE);
    }
    errno = saved;
    return c;
}

int tn_control_next(tn_control *c, tn_control_slot *out)
{
    uint64_t posted = __atomic_load_n(&c->posted, __ATOMIC_ACQUIRE), taken = __atomic_load_n(&c->taken, __ATOMIC_RELAXED);
    if (posted == taken)
        return 0;
    /* No writer of ours puts in more than there is room for. What cannot be is passed over. */
    if (posted - taken > TN_CONTROL_SLOTS)
        taken = posted - TN_CONTROL_SLOTS;
    memcpy(out, &c->slot[taken % TN_CONTROL_SLOTS], sizeof *out);
    out->text[sizeof out->text - 1] = '\0';
    __atomic_store_n(&c->taken, taken + 1, __ATOMIC_RELEASE);
    return 1;
}
