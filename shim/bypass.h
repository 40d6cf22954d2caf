/* What stands in the process and does not come past the hooks: objects opened with RTLD_DEEPBIND, or with a libcuda of their
 * own, whose own tables of functions point to the real CUDA or to libc's own dlsym. Called before a library is closed and when the
 * process ends; takes dl_iterate_phdr's lock and none of ours, makes no CUDA call, allocates nothing. */
#ifndef TENURE_SHIM_BYPASS_H
#define TENURE_SHIM_BYPASS_H

/* Calls say(text) for each such object with a line that names it and what it resolved by itself; returns how many there are. None
 * in a process without a libcuda, nor in a forked child. */
int tn_bypass_find(void (*say)(const char *text));

#endif
