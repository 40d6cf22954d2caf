/* Finding a module's file and its debug file, each known by build-id. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report_symbol_job.h"

static int same_build_id(Elf *elf, const tn_symbol_job *job)
{
    size_t headers = 0;
    if (elf_getphdrnum(elf, &headers) != 0)
        return 0;
    for (size_t i = 0; i < headers; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_NOTE)
            continue;
        Elf_Type type = ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
        Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, type);
        if (!data)
            continue;
        GElf_Nhdr note;
        size_t at = 0, name, desc, next;
        while ((next = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp((char *)data->d_buf + name, "GNU", 4) == 0)
                return note.n_descsz == job->build_id_bytes &&
                       memcmp((char *)data->d_buf + desc, job->build_id, job->build_id_bytes) == 0;
            at = next;
        }
    }
    return 0;
}

static Elf *open_file(const char *path, const tn_symbol_job *job, int *fd, tn_symbol_state *why)
{
    struct stat st;
    Elf *elf = NULL;
    /* O_NONBLOCK: where the module was, there may be a pipe now. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *why = TN_SYMBOL_NO_FILE;
    if (*fd < 0)
        return NULL;
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode)) {
        elf = elf_begin(*fd, ELF_C_READ_MMAP, NULL);
        *why = TN_SYMBOL_NOT_ELF;
        if (elf && elf_kind(elf) == ELF_K_ELF) {
            *why = TN_SYMBOL_OTHER_FILE;
            if (same_build_id(elf, job))
                return elf;
        }
    }
    elf_end(elf);
    close(*fd);
    *fd = -1;
    return NULL;
}

Elf *tn_symbol_open(const tn_symbol_job *job, int *fd, tn_symbol_state *why)
{
    return open_file(job->path, job, fd, why);
}

Elf *tn_symbol_open_debug(const tn_symbol_job *job, int *fd)
{
    const char *const folders[] = {job->options->debug_dir, "/usr/lib/debug"};
    char hex[2 * 32 + 1], path[PATH_MAX];
    tn_symbol_state why;
    for (unsigned i = 0; i < job->build_id_bytes; i++)
        snprintf(hex + (size_t)2 * i, 3, "%02x", job->build_id[i]);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        if (!folders[i])
            continue;
        int length = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", folders[i], hex, hex + 2);
        Elf *elf = length > 0 && (size_t)length < sizeof(path) ? open_file(path, job, fd, &why) : NULL;
        if (elf)
            return elf;
    }
    *fd = -1;
    return NULL;
}

int tn_symbol_has_section(Elf *elf, unsigned type, const char *name)
{
    size_t names;
    if (name && elf_getshdrstrndx(elf, &names) != 0)
        return 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
            continue;
        if (!name && header.sh_type == type)
            return 1;
        const char *text = name ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (text && strcmp(text, name) == 0)
            return 1;
    }
    return 0;
}
