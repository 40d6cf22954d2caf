/* The smallest client that can ask a server whether it is ready: one GET, the first line of the answer. Readiness URLs are plain HTTP on
 * the same machine, and the command has to run where no HTTP library is installed. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/trigger.h"

enum { STEP_MS = 1000 };

static int ready(int fd, short what)
{
    struct pollfd p = {.fd = fd, .events = what};
    int n;
    while ((n = poll(&p, 1, STEP_MS)) < 0 && errno == EINTR)
        ;
    return n > 0;
}

static int connected(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (fd < 0)
        return -1;
    int error = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    socklen_t size = sizeof(error);
    if (error == EINPROGRESS && (!ready(fd, POLLOUT) || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0))
        error = ETIMEDOUT;
    if (error == 0)
        return fd;
    close(fd);
    return -1;
}

static int send_all(int fd, const char *text, size_t left)
{
    while (left) {
        ssize_t n = send(fd, text, left, MSG_NOSIGNAL);
        if (n > 0) {
            text += n;
            left -= (size_t)n;
        } else if (!(n < 0 && (errno == EAGAIN || errno == EINTR) && ready(fd, POLLOUT))) {
            return -1;
        }
    }
    return 0;
}

/* "HTTP/1.1 200 ...": the status, or 0. */
static int status_of(int fd)
{
    char head[64] = "";
    size_t used = 0;
    int major_version, minor_version, status;
    while (used < sizeof(head) - 1 && !strchr(head, '\n') && ready(fd, POLLIN)) {
        ssize_t n = recv(fd, head + used, sizeof(head) - 1 - used, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            break;
        used += n > 0 ? (size_t)n : 0;
        head[used] = 0;
    }
    return sscanf(head, "HTTP/%d.%d %3d", &major_version, &minor_version, &status) == 3 ? status : 0;
}

int tn_http_answers(const tn_trigger *t)
{
    char request[2048];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *a;
    int status = 0, v6 = strchr(t->host, ':') != NULL;
    if (getaddrinfo(t->host, t->service, &hints, &list) != 0)
        return 0;
    int n = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: tenure\r\nAccept: */*\r\nConnection: close\r\n\r\n", t->path,
                     v6 ? "[" : "", t->host, v6 ? "]" : "", t->service);
    for (a = list; a && !status && n > 0 && (size_t)n < sizeof(request); a = a->ai_next) {
        int fd = connected(a);
        if (fd < 0)
            continue;
        if (send_all(fd, request, (size_t)n) == 0)
            status = status_of(fd);
        close(fd);
    }
    freeaddrinfo(list);
    return status >= 200 && status < 300;
}
