/* Binds our references to glibc to the oldest symbol versions, so that what is built on a new glibc loads on one from 2.28 on. Included
 * ahead of every source of shim/ and ledger/ by `-include`; it therefore includes nothing itself (a feature macro defined by the source
 * must still come first) and is empty for the assembler's own files. No state, so no thread rules.
 *
 * glibc 2.34 moved libpthread and libdl into libc and gave their symbols the version 2.34 as default; the old versions stayed as aliases
 * of the same code (objdump -T libc.so.6, 2.36: the addresses are equal). A .symver line for a name that the file never refers to leaves
 * no trace in the object (binutils 2.40, both architectures; tests/callsite/symbols_test.sh looks).
 *
 * Not here on purpose: dlsym and dlclose, which the shim defines and therefore finds with dlvsym. Names that have no old version at all
 * (gettid 2.30, stat and fstat 2.33, ...) are system calls: see the macros at the end. */
#ifndef TENURE_SHIM_GLIBC_COMPAT_H
#define TENURE_SHIM_GLIBC_COMPAT_H

#ifndef __ASSEMBLER__
#if defined(__linux__)

#if defined(__x86_64__)
#define TN_BIND(name, x86, arm) __asm__(".symver " #name "," #name "@GLIBC_" x86)
#elif defined(__aarch64__)
#define TN_BIND(name, x86, arm) __asm__(".symver " #name "," #name "@GLIBC_" arm)
#else
#error "unsupported architecture"
#endif

TN_BIND(dlopen, "2.2.5", "2.17");
TN_BIND(dlmopen, "2.3.4", "2.17");
TN_BIND(dlvsym, "2.2.5", "2.17");
TN_BIND(dladdr, "2.2.5", "2.17");
TN_BIND(dladdr1, "2.3.3", "2.17");
TN_BIND(dlinfo, "2.3.3", "2.17");
TN_BIND(dlerror, "2.2.5", "2.17");

TN_BIND(pthread_create, "2.2.5", "2.17");
TN_BIND(pthread_detach, "2.2.5", "2.17");
TN_BIND(pthread_join, "2.2.5", "2.17");
TN_BIND(pthread_kill, "2.2.5", "2.17");
TN_BIND(pthread_once, "2.2.5", "2.17");
TN_BIND(pthread_key_create, "2.2.5", "2.17");
TN_BIND(__pthread_key_create, "2.2.5", "2.17");
TN_BIND(pthread_key_delete, "2.2.5", "2.17");
TN_BIND(pthread_getspecific, "2.2.5", "2.17");
TN_BIND(pthread_setspecific, "2.2.5", "2.17");
TN_BIND(pthread_sigmask, "2.2.5", "2.17");
TN_BIND(pthread_getattr_np, "2.2.5", "2.17");
TN_BIND(pthread_attr_getstack, "2.2.5", "2.17");
TN_BIND(pthread_attr_getguardsize, "2.2.5", "2.17");
TN_BIND(pthread_attr_setstack, "2.2.5", "2.17");
TN_BIND(pthread_attr_setstacksize, "2.2.5", "2.17");
TN_BIND(pthread_setname_np, "2.12", "2.17");
TN_BIND(pthread_getname_np, "2.12", "2.17");
TN_BIND(pthread_mutex_trylock, "2.2.5", "2.17");
TN_BIND(pthread_mutex_timedlock, "2.2.5", "2.17");
TN_BIND(pthread_mutexattr_init, "2.2.5", "2.17");
TN_BIND(pthread_mutexattr_destroy, "2.2.5", "2.17");
TN_BIND(pthread_mutexattr_settype, "2.2.5", "2.17");
TN_BIND(pthread_rwlock_init, "2.2.5", "2.17");
TN_BIND(pthread_rwlock_destroy, "2.2.5", "2.17");
TN_BIND(pthread_rwlock_rdlock, "2.2.5", "2.17");
TN_BIND(pthread_rwlock_tryrdlock, "2.2.5", "2.17");
TN_BIND(pthread_rwlock_wrlock, "2.2.5", "2.17");
TN_BIND(pthread_rwlock_trywrlock, "2.2.5", "2.17");
TN_BIND(pthread_rwlock_unlock, "2.2.5", "2.17");
TN_BIND(pthread_spin_init, "2.2.5", "2.17");
TN_BIND(pthread_spin_lock, "2.2.5", "2.17");
TN_BIND(pthread_spin_trylock, "2.2.5", "2.17");
TN_BIND(pthread_spin_unlock, "2.2.5", "2.17");
TN_BIND(sem_init, "2.2.5", "2.17");
TN_BIND(sem_destroy, "2.2.5", "2.17");
TN_BIND(sem_post, "2.2.5", "2.17");
TN_BIND(sem_wait, "2.2.5", "2.17");
TN_BIND(sem_trywait, "2.2.5", "2.17");
TN_BIND(shm_open, "2.2.5", "2.17");
TN_BIND(shm_unlink, "2.2.5", "2.17");

/* The stat family: glibc before 2.33 exports no such symbols, only __xstat, whose first argument differs between the architectures. On both
 * 64-bit ones the kernel's struct stat is glibc's. -1 with errno, as the original. Needs <fcntl.h>, <sys/stat.h>, <sys/syscall.h>, <unistd.h>. */
#define tn_stat(path, st) ((int)syscall(SYS_newfstatat, AT_FDCWD, (path), (st), 0))
#define tn_lstat(path, st) ((int)syscall(SYS_newfstatat, AT_FDCWD, (path), (st), AT_SYMLINK_NOFOLLOW))
#define tn_fstat(fd, st) ((int)syscall(SYS_fstat, (fd), (st)))
#define tn_gettid() ((int)syscall(SYS_gettid))

#endif
#endif
#endif
