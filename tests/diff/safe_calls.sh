#!/bin/bash
# tests/gpu/safe_calls without its times: which driver calls leave a capture alive, some 300 of them, in each mode.
set -o pipefail
"$(dirname "$0")/safe_calls" | grep -v '^latency\.'
