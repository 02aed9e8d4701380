#!/bin/bash
# Install the page's tools unless they are already installed as web/package-lock.json has
# them, in which case no network is needed.
set -uo pipefail
cd "$(dirname "$0")/../web"
done=node_modules/.candid-ok
cmp -s package-lock.json $done && exit 0
for again in 5 20 ''; do
  npm ci --no-audit --no-fund --silent && cp package-lock.json $done && exit 0
  [ -z "$again" ] || sleep "$again"
done
echo "web-deps: npm could not install the page's tools" >&2
exit 1
