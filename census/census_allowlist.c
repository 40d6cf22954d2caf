/* The allowlist against a census: reading, comparing, rewriting. */
#define _GNU_SOURCE
#include "census/census_allowlist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "census/census_allowlist_lines.h"

static int say(char *message, const char *format, const char *path, const char *why)
{
    snprintf(message, TN_ALLOWLIST_MESSAGE, format, path, why);
    return -1;
}

typedef struct place { const char *path; size_t line; } place;

static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* The entries by path; the caller frees them. NULL when no memory is left. */
static place *sorted(const tn_allowlist *list, size_t *count)
{
    place *places = malloc((list->count + 1) * sizeof(*places));
    *count = 0;
    for (size_t i = 0; places && i < list->count; i++)
        if (list->lines[i].path)
            places[(*count)++] = (place){list->lines[i].path, i};
    if (places && *count)
        qsort(places, *count, sizeof(*places), compare_places);
    return places;
}

static int read_lines(FILE *in, const char *path, tn_allowlist *list, char message[TN_ALLOWLIST_MESSAGE])
{
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    int bad = 0;
    while (!bad && (errno = 0, length = getline(&text, &room, in)) >= 0) {
        while (length && (text[length - 1] == '\n' || text[length - 1] == '\r'))
            text[--length] = 0;
        tn_allowed line = {.path = NULL};
        bad = strlen(text) == (size_t)length ? tn_allowed_parse(text, &line) : 1;
        if (bad > 0) {
            snprintf(message, TN_ALLOWLIST_MESSAGE, "%.600s:%zu: a line is ALLOCS FREES PATH, or a comment after #", path, list->count + 1);
        } else if (bad || tn_allowlist_insert(list, list->count, line) != 0) {
            free(line.path);
            free(line.rest);
            bad = say(message, "%.600s: %s", path, "no memory is left");
        }
    }
    if (!bad && ferror(in))
        bad = say(message, "%.600s cannot be read: %.200s", path, strerror(errno));
    free(text);
    return bad ? -1 : 0;
}

static int check_doubles(const tn_allowlist *list, const char *path, char message[TN_ALLOWLIST_MESSAGE])
{
    size_t count;
    place *places = sorted(list, &count);
    int bad = places ? 0 : say(message, "%.600s: %s", path, "no memory is left");
    for (size_t i = 1; !bad && i < count; i++)
        if (strcmp(places[i - 1].path, places[i].path) == 0) {
            snprintf(message, TN_ALLOWLIST_MESSAGE, "%.600s:%zu: %.200s stands in it already, on line %zu", path, places[i].line + 1,
                     places[i].path, places[i - 1].line + 1);
            bad = -1;
        }
    free(places);
    return bad;
}

int tn_allowlist_read(const char *path, tn_allowlist **out, char message[TN_ALLOWLIST_MESSAGE])
{
    *out = NULL;
    tn_allowlist *list = calloc(1, sizeof(*list));
    if (!list)
        return say(message, "%.600s: %s", path, "no memory is left");
    FILE *in = fopen(path, "re");
    if (!in) {
        int absent = errno == ENOENT;
        say(message, "%.600s cannot be read: %.200s", path, strerror(errno));
        if (absent)
            *out = list;
        else
            tn_allowlist_free(list);
        return absent ? 1 : -1;
    }
    int bad = read_lines(in, path, list, message);
    fclose(in);
    if (bad == 0)
        bad = check_doubles(list, path, message);
    if (bad)
        tn_allowlist_free(list);
    else
        *out = list;
    return bad;
}

void tn_allowlist_free(tn_allowlist *list)
{
    for (size_t i = 0; list && i < list->count; i++) {
        free(list->lines[i].path);
        free(list->lines[i].rest);
    }
    if (list)
        free(list->lines);
    free(list);
}

const char *tn_finding_name(tn_finding_kind kind)
{
    static const char *const names[] = {"over", "under", "unlisted", "stale", "excluded"};
    return kind < TN_FINDING_KINDS ? names[kind] : "unknown";
}

