/*
 * `facts [--list] [--kernels] [--faults] [SECTION...]`: runs the named sections, or all of the default
 * ones, each in a child process, and prints their observations. --kernels adds the sections that load a
 * small PTX kernel, --faults the one that provokes an illegal access. A section that dies or hangs
 * (20 s) is one line, SECTION.exit=..., an observation like any other, and does not stop the others. The exit
 * code is 0 if every section could observe, 1 if not (no libcuda), 2 for a section that does not exist.
 */
#define _GNU_SOURCE
#include "facts.h"

#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECTION_SECONDS 20
/* A section's exit code where it could observe nothing: no libcuda, no thread. */
#define EXIT_NO_CUDA 3

enum group { GROUP_DEFAULT, GROUP_KERNELS, GROUP_FAULTS };

struct section {
	const char *name;
	void (*run)(int arg);
	int arg;
	enum group group;
};

static const struct section sections[] = {
	{"outputs", section_outputs, 0, GROUP_DEFAULT},
	{"zero", section_zero, 0, GROUP_DEFAULT},
	{"frees", section_frees, 0, GROUP_DEFAULT},
	{"last_error", section_last_error, 0, GROUP_DEFAULT},
	{"queries", section_queries, 0, GROUP_DEFAULT},
	{"threads", section_threads, 0, GROUP_DEFAULT},
	{"fork", section_fork, 0, GROUP_DEFAULT},
	{"late", section_late, 0, GROUP_DEFAULT},
	{"resolver", section_resolver, 0, GROUP_DEFAULT},
	{"resolver_runtime", section_resolver_runtime, 0, GROUP_DEFAULT},
	{"ranges", section_ranges, 0, GROUP_DEFAULT},
	{"bounds", section_bounds, 0, GROUP_DEFAULT},
	{"attributes", section_attributes, 0, GROUP_DEFAULT},
	{"ipc", section_ipc, 0, GROUP_DEFAULT},
	{"waiting", section_waiting, 0, GROUP_DEFAULT},
	{"async", section_async, 0, GROUP_DEFAULT},
	{"async_half", section_async_half, 0, GROUP_DEFAULT},
	{"capture", section_capture, 0, GROUP_DEFAULT},
	{"graph_memory", section_graph_memory, 0, GROUP_DEFAULT},
	{"vmm", section_vmm, 0, GROUP_DEFAULT},
	{"arrays", section_arrays, 0, GROUP_DEFAULT},
	{"reset", section_reset, 0, GROUP_DEFAULT},
	{"waiting_kernel", section_waiting, 1, GROUP_KERNELS},
	{"fault", section_fault, 0, GROUP_FAULTS},
};
#define SECTION_COUNT (sizeof sections / sizeof sections[0])

struct facts_driver drv;
static const char *current = "facts";
static void *libcuda;
extern char **environ;

void fact(const char *key, const char *format, ...)
{
	char line[512];
	va_list args;
	int used = snprintf(line, sizeof line, "%s.%s=", current, key);
	va_start(args, format);
	used += vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
	va_end(args);
	if ((size_t)used > sizeof line - 2)
		used = sizeof line - 2;
	line[used++] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)used) < 0)
		_exit(EXIT_NO_CUDA);
}

static const char *out_state(const void *out_address)
{
	const void *out;
	_Static_assert(sizeof out == sizeof(CUdeviceptr) && sizeof out == sizeof(CUmemGenericAllocationHandle),
	               "every kind of output is one pointer wide");
	memcpy(&out, out_address, sizeof out);
	return out == NULL ? "null" : out == SENTINEL ? "kept" : "set";
}

void fact_alloc(const char *key, int code, const void *out_address)
{
	fact(key, "%d,%s", code, out_state(out_address));
}

void fact_code(const char *key, int code)
{
	fact(key, "%d,last=%d", code, (int)cudaGetLastError());
}

void *driver_symbol(const char *name)
{
	return dlsym(libcuda, name);
}

int primary_active(void)
{
	unsigned flags;
	int active = 0;
	return drv.p_cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS ? active : -1;
}

struct thread_call {
	void (*fn)(void *);
	void *arg;
};

static void *thread_main(void *arg)
{
	struct thread_call *call = arg;
	call->fn(call->arg);
	return NULL;
}

