# Sourced after servers.sh: runs the official conformance suite.

suite=$peers/node_modules/@modelcontextprotocol/conformance

# run_suite URL REVISION RESULTS: leaves one folder per scenario in RESULTS, and what it said in suite.out.
# The suite's own verdict is not used: it takes a scenario without any check for a pass.
run_suite() {
  rm -rf "$3"
  mkdir -p "$3"
  timeout -k 5 "${SUITE_SECONDS:-600}" "$node" "$suite/dist/index.js" server --url "$1" --requirements "$2" \
    --output-dir "$3" >"$3/suite.out" 2>&1 || true
}
