// Drives a real mcp-hub (HTTP+SSE of 2024-11-05) through the bridge with the TypeScript SDK's client.
//
//   hub.mjs FILTER MCPWIRE
//
// MCPWIRE is the binary. Every check has a hub and a bridge of its own; the hub's only server is server-everything.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const require = createRequire(new URL("../.peers/", import.meta.url));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const schemas = require("@modelcontextprotocol/sdk/types.js");

const [filter, binary] = process.argv.slice(2);
const mcpwire = resolve(binary);
const version = require("./node_modules/mcp-hub/package.json").version;
const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const CHECK_MS = 30_000;
const START_MS = 10_000;
const EOF_MS = 1_900; // the SDK sends SIGTERM 2 s after it closed the bridge's stdin

async function bounded(promise, ms, complaint) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${complaint} within the time limit`)), Math.max(ms, 0));
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** mcp-hub cannot register itself under port 0, so it needs one that was free a moment ago. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

// A check that ran out of time goes on behind our back: whatever it started ends with us.
const hubs = new Set();
process.on("exit", () => hubs.forEach((hub) => hub.end("SIGKILL")));
process.on("SIGTERM", () => process.exit(143));

/** A hub in a folder of its own, which is also its home. */
class Hub {
  static async start(gated) {
    const hub = new Hub();
    hub.folder = mkdtempSync(join(tmpdir(), "mcpwire-hub-"));
    hub.port = await freePort();
    hub.url = `http://127.0.0.1:${hub.port}/mcp`;
    hub.env = { ...process.env, HOME: hub.folder, XDG_STATE_HOME: join(hub.folder, "state") };
    for (const name of ["XDG_CONFIG_HOME", "XDG_DATA_HOME"]) hub.env[name] = join(hub.folder, name);
    const everything = here(".peers/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    // The server waits for a file, so that a check can see the hub without it.
    const wait = 'while [ ! -e gate ]; do sleep 0.05; done; exec "$@"';
    const servers = { everything: { command: "sh", args: ["-c", wait, "sh", process.execPath, everything, "stdio"], cwd: hub.folder } };
    writeFileSync(join(hub.folder, "servers.json"), JSON.stringify({ mcpServers: servers }));
    if (!gated) hub.openGate();
    hubs.add(hub);
    await hub.run();
    return hub;
  }

  /** Resolves when it is listening and has written down that it runs; its server comes up later. */
  async run() {
    const args = ["--require", here("servers/loopback.cjs"), here(".peers/node_modules/mcp-hub/dist/cli.js")];
    // A group of its own, so that the server it starts ends with it.
    this.child = spawn(process.execPath, [...args, "--port", this.port, "--config", "servers.json"], {
      cwd: this.folder, env: this.env, detached: true, stdio: ["ignore", "pipe", "ignore"],
    });
    const lines = createInterface(this.child.stdout);
    const registered = new Promise((resolve) => lines.on("line", (l) => l.includes("Registered workspace") && resolve()));
    await bounded(registered, START_MS, "mcp-hub did not start");
  }

  /** Lets its server start. */
  openGate() {
    writeFileSync(join(this.folder, "gate"), "");
  }

  end(signal) {
    try {
      process.kill(-this.child.pid, signal);
    } catch {} // it has ended
  }

  async kill(signal) {
    const exited = once(this.child, "exit");
    this.end(signal);
    if (this.child.exitCode === null && this.child.signalCode === null) await bounded(exited, START_MS, "mcp-hub did not end");
  }

  async close() {
    await this.kill("SIGKILL");
    hubs.delete(this);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function connect(hub, args) {
  const transport = new StdioClientTransport({
    command: mcpwire, args: ["connect", ...args], cwd: hub.folder, env: hub.env, stderr: "inherit",
  });
  const client = new Client({ name: "interop-hub", version: "1.0.0" }, { capabilities: {} });
  let changes = 0;
  let wake = () => {};
  client.setNotificationHandler(schemas.ToolListChangedNotificationSchema, () => ((changes += 1), wake()));
  try {
    await bounded(client.connect(transport), CHECK_MS, "the initialize answer did not arrive");
  } catch (error) {
    await client.close();
    throw error;
  }

  /** Lists the tools again with each list_changed, until those of the hub's server are there. */
  const tools = async () => {
    for (;;) {
      const seen = changes;
      const names = (await client.listTools()).tools.map((tool) => tool.name);
      if (names.includes("everything__echo")) return;
      if (changes === seen) await bounded(new Promise((resolve) => (wake = resolve)), CHECK_MS, "no list_changed came");
    }
  };
  const call = async (name, args) => {
    const result = await client.callTool({ name: `everything__${name}`, arguments: args });
    return result.content.map((item) => item.text ?? "").join("\n");
  };
  const close = async () => {
    const child = transport._process;
    assert(child, "the bridge ended before its client");
    const exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    const start = Date.now();
    await client.close();
    const { code, signal } = await bounded(exited, CHECK_MS, "the bridge did not end");
    assert(signal === null && Date.now() - start < EOF_MS, "the bridge did not end by itself when its stdin closed");
    assert.equal(code, 0, "exit code of the bridge");
  };
  return { client, tools, call, close };
}

const checks = [
  ["initialize", async ({ client }) => {
    assert.equal(client.getServerVersion().name, "mcp-hub-internal-endpoint");
    await client.ping();
  }],
  ["list and call", async ({ tools, call }) => {
    await tools();
    assert.equal(await call("echo", { message: "grüße, 世界 \u2028 \n" }), "Echo: grüße, 世界 \u2028 \n");
  }],
  ["list_changed", async ({ client, tools, call }, hub) => {
    assert.deepEqual((await client.listTools()).tools, []);
    hub.openGate();
    await tools();
    assert.equal(await call("echo", { message: "there" }), "Echo: there");
  }, "gated"],
  ["concurrency", async ({ tools, call }) => {
    await tools();
    let done = false;
    const slow = call("trigger-long-running-operation", { duration: 2, steps: 1 }).then((text) => ((done = true), text));
    assert.equal(await call("echo", { message: "fast" }), "Echo: fast");
    assert(!done, "the fast call was answered after the slow one");
    assert.match(await slow, /completed/);
  }],
  ["too large for the hub", async ({ tools, call }) => {
    await tools();
    const message = "x".repeat(200_000);
    await assert.rejects(call("echo", { message }), /413/);
    assert.equal(await call("echo", { message: "still here" }), "Echo: still here");
  }],
  ...["SIGTERM", "SIGKILL"].map((signal) => [`restart after ${signal}`, async ({ tools, call }, hub) => {
    await tools();
    const cut = assert.rejects(
      call("trigger-long-running-operation", { duration: 25, steps: 1 }), /may have been executed and was not sent again/,
    );
    assert.equal(await call("echo", { message: "before" }), "Echo: before");
    await hub.kill(signal);
    await cut;
    await hub.run();
    await tools();
    assert.equal(await call("echo", { message: "after" }), "Echo: after");
  }]),
];

async function run(check, way, gated) {
  const hub = await Hub.start(gated);
  try {
    const connection = await connect(hub, way(hub));
    try {
      await bounded(check(connection, hub), CHECK_MS, "the check did not finish");
    } catch (error) {
      await connection.close().catch(() => {});
      throw error;
    }
    await connection.close();
  } finally {
    await hub.close();
  }
}

const ways = { "--mcp-hub": () => ["--mcp-hub"], URL: (hub) => [hub.url] };
let failures = 0;
for (const [title, way] of Object.entries(ways)) {
  for (const [name, check, gated] of checks) {
    const line = `mcp-hub-${version} ${title}: ${name}`;
    if (!line.includes(filter)) continue;
    try {
      await run(check, way, gated);
      console.log(`ok   ${line}`);
    } catch (error) {
      failures += 1;
      console.log(`FAIL ${line}  ${String(error.message).replace(/\s+/g, " ").slice(0, 200)}`);
    }
  }
}
process.exit(failures ? 1 : 0);
