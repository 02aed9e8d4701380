#!/bin/sh
# fuzz.sh TIME [EXPRESSION] runs each fuzz target for TIME, those alone whose package and name match
# the expression, and says how long was fuzzed in all. Inputs that fail are left in the package's
# testdata/fuzz, as go test does, and make the exit code 1.
set -u
time=${1:-30s}
which=${2:-.}
failed=0
count=0
begun=$(date +%s)
for file in $(git grep -l '^func Fuzz' -- '*_test.go' | grep -v /testdata/); do
	dir=$(dirname "$file")
	for name in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "$dir $name" | grep -q -- "$which" || continue
		count=$((count + 1))
		out=$(go test -run xxx -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 200x "./$dir" 2>&1)
		if [ $? -eq 0 ]; then
			echo "ok    $dir $name: $(echo "$out" | grep '^fuzz: elapsed' | tail -1 | sed 's/^fuzz: //')"
		else
			failed=1
			echo "FAIL  $dir $name"
			echo "$out"
		fi
	done
done
echo "$count targets, $time each, $(($(date +%s) - begun)) s in all"
[ "$count" -gt 0 ] && exit $failed
echo "no fuzz target matches $which" >&2
exit 1
