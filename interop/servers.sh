# Sourced by the scripts here: starts servers on free loopback ports and ends them again.

interop=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
peers=$interop/.peers
node=$peers/node_modules/.bin/node
logs=$peers/logs
mkdir -p "$logs"
servers=()

# start_server NAME COMMAND ARG…: waits until the server has printed its URL, and leaves that in $url.
start_server() {
  launch "$@"
  await_server "$1" printed_url "$logs/$1.out"
}

launch() {
  local name=$1
  shift
  # What an earlier run said is not to be taken for this one's.
  : >"$logs/$name.out"
  : >"$logs/$name.err"
  "$@" >"$logs/$name.out" 2>"$logs/$name.err" &
  pid=$!
  servers+=("$pid")
}

# await_server NAME COMMAND ARG…: until the command succeeds.
await_server() {
  local name=$1 tries
  shift
  for ((tries = 0; tries < 600; tries++)); do
    if "$@"; then return; fi
    if ! kill -0 "$pid" 2>/dev/null; then break; fi
    sleep 0.1
  done
  echo "interop: $name did not start, see $logs/$name.err" >&2
  exit 1
}

printed_url() {
  url=$(grep -m1 '^http://' "$1")
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
  servers=()
}

trap stop_servers EXIT
trap 'exit 130' INT TERM
