#define TN_TIERS_SPAN_MEMBERS
#include "tiers/span.h"

#include "tiers/span_make.h"

tn_stable_span tn_stable_make(void *data, size_t bytes)
{
    return (tn_stable_span){.tn_stable_address_ = (uintptr_t)data, .tn_stable_bytes_ = bytes};
}

void tn_stable_put(void *data, size_t bytes, tn_stable_span *span)
{
    span->tn_stable_address_ = (uintptr_t)data;
    span->tn_stable_bytes_ = bytes;
}

tn_stable_span tn_stable_none(void)
{
    return tn_stable_make(NULL, 0);
}

void *tn_stable_data(tn_stable_span span)
{
    return (void *)span.tn_stable_address_;
}

size_t tn_stable_bytes(tn_stable_span span)
{
    return span.tn_stable_bytes_;
}

tn_device_span tn_stable_widen(tn_stable_span span)
{
    return (tn_device_span){.data = (void *)span.tn_stable_address_, .bytes = span.tn_stable_bytes_};
}
