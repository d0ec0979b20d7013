#!/bin/bash
# The Slurm array under a real slurmctld and slurmd on this machine: work items are killed, requeued by hand, and their node fails; the merged
# records are the bytes of one process. Needs root and Debian's slurm-wlm and munge; says so and ends well where they are not.
#   deploy/test/slurm.sh [PATH OF evenkeel]
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
export EVENKEEL=${1:-$here/../target/release/evenkeel}
for program in slurmctld slurmd munged sbatch scontrol; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "NOT TESTED: $program is not installed (Debian: apt-get install slurm-wlm munge)"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "NOT TESTED: slurmd needs root to start tasks"; exit 0; }
[ -x "$EVENKEEL" ] || { echo "$EVENKEEL is not there; build it, or say where it is" >&2; exit 1; }
EVENKEEL=$(readlink -f "$EVENKEEL")
PATH=$PATH:/usr/sbin

work=$(mktemp -d)
chmod 755 "$work"
pids=()
ended() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    [ -z "${KEEP:-}" ] && rm -rf "$work" || echo "kept: $work"
}
trap ended EXIT
die() { echo "FAILED: $1" >&2; tail -n 30 "$work"/*.log "$work"/*.out >&2 || true; exit 1; }
# a condition, tried for so many seconds
until_true() { local end=$((SECONDS + $1)); shift; until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.2; done; }

host=$(hostname -s)
mkdir -p "$work"/{state,spool,munge}
chmod 700 "$work/munge"
head -c 1024 /dev/urandom >"$work/munge/key" && chmod 400 "$work/munge/key"
munged --force --foreground --key-file="$work/munge/key" --socket="$work/munge.socket" --pid-file="$work/munge/pid" --seed-file="$work/munge/seed" --log-file="$work/munge.log" &
pids+=($!)
cat >"$work/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=2
MpiDefault=none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MinJobAge=600
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
export SLURM_CONF=$work/slurm.conf
until_true 10 test -S "$work/munge.socket" || die "munged did not start"
slurmctld -D >"$work/slurmctld.log" 2>&1 & pids+=($!)
start_node() { slurmd -D -N "$host" >>"$work/slurmd.log" 2>&1 & node=$!; pids+=($node); }
start_node
until_true 60 sh -c "sinfo -h -o %T | grep -q idle" || die "the node did not come up"

cd "$work"
cat >small.toml <<'TOML'
name = "small"
[[subject]]
name = "crops"
model = "embedded:classifier"
data = "scenes-objects"
path = "60@64x64"
[[attack]]
kind = "pgd"
steps = 20
[[defence]]
kind = "equivariance"
steps = 4
[[detector]]
kind = "variance"
TOML
"$EVENKEEL" study run small.toml --out whole --threads 1 >/dev/null
CPUS=1 ITEM_MINUTES=0.02 "$here/slurm/submit.sh" small.toml "$work/far" 4 | tee submitted
array=$(sed -n 's/^array \([0-9]*\):.*/\1/p' submitted)
merge=$(sed -n 's/^merge \([0-9]*\):.*/\1/p' submitted)
[ -n "$array" ] || die "nothing was submitted"

# a work item is killed in the middle
victim() { pgrep -f "^$EVENKEEL study run small.toml.*--item " | head -n 1; }
# Slurm waits two minutes before it begins a task again; a slurmd that killed it needs a few seconds
hurry() {
    squeue -h -t PD -j "$array" -r -o '%i %S' | while read -r job start; do
        [ "$start" = N/A ] || [ $(($(date -d "$start" +%s) - $(date +%s))) -lt 15 ] || scontrol update JobId="$job" StartTime=now+5 || true
    done
}
restarts() { scontrol show job "$array" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p' | awk '{ all += $1 } END { print all + 0 }'; }
restarted() { hurry; [ "$(restarts)" -ge "$1" ]; }
until_true 60 victim || die "no work item ran"
kill -9 "$(victim)"
until_true 90 restarted 1 || die "a task whose work item was killed was not queued again"
echo "killed a work item: its task was queued again"

# the administrator takes a running task away
running() { hurry; squeue -h -t R -r -j "$array" -o %i | head -n 1 | grep .; }
until_true 120 running || die "nothing runs after the kill"
scontrol requeue "$(running)"
until_true 90 restarted 2 || die "scontrol requeue did nothing"
echo "requeued a running task"

# the node dies with what runs on it
settled() { [ -z "$(squeue -h -t CG -j "$array" -o %i)" ] && running && victim; }
until_true 120 settled || die "nothing runs after the requeue"
before=$(restarts)
gone=$node
for script in $(pgrep -f "$work/spool/job"); do gone+=" $(ps -o ppid= -p "$script") $script"; done
gone+=" $(pgrep -f "^$EVENKEEL study run small.toml.*--item " || true)"
for pid in $gone; do [ "$pid" -gt 1 ] && kill -9 "$pid" 2>/dev/null || true; done
scontrol update NodeName="$host" State=DOWN Reason=killed
start_node
scontrol update NodeName="$host" State=RESUME 2>/dev/null || true
until_true 90 restarted $((before + 1)) || die "tasks of a dead node were not queued again"
echo "killed the node: its tasks were queued again"

over() { hurry; scontrol update JobId="$merge" StartTime=now >/dev/null 2>&1 || true; [ -z "$(squeue -h -j "$array,$merge" 2>/dev/null)" ]; }
until_true 300 over || { squeue -r; die "the array did not end"; }
cat "evenkeel-merge-$merge.out"
for table in records detections; do
    cmp "whole/$table.parquet" "small.merged/$table.parquet" || die "$table differ from those of one process"
done
[ "$(find far -name 'item-*.log' | wc -l)" = "$(wc -l <small.items)" ] || die "there are other objects than work items"
echo "PASSED: $(wc -l <small.items) work items, $(restarts) tasks begun again, records and detections are the bytes of one process"
