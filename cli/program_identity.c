/* The kernel's way from a command to an executable, as far as it can be seen without starting it. */
#define _GNU_SOURCE
#include "cli/program_identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/record_target.h"
#include "ledger/build_id.h"
#include "ledger/journal_format.h"

/* The command line as /proc shows it, cut as a journal cuts it. */
typedef struct line { char text[sizeof ((tn_journal_header *)0)->cmdline]; size_t used; } line;

static void add(line *l, const char *argument)
{
    size_t room = sizeof l->text - 1 - l->used, bytes = strlen(argument) + 1;
    memcpy(l->text + l->used, argument, bytes < room ? bytes : room);
    l->used += bytes < room ? bytes : room;
}

/* "#!INTERPRETER ARGUMENT" of a script. 1 with both, the argument "" where there is none; 0: no script. */
static int read_shebang(const char *path, char interpreter[PATH_MAX], char argument[256])
{
    char head[256] = "", *at, *end;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? pread(fd, head, sizeof head - 1, 0) : -1;
    if (fd >= 0)
        close(fd);
    if (got < 3 || head[0] != '#' || head[1] != '!')
        return 0;
    head[2 + strcspn(head + 2, "\r\n")] = 0;
    at = head + 2 + strspn(head + 2, " \t");
    end = at + strcspn(at, " \t");
    snprintf(interpreter, PATH_MAX, "%.*s", (int)(end - at), at);
    at = end + strspn(end, " \t");
    for (end = at + strlen(at); end > at && (end[-1] == ' ' || end[-1] == '\t'); end--)
        ;
    snprintf(argument, 256, "%.*s", (int)(end - at), at);
    return interpreter[0] != 0;
}

/* "env NAME", "env -S NAME ARGUMENTS": env becomes the program named. */
static void follow_env(char program[PATH_MAX], char argument[256])
{
    const char *slash = strrchr(program, '/');
    char name[256], found[PATH_MAX];
    if (strcmp(slash ? slash + 1 : program, "env") != 0)
        return;
    const char *at = argument + (strncmp(argument, "-S", 2) == 0 ? 2 + strspn(argument + 2, " \t") : 0);
    size_t length = strcspn(at, " \t");
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    if (!name[0] || name[0] == '-' || strchr(name, '=') || tn_target_find(name, found) != 0)
        return;
    memmove(argument, at + length + strspn(at + length, " \t"), strlen(at + length + strspn(at + length, " \t")) + 1);
    snprintf(program, PATH_MAX, "%s", found);
}

/* Names of the libraries, in the tables of a linked executable or among the strings of a static runtime. */
static int names_cuda(const char *path)
{
    static const char *const names[] = {"libcuda.so", "libcudart.so"};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC), found = 0;
    void *file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (file == MAP_FAILED)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        found |= memmem(file, (size_t)st.st_size, names[i], strlen(names[i])) != NULL;
    munmap(file, (size_t)st.st_size);
    return found;
}

void tn_program_identify(const char *path, char **argv, tn_program_identity *out)
{
    char program[PATH_MAX], argument[256] = "", next[PATH_MAX];
    line l = {.used = 0};
    *out = (tn_program_identity){.script = NULL};
    snprintf(program, sizeof program, "%s", path);
    int is_script = read_shebang(path, program, argument);
    for (int depth = 0; is_script && depth < 4 && read_shebang(program, next, argument); depth++)
        snprintf(program, sizeof program, "%s", next);
    if (is_script)
        follow_env(program, argument);
    add(&l, is_script ? program : argv[0]);
    if (is_script && argument[0])
        add(&l, argument);
    if (is_script)
        add(&l, path);
    for (size_t i = 1; argv[0] && argv[i]; i++)
        add(&l, argv[i]);
    if (!realpath(program, out->exe))
        snprintf(out->exe, sizeof out->exe, "%s", program);
    tn_build_id_of_file(out->exe, out->build_id, sizeof out->build_id);
    if (tn_program_script(out->exe, l.text, sizeof l.text, out->script_text, sizeof out->script_text))
        out->script = out->script_text;
    out->uses_cuda = names_cuda(out->exe);
}