const char *tn_finding_advice(const tn_finding *finding)
{
    switch (finding->kind) {
    case TN_FINDING_OVER:
        return "take the new ones out, or raise the budget in review (--update)";
    case TN_FINDING_UNDER:
        return "lower the budget (--update)";
    case TN_FINDING_UNLISTED:
        return "allocate elsewhere, or list the file in review (--update)";
    case TN_FINDING_STALE:
        return "remove the line (--update)";
    default:
        return "count the file, or remove the line (--update)";
    }
}

/* Is there a file of the name below the census's root, though it was not counted? */
static int is_there(const tn_census *census, const char *path)
{
    char *whole;
    if (asprintf(&whole, "%s/%s", census->root, path) < 0)
        return 0;
    int there = access(whole, F_OK) == 0;
    free(whole);
    return there;
}

/* Appends what one file's budget leaves to say; up to two findings. */
static size_t compare(const tn_census *census, const tn_allowed *line, size_t number, const tn_census_file *file, tn_finding *out)
{
    tn_finding finding = {.path = line ? line->path : file->path, .line = number};
    size_t n = 0;
    for (size_t use = 0; use < TN_USE_COUNT; use++) {
        finding.allowed[use] = line ? line->budget[use] : 0;
        finding.found[use] = file ? file->tally.calls[use] : 0;
    }
    if (!file) {
        finding.kind = is_there(census, line->path) ? TN_FINDING_EXCLUDED : TN_FINDING_STALE;
        out[n++] = finding;
    } else if (!line) {
        finding.kind = TN_FINDING_UNLISTED;
        if (finding.found[TN_USE_ALLOC] + finding.found[TN_USE_FREE])
            out[n++] = finding;
    } else {
        for (size_t use = 0; use < TN_USE_COUNT; use++) {
            finding.use = (tn_api_use)use;
            finding.kind = finding.found[use] > finding.allowed[use] ? TN_FINDING_OVER : TN_FINDING_UNDER;
            if (finding.found[use] != finding.allowed[use])
                out[n++] = finding;
        }
    }
    return n;
}

int tn_allowlist_check(const tn_allowlist *list, const tn_census *census, tn_finding **findings, size_t *count)
{
    size_t listed;
    place *places = sorted(list, &listed);
    *findings = malloc((2 * listed + census->file_count + 1) * sizeof(**findings));
    *count = 0;
    if (!places || !*findings) {
        free(places);
        free(*findings);
        *findings = NULL;
        return -1;
    }
    for (size_t i = 0, k = 0; i < listed || k < census->file_count;) {
        int order = i == listed ? 1 : k == census->file_count ? -1 : strcmp(places[i].path, census->files[k].path);
        const tn_allowed *line = order <= 0 ? &list->lines[places[i].line] : NULL;
        const tn_census_file *file = order >= 0 ? &census->files[k] : NULL;
        if (!file || !file->unread) /* nothing is known of one that could not be read */
            *count += compare(census, line, line ? places[i].line + 1 : 0, file, *findings + *count);
        i += order <= 0;
        k += order >= 0;
    }
    free(places);
    return 0;
}

/* Where a new entry goes: before the first one whose path comes later, and before the comment right above that, unless it is the
 * one that heads the file. */
static size_t position(const tn_allowlist *list, const char *path)
{
    size_t at = 0;
    while (at < list->count && (!list->lines[at].path || strcmp(list->lines[at].path, path) < 0))
        at++;
    size_t above = at;
    while (above && !list->lines[above - 1].path && list->lines[above - 1].rest[strspn(list->lines[above - 1].rest, " \t")] == '#')
        above--;
    return at == list->count || above == 0 ? at : above;
}

