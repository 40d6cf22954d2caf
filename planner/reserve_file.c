/* The file on disk: read whole, written beside itself under a lock, synced and renamed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "planner/reserve_model.h"
#include "planner/text_file.h"

static tn_reserve_error say(tn_reserve_error error, char message[TN_RESERVE_MESSAGE], const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static tn_reserve_error say(tn_reserve_error error, char message[TN_RESERVE_MESSAGE], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, TN_RESERVE_MESSAGE, format, args);
    va_end(args);
    return error;
}

tn_reserve_error tn_reserve_load(const char *path, tn_reserve **out, char message[TN_RESERVE_MESSAGE])
{
    *out = NULL;
    char *bytes;
    size_t length;
    int error = tn_text_file_read(path, TN_RESERVE_BYTES, &bytes, &length);
    if (error == ENOENT)
        return say(TN_RESERVE_ABSENT, message, "%.400s: there is no such file", path);
    if (error == EFBIG)
        return say(TN_RESERVE_CORRUPT, message, "%.400s: it is far too large for a file of charges; move it away to begin anew", path);
    if (error)
        return say(error == ENOMEM ? TN_RESERVE_NOMEM : TN_RESERVE_READ, message, "%.400s: it cannot be read: %s", path, strerror(error));
    tn_reserve_error result = tn_reserve_parse(path, bytes, length, out, message);
    free(bytes);
    return result;
}

/* Each folder above the file's name that is missing. 0 or an errno value, with the folder's length in *at. */
static int make_folders(const char *path, size_t *at)
{
    char folder[PATH_MAX];
    for (const char *slash = strchr(path + (*path == '/'), '/'); slash; slash = strchr(slash + 1, '/')) {
        *at = (size_t)(slash - path);
        memcpy(folder, path, *at);
        folder[*at] = 0;
        if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
            int error = errno;
            struct stat st;
            /* A folder that is there may answer otherwise, on a read-only file system or below one that may not be written. */
            if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
                return error;
        }
    }
    return 0;
}

/* A descriptor that holds the lock, or -1. The lock's file stays: to remove it would let two writers hold two of them. */
static int take_lock(const char *path, char message[TN_RESERVE_MESSAGE], tn_reserve_error *error)
{
    enum { TRIES = 500 };
    static const struct timespec pause = {0, 10000000};
    char name[PATH_MAX + 8];
    snprintf(name, sizeof(name), "%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        *error = say(TN_RESERVE_WRITE, message, "%.400s: its lock cannot be made: %s", path, strerror(errno));
        return -1;
    }
    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        if (errno != EWOULDBLOCK && errno != EINTR) {
            *error = say(TN_RESERVE_WRITE, message, "%.400s: its lock cannot be taken: %s", path, strerror(errno));
            close(fd);
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    *error = say(TN_RESERVE_LOCKED, message, "%.400s: another process has held its lock for five seconds", path);
    close(fd);
    return -1;
}

static int write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        text += n;
        length -= (size_t)n;
    }
    return 0;
}

/* What a crash leaves is the old file or the new one: the bytes are on disk before the name is, and the name before we say so. */
static int replace(const char *path, const char *text)
{
    char fresh[PATH_MAX + 8], folder[PATH_MAX];
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    unlink(fresh); /* left by a writer that was killed: it holds no lock any more */
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    int error = write_all(fd, text, strlen(text));
    if (!error)
        error = write_all(fd, "\n", 1);
    if (!error && fsync(fd) != 0)
        error = errno;
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error && rename(fresh, path) != 0)
        error = errno;
    if (error) {
        unlink(fresh);
        return error;
    }
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    memcpy(folder, path, length);
    strcpy(folder + length, slash ? (length ? "" : "/") : ".");
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) /* EINVAL: a file system without */
        error = errno;
    if (fd >= 0)
        close(fd);
    return error;
}

/* What the reader takes again: short, without control characters, UTF-8. */
static bool fits(const char *text)
{
    if (!text || strlen(text) >= TN_RESERVE_TEXT)
        return false;
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    json_t *string = json_string(text);
    json_decref(string);
    return string != NULL;
}

