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
grep -q '1.25\|0.800' "$out" && ok "the ratio of each size" || nok "the ratio of each size"
# Half of the rate: the cause is named, in text and JSON; NCCL's variables change the table.
awk '/^ *[0-9]/ { $6 *= 2; $7 /= 2; $8 /= 2; $10 = $6; $11 = $7; $12 = $8 } { print }' "$tmp/log" >"$tmp/half"
done_with "half of the rate" collective $s --ranks 16 --against "$tmp/half"
grep -q 'likely cause: half-rate' "$out" && ok "its cause" || nok "its cause"
done_with "half of the rate, json" collective $s --ranks 16 --against "$tmp/half" --format json
grep -q '"name": "half-rate"' "$out" && grep -q '"ratio": 0\.[34]' "$out" && ok "cause and ratio" || nok "cause and ratio"
done_with "variables" collective $s --ranks 64 --env NCCL_ALGO=Tree --env NCCL_PROTO=LL --min 8 --max 1M --format csv
[ "$(grep -c ',Tree,LL,' "$out")" -eq 18 ] && ok "tree and LL throughout" || nok "tree and LL throughout"
done_with "version" collective $s --ranks 8 --nccl-version 2.16.2 --min 1G --max 1G --format csv
grep -q ',Ring,' "$out" && ok "2.16 has no NVLS" || nok "2.16 has no NVLS"
refused "variable" 2 'NCCL_ALGO' collective $s --env NCCL_ALGOS=Ring
refused "its value" 2 'Ring, Tree' collective $s --env NCCL_ALGO=star
refused "version that is none" 2 '2\.27\.7' collective $s --nccl-version x
# Links: all fidelities agree without contention; CROSS_NIC and PXN count where the spine is narrow.
t () { sim collective $s --set cluster.fabric=dgx-h100-ndr --topology "$@" --format csv; awk -F, 'NR == 2 { print $2 }' "$out"; }
a=$(t dgx-h100-superpod --ranks 32 --env NCCL_ALGO=Ring --min 1G --max 1G --fidelity analytic)
f=$(t dgx-h100-superpod --ranks 32 --env NCCL_ALGO=Ring --min 1G --max 1G --fidelity flow)
[ -n "$a" ] && [ "$a" = "$f" ] && ok "flow and analytic" || nok "flow and analytic" "$a $f"
n () { echo "{ \"value\": $1, \"kind\": \"assumed\", \"source\": \"test\" }"; }
echo "{ \"extends\": \"dgx-h100-superpod\", \"nodes\": 64, \"network\": { \"leaf_ports\": $(n 16), \"leaf_oversubscription\": $(n 8) } }" >"$tmp/narrow.json"
ring=$(t "$tmp/narrow.json" --ranks 128 --env NCCL_ALGO=Ring --min 1G --max 1G)
cross=$(t "$tmp/narrow.json" --ranks 128 --env NCCL_ALGO=Ring --env NCCL_CROSS_NIC=1 --min 1G --max 1G)
awk -v a="$ring" -v b="$cross" 'BEGIN { exit !(a > 0 && b > 1.5 * a) }' && ok "NCCL_CROSS_NIC" || nok "NCCL_CROSS_NIC" "$ring $cross"
pxn=$(t "$tmp/narrow.json" --ranks 128 --op alltoall --min 1G --max 1G)
own=$(t "$tmp/narrow.json" --ranks 128 --op alltoall --env NCCL_PXN_DISABLE=1 --min 1G --max 1G)
awk -v a="$pxn" -v b="$own" 'BEGIN { exit !(a > 0 && b > 1.5 * a) }' && ok "NCCL_PXN_DISABLE" || nok "NCCL_PXN_DISABLE" "$pxn $own"
done_with "hierarchical" collective $s --topology dgx-h100-superpod --algo hierarchical --ranks 64 --min 1G --max 1G
refused "links that are not there" 2 'nothere' collective $s --topology nothere
refused "fidelity without links" 2 'topology' collective $s --fidelity flow
refused "jobs without links" 2 'topology' collective $s --jobs 2
refused "a version before the tables" 2 '2.8 and later' collective $s --nccl-version 2.5
sim collective $s --op broadcast --algo NVLS --ranks 16 --min 1M --max 1M
grep -q '^# no NVLS for broadcast' "$out" && ok "told what is not there" || nok "told what is not there"
sim collective $s --env NCCL_CROSS_NIC=1 --ranks 16 --min 1M --max 1M
grep -q 'count with --topology' "$out" && ok "told what does not count" || nok "told what does not count"
refused "fidelity" 2 'analytic' collective $s --topology dgx-h100-superpod --fidelity fluid
refused "placement" 2 'scattered' collective $s --topology dgx-h100-superpod --ranks 16 --placement diagonal
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