/* Makes the list hold; -1 when no memory is left. */
static int fit(tn_allowlist *list, const tn_census *census, tn_allowlist_change *change)
{
    char *seen = calloc(census->file_count + 1, 1);
    if (!seen)
        return -1;
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        tn_allowed *line = &list->lines[i];
        size_t at = line->path ? tn_census_file_at(census, line->path) : TN_API_MISSING;
        const tn_census_tally *tally = at == TN_API_MISSING ? NULL : &census->files[at].tally;
        if (line->path && (!tally || tally->calls[TN_USE_ALLOC] + tally->calls[TN_USE_FREE] == 0)) {
            free(line->path);
            free(line->rest);
            change->removed++;
            continue;
        }
        if (line->path) {
            int same = memcmp(line->budget, tally->calls, sizeof(line->budget)) == 0;
            memcpy(line->budget, tally->calls, sizeof(line->budget));
            *(same ? &change->kept : &change->changed) += 1;
            seen[at] = 1;
        }
        list->lines[kept++] = *line;
    }
    list->count = kept;
    int bad = 0;
    for (size_t i = 0; !bad && i < census->file_count; i++) {
        const tn_census_tally *tally = &census->files[i].tally;
        if (seen[i] || tally->calls[TN_USE_ALLOC] + tally->calls[TN_USE_FREE] == 0)
            continue;
        tn_allowed line = {.path = strdup(census->files[i].path), .rest = strdup("")};
        memcpy(line.budget, tally->calls, sizeof(line.budget));
        bad = !line.path || !line.rest || tn_allowlist_insert(list, position(list, line.path), line) != 0;
        if (bad) {
            free(line.path);
            free(line.rest);
        }
        change->added++;
    }
    free(seen);
    return bad ? -1 : 0;
}

/* A new file beside the old one, then over it. */
static int replace(const tn_allowlist *list, const char *path, char message[TN_ALLOWLIST_MESSAGE])
{
    char *real = realpath(path, NULL); /* a link stays one */
    char *made = NULL;
    struct stat st;
    int known = stat(path, &st) == 0;
    FILE *out = NULL;
    int fd = -1;
    if (asprintf(&made, "%s.XXXXXX", real ? real : path) < 0)
        made = NULL;
    else if ((fd = mkostemp(made, O_CLOEXEC)) >= 0)
        out = fdopen(fd, "w");
    int bad = !out;
    for (size_t i = 0; out && i < list->count; i++)
        tn_allowed_write(&list->lines[i], out);
    if (out) {
        mode_t mask = umask(0);
        umask(mask);
        bad = fflush(out) != 0 || fchmod(fd, known ? st.st_mode & 07777 : 0666 & ~mask) != 0 || fsync(fd) != 0;
        bad |= fclose(out) != 0;
        bad = bad || rename(made, real ? real : path) != 0;
    }
    if (bad) {
        say(message, "%.600s cannot be written: %.200s", path, strerror(errno));
        if (made && fd >= 0)
            unlink(made);
    }
    free(made);
    free(real);
    return bad ? -1 : 0;
}

int tn_allowlist_update(tn_allowlist *list, const tn_census *census, const char *path, tn_allowlist_change *change,
                        char message[TN_ALLOWLIST_MESSAGE])
{
    static const char *const head[] = {
        "# How many CUDA allocation and free calls each file may hold: ALLOCS FREES PATH, kept by tenure census --update.",
        "# A file that is over, under, unlisted or gone fails the check, so that the list can only shrink unless a reviewer agrees.",
        "",
    };
    *change = (tn_allowlist_change){0, 0, 0, 0};
    int fresh = list->count == 0;
    for (size_t i = 0; fresh && i < sizeof(head) / sizeof(head[0]); i++) {
        tn_allowed line = {.rest = strdup(head[i])};
        if (!line.rest || tn_allowlist_insert(list, i, line) != 0) {
            free(line.rest);
            return say(message, "%.600s: %s", path, "no memory is left");
        }
    }
    if (fit(list, census, change) != 0)
        return say(message, "%.600s: %s", path, "no memory is left");
    if (!fresh && change->added + change->changed + change->removed == 0)
        return 0; /* it holds: not even its time changes */
    return replace(list, path, message);
}
