/* Names and texts of result codes. */
#include "fake.h"

static const struct { CUresult code; const char *name, *text; } errors[] = {
#define FK_ERROR(code, text) {code, #code, text},
#include "errors.def"
#undef FK_ERROR
};

static CUresult lookup(CUresult code, const char **out, bool name)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code) {
            *out = name ? errors[i].name : errors[i].text;
            return CUDA_SUCCESS;
        }
    *out = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

FK_API_EARLY(cuGetErrorName, (CUresult error, const char **out), lookup(error, out, true))
FK_API_EARLY(cuGetErrorString, (CUresult error, const char **out), lookup(error, out, false))
