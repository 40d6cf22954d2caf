/* Between our look-ups in the loader and the program's forks. A fork copies the loader's locks as they are, and glibc (2.36) makes
 * the one of dl_iterate_phdr not anew in the child: held by another thread at that moment, it is held there for ever. So a fork
 * waits until no thread is inside, and nobody goes in meanwhile; neither waits longer than a fifth of a second. Any thread, also
 * recursively; no lock. errno may be changed. */
#ifndef TENURE_SHIM_GATE_H
#define TENURE_SHIM_GATE_H

void tn_loader_enter(void);
void tn_loader_leave(void);
/* Whether this process is a forked child: then dl_iterate_phdr may hang, and is left alone. */
int tn_loader_forked(void);

#endif
