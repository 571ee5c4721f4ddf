#!/bin/bash
# A shared library must define ty_* for its users and nothing else: exports.sh LIBRARY
set -euo pipefail
names=$(nm --dynamic --defined-only --format=just-symbols "$1")
echo "$names"
grep -q '^ty_align$' <<< "$names"
! grep -v '^ty_' <<< "$names"
