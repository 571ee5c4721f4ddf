#!/bin/bash
# Builds and runs consumer/ as a user of the library would: consume.sh WAY SOURCE_DIR WORK_DIR [CMAKE_ARG...]
#   WAY: static or shared (installed, then found), source (taken in with FetchContent)
set -euo pipefail
way=$1 source=$2 work=$3
shift 3
rm -rf "$work"
mkdir -p "$work"

if [ "$way" = source ]; then
  where=-DTOKENYARD_SOURCE_DIR=$source
else
  shared=$([ "$way" = shared ] && echo ON || echo OFF)
  cmake -S "$source" -B "$work/library" -DBUILD_SHARED_LIBS="$shared" -DCMAKE_BUILD_TYPE=Release \
    -DTOKENYARD_BUILD_TOOLS=OFF -DTOKENYARD_BUILD_TESTS=OFF "$@"
  cmake --build "$work/library" --parallel 2
  cmake --install "$work/library" --prefix "$work/prefix"
  where=-DCMAKE_PREFIX_PATH=$work/prefix
fi
cmake -S "$source/tests/package/consumer" -B "$work/consumer" "$where" "$@"
cmake --build "$work/consumer" --parallel 2
"$work/consumer/use_c"
"$work/consumer/use_cpp"
if [ "$way" = shared ]; then "$source/tests/package/exports.sh" "$work"/prefix/lib*/libtokenyard.so; fi
