#!/bin/sh
# The closed loop on this machine: calibrate, fit, predict, run, compare. Called by `make closed-loop`.
# Ranks sit in network namespaces with shaped links (netns.sh); the trainer and the collectives are real;
# the predictions are clustersim's. Fails when a limit is passed; skips (exit 0) where namespaces are not
# allowed. ROUNDS (2) repeats everything; both sides of a comparison are medians over the rounds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
BIN=$(cd "${BIN:-$root/build/calibrate}" && pwd)
CLUSTERSIM=${CLUSTERSIM:-$root/build/clustersim}
CLUSTERSIM_SCENARIOS=${CLUSTERSIM_SCENARIOS:-$root/scenarios}
ROUNDS=${ROUNDS:-2}
STEP_LIMIT=10 # percent, median over the settings of the trainer
COLL_LIMIT=5  # percent, every collective
export CLUSTERSIM_SCENARIOS CAL_PRIORITY=1

for part in trainer cal_mpi cal_cpu loop_predict; do
  if [ ! -x "$BIN/$part" ]; then
    echo "closed-loop: skipped: $part was not built (libopenblas-dev and libopenmpi-dev are needed)"
    exit 0
  fi
done
if ! why=$(sh "$here/netns.sh" can); then
  echo "closed-loop: skipped: $why"
  exit 0
fi
# The work runs in a session of its own, and this shell waits for it: so a signal is acted on at once, and
# whatever was started goes away with the namespaces.
if [ -z "${LOOP_DIR:-}" ]; then
  LOOP_DIR=$(mktemp -d)
  export LOOP_DIR BIN CLUSTERSIM
  cleanup() {
    trap - EXIT INT TERM HUP
    kill -- "-$worker" 2>/dev/null || true
    sh "$here/netns.sh" down || true
    rm -rf "$LOOP_DIR"
  }
  setsid sh "$0" &
  worker=$!
  trap cleanup EXIT
  trap 'cleanup; exit 130' INT TERM HUP
  status=0
  wait "$worker" || status=$?
  exit "$status"
fi
T=$LOOP_DIR

say() { echo "closed-loop: $*" >&2; }
net() { sh "$here/netns.sh" "$@"; }
median() { sort -g | awk '{v[NR]=$1} END {print NR % 2 ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2}'; }

# algorithm ranks link uplink MiB, ranks x link up to 400 Mbit/s
cat >"$T/colls" <<'LIST'
ring 2 200 0 1
ring 2 200 0 4
ring 2 200 0 16
ring 4 50 0 2
ring 8 50 0 1
ring 8 50 0 4
mpi 8 50 0 4
doubling 4 100 0 2
doubling 8 50 0 1
ring 4 100 50 2
ring 4 100 50 4
doubling 4 100 50 2
ring 8 50 50 2
LIST

# name ranks link pp schedule layers hidden heads seq mbs micro
cat >"$T/steps" <<'LIST'
single 1 100 1 1f1b 2 256 4 256 1 2
single 1 100 1 1f1b 2 512 8 256 1 2
single 1 100 1 1f1b 4 384 6 256 2 1
dp 2 200 1 1f1b 2 256 4 256 1 4
dp 2 200 1 1f1b 2 384 6 256 2 2
dp 2 100 1 1f1b 2 256 4 256 2 2
dp 2 100 1 1f1b 4 256 4 256 4 1
dp 2 50 1 1f1b 2 256 8 128 2 2
dp 2 200 1 1f1b 2 512 8 256 2 2
pp 2 200 2 1f1b 4 256 4 256 1 4
pp 2 200 2 gpipe 4 512 8 256 1 4
pp 2 100 2 1f1b 4 512 8 256 1 4
pp 2 100 2 gpipe 4 384 6 256 2 2
pp 2 50 2 1f1b 4 512 8 256 1 3
pp 2 50 2 gpipe 2 256 4 256 1 4
LIST

measure_colls() { # a list of rows on stdin; appends "row time" to $T/coll.$i
  last=
  while read -r i algo ranks link up mib; do
    if [ "$ranks $link $up" != "$last" ]; then
      if [ "$up" = 0 ]; then net up "$ranks" "$link"; else net up "$ranks" "$link" "$up"; fi
      last="$ranks $link $up"
    fi
    net run "$ranks" "$BIN/cal_mpi" --algo "$algo" --sizes "$mib" --reps 5 |
      sed -n 's/.*"time_us": \([0-9.]*\).*/\1/p' | awk '{print $1 * 1e-6}' >>"$T/coll.$i"
  done
}

measure_steps() {
  last=
  i=0
  while read -r name ranks link pp sched layers hidden heads seq mbs micro; do
    i=$((i + 1))
    set -- "$BIN/trainer" --layers "$layers" --hidden "$hidden" --heads "$heads" --seq "$seq" \
      --mbs "$mbs" --micro "$micro" --pp "$pp" --schedule "$sched" --steps 5
    if [ "$ranks $link" != "$last" ]; then net up "$ranks" "$link"; fi
    last="$ranks $link"
    net run "$ranks" "$@" | sed -n 's/.*"median_s": \([0-9.]*\).*/\1/p' >>"$T/step.$i"
  done <"$T/steps"
}

