/* Who may reach growing memory beside its own device: peers come and go for all regions at once. */
#include "tiers/vmm_inside.h"

tn_cuda_access tn_vmm_access_of(int device, int flags)
{
    return (tn_cuda_access){.location = {TN_CUDA_ON_DEVICE, device}, .flags = flags};
}

/* For every range below region `end` (0: for every one); *stopped is the region that failed. */
static tn_mem_error set_access(tn_vmm *vmm, tn_cuda_access access, uint64_t end, uint64_t *stopped)
{
    tn_book_entry entry = {0};
    while (tn_book_next(&vmm->book, entry.region.id, &entry) && (end == 0 || entry.region.id < end)) {
        const tn_vmm_region *r = entry.payload;
        *stopped = entry.region.id;
        tn_mem_error error = r->plain.base != NULL ? TN_MEM_OK : tn_vmm_range_access(&vmm->device, &r->range, access);
        if (error != TN_MEM_OK)
            return error;
    }
    return TN_MEM_OK;
}

static tn_mem_error change_access(tn_vmm *vmm, int device, int flags, int flags_before)
{
    uint64_t stopped = 0, again;
    tn_mem_error error = set_access(vmm, tn_vmm_access_of(device, flags), 0, &stopped);
    if (error != TN_MEM_OK)
        (void)!set_access(vmm, tn_vmm_access_of(device, flags_before), stopped, &again);
    return error;
}

size_t tn_vmm_find_peer(const tn_vmm *vmm, int device)
{
    size_t i = 1;
    while (i < vmm->device.access_count && vmm->access[i].location.id != device)
        i++;
    return i;
}

tn_mem_error tn_vmm_enable_peer(tn_vmm *vmm, int device)
{
    if (vmm == NULL || device == vmm->device.property.location.id || tn_vmm_find_peer(vmm, device) < vmm->device.access_count ||
        vmm->device.access_count > TN_VMM_PEERS_MAX)
        return TN_MEM_E_ARGUMENT;
    tn_mem_error error = change_access(vmm, device, TN_CUDA_ACCESS_READ_WRITE, TN_CUDA_ACCESS_NONE);
    if (error == TN_MEM_OK)
        vmm->access[vmm->device.access_count++] = tn_vmm_access_of(device, TN_CUDA_ACCESS_READ_WRITE);
    return error;
}

tn_mem_error tn_vmm_disable_peer(tn_vmm *vmm, int device)
{
    size_t at = vmm == NULL ? 0 : tn_vmm_find_peer(vmm, device);
    if (vmm == NULL || at == vmm->device.access_count)
        return TN_MEM_E_ARGUMENT;
    tn_mem_error error = change_access(vmm, device, TN_CUDA_ACCESS_NONE, TN_CUDA_ACCESS_READ_WRITE);
    if (error == TN_MEM_OK)
        vmm->access[at] = vmm->access[--vmm->device.access_count];
    return error;
}
