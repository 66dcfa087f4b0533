// Preloaded (`node --require`) into peers that would listen on all interfaces: every listening socket of
// the process goes to loopback, and its URL is printed, so that port 0 can be used.
// `_listen2` and not `listen`: patching the latter makes listening asynchronous, and peers that ask for
// their address at once would find none.
const net = require("node:net");

const bind = net.Server.prototype._listen2;
net.Server.prototype._listen2 = function (address, port, addressType, ...rest) {
  const isPipe = addressType === -1;
  if (isPipe) return bind.call(this, address, port, addressType, ...rest);
  this.once("listening", () => console.log(`http://127.0.0.1:${this.address().port}/mcp`));
  return bind.call(this, "127.0.0.1", port, 4, ...rest);
};