void on_thread(void (*fn)(void *), void *arg)
{
	struct thread_call call = {fn, arg};
	pthread_t thread;
	if (pthread_create(&thread, NULL, thread_main, &call) != 0) {
		fact("thread", "not started");
		exit(EXIT_NO_CUDA);
	}
	pthread_join(thread, NULL);
}

static int absent(void)
{
	return CODE_ABSENT;
}

/* The headers rename cuMemAlloc to cuMemAlloc_v2 and so on; expanding first gives the exported name. */
#define EXPANDED(name) #name
#define SYMBOL_NAME(name) EXPANDED(name)

static void load_driver(void)
{
	libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (libcuda == NULL) {
		fact("libcuda", "none: %s", dlerror());
		exit(EXIT_NO_CUDA);
	}
#define LOAD(name) \
	drv.p_##name = (__typeof__(&name))driver_symbol(SYMBOL_NAME(name)); \
	if (drv.p_##name == NULL) { \
		fact("absent", "%s", SYMBOL_NAME(name)); \
		drv.p_##name = (__typeof__(&name))(void *)&absent; \
	}
	FACTS_DRIVER(LOAD)
}

static const struct section *find_section(const char *name)
{
	for (size_t i = 0; i < SECTION_COUNT; i++)
		if (strcmp(sections[i].name, name) == 0)
			return &sections[i];
	return NULL;
}

/* In the child: the section itself. "context/NAME" selects one variant of the context section. */
static int run_here(const char *name)
{
	const struct rlimit no_core = {0, 0};
	const struct section *s = find_section(name);
	static char label[64];
	setrlimit(RLIMIT_CORE, &no_core);
	alarm(SECTION_SECONDS);
	snprintf(label, sizeof label, "%s", name);
	current = label;
	load_driver();
	if (strncmp(name, "context/", 8) == 0) {
		for (int i = 0; context_variants[i] != NULL; i++) {
			if (strcmp(context_variants[i], name + 8) == 0) {
				section_context(i);
				return 0;
			}
		}
		return 2;
	}
	if (s == NULL)
		return 2;
	s->run(s->arg);
	return 0;
}

static int run_child(const char *name)
{
	char *args[] = {(char *)"facts", (char *)"--run", (char *)name, NULL};
	pid_t child;
	int status;
	if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ) != 0 || waitpid(child, &status, 0) < 0) {
		printf("%s.exit=not started\n", name);
		return 1;
	}
	if (WIFSIGNALED(status))
		printf("%s.exit=signal %d\n", name, WTERMSIG(status));
	else
		printf("%s.exit=%d\n", name, WEXITSTATUS(status));
	fflush(stdout);
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_CUDA;
}

static int run_contexts(void)
{
	int bad = 0;
	char name[64];
	for (int i = 0; context_variants[i] != NULL; i++) {
		snprintf(name, sizeof name, "context/%s", context_variants[i]);
		bad |= run_child(name);
	}
	return bad;
}

int main(int argc, char **argv)
{
	int bad = 0, named = 0, kernels = 0, faults = 0;
	if (argc == 3 && strcmp(argv[1], "--run") == 0)
		return run_here(argv[2]);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--list") == 0) {
			for (size_t s = 0; s < SECTION_COUNT; s++)
				printf("%s\n", sections[s].name);
			printf("context\n");
			return 0;
		} else if (strcmp(argv[i], "--kernels") == 0) {
			kernels = 1;
		} else if (strcmp(argv[i], "--faults") == 0) {
			faults = 1;
		} else if (strcmp(argv[i], "context") == 0) {
			named = 1;
			bad |= run_contexts();
		} else if (find_section(argv[i]) != NULL || strncmp(argv[i], "context/", 8) == 0) {
			named = 1;
			bad |= run_child(argv[i]);
		} else {
			fprintf(stderr, "facts: no section %s (facts --list shows them)\n", argv[i]);
			return 2;
		}
	}
	for (size_t s = 0; s < SECTION_COUNT && !named; s++)
		if (sections[s].group == GROUP_DEFAULT || (sections[s].group == GROUP_KERNELS && kernels) ||
		    (sections[s].group == GROUP_FAULTS && faults))
			bad |= run_child(sections[s].name);
	if (!named)
		bad |= run_contexts();
	return bad;
}
