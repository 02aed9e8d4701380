#!/bin/bash
# Run the page's own tests if node is installed.
set -euo pipefail
cd "$(dirname "$0")/../web"
command -v node >/dev/null || { echo "test-web: node is not installed: the page's unit tests were not run" >&2; exit 0; }
../scripts/web-deps.sh
node circles.mjs
npm test
