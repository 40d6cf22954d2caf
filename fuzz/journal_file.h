/* Journals for fuzz targets, in short: a journal is 8 KiB of header and chunks of 64 KiB, nearly all of them zeros, which a fuzzer would spend its
 * time on. Short form: a count, and so many patches of a sound header (offset of two bytes, length of one, bytes); then chunks until the end: type,
 * thread, sequence (a byte each), length of two bytes, content. Type 0 is content from the chunk's own first byte on, 255 a last chunk that is cut
 * off behind its content. Numbers are little-endian; what is missing at the end is left out. One thread a target. */
#ifndef TENURE_FUZZ_JOURNAL_FILE_H
#define TENURE_FUZZ_JOURNAL_FILE_H

#ifndef _GNU_SOURCE
#error "journal_file.h is for files that define _GNU_SOURCE"
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger/journal_format.h"

enum { JF_CHUNKS_MAX = 8 };

typedef struct jf_input { const uint8_t *at, *end; } jf_input;

static inline unsigned jf_byte(jf_input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static inline unsigned jf_two_bytes(jf_input *in)
{
    unsigned low = jf_byte(in);
    return low | jf_byte(in) << 8;
}

/* Copies what there is, at most `length`. */
static inline size_t jf_copy(jf_input *in, uint8_t *to, size_t length)
{
    size_t n = length < (size_t)(in->end - in->at) ? length : (size_t)(in->end - in->at);
    memcpy(to, in->at, n);
    in->at += n;
    return n;
}

static inline void jf_header(uint8_t *out)
{
    tn_journal_header h = {.version = TN_JOURNAL_VERSION, .header_bytes = TN_HEADER_BYTES, .chunk_bytes = TN_CHUNK_BYTES,
                           .event_bytes = sizeof(tn_event), .flags = TN_HF_ENDED, .tsc_hz = 1000000000, .pid = 7,
                           .host = "host", .exe = "/opt/engine", .cmdline = "engine\0--fast", .exe_build_id = "00ff"};
    memcpy(h.magic, TN_JOURNAL_MAGIC, sizeof h.magic);
    memcpy(out, &h, sizeof h);
}

/* A file in memory with these bytes; its path is "/proc/self/fd/N". Ends the target where there can be none. */
static inline int jf_memory_file(const void *bytes, size_t size, char path[32])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) {
        perror("a file in memory");
        abort();
    }
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

/* The journal that a short form stands for, as a file in memory, for the caller to close. */
static inline int jf_journal(const uint8_t *data, size_t size, char path[32])
{
    static uint8_t file[TN_HEADER_BYTES + JF_CHUNKS_MAX * TN_CHUNK_BYTES];
    jf_input in = {data, data + size};
    size_t end = TN_HEADER_BYTES;
    memset(file, 0, TN_HEADER_BYTES);
    jf_header(file);
    for (unsigned patches = jf_byte(&in); patches > 0; patches--) {
        unsigned offset = jf_two_bytes(&in), length = jf_byte(&in);
        jf_copy(&in, file + offset % (TN_HEADER_BYTES - UINT8_MAX), length);
    }
    for (unsigned chunk = 0; chunk < JF_CHUNKS_MAX && in.at < in.end; chunk++) {
        tn_chunk_header head = {.magic = TN_CHUNK_MAGIC, .type = jf_byte(&in), .thread = jf_byte(&in), .sequence = jf_byte(&in)};
        unsigned length = jf_two_bytes(&in), raw = head.type == 0, cut = head.type == UINT8_MAX;
        uint8_t *at = file + end, *content = raw || cut ? at : at + sizeof head;
        memset(at, 0, TN_CHUNK_BYTES);
        if (!raw && !cut)
            memcpy(at, &head, sizeof head);
        size_t n = jf_copy(&in, content, length < (size_t)(at + TN_CHUNK_BYTES - content) ? length : (size_t)(at + TN_CHUNK_BYTES - content));
        end += cut ? n : TN_CHUNK_BYTES;
        if (cut)
            break;
    }
    return jf_memory_file(file, end, path);
}

#endif
