/* The export of the library that symbols_test.sh looks at: pulls in the call-site code. The journal's writer is another package's; a definition that
 * does nothing keeps the library closed. */
#include "shim/callsite.h"

__attribute__((visibility("default"))) uint32_t anchor(void);

__attribute__((visibility("hidden"))) tn_error tn_journal_record(tn_journal *j, uint32_t type, const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    (void)j, (void)type, (void)a, (void)a_bytes, (void)b, (void)b_bytes;
    return TN_OK;
}

uint32_t anchor(void)
{
    tn_callsite_start(0, "/");
    tn_callsite_dlclose_begin();
    tn_callsite_dlclose_end();
    return tn_callsite(__builtin_return_address(0), __builtin_frame_address(0), 0);
}
