/* The tracked allocator: every caller goes through one funnel.
 *
 * It counts and it refuses when the headroom is short; it owns nothing, so the
 * destructor frees nothing and each caller gives back its own pointer. One
 * tracker per process, used from the main thread. */
#ifndef ENGINE_MEMORY_VRAM_ALLOCATOR_H
#define ENGINE_MEMORY_VRAM_ALLOCATOR_H

#include <stddef.h>

/* Skips the headroom check. */
#define VRAM_FORCE 1u

struct vram_stats {
    size_t calls;
    size_t live_bytes;
    size_t peak_bytes;
    size_t small;       /* below the size from which the headroom is checked */
    size_t forced;      /* asked to skip the check */
    size_t retried;     /* failed the check, went ahead on the raw free figure */
    size_t rejected;
};

/* `budget` is the sizing view: the check sees the smaller of it and the device. */
void vram_tracker_init(size_t budget);

/* NULL if the headroom or the device refuses; `tag` names the buffer. */
void *vram_allocator_alloc(size_t bytes, const char *tag, unsigned flags);

/* The name that callers use. */
#define vram_alloc vram_allocator_alloc

/* Gives a tracked pointer back to the device; *p becomes NULL. */
void vram_free(void **p);

struct vram_stats vram_tracker_stats(void);

/* Prints what the three bypasses let through. */
void vram_tracker_report(void);

#endif
