#!/bin/sh
# The lint scripts find what they are for: each fault below, in a tree of its own, is found under its rule, and
# a tree without faults is clean.
set -u
lint=$(cd "$(dirname "$0")" && pwd)
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
status=0

tree() { # a fresh, clean tree
  rm -rf "$top/t"
  mkdir -p "$top/t/sim/engine" "$top/t/models" "$top/t/sim/app" "$top/t/calibrate" "$top/t/tests/unit"
  cd "$top/t" || exit 1
  printf '#ifndef CLUSTERSIM_EVQ_H\n#define CLUSTERSIM_EVQ_H\n#include <glib.h>\ndouble evq_delay_s (double gap_ms);\n#endif\n' \
    >sim/engine/evq.h
  printf '#ifndef CLUSTERSIM_GPU_H\n#define CLUSTERSIM_GPU_H\n#include "evq.h"\n#endif\n' >models/gpu.h
  printf '#ifndef CLUSTERSIM_CSV_H\n#define CLUSTERSIM_CSV_H\n#endif\n' >sim/app/csv.h
  printf '#include "gpu.h"\n#include <cjson/cJSON.h>\nstatic const int table[] = { 1 };\n' >sim/app/main.c
  printf '#pragma once\n' >calibrate/cal_common.cuh
  printf '#include "cal_common.cuh"\n#include <cuda_runtime.h>\n' >calibrate/cal_gemm.cu
}

expect() { # SCRIPT RULE FILE TEXT: TEXT added to FILE is found under RULE
  tree
  printf '%b\n' "$4" >>"$3"
  found=$(perl "$lint/$1.pl" 2>&1)
  case $found in
  *"[$2]"*) ;;
  *)
    echo "lint selftest: $1 did not find [$2] in: $4"
    status=1
    ;;
  esac
}

tree
for script in includes style length; do
  perl "$lint/$script.pl" || { echo "lint selftest: $script finds something in a clean tree"; status=1; }
done

expect includes direction sim/engine/evq.c '#include "gpu.h"'
expect includes direction models/gpu.c '#include "csv.h"'
expect includes json-in-app models/gpu.c '#include <cjson/cJSON.h>'
expect includes cuda-apart calibrate/fit.c '#include <cuda_runtime.h>'
expect includes direction calibrate/cal_gemm.cu '#include "gpu.h"'
expect includes include models/gpu.c '#include "nowhere.h"'
expect style random models/gpu.c 'int f (void)\n{\n  return rand ();\n}'
expect style clock models/gpu.c 'int f (void)\n{\n  return time (NULL);\n}'
expect style string sim/app/main.c 'void f (char *a)\n{\n  sprintf (a, "x");\n}'
expect style number sim/app/main.c 'double f (char *a)\n{\n  return atof (a);\n}'
expect style process sim/app/main.c 'int f (void)\n{\n  return system ("ls");\n}'
expect style memory models/gpu.c 'void f (void *a)\n{\n  free (a);\n}'
expect style exit models/gpu.c 'void f (void)\n{\n  exit (1);\n}'
expect style stdout models/gpu.c 'void f (void)\n{\n  printf ("x");\n}'
expect style hash-order models/gpu.c 'void f (GHashTable *h)\n{\n  g_hash_table_foreach (h, g, NULL);\n}'
expect style state models/gpu.c 'static int counter;'
expect style state models/gpu.c 'int counter = 3;'
expect style state models/gpu.c 'int f (void)\n{\n  static int calls;\n  return calls++;\n}'
expect style once models/gpu.h '#pragma once'
expect style guard models/other.h '#ifndef OTHER_H\n#define OTHER_H\n#endif'
expect style unfinished models/gpu.c "/* TO""DO */"
expect style blanks models/gpu.c 'int x (void); '
expect units unit models/gpu.h 'double gpu_delay (int n);'
expect units unit models/gpu.h 'struct s {\n  double lo_s, max_latency;\n};'
expect units unit models/gpu.h 'void f (int n, double wait_sec);'
expect units unit models/gpu.h 'gint64 buffer_size;'
expect length function-length models/gpu.c "int\nf (void)\n{\n$(yes '  g ();\n' | head -95 | tr -d '\n')}"
expect length file-length models/gpu.c "$(yes '/* x */\n' | head -705 | tr -d '\n')"

tree
printf 'void f (void *a)\n{\n  free (a); /* lint: allow memory: it came from a library */\n}\n' >models/gpu.c
perl "$lint/style.pl" || { echo "lint selftest: an allowed line is found"; status=1; }
exit $status
