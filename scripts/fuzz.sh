#!/bin/sh
# fuzz.sh TIME [EXPRESSION] runs each fuzz target for TIME, those alone whose package and name match
# the expression, and says how long was fuzzed in all. Inputs that fail are left in the package's
# testdata/fuzz, as go test does, and make the exit code 1. Time and inputs of each target are added to
# a tally below the user's cache directory, and the sum over all runs of this user is said.
# FUZZPARALLEL is how many workers a target has (all CPUs unless it is set).
set -u
time=${1:-30s}
which=${2:-.}
failed=0
count=0
begun=$(date +%s)
tally=${XDG_CACHE_HOME:-$HOME/.cache}/candid-tests/fuzz.tally
mkdir -p "$(dirname "$tally")"
for file in $(git grep -l '^func Fuzz' -- '*_test.go' | grep -v /testdata/); do
	dir=$(dirname "$file")
	for name in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "$dir $name" | grep -q -- "$which" || continue
		count=$((count + 1))
		out=$(go test -run xxx -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 200x ${FUZZPARALLEL:+-parallel "$FUZZPARALLEL"} "./$dir" 2>&1)
		code=$?
		last=$(echo "$out" | grep '^fuzz: elapsed' | tail -1 | sed 's/^fuzz: //')
		# What went wrong before a first input is no fuzzing.
		[ -n "$last" ] && echo "$last" | sed -n "s|^elapsed: \([^,]*\), execs: \([0-9]*\).*|$(date +%s) $dir $name \1 \2|p" >>"$tally"
		if [ $code -eq 0 ]; then
			echo "ok    $dir $name: $last"
		elif echo "$out" | grep -q '^ *context deadline exceeded$' && ! echo "$out" | grep -Eq 'Failing input written|panic:|_test\.go:[0-9]'; then
			# go test may take the end of the time for a failure of the input that is being tried.
			echo "ok    $dir $name: $last (its time was over within an input; none failed)"
		else
			failed=1
			echo "FAIL  $dir $name"
			echo "$out"
		fi
	done
done
echo "$count targets, $time each, $(($(date +%s) - begun)) s in all"
[ -f "$tally" ] && awk '
	# go test writes durations as 1h2m3s, 2m3s or 3s.
	function seconds(d,   n, s) {
		if (n = index(d, "h")) { s += substr(d, 1, n - 1) * 3600; d = substr(d, n + 1) }
		if (n = index(d, "m")) { s += substr(d, 1, n - 1) * 60; d = substr(d, n + 1) }
		return s + d
	}
	NF == 5 { all += seconds($4); inputs += $5; if (!seen[$2, $3]++) targets++ }
	END { printf "over all runs: %.2f hours, %.1f million inputs, %d targets\n", all / 3600, inputs / 1e6, targets }' "$tally"
[ "$count" -gt 0 ] && exit $failed
echo "no fuzz target matches $which" >&2
exit 1
