/* The folder of one recorded run, and its run.json. */
#define _GNU_SOURCE
#include "cli/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "ledger/journal_format.h"
#include "report/report_json_text.h"

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void put_time(json_t *object, const char *key, uint64_t ns)
{
    char text[40] = "", name[32];
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm tm;
    if (gmtime_r(&seconds, &tm))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_object_set_new(object, key, ns ? json_string(text) : json_null());
    snprintf(name, sizeof(name), "%s_ns", key);
    json_object_set_new(object, name, ns ? json_integer((json_int_t)ns) : json_null());
}

static json_t *describe(const tn_run_folder *folder, uint64_t end_ns, int wait_status)
{
    char host[256] = "", cwd[PATH_MAX];
    gethostname(host, sizeof(host) - 1);
    json_t *object = json_object(), *command = json_array();
    for (char **word = folder->command; *word; word++)
        json_array_append_new(command, tn_json_text(*word));
    json_object_set_new(object, "schema", json_string("tenure-run/1"));
    json_object_set_new(object, "command", command);
    json_object_set_new(object, "cwd", tn_json_text(getcwd(cwd, sizeof(cwd))));
    json_object_set_new(object, "host", tn_json_text(host));
    /* How kernels are loaded decides what modules cost, and when. */
    const char *loading = getenv("CUDA_MODULE_LOADING");
    json_object_set_new(object, "module_loading", tn_json_text(loading && *loading ? loading : "default"));
    put_time(object, "start", folder->start_ns);
    put_time(object, "end", end_ns);
    int exited = end_ns && WIFEXITED(wait_status), killed = end_ns && WIFSIGNALED(wait_status);
    json_object_set_new(object, "exit_status", exited ? json_integer(WEXITSTATUS(wait_status)) : json_null());
    json_object_set_new(object, "signal", killed ? json_integer(WTERMSIG(wait_status)) : json_null());
    return object;
}

/* Writes run.json whole or not at all. `first`: it must not be there yet. 0 or an errno. */
static int write_run_file(const tn_run_folder *folder, json_t *object, int first)
{
    char temporary[PATH_MAX + 64], final[PATH_MAX + 64];
    snprintf(temporary, sizeof(temporary), "%s/.run.json.%ld", folder->path, (long)getpid());
    snprintf(final, sizeof(final), "%s/run.json", folder->path);
    char *text = json_dumps(object, JSON_INDENT(1));
    if (!text)
        return ENOMEM;
    int error = 0;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        error = errno;
    } else {
        FILE *out = fdopen(fd, "w");
        if (!out)
            close(fd);
        if (!out || fprintf(out, "%s\n", text) < 0 || fflush(out) != 0)
            error = errno ? errno : EIO;
        if (out && fclose(out) != 0 && !error)
            error = errno;
        if (!error && (first ? link(temporary, final) : rename(temporary, final)) != 0)
            error = errno;
        /* A file system without hard links: nobody else can be between here and the check that the folder is empty but
         * another tenure record, and that one's run.json would be seen. */
        if (first && (error == EPERM || error == EOPNOTSUPP || error == ENOSYS))
            error = access(final, F_OK) == 0 ? EEXIST : rename(temporary, final) == 0 ? 0 : errno;
        if (first || error)
            unlink(temporary);
    }
    free(text);
    return error;
}

static int make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int failed = mkdir(path, 0777) != 0 && errno != EEXIST;
        int error = errno;
        *slash = '/';
        if (failed)
            return error;
    }
    return 0;
}

