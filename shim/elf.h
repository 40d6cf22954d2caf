/* What an object of the process would find under a name among itself and its dependencies, read from the loaded objects' own
 * tables. dlsym and dlopen take the loader's lock, which a thread holds that runs a library's constructor; a hook that asked
 * them would wait for it, and for ever where that constructor waits for the hook's thread. dl_iterate_phdr takes another. Any
 * thread; no lock of ours, no malloc. */
#ifndef TENURE_SHIM_ELF_H
#define TENURE_SHIM_ELF_H

#include <link.h>
#include <stdint.h>

/* The entry `tag` of an object's dynamic section, as a pointer; its plain value goes to *value (may be NULL). NULL if there is none. */
const void *tn_elf_entry(uint64_t base, const ElfW(Dyn) *dynamic, ElfW(Sxword) tag, uint64_t *value);

/* The address of the first definition of `name`, in the order in which the loader searches a handle of the object around `caller`;
 * NULL if there is none, the object is unknown or no memory is left. Versions of symbols are not looked at. */
const void *tn_elf_find(const void *caller, const char *name);

#endif
