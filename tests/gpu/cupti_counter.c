/*
 * Counts every runtime and driver API call of a process with CUPTI's callbacks, independently of
 * Tenure. The driver loads this library at cuInit when CUDA_INJECTION64_PATH names it; CUPTI_COUNTS
 * names the file that receives the counts ("%p" in it becomes the process id).
 *
 * One line per function that was called:
 *     DOMAIN NAME CALLS FAILED SHARED PRIVATE UNKNOWN
 * DOMAIN is "driver" or "runtime", NAME is CUPTI's own spelling. The last three split runtime memory
 * calls by the cudart they entered: the shared libcudart.so, a copy linked into a library or program,
 * or a stack that did not tell. They are 0 for the driver and for calls that are not about memory.
 * A last line "end complete" tells a whole file from a cut one; "overflow N" counts calls with no slot.
 *
 * Threads: counters are atomic, the file is written under one mutex. Only the process that was
 * injected writes; a forked child does not.
 */
#define _GNU_SOURCE
#include <cupti.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 1536
#define STACK_FRAMES 24

enum origin { ORIGIN_SHARED, ORIGIN_PRIVATE, ORIGIN_UNKNOWN, ORIGIN_COUNT };

struct counter {
	atomic_ulong calls;
	atomic_ulong failed;
	atomic_ulong origin[ORIGIN_COUNT];
};

static struct counter counters[2][SLOTS];
static atomic_ulong overflow;
static atomic_int finished;
static pid_t owner;
static char counts_path[4096];
static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER;
static __typeof__(&cuptiGetCallbackName) get_callback_name;

/* Opened rather than linked: a process that brings its own CUPTI (PyTorch does) must keep one copy. */
static void *open_cupti(void)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so"};
	const char *given = getenv("CUPTI_LIBRARY");
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		void *lib = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
		if (lib != NULL)
			return lib;
	}
	if (given != NULL && given[0] != '\0')
		return dlopen(given, RTLD_NOW);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		void *lib = dlopen(names[i], RTLD_NOW);
		if (lib != NULL)
			return lib;
	}
	return NULL;
}

static void write_domain(FILE *out, int which, CUpti_CallbackDomain domain, const char *label)
{
	for (unsigned id = 0; id < SLOTS; id++) {
		struct counter *c = &counters[which][id];
		const char *name = NULL;
		if (atomic_load(&c->calls) == 0)
			continue;
		if (get_callback_name(domain, id, &name) != CUPTI_SUCCESS || name == NULL)
			name = "unnamed";
		fprintf(out, "%s %s %lu %lu %lu %lu %lu\n", label, name, atomic_load(&c->calls),
		        atomic_load(&c->failed), atomic_load(&c->origin[ORIGIN_SHARED]),
		        atomic_load(&c->origin[ORIGIN_PRIVATE]), atomic_load(&c->origin[ORIGIN_UNKNOWN]));
	}
}

static void write_counts(void)
{
	FILE *out;
	if (counts_path[0] == '\0' || getpid() != owner)
		return;
	pthread_mutex_lock(&write_lock);
	out = fopen(counts_path, "w");
	if (out == NULL) {
		fprintf(stderr, "cupti_counter: cannot write %s\n", counts_path);
	} else {
		write_domain(out, 0, CUPTI_CB_DOMAIN_DRIVER_API, "driver");
		write_domain(out, 1, CUPTI_CB_DOMAIN_RUNTIME_API, "runtime");
		fprintf(out, "overflow %lu\nend complete\n", atomic_load(&overflow));
		fclose(out);
	}
	pthread_mutex_unlock(&write_lock);
}

/* Calls can still come after this, from destructors that run later: each of them writes again. */
static void finish(void)
{
	atomic_store(&finished, 1);
	write_counts();
}

__attribute__((destructor)) static void finish_at_unload(void)
{
	if (owner != 0)
		finish();
}

static int is_memory_call(const char *name)
{
	static const char *const parts[] = {"Malloc", "Free", "HostAlloc", "HostRegister", "HostUnregister", "MemPool"};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (strstr(name, parts[i]) != NULL)
			return 1;
	return 0;
}

