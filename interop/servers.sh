# Sourced by run and conformance: starts servers on free loopback ports and ends them again.

interop=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
peers=$interop/.peers
node=$peers/node_modules/.bin/node
logs=$peers/logs
servers=()

# start_server NAME COMMAND ARG…: waits until the server has printed its URL, and leaves that in $url.
start_server() {
  local name=$1 out=$logs/$1.out pid tries
  shift
  mkdir -p "$logs"
  : >"$out" # so that the URL of an earlier run is not taken for this one's
  "$@" >"$out" 2>"$logs/$name.err" &
  pid=$!
  servers+=("$pid")
  for ((tries = 0; tries < 150; tries++)); do
    url=$(grep -m1 '^http://' "$out" || true)
    if [ -n "$url" ]; then return; fi
    if ! kill -0 "$pid" 2>/dev/null; then break; fi
    sleep 0.1
  done
  echo "interop: $name did not start, see $logs/$name.err" >&2
  exit 1
}

stop_servers() {
  local pid tries
  for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${servers[@]}"; do
    for ((tries = 0; tries < 30; tries++)); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null || true
  done
}

trap stop_servers EXIT
trap 'exit 130' INT TERM
