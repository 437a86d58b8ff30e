#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# collective: the columns of nccl-tests, busbw by its definition, and a log beside the prediction.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
s=llama-3.1-405b-16k

done_with "text" collective $s --op all_gather --ranks 64 --min 1M --max 64M
grep -q '^#  *size  *count  *time  *algbw  *busbw' "$out" && ok "nccl-tests' header" || nok "nccl-tests' header"
[ "$(grep -vc '^#' "$out")" -eq 7 ] && ok "a line a size" || nok "a line a size"
done_with "json" collective $s --op alltoall --ranks 16 --min 1K --max 1M --format json
# 2(n-1)/n for an all-reduce, (n-1)/n for the others of this list, 1 for a broadcast.
for op in all_reduce:1.75 all_gather:0.875 reduce_scatter:0.875 alltoall:0.875 broadcast:1; do
  done_with "csv, ${op%:*}" collective $s --op "${op%:*}" --ranks 8 --min 8 --max 8G --format csv
  awk -F, -v f="${op#*:}" 'NR > 1 { a = $1 / $2 / 1e3; e = $4 / (a * f) - 1; if (e < 0) e = -e
      if (e > 1e-4 || $2 < last) bad = 1; last = $2 } END { exit bad || NR != 32 }' "$out" &&
    ok "busbw and order, ${op%:*}" || nok "busbw and order, ${op%:*}"
done
done_with "forced" collective $s --ranks 8 --algo ring --proto simple --min 8 --max 1M --format csv
[ "$(grep -c ',Ring,Simple,' "$out")" -eq 18 ] && ok "ring and Simple throughout" || nok "ring and Simple throughout"

# A log made of the prediction, slowed to 1.25 times: every error is -20 %.
sim collective $s --ranks 16 --min 1M --max 1G --format csv
{
  echo '# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0'
  echo '#'
  echo '#                                                              out-of-place                       in-place'
  echo '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong'
  echo '#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)'
  awk -F, 'NR > 1 { t = $2 * 1.25; a = $1 / t / 1e3
    printf "%12d %12d float sum -1 %9.2f %.2f %.2f 0 %9.2f %.2f %.2f 0\n", $1, $1 / 4, t, a, a * 1.875, t, a, a * 1.875 }' "$out"
  echo '# Out of bounds values : 0 OK'
  echo '# Avg bus bandwidth    : 100'
} >"$tmp/log"
done_with "against a log" collective $s --ranks 16 --against "$tmp/log"
grep -q 'against 11 measured sizes: 20.0 %' "$out" && ok "its error" || nok "its error"
refused "a log of another operation" 2 'another operation' collective $s --ranks 16 --op alltoall --against "$tmp/log"
head -c 300 "$tmp/log" >"$tmp/cut"
refused "a log that is cut" 2 'cut' collective $s --ranks 16 --against "$tmp/cut"
refused "no log" 2 'nolog' collective $s --against "$tmp/nolog"
refused "operation" 2 'all_gather' collective $s --op allgatherx
refused "algorithm" 2 'Ring' collective $s --algo star
refused "protocol" 2 'LL128' collective $s --proto x
refused "size" 2 '64K' collective $s --min 1Q
refused "order of sizes" 2 'at most --max' collective $s --min 2M --max 1M
refused "factor" 2 'above 1' collective $s --factor 1
refused "too many sizes" 2 'larger factor' collective $s --factor 1.000001
refused "one rank" 2 '2 to' collective $s --ranks 1
refused "ranks that do not divide" 2 'divisor' collective $s --ranks 20 --ranks-per-node 8
refused "no scenario" 2 'nothere' collective nothere
done_with "help" collective --help
finish
