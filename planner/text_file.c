/* Reads by growing, so that files without a size of their own (pipes, /proc) are read as well. */
#define _GNU_SOURCE
#include "planner/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int fill(int fd, size_t limit, char **bytes, size_t *length)
{
    size_t room = 0, used = 0;
    char *buffer = NULL;
    for (;;) {
        if (room - used < 2) { /* one for what may follow, one for the 0 */
            size_t wanted = room ? room * 2 : 4096;
            char *grown = realloc(buffer, wanted);
            if (!grown) {
                free(buffer);
                return ENOMEM;
            }
            buffer = grown;
            room = wanted;
        }
        ssize_t n = read(fd, buffer + used, room - used - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || used + (size_t)n > limit) {
            int error = n < 0 ? errno : EFBIG;
            free(buffer);
            return error;
        }
        if (n == 0) {
            buffer[used] = 0;
            *bytes = buffer;
            *length = used;
            return 0;
        }
        used += (size_t)n;
    }
}

int tn_text_file_read(const char *path, size_t limit, char **bytes, size_t *length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = fill(fd, limit, bytes, length);
    close(fd);
    return error;
}
