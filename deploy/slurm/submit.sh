#!/bin/bash
# Cuts what is missing of a study into work items and submits them as an array, with a job behind it that proves that nothing is missing and
# writes the tables. The same command again goes on where it was.
#   submit.sh EXPERIMENT PLACE [MOST_TASKS] [-- OPTIONS OF STUDY PLAN AND RUN, --quick say]
# PLACE is a folder that all nodes share, or a URL (s3://bucket/prefix, gs://, az://). Options of sbatch (partition, time, account) come from the environment (SBATCH_PARTITION, ...)
# or ARRAY_OPTIONS. ITEM_MINUTES (5) and CPUS (4) say how long an item takes, and on how many processors.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
experiment=$1 place=$2
shift 2
most=1000
if [ $# -gt 0 ] && [ "$1" != -- ]; then most=$1; shift; fi
[ "${1:-}" = -- ] && shift
cpus=${CPUS:-4}
evenkeel=${EVENKEEL:-evenkeel}
items=$(pwd)/$(basename "$experiment" .toml).items

"$evenkeel" study plan "$experiment" "$@" --out "$place" --items "$items" --item-minutes "${ITEM_MINUTES:-5}" --cpus-per-task "$cpus"
count=$(wc -l <"$items")
after=()
if [ "$count" -gt 0 ]; then
    # shellcheck disable=SC2086 # options are words
    job=$(sbatch --parsable --array="1-$((count < most ? count : most))" --cpus-per-task="$cpus" ${ARRAY_OPTIONS:-} "$here/study.sbatch" "$experiment" "$place" "$items" "$@")
    echo "array $job: $count work items"
    after=(--dependency="afterany:${job%%;*}")
fi
merge=$(sbatch --parsable "${after[@]}" --job-name=evenkeel-merge --cpus-per-task=1 --output=%x-%j.out \
    --wrap="'$evenkeel' study merge '$place' --out '$(basename "$experiment" .toml).merged'")
echo "merge $merge: tables in $(basename "$experiment" .toml).merged, or the images that lack results in evenkeel-merge-${merge%%;*}.out"
