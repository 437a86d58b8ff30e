#!/bin/sh
# shellcheck disable=SC2015 # ok never fails
# A sweep as a job array on a real Slurm, several nodes on this machine; one node is lost in mid-sweep. Everything
# stands in a folder of its own, on ports of its own; no service of the system is touched.
# shellcheck source=tests/cli/lib.inc
. tests/cli/lib.inc
none () { skip "a sweep on Slurm" "$1"; finish; exit 0; }
[ -z "$SANITIZED" ] || none "once is enough"
for c in slurmctld slurmd munged sbatch squeue; do command -v $c >/dev/null || none "no $c here (Debian: slurm-wlm, munge)"; done
[ "$(id -u)" -eq 0 ] || none "needs root"

host=$(hostname -s) port=$((20000 + $$ % 20000)) dir=$tmp/slurm
mkdir -p "$dir/key" "$dir/sock" "$dir/state"
chmod 700 "$dir/key"
chmod 755 "$tmp" "$dir" "$dir/sock"
pid_of () { cat "$dir/$1.pid" 2>/dev/null; }
# The controller saves its state on its way out: the folder is removed when all are gone.
stop () {
  pids=$(for d in n1 n2 n3 ctld munged; do pid_of $d; done)
  for p in $pids; do kill "$p" 2>/dev/null; done
  i=0
  for p in $pids; do while [ -d "/proc/$p" ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done; done
  rm -rf "$tmp"
}
trap stop EXIT
head -c 1024 /dev/urandom >"$dir/key/k"
chmod 400 "$dir/key/k"
munged --key-file "$dir/key/k" --socket "$dir/sock/s" --pid-file "$dir/munged.pid" --log-file "$dir/munged.log" \
  --seed-file "$dir/munged.seed" >/dev/null 2>&1 || none "munged does not start"
{
  echo "ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthInfo=socket=$dir/sock/s
SlurmctldPort=$port
SlurmctldPidFile=$dir/ctld.pid
SlurmctldLogFile=$dir/ctld.log
SlurmdPidFile=$dir/%n.pid
SlurmdLogFile=$dir/%n.log
SlurmdSpoolDir=$dir/spool-%n
StateSaveLocation=$dir/state
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SchedulerParameters=sched_interval=1
PartitionName=p Nodes=n1,n2,n3 Default=YES State=UP"
  for i in 1 2 3; do echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + i)) CPUs=1"; done
} >"$dir/slurm.conf"
export SLURM_CONF="$dir/slurm.conf"
slurmctld -c >/dev/null 2>&1 || none "slurmctld does not start"
for i in 1 2 3; do slurmd -N n$i >/dev/null 2>&1 || none "slurmd does not start"; done
up () { [ "$(timeout 10 sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" -eq 3 ]; }
i=0
while ! up && [ $i -lt 50 ]; do sleep 0.2; i=$((i + 1)); done
up || none "the nodes do not come up: $(timeout 5 sinfo -h -N -o '%N %T' 2>&1 | tr '\n' ' ')"

# Long enough that a node can be lost in the middle.
set -- gpt3-175b-a100 --vary train.global_batch_sequences=1024..4000+16 --vary train.recompute=full,selective
points=374
submit () { timeout 60 sbatch --parsable -o "$dir/job-%a.out" "$@" 2>"$err"; }
running () { timeout 20 squeue -h -r "$@" 2>/dev/null; }
submit --array=1-6 sim/examples/slurm-sweep.sbatch 6 "$dir/out" "$@" >"$out"
[ -s "$out" ] && ok "an array of six is submitted" || nok "an array of six is submitted"

i=0
while [ -z "$(find "$dir/out" -name '*.part' -size +1k 2>/dev/null)" ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i + 1)); done
victim=$(running -t R -o '%N %K' | head -1)
node=${victim% *} task=${victim#* }
if [ -n "$node" ] && kill -9 "$(pid_of "$node")" 2>/dev/null; then
  rm -f "$dir/$node.pid"
  # Its job dies with it: the sweep and the step that watches it.
  for p in /proc/[0-9]*; do
    { tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null | grep -q "$dir/out/shard-$task.csv" && kill -9 "${p#/proc/}" 2>/dev/null
  done
  ok "node $node is lost in shard $task"
else
  nok "a node is lost" "$victim"
fi
i=0
while running -t R,PD -o "on %N" | grep -qv "^on $node\$" && [ $i -lt 240 ]; do sleep 0.5; i=$((i + 1)); done
timeout 20 scancel -f --partition=p >/dev/null 2>&1
finished=$(find "$dir/out" -name 'shard-*.csv' | wc -l)
[ "$finished" -ge 4 ] && [ "$finished" -lt 6 ] && ok "the others are done ($finished of 6)" || nok "the others are done" "$finished"
sim sweep --merge "$dir"/out/shard-*.csv -o "$tmp/all.csv"
[ $rc -eq 1 ] && grep -q 'points are missing' "$err" && ok "the merge says what is missing" || nok "the merge says what is missing"
submit --array=1-6 --exclude="$node" sim/examples/slurm-sweep.sbatch 6 "$dir/out" "$@" >"$out"
[ -s "$out" ] && ok "the same line again, without that node" || nok "the same line again"
i=0
while [ "$(find "$dir/out" -name 'shard-*.csv' | wc -l)" -lt 6 ] && [ $i -lt 240 ]; do sleep 0.5; i=$((i + 1)); done
sim sweep --merge "$dir"/out/shard-*.csv -o "$tmp/all.csv"
[ $rc -eq 0 ] && [ "$(wc -l <"$tmp/all.csv")" -eq $((points + 1)) ] && ok "merged" || nok "merged"
sim sweep "$@" -o "$tmp/here.csv"
cmp -s "$tmp/all.csv" "$tmp/here.csv" && ok "the bytes of a sweep on one machine" || nok "the bytes of a sweep on one machine"
finish