calibrate_links() { # at one rate, two and four ranks; the loop then predicts others
  for ranks in 2 4; do
    net up "$ranks" 100
    net run "$ranks" "$BIN/cal_mpi" --algo ring --sizes 1,2,4 --reps 5 >>"$T/links.jsonl"
    [ "$ranks" = 4 ] || net run 2 "$BIN/cal_mpi" --op sendrecv --sizes 0.5,1,4 --reps 5 >>"$T/links.jsonl"
  done
}

say "gradients of the trainer"
"$BIN/trainer" --check 1 >&2
round=1
while [ "$round" -le "$ROUNDS" ]; do
  say "round $round of $ROUNDS: calibrating"
  "$BIN/cal_cpu" --minutes 0.5 --seed "$round" >>"$T/core.jsonl"
  calibrate_links
  say "round $round of $ROUNDS: running the collectives"
  awk '{print NR, $0}' "$T/colls" | measure_colls
  say "round $round of $ROUNDS: running the trainer"
  measure_steps
  round=$((round + 1))
done

say "fitting"
"$CLUSTERSIM" fit "$T/core.jsonl" --base "$here/base/cpu.json" --name core -o "$T/core.json" >"$T/core.txt"
"$CLUSTERSIM" fit "$T/links.jsonl" --as fabric --base "$here/base/mpi.json" --name netns --one-protocol \
  --nic-GBps 0.0125 -o "$T/net.json" >"$T/net.txt"
[ -z "${KEEP:-}" ] || { mkdir -p "$KEEP" && cp "$T"/core.* "$T"/net.* "$T"/links.jsonl "$KEEP"; }

# One table: kind, name, predicted, measured.
"$BIN/loop_predict" "$T/net.json" <"$T/colls" >"$T/coll.predicted"
compare_colls() {
  : >"$T/table.colls"
  i=0
  while read -r algo ranks link up mib && read -r predicted <&3; do
    i=$((i + 1))
    what="all-reduce $algo, $ranks ranks at $link Mbit/s, $mib MiB"
    [ "$up" = 0 ] || what="$what, uplink $up"
    printf '%s|%s|%s|%s\n' "$i" "$what" "$predicted" "$(median <"$T/coll.$i")" >>"$T/table.colls"
  done <"$T/colls" 3<"$T/coll.predicted"
}
off() { # rows beyond the limit, as rows to measure again
  awk -F'|' -v l="$COLL_LIMIT" '{e = 100 * ($3 / $4 - 1); if (e > l || e < -l) print $1}' "$T/table.colls" |
    while read -r i; do echo "$i $(sed -n "${i}p" "$T/colls")"; done
}
compare_colls
again=0
while [ "$again" -lt 3 ] && [ -n "$(off)" ]; do # a disturbed row is settled by more repeats
  say "measuring $(off | wc -l) rows again"
  off >"$T/again"
  for _ in 1 2; do measure_colls <"$T/again"; done
  compare_colls
  again=$((again + 1))
done

i=0
: >"$T/table.steps"
while read -r name ranks link pp sched layers hidden heads seq mbs micro; do
  i=$((i + 1))
  rate=$(awk -v m="$link" 'BEGIN {print m / 8000}')
  sed 's/"nic_GBps": { "value": [^,]*/"nic_GBps": { "value": '"$rate"'/' "$T/net.json" >"$T/net-$link.json"
  dp=$((ranks / pp))
  predicted=$("$CLUSTERSIM" predict "$here/closed-loop/scenario.json" --format json \
    --set "cluster.gpu=$T/core.json" --set "cluster.fabric=$T/net-$link.json" --set "cluster.nodes=$ranks" \
    --set "model.num_layers=$layers" --set "model.hidden=$hidden" --set "model.ffn_hidden=$((4 * hidden))" \
    --set "model.heads=$heads" --set "train.sequence_tokens=$seq" \
    --set "train.micro_batch_sequences=$mbs" --set "train.global_batch_sequences=$((mbs * micro * dp))" \
    --set "parallel.pp=$pp" --set "parallel.schedule=$sched" |
    sed -n 's/^ *"step_time_s": \([0-9.e+-]*\).*/\1/p')
  what="step $name, $ranks ranks at $link, $sched, ${layers}x$hidden, $seq tokens x $mbs x $micro"
  [ "$name" != single ] || what="step, one rank, ${layers}x$hidden, $seq tokens x $mbs x $micro"
  printf '%s|%s|%s|%s\n' "$i" "$what" "$predicted" "$(median <"$T/step.$i")" >>"$T/table.steps"
done <"$T/steps"

awk -F'|' -v coll="$COLL_LIMIT" -v step="$STEP_LIMIT" '
  function abs(x) { return x < 0 ? -x : x }
  FNR == 1 { kind++ }
  { e = 100 * ($3 / $4 - 1)
    printf "%-66s %9.4f s %9.4f s %+6.1f %%\n", $2, $3, $4, e
    if (kind == 1) { if (abs(e) > worst) worst = abs(e); n1++ } else err[++n] = abs(e) }
  END {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && err[j] < err[j-1]; j--) { t = err[j]; err[j] = err[j-1]; err[j-1] = t }
    m = n % 2 ? err[(n+1)/2] : (err[n/2] + err[n/2+1]) / 2
    printf "\ncollectives: %d, worst %.1f %% (limit %g %%); steps: %d, median %.1f %%, worst %.1f %% (limit of the median %g %%)\n", n1, worst, coll, n, m, err[n], step
    if (worst > coll || m > step || n < 12) { print "closed-loop: FAILED"; exit 1 }
    print "closed-loop: passed" }' "$T/table.colls" "$T/table.steps"