/* The key as an entry of its own, and the measurement. */
static tn_reserve_error take_over(const tn_reserve_key *key, const tn_measurement *m, tn_reserve_entry *entry, tn_reserve_measured *measured)
{
    uint64_t any = 0;
    bool bad = !m->complete || !fits(key->gpu) || !fits(key->driver) || !fits(key->loading) || !fits(m->run) || !fits(m->date) ||
               key->library_count > TN_RESERVE_LIBRARIES;
    for (size_t i = 0; !bad && i < key->library_count; i++)
        bad = !fits(key->libraries[i]);
    for (int i = 0; i < TN_CHARGES; i++) {
        any |= m->charges.bytes[i];
        bad |= m->charges.bytes[i] > INT64_MAX;
    }
    if (bad || !any)
        return TN_RESERVE_REFUSED;
    memset(entry, 0, sizeof(*entry));
    memset(measured, 0, sizeof(*measured));
    entry->libraries = calloc(key->library_count + 1, TN_RESERVE_TEXT);
    if (!entry->libraries)
        return TN_RESERVE_NOMEM;
    for (size_t i = 0; i < key->library_count; i++)
        memcpy(entry->libraries[i], key->libraries[i], strlen(key->libraries[i]));
    entry->library_count = key->library_count;
    tn_reserve_sort_libraries(entry);
    memcpy(entry->gpu, key->gpu, strlen(key->gpu));
    memcpy(entry->driver, key->driver, strlen(key->driver));
    memcpy(entry->loading, key->loading, strlen(key->loading));
    memcpy(measured->run, m->run, strlen(m->run));
    memcpy(measured->date, m->date, strlen(m->date));
    measured->charges = m->charges;
    return TN_RESERVE_OK;
}

/* Under the lock. Takes the entry over. */
static tn_reserve_error update(const char *path, tn_reserve_entry *entry, const tn_reserve_measured *measured,
                               char message[TN_RESERVE_MESSAGE])
{
    tn_reserve *reserve;
    tn_reserve_error error = tn_reserve_load(path, &reserve, message);
    if (error == TN_RESERVE_ABSENT && !(reserve = tn_reserve_new()))
        error = say(TN_RESERVE_NOMEM, message, "%.400s: no host memory is left", path);
    if (!reserve) {
        free(entry->libraries);
        return error;
    }
    tn_reserve_add(reserve, entry, measured);
    char *text = tn_reserve_text(reserve);
    tn_reserve_free(reserve);
    if (!text)
        return say(TN_RESERVE_NOMEM, message, "%.400s: no host memory is left", path);
    int failed = replace(path, text);
    free(text);
    return failed ? say(TN_RESERVE_WRITE, message, "%.400s: it cannot be written: %s", path, strerror(failed)) : TN_RESERVE_OK;
}

tn_reserve_error tn_reserve_remember(const char *path, const tn_reserve_key *key, const tn_measurement *measurement,
                                     char message[TN_RESERVE_MESSAGE])
{
    tn_reserve_entry entry;
    tn_reserve_measured measured;
    char target[PATH_MAX];
    size_t at = 0;
    if (strlen(path) >= sizeof(target) - 8)
        return say(TN_RESERVE_WRITE, message, "%.400s...: the path is too long", path);
    int failed = make_folders(path, &at);
    if (failed)
        return say(TN_RESERVE_WRITE, message, "%.400s: the folder %.*s cannot be made: %s", path, (int)(at < 400 ? at : 400), path,
                   strerror(failed));
    /* A link that a person made stays one: what it points to is replaced. */
    if (!realpath(path, target))
        strcpy(target, path);
    tn_reserve_error error = take_over(key, measurement, &entry, &measured);
    if (error == TN_RESERVE_REFUSED)
        return say(error, message, "%.400s: a measurement that is not complete, or has nothing or what the file cannot hold in it, is not remembered", path);
    if (error != TN_RESERVE_OK)
        return say(error, message, "%.400s: no host memory is left", path);
    int lock = take_lock(target, message, &error);
    if (lock < 0) {
        free(entry.libraries);
        return error;
    }
    error = update(target, &entry, &measured, message);
    close(lock);
    return error;
}
