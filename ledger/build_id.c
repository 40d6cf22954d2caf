/* The note is found by the program headers, which every executable has. */
#define _GNU_SOURCE
#include "ledger/build_id.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "ledger/tn_sys.h"

/* The descriptor's bytes of NT_GNU_BUILD_ID among the notes at [offset, offset + bytes). */
static int find_build_id(int fd, uint64_t offset, uint64_t bytes, uint64_t align, char *hex, size_t hex_bytes)
{
    unsigned char notes[1024];
    if (bytes > sizeof notes)
        bytes = sizeof notes;
    int64_t n = tn_sys_read_at(fd, notes, bytes, (int64_t)offset);
    if (n < (int64_t)sizeof(Elf64_Nhdr))
        return 0;
    uint64_t mask = align == 8 ? 7 : 3;
    uint64_t end = (uint64_t)n;
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= end;) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        uint64_t name = at + sizeof note;
        uint64_t desc = (name + note.n_namesz + mask) & ~mask;
        uint64_t next = (desc + note.n_descsz + mask) & ~mask;
        if (note.n_namesz > end || note.n_descsz > end || desc + note.n_descsz > end)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0) {
            size_t out = 0;
            for (uint32_t i = 0; i < note.n_descsz && out + 3 <= hex_bytes; i++) {
                hex[out++] = "0123456789abcdef"[notes[desc + i] >> 4];
                hex[out++] = "0123456789abcdef"[notes[desc + i] & 15];
            }
            hex[out] = '\0';
            return 1;
        }
        at = next;
    }
    return 0;
}

void tn_build_id_of_file(const char *path, char *hex, size_t bytes)
{
    hex[0] = '\0';
    int fd = tn_sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    Elf64_Ehdr elf;
    if (tn_sys_read_at(fd, &elf, sizeof elf, 0) == (int64_t)sizeof elf && memcmp(elf.e_ident, ELFMAG, SELFMAG) == 0 &&
        elf.e_ident[EI_CLASS] == ELFCLASS64 && elf.e_phentsize == sizeof(Elf64_Phdr)) {
        for (unsigned i = 0; i < elf.e_phnum; i++) {
            Elf64_Phdr segment;
            int64_t at = (int64_t)(elf.e_phoff + i * sizeof segment);
            if (tn_sys_read_at(fd, &segment, sizeof segment, at) != (int64_t)sizeof segment)
                break;
            if (segment.p_type == PT_NOTE &&
                find_build_id(fd, segment.p_offset, segment.p_filesz, segment.p_align, hex, bytes))
                break;
        }
    }
    tn_sys_close(fd);
}
