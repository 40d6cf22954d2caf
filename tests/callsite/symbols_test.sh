#!/bin/sh
# What the call-site code needs and shows when it is linked into a shared library. Argument: that library.
lib=$1
failed=0
check() { # NAME EMPTY: text that must be empty
    if [ -z "$2" ]; then
        echo "ok $1"
    else
        echo "not ok $1:" $2
        failed=1
    fi
}
undefined=$(nm -D --undefined-only "$lib" | awk '{ print $NF }')
[ -n "$undefined" ] || { echo "not ok no symbols read from $lib"; exit 1; }

plain=$(echo "$undefined" | sed 's/@.*//')
missing=
for name in dlopen dlvsym dl_iterate_phdr pthread_getattr_np; do
    echo "$plain" | grep -qx "$name" || missing="$missing $name"
done
check the_code_is_in_it "$missing"
# glibc_compat.h names these too, but nobody here refers to them.
check unused_bindings_leave_no_trace "$(echo "$plain" | grep -xE 'sem_init|pthread_create|shm_open|dlmopen')"
newer=$(echo "$undefined" | sed -n 's/.*@GLIBC_//p' | sort -u -V | awk -F. '$1 > 2 || ($1 == 2 && $2 > 28)')
check no_glibc_version_above_2.28 "$newer"
check neither_malloc_nor_stdio "$(echo "$plain" | grep -xE 'malloc|calloc|realloc|free|posix_memalign|aligned_alloc|strdup|f?printf|sn?printf|vsn?printf|puts|fopen|fread|fwrite|fclose|stdout|stderr')"
check no_direct_dlsym_or_dlclose "$(echo "$plain" | grep -xE 'dlsym|dlclose')"
check no_dynamic_tls "$(echo "$undefined" | grep -E '__tls_get_addr|tlsdesc')"
check nothing_of_libunwind "$(echo "$undefined" | grep -E '^(unw_|_U|_Unwind)')"
check only_libc_needed "$(readelf -dW "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE 'libc\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux-.*')"
check hidden "$(nm -D --defined-only "$lib" | awk '{ print $NF }' | sed 's/@.*//' | grep -E '^(tn_|mock_)')"
exit $failed
