/* See scan_text.h. */
#define _GNU_SOURCE
#include "tests/census/scan_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "census/census_scan.h"

int text_file(const char *text, size_t size)
{
    int fd = memfd_create("text", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
        abort();
    return fd;
}

const char *uses_of(const char *text, size_t size, const char *const *names)
{
    static char *said;
    static const char *const kinds[] = {"call", "declaration", "mention"};
    free(said);
    size_t room;
    FILE *out = open_memstream(&said, &room);
    tn_apis *apis = tn_apis_new();
    for (; names && *names; names++)
        if (tn_apis_add(apis, *names, TN_USE_ALLOC) != 0)
            abort();
    tn_code_uses uses;
    int fd = text_file(text, size);
    const char *why = tn_census_scan(fd, apis, &uses);
    if (why)
        fprintf(out, "unread: %s", why);
    for (size_t i = 0; i < uses.count; i++) {
        const tn_code_use *use = &uses.items[i];
        fprintf(out, "%s%" PRIu64, i ? "; " : "", use->line);
        if (use->first != use->line || use->last != use->line)
            fprintf(out, "(%" PRIu64 "-%" PRIu64 ")", use->first, use->last);
        fprintf(out, " %s%s%s %s", kinds[use->kind], use->in_macro ? " macro" : "", use->member ? " member" : "",
                tn_apis_name(apis, use->api));
    }
    fclose(out);
    close(fd);
    free(uses.items);
    tn_apis_free(apis);
    return said;
}
