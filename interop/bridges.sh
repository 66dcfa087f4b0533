# Sourced after servers.sh: starts a bridge that gives a server to HTTP clients.

mcpwire=${MCPWIRE:-$interop/../target/release/mcpwire}

# use_bridge NAME: sets $template, the command line of a peer; it is empty for mcpwire, which is started without one.
# {command} is the server's command line, {port} the port to listen on. $paths are what it serves.
use_bridge() {
  paths=(mcp sse)
  # The Node programs would listen on all interfaces.
  local on_loopback="env NODE_OPTIONS=--require=$interop/servers/loopback.cjs $node $peers/node_modules"
  case $1 in
    mcpwire)
      template=
      if [ ! -x "$mcpwire" ]; then
        echo "interop: no $mcpwire; build it with cargo build --release, or set MCPWIRE" >&2
        exit 1
      fi
      ;;
    supergateway)
      template="$on_loopback/supergateway/dist/index.js --outputTransport streamableHttp --stateful"
      template+=" --port {port} --stdio '{command}'"
      paths=(mcp) # one or the other, but not both
      ;;
    mcp-proxy-node) template="$on_loopback/mcp-proxy/dist/bin/mcp-proxy.mjs --port {port} -- {command}" ;;
    mcp-proxy-python) template="$peers/mcp-proxy/bin/mcp-proxy --pass-environment --port {port} -- {command}" ;;
    *) echo "interop: no bridge called $1" >&2; exit 2 ;;
  esac
}

# start_bridge NAME COMMAND ARG…: in front of a server on stdio that it starts itself. Leaves the bridge's URL in $url.
start_bridge() {
  local name=$1 port line
  shift
  if [ -z "$template" ]; then
    start_server "$name" "$mcpwire" expose --http 127.0.0.1:0 --print-url -- "$@"
  else
    port=$(free_port)
    line=${template//\{port\}/$port}
    line=${line//\{command\}/$*}
    launch "$name" bash -c "exec $line"
    await_server "$name" accepts "$port"
    url=http://127.0.0.1:$port/mcp
  fi
}

# start_bridge_to_url NAME URL: in front of a server on HTTP, which none of the peers can do.
start_bridge_to_url() {
  start_server "$1" "$mcpwire" expose "$2" --http 127.0.0.1:0 --print-url
}

free_port() {
  "$node" -e 'const server = require("net").createServer();
    server.listen(0, "127.0.0.1", () => { console.log(server.address().port); server.close(); })'
}

accepts() {
  (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}
