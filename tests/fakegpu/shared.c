/*
 * One card for several processes: those that name the same file in FAKEGPU_SHARED share its capacity. The file holds a row a process, what it has
 * charged on each device. A process holds a lock on the byte of its row, which the kernel drops when it ends, whatever way; a further byte keeps
 * two from taking the last memory at once. Called with fk_lock held, except in the library's own look-ups by NVML.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROWS 256
#define GATE ROWS /* the byte */

struct row {
    _Atomic pid_t pid;
    _Atomic uint64_t used[FK_MAX_DEVICES];
};

static struct row *rows;
static int file = -1, mine = -1;
static bool tried;

/* Whether another process holds the byte; `command` F_SETLK or F_SETLKW takes or drops it. */
static bool lock_byte(int command, short type, off_t at)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    if (fcntl(file, command, &l) != 0)
        return false;
    return command != F_GETLK || l.l_type != F_UNLCK;
}

static bool is_shared(void)
{
    const char *name = getenv("FAKEGPU_SHARED");
    if (tried)
        return rows != NULL;
    tried = true;
    if (name == NULL || *name == '\0')
        return false;
    file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof *rows * ROWS) != 0)
        return false;
    void *at = mmap(NULL, sizeof *rows * ROWS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    rows = at == MAP_FAILED ? NULL : at;
    return rows != NULL;
}

void fk_shared_enter(void)
{
    if (is_shared())
        (void)lock_byte(F_SETLKW, F_WRLCK, GATE);
}

void fk_shared_leave(void)
{
    if (is_shared())
        (void)lock_byte(F_SETLK, F_UNLCK, GATE);
}

void fk_shared_publish(const struct fk_dev *d)
{
    if (!is_shared())
        return;
    for (int i = 0; i < ROWS && mine < 0; i++) {
        if (!lock_byte(F_SETLK, F_WRLCK, i))
            continue; /* another's */
        for (int k = 0; k < FK_MAX_DEVICES; k++)
            atomic_store(&rows[i].used[k], 0);
        atomic_store(&rows[i].pid, getpid());
        mine = i;
    }
    if (mine >= 0)
        atomic_store(&rows[mine].used[d->ordinal], d->used);
}

size_t fk_shared_others(int ordinal)
{
    size_t sum = 0;
    if (!is_shared())
        return 0;
    for (int i = 0; i < ROWS; i++)
        if (i != mine && atomic_load(&rows[i].used[ordinal]) != 0 && lock_byte(F_GETLK, F_WRLCK, i))
            sum += atomic_load(&rows[i].used[ordinal]);
    return sum;
}
