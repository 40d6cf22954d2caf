#!/bin/sh
# What the plan file's library needs when it is linked into a shared one: libc alone, and of that neither malloc nor a function that a host
# program could have in its way, interpose, or be cancelled in. Argument: that shared library.
failed=0
check() { # NAME EMPTY: text that must be empty
    if [ -z "$2" ]; then
        echo "ok $1"
    else
        echo "not ok $1:" $2
        failed=1
    fi
}
undefined=$(nm -D --undefined-only "$1" | awk '{ print $NF }')
plain=$(echo "$undefined" | sed 's/@.*//')
missing=
for name in syscall vsnprintf memcpy strcmp; do
    echo "$plain" | grep -qx "$name" || missing="$missing $name"
done
check the_code_is_in_it "$missing"
check only_what_formats_compares_and_copies "$(echo "$plain" | grep -vxE '(mem|str)[a-z]+|v?snprintf|syscall|__errno_location|__stack_chk_fail|__cxa_finalize|__gmon_start__|_ITM_.*|__asan_.*|__ubsan_.*')"
check of_strings_none_that_takes_memory_or_a_locale "$(echo "$plain" | grep -xE 'strn?dup|strerror(_r)?|strto.*|strcoll|strxfrm|strftime')"
check no_glibc_version_above_2.17 "$(echo "$undefined" | sed -n 's/.*@GLIBC_//p' | sort -u -V | awk -F. '$1 > 2 || ($1 == 2 && $2 > 17)')"
check only_libc_needed "$(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE 'libc\.so\.6|libm\.so\.6|libstdc\+\+\.so\.6|libgcc_s\.so\.1|ld-linux-.*')"
check hidden "$(nm -D --defined-only "$1" | awk '{ print $NF }' | grep '^tn_')"
exit $failed
