/* The card's own accounting, written as JSON when the process ends: FAKEGPU_STATS names the file. */
#define _GNU_SOURCE
#include "fake.h"
#include "fakegpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pid_t loader; /* process that loaded the library; a forked child writes to a file of its own */

__attribute__((constructor)) static void remember_loader(void)
{
    loader = getpid();
}

/* FILE; FILE.<pid> in a forked child; "%p" in the name becomes the process id. */
static bool file_name(char *out, size_t n)
{
    const char *name = getenv("FAKEGPU_STATS"), *mark;
    if (name == NULL || *name == '\0')
        return false;
    if ((mark = strstr(name, "%p")) != NULL)
        snprintf(out, n, "%.*s%ld%s", (int)(mark - name), name, (long)getpid(), mark + 2);
    else if (getpid() != loader)
        snprintf(out, n, "%s.%ld", name, (long)getpid());
    else
        snprintf(out, n, "%s", name);
    return true;
}

static void fields(FILE *f, const struct fk_stats *s)
{
    fprintf(f,
            "\"live_requested_bytes\":%" PRIu64 ",\"peak_requested_bytes\":%" PRIu64 ",\"live_backed_bytes\":%" PRIu64
            ",\"peak_backed_bytes\":%" PRIu64 ",\"allocs\":%" PRIu64 ",\"frees\":%" PRIu64,
            s->live_req, s->peak_req, s->live_backed, s->peak_backed, s->allocs, s->frees);
}

void fk_stats_write(void)
{
    char name[4096];
    if (!file_name(name, sizeof name))
        return;
    FILE *f = fopen(name, "we");
    if (f == NULL)
        return;
    fprintf(f, "{\"pid\":%ld,\"devices\":[", (long)getpid());
    for (int i = 0; i < fk_cfg.devices; i++) {
        struct fk_dev *d = &fk_devs[i];
        fprintf(f, "%s{\"ordinal\":%d,\"total_bytes\":%zu,\"used_bytes\":%zu,\"graph_bytes\":%zu,", i == 0 ? "" : ",", i,
                d->capacity, d->used, d->graph_reserved);
        fields(f, &d->st);
        fprintf(f, "}");
    }
    fprintf(f, "],\"host\":{");
    fields(f, &fk_host_stats);
    fprintf(f, ",\"registered\":{");
    fields(f, &fk_registered_stats);
    fprintf(f, "}},\"calls\":{");
    bool first = true;
    for (struct fk_api *const *a = __start_fk_apis; a < __stop_fk_apis; a++) {
        if ((*a)->calls == 0)
            continue;
        fprintf(f, "%s\"%s\":%" PRIu64, first ? "" : ",", (*a)->name, (*a)->calls);
        first = false;
    }
    fprintf(f, "}}\n");
    fclose(f);
}

/* For the other stand-ins of this process; fakegpu.h is the contract. */
__attribute__((visibility("default"))) unsigned long long fakegpu_device_others(int dev)
{
    pthread_mutex_lock(&fk_lock);
    unsigned long long others = dev >= 0 && dev < FK_MAX_DEVICES ? fk_shared_others(dev) : 0;
    pthread_mutex_unlock(&fk_lock);
    return others;
}

__attribute__((visibility("default"))) int fakegpu_device_used(int dev, unsigned long long *used, unsigned long long *total)
{
    pthread_mutex_lock(&fk_lock);
    fk_config_load();
    bool ok = dev >= 0 && dev < fk_cfg.devices;
    if (ok && used != NULL)
        *used = fk_devs[dev].used;
    if (ok && total != NULL)
        *total = fk_cfg.mem;
    pthread_mutex_unlock(&fk_lock);
    return ok ? 0 : -1;
}
