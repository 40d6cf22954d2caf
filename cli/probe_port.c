/* Whether a port listens, by /proc: nothing is connected to, so the program notices nothing. */
#include <stdio.h>
#include <string.h>

#include "cli/trigger.h"

#define LISTENING 10u /* the kernel's TCP_LISTEN */

/* Calls `see` for each socket that listens on the port in one table; stops where it answers 1. */
static int each_listener(const char *path, unsigned port, int (*see)(void *arg, unsigned long inode), void *arg)
{
    char line[512];
    int stop = 0;
    FILE *table = fopen(path, "re");
    while (!stop && table && fgets(line, sizeof(line), table)) {
        unsigned local, state;
        unsigned long inode;
        if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu", &local, &state, &inode) == 3 && local == port &&
            state == LISTENING)
            stop = see(arg, inode);
    }
    if (table)
        fclose(table);
    return stop;
}

static int each_table(unsigned port, pid_t pid, int (*see)(void *arg, unsigned long inode), void *arg)
{
    static const char *const tables[] = {"tcp", "tcp6"};
    char path[64];
    for (int i = 0; i < 2; i++) {
        if (pid)
            snprintf(path, sizeof(path), "/proc/%ld/net/%s", (long)pid, tables[i]);
        else
            snprintf(path, sizeof(path), "/proc/self/net/%s", tables[i]);
        if (each_listener(path, port, see, arg))
            return 1;
    }
    return 0;
}

static int note(void *arg, unsigned long inode)
{
    unsigned long *known = arg;
    for (int i = 0; i < TN_OLD_LISTENERS; i++)
        if (!known[i]) {
            known[i] = inode;
            return 0;
        }
    return 1;
}

static int is_new(void *arg, unsigned long inode)
{
    const unsigned long *known = arg;
    for (int i = 0; i < TN_OLD_LISTENERS; i++)
        if (known[i] == inode)
            return 0;
    return 1;
}

void tn_port_begin(tn_trigger *t)
{
    memset(t->old_listeners, 0, sizeof(t->old_listeners));
    each_table(t->port, 0, note, t->old_listeners);
}

int tn_port_listens(const tn_trigger *t, pid_t pid)
{
    return each_table(t->port, pid, is_new, (void *)t->old_listeners);
}
