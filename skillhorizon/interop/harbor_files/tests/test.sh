#!/bin/sh
# Scores the journal of the run. No reward is written where there is no verdict, so that a fault of the evaluator never
# reads as the agent's.
set -eu
journal="${JOURNAL:-/journal/final.sqlite}"
logs="${LOGS:-/logs/verifier}"
tests="$(cd "$(dirname "$0")" && pwd)"
mkdir -p "$logs"
status=0
skillhorizon evaluate "$journal" --json > "$logs/evaluation.json" || status=$?
[ "$status" -le 1 ] || exit "$status"
python3 "$tests/reward.py" "$tests/task_id" < "$logs/evaluation.json" > "$logs/reward.partial"
mv "$logs/reward.partial" "$logs/reward.json"
