/* Commands for a running process, by its control block. */
#define _GNU_SOURCE
#include "ledger/control_client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "ledger/journal.h"

tn_error tn_control_open(const char *path, int writable, tn_control_client *out)
{
    struct stat st;
    *out = (tn_control_client){.fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), .writable = writable};
    if (out->fd < 0)
        return TN_E_OPEN;
    tn_error error = TN_OK;
    if (fstat(out->fd, &st) != 0 || !S_ISREG(st.st_mode))
        error = TN_E_OPEN;
    else if (st.st_size < (off_t)TN_CONTROL_BYTES)
        error = TN_E_TRUNCATED;
    if (error == TN_OK) {
        out->dev = st.st_dev;
        out->ino = st.st_ino;
        void *p = mmap(NULL, TN_CONTROL_BYTES, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, out->fd, 0);
        if (p == MAP_FAILED)
            error = TN_E_NOMEM;
        else
            out->block = p;
    }
    if (error == TN_OK && memcmp(out->block->magic, TN_CONTROL_MAGIC, sizeof out->block->magic) != 0)
        error = TN_E_FORMAT;
    else if (error == TN_OK && (out->block->version != TN_CONTROL_VERSION || out->block->slots != TN_CONTROL_SLOTS))
        error = TN_E_VERSION;
    if (error != TN_OK)
        tn_control_close(out);
    return error;
}

void tn_control_close(tn_control_client *c)
{
    if (c->block)
        munmap(c->block, TN_CONTROL_BYTES);
    if (c->fd >= 0)
        close(c->fd);
    *c = (tn_control_client){.fd = -1};
}

int tn_control_alive(const tn_control_client *c)
{
    char path[64], line[4400];
    int found = 0;
    snprintf(path, sizeof path, "/proc/%u/maps", c->block->pid);
    FILE *maps = fopen(path, "re");
    if (!maps) /* not ours to read: its number has to do */
        return errno != ENOENT && kill((pid_t)c->block->pid, 0) == 0;
    while (!found && fgets(line, sizeof line, maps)) {
        unsigned major_number, minor_number;
        unsigned long inode;
        if (sscanf(line, "%*x-%*x %*4s %*x %x:%x %lu", &major_number, &minor_number, &inode) == 3 && inode == c->ino)
            found = strstr(line, TN_CONTROL_SUFFIX) != NULL || makedev(major_number, minor_number) == c->dev;
    }
    fclose(maps);
    return found;
}

uint64_t tn_control_stamp(void)
{
    return tn_stamp();
}

static tn_error locked(int fd)
{
    while (flock(fd, LOCK_EX) != 0)
        if (errno != EINTR)
            return TN_E_IO;
    return TN_OK;
}

tn_error tn_control_post(tn_control_client *c, uint32_t kind, uint32_t value, uint32_t cause, uint64_t tsc, const char *text)
{
    tn_control *b = c->block;
    if (!b || !c->writable)
        return TN_E_ARGUMENT;
    tn_error error = locked(c->fd);
    if (error != TN_OK)
        return error;
    uint64_t posted = b->posted;
    if (posted - __atomic_load_n(&b->taken, __ATOMIC_ACQUIRE) >= TN_CONTROL_SLOTS) {
        b->lost++;
        error = TN_E_NOSPACE;
    } else {
        tn_control_slot *s = &b->slot[posted % TN_CONTROL_SLOTS];
        size_t length = text ? strlen(text) : 0;
        memset(s, 0, sizeof *s);
        s->tsc = tsc;
        s->kind = kind;
        s->value = value;
        s->cause = cause;
        if (length)
            memcpy(s->text, text, length < sizeof s->text ? length : sizeof s->text - 1);
        __atomic_store_n(&b->posted, posted + 1, __ATOMIC_RELEASE);
        __atomic_fetch_or(&b->attention, TN_ATTENTION_COMMAND, __ATOMIC_RELEASE);
    }
    flock(c->fd, LOCK_UN);
    return error;
}

int tn_control_untaken(const tn_control_client *c, uint64_t i, tn_control_slot *out)
{
    uint64_t posted = __atomic_load_n(&c->block->posted, __ATOMIC_ACQUIRE), taken = __atomic_load_n(&c->block->taken, __ATOMIC_ACQUIRE);
    if (posted < taken || posted - taken > TN_CONTROL_SLOTS || i >= posted - taken)
        return 0;
    memcpy(out, &c->block->slot[(taken + i) % TN_CONTROL_SLOTS], sizeof *out);
    out->text[sizeof out->text - 1] = 0;
    return 1;
}

uint32_t tn_control_phase_to_come(const tn_control_client *c)
{
    uint32_t phase = __atomic_load_n(&c->block->phase, __ATOMIC_ACQUIRE);
    tn_control_slot s;
    for (uint64_t i = 0; tn_control_untaken(c, i, &s); i++)
        if (s.kind == TN_COMMAND_PHASE)
            phase = s.value;
    return phase;
}