/* Which cudart a runtime call entered: the innermost frame outside this library, CUPTI and the driver. */
static enum origin find_origin(void)
{
	void *frames[STACK_FRAMES];
	int count = backtrace(frames, STACK_FRAMES);
	Dl_info self, at;
	if (dladdr((void *)(size_t)&find_origin, &self) == 0)
		return ORIGIN_UNKNOWN;
	for (int i = 0; i < count; i++) {
		const char *base;
		if (dladdr((char *)frames[i] - 1, &at) == 0 || at.dli_fname == NULL)
			continue;
		base = strrchr(at.dli_fname, '/');
		base = base == NULL ? at.dli_fname : base + 1;
		if (at.dli_fbase == self.dli_fbase || strncmp(base, "libcupti.so", 11) == 0 ||
		    strncmp(base, "libcuda.so", 10) == 0)
			continue;
		return strncmp(base, "libcudart.so", 12) == 0 ? ORIGIN_SHARED : ORIGIN_PRIVATE;
	}
	return ORIGIN_UNKNOWN;
}

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	const CUpti_CallbackData *call = data;
	int runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
	struct counter *c;
	(void)user;
	if (domain != CUPTI_CB_DOMAIN_DRIVER_API && !runtime)
		return;
	if (id >= SLOTS) {
		atomic_fetch_add(&overflow, 1);
		return;
	}
	c = &counters[runtime][id];
	if (call->callbackSite == CUPTI_API_ENTER) {
		atomic_fetch_add(&c->calls, 1);
		if (runtime && is_memory_call(call->functionName))
			atomic_fetch_add(&c->origin[find_origin()], 1);
	} else if (call->functionReturnValue != NULL) {
		/* cudaError_t and CUresult are both an int whose 0 is success. */
		int code;
		memcpy(&code, call->functionReturnValue, sizeof code);
		if (code != 0)
			atomic_fetch_add(&c->failed, 1);
	}
	if (atomic_load(&finished))
		write_counts();
}

static void set_path(const char *pattern)
{
	const char *mark = strstr(pattern, "%p");
	if (mark == NULL)
		snprintf(counts_path, sizeof counts_path, "%s", pattern);
	else
		snprintf(counts_path, sizeof counts_path, "%.*s%ld%s", (int)(mark - pattern), pattern, (long)getpid(),
		         mark + 2);
}

/* Called by the driver inside cuInit. Returns 1 if counting has begun, 0 (with a line on stderr) if not. */
int InitializeInjection(void);
int InitializeInjection(void)
{
	const char *pattern = getenv("CUPTI_COUNTS");
	__typeof__(&cuptiSubscribe) subscribe;
	__typeof__(&cuptiEnableDomain) enable;
	CUpti_SubscriberHandle subscriber;
	void *lib, *warm[2];

	if (pattern == NULL || pattern[0] == '\0' || owner != 0)
		return 0;
	lib = open_cupti();
	if (lib == NULL) {
		fprintf(stderr, "cupti_counter: no CUPTI (set CUPTI_LIBRARY): %s\n", dlerror());
		return 0;
	}
	subscribe = (__typeof__(subscribe))dlsym(lib, "cuptiSubscribe");
	enable = (__typeof__(enable))dlsym(lib, "cuptiEnableDomain");
	get_callback_name = (__typeof__(get_callback_name))dlsym(lib, "cuptiGetCallbackName");
	if (subscribe == NULL || enable == NULL || get_callback_name == NULL) {
		fprintf(stderr, "cupti_counter: this CUPTI lacks a callback function\n");
		return 0;
	}
	/* The first backtrace loads libgcc; better here than inside a callback. */
	backtrace(warm, 2);
	set_path(pattern);
	if (subscribe(&subscriber, on_call, NULL) != CUPTI_SUCCESS ||
	    enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) != CUPTI_SUCCESS ||
	    enable(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) != CUPTI_SUCCESS) {
		fprintf(stderr, "cupti_counter: CUPTI refused the subscription\n");
		return 0;
	}
	owner = getpid();
	atexit(finish);
	return 1;
}
