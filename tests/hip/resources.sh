#!/bin/bash
# Compiles a HIP source for one architecture and checks what each kernel needs of the card:
#   resources.sh ARCHITECTURE SOURCE
# Environment: CLANG, READELF, ROCM (a tree with include/ and amdgcn/bitcode/), ROOT (of this repository).
set -euo pipefail
architecture=$1 source=$2
object=$(mktemp --suffix=.o)
trap 'rm -f "$object"' EXIT

"$CLANG" -x hip -std=c++20 -O3 -Wall -Wextra -Werror -I"$ROOT" -I"$ROOT/src" -I"$ROOT/include" \
  -isystem "$("$CLANG" -print-resource-dir)" --rocm-path="$ROCM" \
  --offload-device-only --no-gpu-bundle-output -mcode-object-version=5 --offload-arch="$architecture" \
  "$source" -o "$object"

# The notes list each kernel's properties in alphabetical order: wavefront_size ends one. Spilled SGPRs go to
# lanes of a VGPR, so only VGPRs and the private segment mean trips to memory. Sorting many tiles in two passes
# (more than 256 experts) may take 80 VGPRs: its shared memory leaves room for two waves a SIMD anyway. Gate's
# kernels may take 96, which leaves room for five; where a token has many experts, shared memory leaves it for
# two to four. The losses, which keep a row of logits, of scores and of loads, may take 84, for three waves on
# gfx908.
"$READELF" --notes "$object" | c++filt | awk -v card="$architecture" '
  BEGIN { printf "%-7s %5s %5s %7s %6s %8s  kernel\n", "card", "VGPRs", "SGPRs", "spilled", "LDS", "scratch" }
  $1 == ".name:" && /run</ { sub(/^ *\.name: */, ""); name = $0 }
  $1 ~ /^\.(vgpr_count|sgpr_count|vgpr_spill_count|sgpr_spill_count|(group|private)_segment_fixed_size):$/ {
    value[substr($1, 2, length($1) - 2)] = $2
  }
  $1 == ".wavefront_size:" {
    vgprs = value["vgpr_count"]
    lds = value["group_segment_fixed_size"]
    scratch = value["private_segment_fixed_size"]
    most = name ~ /Grid<.*, 2, 1,/ ? 80 : name ~ /(Any|Lanes)Gate</ ? 96 : name ~ /TokenLosses</ ? 84 : 64
    bad = scratch > 0 || value["vgpr_spill_count"] > 0 || vgprs > most || lds > 32768
    printf "%-7s %5d %5d %7d %6d %8d  %s\n", card, vgprs, value["sgpr_count"], value["sgpr_spill_count"], lds,
           scratch, name
    if (bad) printf "  ^ expected at most %d VGPRs, 32768 bytes of LDS, and nothing spilled to memory\n", most
    kernels++
    failures += bad
  }
  END {
    printf "%d kernels, %d over the limits\n", kernels, failures
    exit kernels == 0 || failures > 0
  }'
