/* From a process id or a run folder to control blocks. */
#define _GNU_SOURCE
#include "cli/control_find.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int ends_with(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n > m && strcmp(text + n - m, suffix) == 0;
}

static int add(tn_control_set *set, tn_control_client client)
{
    tn_control_client *grown = realloc(set->each, (set->count + 1) * sizeof(*grown));
    if (!grown) {
        tn_control_close(&client);
        return -1;
    }
    set->each = grown;
    grown[set->count++] = client;
    return 0;
}

int tn_control_find_run(const char *folder, tn_control_set *out, char message[TN_CONTROL_MESSAGE])
{
    *out = (tn_control_set){0};
    DIR *dir = opendir(folder);
    if (!dir) {
        snprintf(message, TN_CONTROL_MESSAGE, "%.4000s cannot be read: %s", folder, strerror(errno));
        return -1;
    }
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        char path[PATH_MAX + 300];
        tn_control_client client;
        if (!ends_with(entry->d_name, TN_CONTROL_SUFFIX))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (tn_control_open(path, 1, &client) != TN_OK) {
            out->unreadable++;
        } else if (!tn_control_alive(&client)) {
            out->gone++;
            tn_control_close(&client);
        } else if (add(out, client) != 0) {
            break;
        }
    }
    closedir(dir);
    return 0;
}

int tn_control_refresh(const char *folder, tn_control_set *set)
{
    struct stat st;
    char message[TN_CONTROL_MESSAGE];
    if (stat(folder, &st) != 0)
        return -1;
    /* A file that came within the clock's own step may have left no trace in the time: what is young is read again. */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int young = now.tv_sec - st.st_mtim.tv_sec <= 1;
    if (!set->each || st.st_mtim.tv_sec != set->changed.tv_sec || st.st_mtim.tv_nsec != set->changed.tv_nsec || (young && set->count == 0)) {
        tn_control_set_close(set);
        if (tn_control_find_run(folder, set, message) != 0)
            return -1;
        set->changed = st.st_mtim;
    }
    for (size_t i = 0; i < set->count;) {
        if (kill((pid_t)set->each[i].block->pid, 0) == 0 || errno != ESRCH) {
            i++;
            continue;
        }
        tn_control_close(&set->each[i]);
        set->each[i] = set->each[--set->count];
        set->gone++;
    }
    return 0;
}

int tn_control_find_pid(long pid, tn_control_set *out, char message[TN_CONTROL_MESSAGE])
{
    char path[64], *line = NULL, *file = NULL;
    size_t room = 0;
    *out = (tn_control_set){0};
    snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps) {
        snprintf(message, TN_CONTROL_MESSAGE, errno == ENOENT ? "there is no process %ld" : "process %ld cannot be looked at: %s", pid, strerror(errno));
        return -1;
    }
    while (!file && getline(&line, &room, maps) > 0) {
        line[strcspn(line, "\n")] = 0;
        char *slash = strchr(line, '/');
        if (slash && ends_with(slash, TN_CONTROL_SUFFIX))
            file = slash;
    }
    fclose(maps);
    tn_error error = TN_E_OPEN;
    tn_control_client client;
    if (file)
        error = tn_control_open(file, 1, &client);
    if (!file)
        snprintf(message, TN_CONTROL_MESSAGE, "process %ld does not record: it has no control block (no CUDA call yet, or not run by tenure record)", pid);
    else if (error != TN_OK)
        snprintf(message, TN_CONTROL_MESSAGE, "the control block %.4000s cannot be opened: %s", file, tn_error_text(error));
    free(line);
    if (error != TN_OK)
        return -1;
    return add(out, client);
}

void tn_control_set_close(tn_control_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        tn_control_close(&set->each[i]);
    free(set->each);
    *set = (tn_control_set){0};
}