/* 1 empty, 0 not, -1 unreadable (errno). */
static int is_empty(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    int empty = 1;
    struct dirent *entry;
    while (empty && (entry = readdir(dir)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(dir);
    return empty;
}

int tn_run_folder_open(tn_run_folder *folder, const char *path, char **command, char message[TN_RUN_MESSAGE])
{
    struct stat st;
    char wanted[PATH_MAX];
    *folder = (tn_run_folder){.command = command, .start_ns = now_ns()};
    if (*path == 0 || (size_t)snprintf(wanted, sizeof(wanted), "%s", path) >= sizeof(wanted)) {
        snprintf(message, TN_RUN_MESSAGE, "the name of the run folder is empty or too long");
        return -1;
    }
    for (size_t n = strlen(wanted); n > 1 && wanted[n - 1] == '/'; n--)
        wanted[n - 1] = 0;
    int error = make_parents(wanted);
    if (!error && mkdir(wanted, 0777) == 0)
        folder->made = 1;
    else if (!error && errno != EEXIST)
        error = errno;
    if (error || stat(wanted, &st) != 0) {
        snprintf(message, TN_RUN_MESSAGE, "the run folder %s cannot be made: %s", wanted, strerror(error ? error : errno));
        return -1;
    }
    if (!S_ISDIR(st.st_mode)) {
        snprintf(message, TN_RUN_MESSAGE, "%s is there already and is not a folder", wanted);
        return -1;
    }
    folder->dev = st.st_dev;
    folder->ino = st.st_ino;
    int empty = is_empty(wanted);
    if (empty < 0) {
        snprintf(message, TN_RUN_MESSAGE, "the run folder %s cannot be read: %s", wanted, strerror(errno));
        return -1;
    }
    if (!empty) {
        snprintf(message, TN_RUN_MESSAGE, "the run folder %s is not empty, and nothing in it is overwritten", wanted);
        return -1;
    }
    if (!realpath(wanted, folder->path)) {
        snprintf(message, TN_RUN_MESSAGE, "the run folder %s cannot be found again: %s", wanted, strerror(errno));
        if (folder->made)
            rmdir(wanted);
        return -1;
    }
    json_t *object = describe(folder, 0, 0);
    error = write_run_file(folder, object, 1);
    json_decref(object);
    if (error) {
        snprintf(message, TN_RUN_MESSAGE, "the run folder %s cannot be written: %s", wanted, strerror(error));
        if (folder->made)
            rmdir(folder->path);
        return -1;
    }
    return 0;
}

void tn_run_folder_abandon(tn_run_folder *folder)
{
    char file[PATH_MAX + 64];
    snprintf(file, sizeof(file), "%s/run.json", folder->path);
    unlink(file);
    if (folder->made)
        rmdir(folder->path);
}

static int still_there(const tn_run_folder *folder)
{
    struct stat st;
    return stat(folder->path, &st) == 0 && st.st_dev == folder->dev && st.st_ino == folder->ino;
}

int tn_run_folder_finish(tn_run_folder *folder, int wait_status, char message[TN_RUN_MESSAGE])
{
    if (!still_there(folder)) {
        snprintf(message, TN_RUN_MESSAGE, "the run folder %s was removed while the program ran: nothing is left of the record", folder->path);
        return -1;
    }
    json_t *object = describe(folder, now_ns(), wait_status);
    int error = write_run_file(folder, object, 0);
    json_decref(object);
    if (error) {
        snprintf(message, TN_RUN_MESSAGE, "the end of the run could not be written to %s: %s", folder->path, strerror(error));
        return -1;
    }
    return 0;
}

int tn_run_folder_each(const tn_run_folder *folder, void (*see)(void *arg, const char *path, const tn_journal_header *header), void *arg)
{
    DIR *dir = still_there(folder) ? opendir(folder->path) : NULL;
    if (!dir)
        return -1;
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        size_t length = strlen(entry->d_name), suffix = strlen(TN_JOURNAL_SUFFIX);
        if (length <= suffix || strcmp(entry->d_name + length - suffix, TN_JOURNAL_SUFFIX) != 0)
            continue;
        tn_journal_header header;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        int read = fd >= 0 && pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
                   memcmp(header.magic, TN_JOURNAL_MAGIC, sizeof(header.magic)) == 0;
        if (fd >= 0)
            close(fd);
        char path[PATH_MAX + 256];
        snprintf(path, sizeof(path), "%s/%s", folder->path, entry->d_name);
        see(arg, path, read ? &header : NULL);
    }
    closedir(dir);
    return 0;
}

static void add_journal(void *arg, const char *path, const tn_journal_header *header)
{
    (void)path;
    tn_run_summary *out = arg;
    out->journals++;
    if (!header) {
        out->unreadable++;
        return;
    }
    if (header->dropped_events || header->dropped_records) {
        out->dropped += header->dropped_events + header->dropped_records;
        out->processes_dropping++;
    }
    if ((header->flags & TN_HF_STOPPED) && out->stopped++ == 0)
        out->stop_error = header->stop_error;
}

void tn_run_folder_summary(const tn_run_folder *folder, tn_run_summary *out)
{
    *out = (tn_run_summary){.gone = !still_there(folder)};
    (void)tn_run_folder_each(folder, add_journal, out);
}
