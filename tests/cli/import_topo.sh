#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# import of links: what a user's own tools tell becomes files that collective and predict read; what no network can
# be ends with one line and status 2, in seconds.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
s=llama-3.1-405b-16k d=tests/data/import

# A node as a fabric: read by collective, and by predict inside a scenario.
for f in nvidia-smi-topo:a100-4g.txt nccl-topo:node.xml; do
  done_with "${f%%:*}" import "${f%%:*}" $d/"${f#*:}" --format json
  cp "$out" "$tmp/fabric.json"
  done_with "${f%%:*}: a fabric that reads" collective $s --set cluster.fabric="$tmp/fabric.json" --ranks 2 --min 1M --max 64M
done
sim import nvidia-smi-topo $d/a100-4g.txt
grep -q '"node": "nvlink3-a100"' "$out" && grep -A1 '"nics_per_node"' "$out" | grep -q '"value": 2' &&
  ok "12 NVLinks: A100; the NIC far from all GPUs is left out" || nok "12 NVLinks: A100; two NICs"
sim import nccl-topo $d/node.xml
grep -q '"node": "nvlink5-b200"' "$out" && grep -A1 '"nic_GBps"' "$out" | grep -q '"value": 50' &&
  ok "sm 100: B200, NICs of the file's rate" || nok "sm 100: B200, NICs of the file's rate"
sim import nvidia-smi-topo $d/a100-4g.txt -o "$tmp/node.json"
done_with "predict on it" predict gpt3-175b-a100 --set cluster.fabric="$tmp/node.json" --set cluster.gpus_per_node=4 \
  --set cluster.nodes=16 --set parallel.tp=4 --set parallel.pp=16
done_with "given by hand" import nvidia-smi-topo $d/pcie-2g.txt node=pcie4-l40s network=roce nics=2 nic_GBps=12.5 name=mine
cp "$out" "$tmp/mine.json"
done_with "... reads" collective $s --set cluster.fabric="$tmp/mine.json" --set cluster.gpus_per_node=2 --ranks 8 --ranks-per-node 2 --min 1M --max 1M

# The same as links, and networks: read by collective --topology. ib NAME=VALUE where a file says too little.
for f in nvidia-smi-topo:a100-4g.txt nvidia-smi-topo:pcie-2g.txt nccl-topo:node.xml; do
  done_with "links of ${f#*:}" import "${f%%:*}" $d/"${f#*:}" part=topology
  cp "$out" "$tmp/topo.json"
  done_with "links of ${f#*:} read" collective $s --topology "$tmp/topo.json" --ranks 2 --ranks-per-node 2 --env NCCL_ALGO=Ring --min 64M --max 64M
done
for f in slurm-topology:tree.conf slurm-topology:block.conf slurm-topology:cluster.yaml ibnet:net.txt; do
  done_with "network of ${f#*:}" import "${f%%:*}" $d/"${f#*:}"
  cp "$out" "$tmp/net.json"
  done_with "network of ${f#*:} reads" collective $s --topology "$tmp/net.json" --ranks 24 --min 64M --max 64M
done
done_with "halls joined" import slurm-topology $d/halls.conf join=core system=dgx-a100-superpod
cp "$out" "$tmp/net.json"
printf 'n6\nn1  # a comment\n' >"$tmp/hosts.txt"
done_with "ranks on the hosts of a list" collective $s --topology "$tmp/net.json" --ranks 16 --placement "$tmp/hosts.txt" --min 64M --max 64M
# Oversubscription shows between leaves and not within one.
sim import slurm-topology $d/tree.conf oversubscription=8 -o "$tmp/over.json"
slow () { sim collective $s --topology "$tmp/over.json" --placement "$1" --ranks 16 --env NCCL_ALGO=Ring --env NCCL_PROTO=Simple --min 1G --max 1G --format csv; awk -F, 'NR == 2 { print $2 }' "$out"; }
printf 'n0\nn1\n' >"$tmp/near.txt"
printf 'n0\nn5\n' >"$tmp/far.txt"
near=$(slow "$tmp/near.txt") far=$(slow "$tmp/far.txt")
awk -v a="$near" -v b="$far" 'BEGIN { exit !(a > 0 && b > 1.2 * a) }' && ok "hosts of two leaves share what is above" ||
  nok "hosts of two leaves share what is above" "near $near far $far"

