/* External memory: physical memory exported by descriptor and imported again as external, mapped, freed, destroyed. */
#include "observe.h"

int main(void)
{
	CUmemAllocationProp prop;
	CUmemGenericAllocationHandle h;
	cudaExternalMemory_t external = (cudaExternalMemory_t)KEPT;
	struct cudaExternalMemoryHandleDesc desc;
	struct cudaExternalMemoryBufferDesc range;
	void *p = KEPT;
	int fd = -1;
	memset(&prop, 0, sizeof prop);
	memset(&desc, 0, sizeof desc);
	memset(&range, 0, sizeof range);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	obs_code("init", cudaFree(NULL));
	obs_code("create", cuMemCreate(&h, 2 * MIB, &prop, 0));
	obs_code("export", cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	desc.type = cudaExternalMemoryHandleTypeOpaqueFd;
	desc.handle.fd = dup(fd);
	desc.size = 2 * MIB;
	int code = (int)cudaImportExternalMemory(&external, &desc);
	obs_last("import", code);
	if (code == 0) {
		range.size = MIB;
		obs_out("map", cudaExternalMemoryGetMappedBuffer(&p, external, &range), &p);
		obs_last("memset", (int)cudaMemset(p, 3, 4096) | (int)cudaDeviceSynchronize());
		obs_bytes("content", p, 3, 4096);
		struct cudaPointerAttributes a;
		obs_last("attributes", cudaPointerGetAttributes(&a, p));
		obs_code("type", (int)a.type);
		obs_last("free", cudaFree(p));
		obs_last("destroy", cudaDestroyExternalMemory(external));
	}
	desc.handle.fd = 0; /* no memory at all */
	obs_last("import.bad", cudaImportExternalMemory(&external, &desc));
	desc.size = 0;
	obs_last("import.zero", cudaImportExternalMemory(&external, &desc));
	obs_code("release", cuMemRelease(h));
	return 0;
}
