#!/bin/sh
# A small network on this machine: ranks in network namespaces joined by a switch, links shaped by tbf.
#   netns.sh can                       exit 0 when namespaces and tbf are allowed, else says why not
#   netns.sh up RANKS MBIT [UPLINK]    every rank's link at MBIT Mbit/s; with UPLINK, half of the ranks
#                                      sit behind another switch, joined by a link of that rate
#   netns.sh run RANKS PROGRAM …       mpirun over the ranks
#   netns.sh down                      removes everything; safe at any time
# PREFIX (cslab) names the namespaces, so that two of these do not meet.
set -eu
PREFIX=${PREFIX:-cslab}
export CAL_PRIORITY=1
TMP=${TMPDIR:-/tmp}
dir=$TMP/$PREFIX.netns

sw() { ip netns exec "${PREFIX}sw" "$@"; }

down() {
  for n in $(ip netns list 2>/dev/null | awk '{print $1}' | grep "^$PREFIX" || true); do
    for pid in $(ip netns pids "$n" 2>/dev/null || true); do
      kill -KILL "$pid" 2>/dev/null || true
    done
    ip netns delete "$n" || true
  done
  rm -rf "$dir"
}

shape() { # namespace device Mbit: only 16 KB pass at full speed after a pause; the queue loses nothing
  ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "$3mbit" burst 16kb latency "${4:-50ms}"
}

bridge() {
  sw ip link add "$1" type bridge
  sw ip link set "$1" up
}

rank_up() { # rank bridge Mbit
  h=$PREFIX$1
  ip netns add "$h"
  ip link add "p$1" netns "${PREFIX}sw" type veth peer name eth0 netns "$h"
  # whole segments of 64 KB would not fit the bucket
  ip netns exec "$h" ip link set eth0 gso_max_size 1514 gso_max_segs 1
  sw ip link set "p$1" gso_max_size 1514 gso_max_segs 1
  ip netns exec "$h" ip addr add "10.77.0.$(($1 + 1))/24" dev eth0
  ip netns exec "$h" ip link set lo up
  ip netns exec "$h" ip link set eth0 up
  # bbr holds back on a queue as short as this one
  ip netns exec "$h" sysctl -qw net.ipv4.tcp_congestion_control=reno
  sw ip link set "p$1" master "$2"
  sw ip link set "p$1" up
  shape "$h" eth0 "$3"
  shape "${PREFIX}sw" "p$1" "$3"
}

up() { # ranks Mbit [uplink Mbit]
  down
  mkdir -p "$dir"
  ip netns add "${PREFIX}sw"
  bridge br0
  if [ -n "${3:-}" ]; then
    bridge br1
    sw ip link add u0 type veth peer name u1
    for i in 0 1; do
      sw ip link set "u$i" gso_max_size 1514 gso_max_segs 1
      sw ip link set "u$i" master "br$i"
      sw ip link set "u$i" up
      shape "${PREFIX}sw" "u$i" "$3" 800ms
    done
  fi
  i=0
  while [ "$i" -lt "$1" ]; do
    b=br0
    if [ -n "${3:-}" ] && [ "$i" -ge $(($1 / 2)) ]; then b=br1; fi
    rank_up "$i" "$b" "$2"
    i=$((i + 1))
  done
  # mpirun reaches a "host", an address, in its namespace, under a host name of its own
  cat >"$dir/agent" <<AGENT
#!/bin/sh
while [ "\${1#10.77.0.}" = "\$1" ]; do shift; done
i=\$((\${1##*.} - 1)); shift
exec ip netns exec $PREFIX\$i unshare --uts sh -c "hostname h\$i; \$*"
AGENT
  chmod +x "$dir/agent"
}

run() { # ranks program …
  n=$1 hosts= i=0
  shift
  while [ "$i" -lt "$n" ]; do
    hosts=$hosts${hosts:+,}10.77.0.$((i + 1)):1
    i=$((i + 1))
  done
  # Messages go eagerly: a clear-to-send would wait behind bulk data in the same shaped queue.
  ip netns exec "${PREFIX}0" unshare --uts sh -c 'hostname h0; exec "$@"' sh \
    mpirun --allow-run-as-root --oversubscribe -n "$n" -H "$hosts" \
    --mca plm_rsh_agent "$dir/agent" --mca plm_rsh_no_tree_spawn 1 --mca pml ob1 \
    --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
    --mca hwloc_base_binding_policy none --mca mpi_yield_when_idle 1 \
    --mca btl_tcp_eager_limit 67108864 --mca btl_tcp_max_send_size 67108864 \
    -x CAL_PRIORITY --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 4 \
    "$@" </dev/null 2>"$dir/stderr" || { cat "$dir/stderr" >&2; return 1; }
}

can() {
  for tool in ip tc mpirun unshare; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed"; return 1; }
  done
  PREFIX=${PREFIX}t
  if ! ip netns add "${PREFIX}0" 2>/dev/null; then
    echo "network namespaces are not allowed here"
    return 1
  fi
  ok=0
  ip -n "${PREFIX}0" link add d0 type veth peer name d1 2>/dev/null &&
    ip netns exec "${PREFIX}0" tc qdisc add dev d0 root tbf rate 10mbit burst 64kb latency 50ms \
      2>/dev/null || ok=1
  ip netns delete "${PREFIX}0"
  [ "$ok" = 0 ] || { echo "veth links or tbf are not allowed here"; return 1; }
}

cmd=$1
shift
"$cmd" "$@"
