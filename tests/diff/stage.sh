# shellcheck shell=sh
# Sourced by this folder's tests with the files of the test as arguments: gathers them as `run` wants them, the programs in
# $STAGE/bin, the fake GPU in $STAGE/fake, the command and the shims in $STAGE/cli and $STAGE/shim. $STAGE is removed at the end.

STAGE=$(mktemp -d "${TEST_TMPDIR:-/tmp}/stage-XXXXXX") || exit 1
trap 'rm -rf "$STAGE"' EXIT
mkdir "$STAGE/bin" "$STAGE/bin/inner" "$STAGE/bin/golden" "$STAGE/fake" "$STAGE/cli" "$STAGE/shim"
for file in "$@"; do
    case $file in
    */fakegpu/*) cp -L "$file" "$STAGE/fake/" ;;
    cli/tenure | */cli/tenure) cp -L "$file" "$STAGE/cli/" ;;
    */libtenure.so | */libunwind.so* | */liblzma.so* | */libtenure_planted.so) cp -L "$file" "$STAGE/shim/" ;;
    */inner/*) cp -L "$file" "$STAGE/bin/inner/" ;;
    */golden/*) cp -L "$file" "$STAGE/bin/golden/" ;;
    *) cp -L "$file" "$STAGE/bin/" ;;
    esac
done
chmod -R u+w "$STAGE"
unset TENURE_LIB

# suite MODE [OPTION...] [NAME...]
suite() {
    suite_mode=$1
    shift
    "$STAGE/bin/run" "$suite_mode" -f "$STAGE/fake" -t "$STAGE/cli/tenure" "$@"
}
