/*
 * What cuGetProcAddress and the runtime's entry-point queries answer for names, versions and flags.
 * An answer is printed as the exported symbol whose address it equals, never as an address.
 */
#define _GNU_SOURCE
#include "facts.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef CUresult (*resolver_v1)(const char *, void **, int, cuuint64_t);
typedef CUresult (*resolver_v2)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* The exported spelling of an answer: NAME with one of the suffixes the driver uses, or a word. */
static const char *spelling(const char *name, const void *address)
{
	static const char *const suffixes[] = {"", "_v2", "_v3", "_v4", "_ptsz", "_v2_ptsz", "_v3_ptsz", "_ptds", "_v2_ptds"};
	static char text[128];
	if (address == NULL)
		return "null";
	if (address == SENTINEL)
		return "kept";
	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
		snprintf(text, sizeof text, "%s%s", name, suffixes[i]);
		if (name[0] != '\0' && driver_symbol(text) == address)
			return text;
	}
	return "other";
}

static void ask(resolver_v2 resolve, const char *name, int version, cuuint64_t flags)
{
	void *address = SENTINEL;
	CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
	char key[128];
	int code = (int)resolve(name, &address, version, flags, &status);
	snprintf(key, sizeof key, "v2.%s.%d.%d", name[0] == '\0' ? "empty" : name, version, (int)flags);
	fact(key, "%d,status=%d,%s", code, (int)status, spelling(name, address));
}

/* A question that crashes on a card, asked in a child, so that the crash is the observation. */
static void ask_in_child(const char *key, resolver_v2 resolve, const char *name, int with_output)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		void *address = SENTINEL;
		CUdriverProcAddressQueryResult found;
		int code = (int)resolve(name, with_output ? &address : NULL, 13000, 0, &found);
		_exit(code & 0x7f);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return;
	fact(key, "%s %d", WIFSIGNALED(status) ? "signal" : "code",
	     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void section_resolver(int arg)
{
	static const char *const names[] = {
		"cuMemAlloc", "cuMemAllocPitch", "cuMemAllocManaged", "cuMemAllocAsync", "cuMemAllocFromPoolAsync",
		"cuMemFree", "cuMemFreeAsync", "cuMemHostAlloc", "cuMemAllocHost", "cuMemFreeHost", "cuMemHostRegister",
		"cuMemGetInfo", "cuMemGetAddressRange", "cuPointerGetAttribute", "cuMemCreate", "cuMemMap",
		"cuMemPoolCreate", "cuArrayCreate", "cuCtxCreate", "cuDevicePrimaryCtxRetain", "cuMemcpyDtoH",
		"cuMemcpyAsync", "cuMemsetD8", "cuMemsetD8Async", "cuLaunchKernel", "cuStreamCreate",
		"cuStreamSynchronize", "cuStreamBeginCapture", "cuStreamGetCaptureInfo", "cuGraphInstantiate",
		"cuIpcOpenMemHandle", "cuEventRecord", "cuGetProcAddress"};
	static const int versions[] = {2000, 3020, 4000, 10000, 11020, 11030, 12000, 13000};
	resolver_v1 v1 = (resolver_v1)driver_symbol("cuGetProcAddress");
	resolver_v2 v2 = (resolver_v2)driver_symbol("cuGetProcAddress_v2");
	void *address = SENTINEL;
	int driver_version = 0;
	(void)arg;

	fact("exports", "%d,%d", v1 != NULL, v2 != NULL);
	if (v1 == NULL || v2 == NULL)
		return;
	/* Before cuInit, so that the answer is not the one that any forked child of a CUDA process gets. */
	ask_in_child("v2.null_output", v2, "cuMemAlloc", 0);
	ask_in_child("v2.null_name", v2, NULL, 1);
	ask(v2, "", 13000, 0);
	FACT_THEN("before_init.cuGetProcAddress", v2("cuGetProcAddress", &address, 12000, 0, NULL), "%s",
	          spelling("cuGetProcAddress", address));
	address = SENTINEL;
	FACT_THEN("v1.cuGetProcAddress.11030", v1("cuGetProcAddress", &address, 11030, 0), "%s",
	          spelling("cuGetProcAddress", address));
	fact("cuInit", "%d", (int)drv.p_cuInit(0));
	fact("cuDriverGetVersion", "%d", (int)drv.p_cuDriverGetVersion(&driver_version));
	for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
		for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++)
			ask(v2, names[n], versions[v], 0);
	for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
		ask(v2, names[n], 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
		ask(v2, names[n], 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	}
	ask(v2, "cuNoSuchFunction", 13000, 0);
	ask(v2, "cuMemAlloc_v2", 13000, 0);
	ask(v2, "cuMemAllocAsync_ptsz", 13000, 0);
	ask(v2, "cudaMalloc", 13000, 0);
	ask(v2, "cumemalloc", 13000, 0);
	ask(v2, "cuMemAlloc", driver_version + 10000, 0);
	ask(v2, "cuMemAlloc", 0, 0);
	ask(v2, "cuMemAlloc", -1, 0);
	ask(v2, "cuMemAlloc", 13000, 4);
	ask(v2, "cuMemAlloc", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	address = SENTINEL;
	FACT_THEN("v2.null_status", v2("cuMemAlloc", &address, 13000, 0, NULL), "%s",
	          spelling("cuMemAlloc", address));
	address = SENTINEL;
	FACT_THEN("v1.cuMemAlloc.3020", v1("cuMemAlloc", &address, 3020, 0), "%s", spelling("cuMemAlloc", address));
	address = SENTINEL;
	FACT_THEN("v1.miss", v1("cuNoSuchFunction", &address, 13000, 0), "%s",
	          spelling("cuNoSuchFunction", address));
	fact("variants_differ", "%d", driver_symbol("cuMemAlloc") != driver_symbol("cuMemAlloc_v2") &&
	                                      driver_symbol("cuMemAllocAsync") != driver_symbol("cuMemAllocAsync_ptsz"));
}

void section_resolver_runtime(int arg)
{
	static const char *const names[] = {"cuMemAlloc",     "cuMemAllocAsync", "cuMemFree", "cuGetProcAddress",
	                                    "cuNoSuchFunction", "cuMemAlloc_v2",   "cudaMalloc"};
	static const unsigned versions[] = {2000, 3020, 11030, 12000, 13000, 99000};
	char key[128];
	(void)arg;

	for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
		for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++) {
			void *address = SENTINEL;
			enum cudaDriverEntryPointQueryResult status = (enum cudaDriverEntryPointQueryResult)77;
			int code = (int)cudaGetDriverEntryPointByVersion(names[n], &address, versions[v], cudaEnableDefault,
			                                                 &status);
			snprintf(key, sizeof key, "%s.%u", names[n], versions[v]);
			fact(key, "%d,status=%d,%s,last=%d", code, (int)status, spelling(names[n], address),
			     (int)cudaGetLastError());
		}
		void *address = SENTINEL;
		int code = (int)cudaGetDriverEntryPointByVersion(names[n], &address, 13000, cudaEnablePerThreadDefaultStream,
		                                                 NULL);
		snprintf(key, sizeof key, "%s.per_thread", names[n]);
		fact(key, "%d,%s,last=%d", code, spelling(names[n], address), (int)cudaGetLastError());
	}
}