# An nccl-tests log as a table that validate reads.
{
  echo '# nThread 1 nGpus 8 minBytes 8 maxBytes 128M'
  echo '#  Rank  0 Group  0 Pid 1 on h0 device  0 [0x01] NVIDIA H100 80GB HBM3'
  echo '#  Rank  7 Group  0 Pid 1 on h0 device  7 [0x08] NVIDIA H100 80GB HBM3'
  echo '    67108864      16777216     float     sum      -1    355.7  188.67  330.17      0    355.0  189.0  330.8      0'
  echo '   134217728      33554432     float     sum      -1    608.1  220.72  386.25      0    608.0  220.8  386.3      0'
} >"$tmp/log"
done_with "nccl-tests" import nccl-tests "$tmp/log" --format json
grep -q '"op": "all_reduce"' "$out" && grep -q '"ranks": 8' "$out" && ok "operation and ranks" || nok "operation and ranks"
done_with "nccl-tests, csv" import nccl-tests "$tmp/log" --format csv gpu=H100
cp "$out" "$tmp/table.csv"
done_with "validate reads it" validate "$tmp/table.csv" --format json
grep -q '"n": 2' "$out" && ok "both rows" || nok "both rows"
echo '  8388608   131072   float   none   -1   166.6   50.34   47.19  0' >"$tmp/unsure"
refused "operation not told" 2 'op=all_gather, op=alltoall' import nccl-tests "$tmp/unsure"
done_with "operation given" import nccl-tests "$tmp/unsure" op=all_gather

# What cannot be.
refused "halls apart" 2 'no one network.*join=' import slurm-topology $d/halls.conf
refused "a loop" 2 'closes a loop' import slurm-topology $d/loop.conf
refused "two hosts of one name" 2 'twins.conf:3.*host n3' import slurm-topology $d/twins.conf
refused "ten million hosts" 2 'allowed: 1000000' import slurm-topology $d/huge.conf
refused "a torus" 2 'torus3d' import slurm-topology $d/cluster.yaml topology=grid
refused "what is given and unknown" 2 'NAME=VALUE with' import slurm-topology $d/tree.conf systm=x
refused "a system that is not there" 2 'nearest|allowed' import slurm-topology $d/tree.conf system=dgx-h10-superpod
refused "racks for hosts" 2 'tray' import slurm-topology $d/tree.conf system=gb200-nvl72
refused "a rate of nothing" 2 'nic_GBps' import slurm-topology $d/tree.conf nic_GBps=0
refused "csv of links" 2 'csv' import ibnet $d/net.txt --format csv
refused "fabric of unknown links" 2 'node=NAME' import nvidia-smi-topo $d/pcie-2g.txt part=fabric
refused "no such file" 2 'nothere' import ibnet nothere
for f in nvidia-smi-topo:a100-4g.txt nccl-topo:node.xml ibnet:net.txt; do
  size=$(wc -c <$d/"${f#*:}")
  head -c $((size / 3)) $d/"${f#*:}" >"$tmp/cut"
  sim import "${f%%:*}" "$tmp/cut"
  [ $rc -eq 2 ] && [ "$(wc -l <"$err")" -eq 1 ] || [ $rc -eq 0 ] && ok "cut: ${f#*:}" || nok "cut: ${f#*:}"
  printf 'GPU0\377\376\200\n' >"$tmp/bytes"
  refused "not UTF-8: ${f%%:*}" 2 'bytes' import "${f%%:*}" "$tmp/bytes"
done

# The same by hand: topologies in JSON.
sim import slurm-topology $d/tree.conf -o "$tmp/good.json"
t () { refused "$1" 2 "$2" collective $s --topology "$tmp/bad.json" --ranks 16 --min 1M --max 1M; }
sed '0,/"GBps": 50,*/s//"GBps": 0/' "$tmp/good.json" >"$tmp/bad.json"
t "a link of no bandwidth" 'GBps'
sed '0,/"name": "n1"/s//"name": "n0"/' "$tmp/good.json" >"$tmp/bad.json"
t "twins in a graph" 'two hosts are called n0'
sed '0,/"a": [0-9]*,/s//"a": 900,/' "$tmp/good.json" >"$tmp/bad.json"
t "a link to nowhere" 'out of range'
sed 's/"extends": "[a-z0-9-]*"/"extends": "bad.json"/' "$tmp/good.json" >"$tmp/bad.json"
t "extends itself" 'circle'
n () { echo "{\"value\": $1, \"kind\": \"assumed\", \"source\": \"t\"}"; }
cat >"$tmp/bad.json" <<END
{ "nodes": 1000000, "node": { "gpus_per_host": $(n 8), "pcie_GBps": $(n 50), "nics_per_host": $(n 8) },
  "network": { "kind": "leaf-spine", "nic_GBps": $(n 50), "leaf_ports": $(n 32), "spine_ports": $(n 64) } }
END
t "ten million links" 'allowed'
cat >"$tmp/bad.json" <<END
{ "nodes": 2, "node": { "graph": { "source": "t", "parts": [ { "kind": "gpu" }, { "kind": "gpu" }, { "kind": "nic" } ],
  "links": [ { "a": 0, "b": 2, "kind": "pci", "GBps": 50 } ] } },
  "network": { "kind": "single-switch", "nic_GBps": $(n 50) } }
END
t "a GPU that nothing reaches" 'no links lead from gpu'
finish
