/* Looks at the program before it is started: is it there, and will the loader take a preload into it? */
#define _GNU_SOURCE
#include "cli/record_target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static int startable(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : EACCES;
}

int tn_target_find(const char *name, char out[PATH_MAX])
{
    if (strchr(name, '/')) {
        if ((size_t)snprintf(out, PATH_MAX, "%s", name) >= PATH_MAX)
            return ENAMETOOLONG;
        return startable(out);
    }
    if (*name == 0)
        return ENOENT;
    const char *path = getenv("PATH");
    if (!path)
        path = "/bin:/usr/bin"; /* execvp's own default */
    int seen = ENOENT;
    for (;;) {
        int length = (int)strcspn(path, ":");
        int fits = (size_t)snprintf(out, PATH_MAX, "%.*s%s%s", length, path, length ? "/" : "", name) < PATH_MAX;
        int error = fits ? startable(out) : ENAMETOOLONG;
        if (error == 0)
            return 0;
        if (error == EACCES)
            seen = EACCES;
        if (path[length] == 0)
            return seen;
        path += length + 1;
    }
}

/* Mirrors the kernel's reasons to set AT_SECURE, on which the loader drops LD_PRELOAD. */
static int privileged(const char *path)
{
    struct stat st;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || stat(path, &st) != 0)
        return 0;
    if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
        return 1;
    if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid())
        return 1;
    return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

/* "ld.so program": the loader itself has no loader, and takes preloads into what it starts. */
static int is_loader(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, "ld-linux", 8) == 0 || strcmp(name, "ld.so") == 0;
}

static tn_target_cover check_elf(int fd, const unsigned char *ident, int loader)
{
    ElfW(Ehdr) ours, header;
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int known = self >= 0 && pread(self, &ours, sizeof(ours), 0) == (ssize_t)sizeof(ours);
    if (self >= 0)
        close(self);
    if (!known)
        return TN_TARGET_COVERED;
    if (ident[EI_CLASS] != ours.e_ident[EI_CLASS] || ident[EI_DATA] != ours.e_ident[EI_DATA])
        return TN_TARGET_FOREIGN;
    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
        return TN_TARGET_COVERED;
    if (header.e_machine != ours.e_machine)
        return TN_TARGET_FOREIGN;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        if (pread(fd, &segment, sizeof(segment), (off_t)(header.e_phoff + (uint64_t)i * header.e_phentsize)) != (ssize_t)sizeof(segment))
            return TN_TARGET_COVERED;
        if (segment.p_type == PT_INTERP)
            return TN_TARGET_COVERED;
    }
    return loader ? TN_TARGET_COVERED : TN_TARGET_STATIC;
}

tn_target_cover tn_target_check(const char *path, char program[PATH_MAX])
{
    tn_target_cover cover = TN_TARGET_COVERED;
    snprintf(program, PATH_MAX, "%s", path);
    for (int depth = 0; depth < 4; depth++) { /* a script's interpreter may be a script */
        if (privileged(program))
            return TN_TARGET_PRIVILEGED;
        int fd = open(program, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return TN_TARGET_COVERED;
        char head[256] = "";
        ssize_t got = pread(fd, head, sizeof(head) - 1, 0);
        int script = got > 2 && head[0] == '#' && head[1] == '!';
        if (got >= EI_NIDENT && memcmp(head, ELFMAG, SELFMAG) == 0)
            cover = check_elf(fd, (const unsigned char *)head, is_loader(program));
        close(fd);
        if (!script)
            return cover;
        char *start = head + 2 + strspn(head + 2, " \t");
        start[strcspn(start, " \t\r\n")] = 0;
        snprintf(program, PATH_MAX, "%s", start);
    }
    return cover;
}

const char *tn_target_text(tn_target_cover cover)
{
    switch (cover) {
    case TN_TARGET_STATIC:
        return "is statically linked: no loader takes libtenure.so into it, so its calls are not recorded";
    case TN_TARGET_PRIVILEGED:
        return "runs with raised privileges: the loader ignores LD_PRELOAD, so its calls are not recorded";
    case TN_TARGET_FOREIGN:
        return "is built for another architecture than libtenure.so, so its calls are not recorded";
    case TN_TARGET_COVERED:
        break;
    }
    return "";
}
