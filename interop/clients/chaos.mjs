// Kills, hangs, slows and restarts the servers behind a hub at random, while many clients of the TypeScript SDKs call them.
//
//   chaos.mjs FILTER
//
// Every request must be answered once: by the right server, or with an error that names it. In the end all is as it was.
// $MCPWIRE is the binary, $CHAOS_SECONDS how long it takes, $CHAOS_SEED makes the same choices again, though not at the
// same moments. Only processes that were started here, and children of the hub, are ever sent a signal.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { bounded, HAS, load, newClient, newTransport } from "./sdk.mjs";

const [filter = ""] = process.argv.slice(2);
const seconds = Number(process.env.CHAOS_SECONDS ?? 90);
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
const mcpwire = process.env.MCPWIRE;
const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const CLIENTS = 32;
const SORTS = 4; // of clients: a program on stdio runs once for each
const ANSWER_MS = 30_000; // the hub has to answer before that, whatever happens
const TIMEOUT_MS = 4_000; // what the hub grants a server
const RECOVER_MS = 30_000;
const RSS_MIB = 32; // how much more memory it may hold in the end
const FDS = 8;

let state = seed;
/** A whole number below `bound` (mulberry32). */
function random(bound) {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % bound;
}
const one = (list) => list[random(list.length)];

const home = mkdtempSync(join(tmpdir(), "mcpwire-chaos-"));
/** What a process says in its first life replaces what was said in an earlier run. */
const log = (name, first) => openSync(here(`.peers/logs/chaos-${name}.err`), first ? "w" : "a");

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

const processes = new Set();
process.on("exit", () => {
  processes.forEach((each) => (each.signal("SIGCONT"), each.signal("SIGKILL")));
  rmSync(home, { recursive: true, force: true });
});
process.on("SIGTERM", () => process.exit(143));
process.on("SIGINT", () => process.exit(130));

/** A process with a group of its own, so that what it starts ends with it. */
class Process {
  constructor(name, command, env = {}) {
    Object.assign(this, { name, command, env: { ...process.env, ...env } });
    processes.add(this);
  }

  /** Until it prints a line that fits; gives that. */
  async start(ready) {
    const [command, ...args] = this.command;
    const err = log(this.name, !this.child);
    this.child = spawn(command, args, { env: this.env, cwd: home, detached: true, stdio: ["ignore", "pipe", err] });
    closeSync(err);
    const lines = createInterface(this.child.stdout);
    const line = new Promise((resolve) => lines.on("line", (line) => ready.test(line) && resolve(line)));
    return bounded(line, ANSWER_MS, `${this.name} did not start`);
  }

  signal(signal) {
    try {
      process.kill(-this.child.pid, signal);
    } catch {} // it has ended
  }
}

const node = process.execPath;
const everything = here(".peers/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
const loopback = ["--require", here("servers/loopback.cjs")];
const HTTP = {
  python: { command: [here(".peers/mcp1/bin/python"), here("servers/python_server.py")], path: "mcp", type: "http" },
  ts2: { command: [node, here("servers/fixture-ts2.mjs"), "--new-only", "--http"], path: "mcp", type: "http" },
  legacy: { command: [node, ...loopback, everything, "sse"], path: "sse", type: "sse" },
  mcphub: { command: [node, ...loopback, here(".peers/node_modules/mcp-hub/dist/cli.js")], path: "mcp", type: "sse", ready: /servers started success/ },
};
const SERVERS = ["everything", ...Object.keys(HTTP), "folder"];

async function startServers() {
  const env = (name) => ({ env: { INTEROP_NAME: name } });
  const inner = { everything: { command: node, args: [everything, "stdio"], ...env("mcphub") } };
  writeFileSync(join(home, "servers.json"), JSON.stringify({ mcpServers: inner }));
  const timeout = TIMEOUT_MS;
  const configured = { everything: { command: node, args: [everything, "stdio"], timeout, ...env("everything") } };
  await Promise.all(Object.entries(HTTP).map(async ([name, server]) => {
    const PORT = String(await freePort());
    const homes = Object.fromEntries(["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"].map((key) => [key, home]));
    const more = name === "mcphub" ? ["--port", PORT, "--config", join(home, "servers.json")] : [];
    server.process = new Process(name, [...server.command, ...more], { ...(name === "mcphub" && homes), PORT, INTEROP_NAME: name });
    server.url = `http://127.0.0.1:${PORT}/${server.path}`;
    await server.process.start(server.ready ?? /^http:/);
  }));
  for (const [name, { type, url }] of Object.entries(HTTP)) configured[name] = { type, url, timeout };
  configured.folder = { command: mcpwire, args: ["connect", here("../crates/mcpwire/sample")], timeout };
  writeFileSync(join(home, "mcp.json"), JSON.stringify({ mcpServers: configured }));
}

/** The hub's children and what it holds. */
const children = () => {
  const tasks = readdirSync(`/proc/${hub.child.pid}/task`);
  return tasks.flatMap((task) => readFileSync(`/proc/${hub.child.pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number));
};
const measure = () => {
  const status = readFileSync(`/proc/${hub.child.pid}/status`, "utf8");
  const rss = Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)[1]) / 1024);
  return { children: children().length, fds: readdirSync(`/proc/${hub.child.pid}/fd`).length, rss };
};

/** What mcp-hub itself answers while its server is not there. */
const OWN_WORDS = /key is not defined/;

// What the clients do.

const counts = { answered: 0, failed: 0, lists: 0 };
const errors = new Map(); // text without the particulars -> how often
const faults = []; // what must not happen
let calling = true;
let listed;

const textOf = ({ content, messages }) => (content ?? messages.map(({ content }) => content)).map(({ text }) => text ?? "").join("\n");

class Caller {
  constructor(number) {
    this.number = number;
    this.sdk = load(["1", "2-auto", "2-new"][number % 3]);
    this.transport = newTransport(this.sdk, url, []);
    this.open = new Set();
    this.asked = 0;
    this.transport.onmessage = (message) => this.hear(message);
    this.client = newClient(this.sdk, `chaos-${number % SORTS}`, () => HAS.everything.form).client;
  }

  async connect() {
    await bounded(this.client.connect(this.transport), ANSWER_MS, "no connection");
    const send = this.transport.send.bind(this.transport);
    this.transport.send = (message, ...rest) => {
      if (message.method !== undefined && message.id !== undefined) this.open.add(message.id);
      return send(message, ...rest);
    };
    this.connected = true;
  }

  /** Each answer must be to a question of this client, and the only one. */
  hear(message) {
    if (!this.connected || message.method !== undefined || message.id === undefined) return;
    if (!this.open.delete(message.id)) faults.push(`client ${this.number}: an answer nobody waits for: ${JSON.stringify(message).slice(0, 200)}`);
    const strange = /nonce-(\d+)-/.exec(JSON.stringify(message))?.[1];
    if (strange !== undefined && Number(strange) !== this.number) faults.push(`client ${this.number} got what is for client ${strange}`);
  }

  /** Something that only this server can answer, and for this client alone. */
  async ask(server) {
    const nonce = `nonce-${this.number}-${(this.asked += 1)}-${random(1e9)}`;
    const options = { timeout: ANSWER_MS };
    const call = (name, args) => this.sdk.call(this.client, { name: `${server}__${name}`, arguments: args }, options);
    if (server === "folder") {
      const text = textOf(await this.client.getPrompt({ name: "folder__summarize", arguments: { text: nonce } }, options));
      return text.includes(nonce) && text.length > nonce.length;
    }
    const inner = server === "mcphub" ? "everything__" : "";
    const result = await (random(2) ? call(`${inner}get-env`, { nonce }) : call(`${inner}echo`, { message: nonce }));
    const text = textOf(result);
    if (result.isError) throw Object.assign(new Error(text), { ofTool: true });
    if (text.startsWith("{")) return JSON.parse(text).INTEROP_NAME === server;
    return text === (server === "ts2" ? nonce : `Echo: ${nonce}`);
  }

  async once() {
    if (random(20) === 0) return this.list();
    const server = one(SERVERS);
    try {
      if (await this.ask(server)) counts.answered += 1;
      else faults.push(`client ${this.number}: a wrong answer of ${server}`);
    } catch (error) {
      counts.failed += 1;
      this.judge(server, error);
    }
  }

  judge(server, error) {
    const text = String(error.message).replace(/nonce[-\d]+/g, "").replace(/\d+/g, "#").slice(0, 220);
    errors.set(text, (errors.get(text) ?? 0) + 1);
    if (error.code === -32001 && /timed out/i.test(error.message)) faults.push(`client ${this.number}: no answer of ${server}`);
    else if (!error.message.includes(server) && !OWN_WORDS.test(error.message)) faults.push(`client ${this.number}: an error for ${server} that does not name it: ${error.message.slice(0, 200)}`);
  }

  /** Those that are down are still in the list. mcp-hub itself lists less while its server starts. */
  async list() {
    const { tools } = await this.client.listTools(undefined, { timeout: ANSWER_MS });
    const names = tools.map(({ name }) => name).filter((name) => !name.startsWith("mcphub__")).join(" ");
    counts.lists += 1;
    listed ??= names;
    if (names !== listed) faults.push(`client ${this.number}: another list: ${names.slice(0, 200)}`);
  }

  /** Until each server has answered: programs start for this sort of client, and on a busy machine that takes its time. */
  async warmUp() {
    const again = (server) => this.ask(server).then((right) => (right ? "" : "a wrong answer"), ({ message }) => message);
    await Promise.all(SERVERS.map((server) => until(RECOVER_MS, server, () => again(server))));
  }

  async close() {
    await this.transport.terminateSession?.();
    await this.client.close();
  }

  async run() {
    await this.connect();
    while (calling) {
      await this.once().catch((error) => faults.push(`client ${this.number}: ${error.message}`));
      await sleep(50 + random(300));
    }
    if (this.open.size > 0) faults.push(`client ${this.number}: ${this.open.size} requests were not answered`);
    await this.close();
  }
}

const runClients = () => Promise.all(Array.from({ length: CLIENTS }, (_, number) => new Caller(number).run()));

// What the servers suffer.

const suffered = {};
const HARM = {
  kill: async ({ signal, again }) => {
    signal("SIGKILL");
    await sleep(random(2000));
    await again();
  },
  hang: async ({ signal }) => {
    signal("SIGSTOP");
    await sleep(TIMEOUT_MS + random(3000));
    signal("SIGCONT");
  },
  slow: async ({ signal }) => {
    for (let i = 0; i < 20; i += 1) {
      signal("SIGSTOP");
      await sleep(50 + random(100));
      signal("SIGCONT");
      await sleep(20);
    }
  },
};
HARM.restart = async ({ signal, again }) => {
  signal("SIGTERM");
  await sleep(300 + random(700));
  signal("SIGKILL");
  await again();
};

function victim() {
  const name = one(SERVERS);
  const server = HTTP[name];
  if (server) {
    const again = () => server.process.start(server.ready ?? /^http:/);
    return { key: name, signal: (signal) => server.process.signal(signal), again };
  }
  const pid = one(children());
  const signal = (signal) => {
    try {
      if (children().includes(pid)) process.kill(pid, signal);
    } catch {} // it has ended
  };
  return { key: `child ${pid}`, signal, again: () => {} }; // the hub starts it again
}

async function harmServers(until) {
  const busy = new Map();
  while (Date.now() < until) {
    const who = victim();
    if (who.key && !busy.has(who.key)) {
      const harm = one(Object.keys(HARM));
      suffered[harm] = (suffered[harm] ?? 0) + 1;
      const done = HARM[harm](who).catch((error) => faults.push(`${harm} ${who.key}: ${error.message}`));
      busy.set(who.key, done.then(() => busy.delete(who.key)));
    }
    await sleep(200 + random(800));
  }
  await Promise.all(busy.values());
}

async function until(ms, what, check) {
  const end = Date.now() + ms;
  for (;;) {
    const complaint = await check();
    if (!complaint) return;
    if (Date.now() > end) assert.fail(`${what}: ${complaint}`);
    await sleep(200);
  }
}

async function allUp() {
  const health = await (await fetch(url.replace(/mcp$/, "health"))).json();
  const down = health.targets.filter(({ state }) => state !== "up");
  return down.length > 0 || health.status !== "ok" ? JSON.stringify(down.length ? down : health).slice(0, 300) : "";
}

/** New clients of all sorts get answers of all servers. */
async function sweep() {
  await Promise.all(Array.from({ length: CLIENTS }, async (_, number) => {
    const caller = new Caller(number);
    await caller.connect();
    await caller.warmUp();
    await caller.close();
  }));
  assert.deepEqual(faults, []);
  await sleep(1000); // so that the hub has seen them go
}

let failures = 0;
async function check(name, what) {
  const line = `chaos: ${name}`;
  try {
    console.log(`ok   ${line}${(await what()) ?? ""}`);
  } catch (error) {
    failures += 1;
    console.log(`FAIL ${line}  ${String(error.message).replace(/\s+/g, " ").slice(0, 600)}`);
  }
}

if (!"chaos".includes(filter)) process.exit(0);
await startServers();
const hub = new Process("hub", [mcpwire, "expose", "--config", join(home, "mcp.json"), "--http", "127.0.0.1:0", "--print-url", "--wait", "5s"]);
hub.env.XDG_CACHE_HOME = join(home, "cache");
const url = await hub.start(/^http:/);
let atStart;

await check("all servers are up, and each answers", async () => {
  await until(RECOVER_MS, "health", allUp);
  await sweep();
  atStart = measure();
});
await check(`${CLIENTS} clients, ${seconds} s`, async () => {
  calling = true;
  const clients = runClients();
  await harmServers(Date.now() + seconds * 1000);
  calling = false;
  await clients;
  process.stderr.write([...errors].map(([text, count]) => `${count} x ${text}\n`).join(""));
  faults.forEach((fault) => process.stderr.write(`${fault}\n`));
  assert(faults.length === 0, `seed ${seed}: ${faults.length} faults, the first: ${faults.slice(0, 3).join("; ")}`);
  assert(counts.failed < counts.answered, `seed ${seed}: ${JSON.stringify(counts)}`);
  return ` (seed ${seed}, ${JSON.stringify({ ...counts, ...suffered })})`;
});
await check("all servers are up again, and each answers", async () => {
  await until(RECOVER_MS, "health", allUp);
  await sweep();
});
await check("children, open files and memory are as before", async () => {
  let now;
  await until(RECOVER_MS, `before ${JSON.stringify(atStart)}`, async () => {
    now = measure();
    const { children, fds, rss } = atStart;
    const same = now.children <= children && now.fds <= fds + FDS && now.rss <= rss + RSS_MIB;
    return same ? "" : JSON.stringify(now);
  });
  return ` (before ${JSON.stringify(atStart)}, after ${JSON.stringify(now)})`;
});
await check("no child is left when the hub is stopped", async () => {
  const pids = children();
  const exited = once(hub.child, "exit");
  process.kill(hub.child.pid, "SIGTERM");
  await bounded(exited, ANSWER_MS, "it did not end");
  const left = pids.filter((pid) => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  });
  assert.deepEqual(left, []);
});
process.exit(failures ? 1 : 0);
