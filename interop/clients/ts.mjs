// Drives a server with the TypeScript SDK's client and judges what arrives, one connection per check.
//
//   ts.mjs SERVER URL FILTER [COMMAND ARG…]
//
// SERVER is everything, python or python-json. COMMAND is the bridge, started as an MCP client would start it;
// without one the client goes to URL directly, which shows what the peers do by themselves, or what a bridge does
// that listens there: SERVER is then everything-stdio or python-stdio, python-shared or python-url, after what is
// behind it. A URL that ends with /sse is spoken to in the older way.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const require = createRequire(new URL("../.peers/", import.meta.url));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { SSEClientTransport } = require("@modelcontextprotocol/sdk/client/sse.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const schemas = require("@modelcontextprotocol/sdk/types.js");

const [server, url, filter, ...bridge] = process.argv.slice(2);
const version = require("./node_modules/@modelcontextprotocol/sdk/package.json").version;
const older = url.endsWith("/sse");
const label = `ts-sdk-${version.split(".").slice(0, 2).join(".")}${older ? " over sse" : ""} x ${server}`;
const [kind] = server.split(/-(?=stdio|shared|url)/);
const onStdio = /-(stdio|shared)$/.test(server);

const CHECK_MS = 20_000;
const WAIT_MS = 12_000; // server-everything repeats its updates and logs every 5 s
const EOF_MS = 1_900; // the SDK sends SIGTERM 2 s after it closed the bridge's stdin
const START_MS = 10_000;
const RESOURCE = "demo://resource/dynamic/text/1";
const ROOT = "file:///interop/root";

/** Every message of a connection in the order of the wire, so that order can be judged. */
class Wire {
  messages = [];
  wake = () => {};

  record(sent, message) {
    this.messages.push({ sent, ...message });
    this.wake();
  }

  find(wanted) {
    return this.messages.find(wanted);
  }

  received(method) {
    return this.messages.filter((m) => !m.sent && m.method === method);
  }

  sent(tool, label) {
    return this.find((m) => m.sent && m.params?.name === tool && m.params.arguments?.label === label);
  }

  answer(id) {
    return this.find((m) => !m.sent && !m.method && m.id === id);
  }

  async until(wanted, what, ms = WAIT_MS) {
    const deadline = Date.now() + ms;
    for (;;) {
      const found = this.find(wanted);
      if (found) return found;
      await bounded(new Promise((wake) => (this.wake = wake)), deadline - Date.now(), `${what} did not arrive`);
    }
  }
}

async function bounded(promise, ms, complaint) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${complaint} within the time limit`)), Math.max(ms, 0));
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const direct = bridge.length === 0;

async function connect(to = url) {
  const [command, ...args] = bridge.map((part) => (part === url ? to : part));
  const HttpTransport = older ? SSEClientTransport : StreamableHTTPClientTransport;
  const transport = direct ? new HttpTransport(new URL(to)) : new StdioClientTransport({ command, args });
  const wire = new Wire();
  const send = transport.send.bind(transport);
  transport.send = (message, options) => (wire.record(true, message), send(message, options));
  transport.onmessage = (message) => wire.record(false, message);

  const capabilities = { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } };
  const client = new Client({ name: "interop-ts", version: "1.0.0" }, { capabilities });
  client.setRequestHandler(schemas.ListRootsRequestSchema, () => ({ roots: [{ uri: ROOT, name: "root" }] }));
  try {
    await bounded(client.connect(transport), CHECK_MS, "the initialize answer did not arrive");
  } catch (error) {
    await client.close();
    throw error;
  }

  const call = async (name, args = {}, options) => {
    const result = await client.callTool({ name, arguments: args }, undefined, options);
    return result.content.map((item) => item.text ?? "").join("\n");
  };
  const close = async () => {
    if (direct) {
      await transport.terminateSession?.(); // the older transport has no way to say it but to go
      return client.close();
    }
    // The SDK keeps its child to itself, and how it ends is worth a look.
    const child = transport._process;
    assert(child, "the bridge ended before its client");
    const exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    const start = Date.now();
    await client.close();
    const { code, signal } = await bounded(exited, CHECK_MS, "the bridge did not end");
    assert(signal === null && Date.now() - start < EOF_MS, "the bridge did not end by itself when its stdin closed");
    assert.equal(code, 0, "exit code of the bridge");
  };
  return { client, wire, call, close };
}

const slow = "trigger-long-running-operation";

/** Progress of the call with this label: its own token, 1, 2, 3 …, all of it before the answer. */
function assertProgress(wire, label, steps) {
  const request = wire.sent(slow, label);
  const token = request.params._meta.progressToken;
  const answered = wire.messages.indexOf(wire.answer(request.id));
  const mine = wire.received("notifications/progress").filter((m) => m.params.progressToken === token);
  const expected = Array.from({ length: steps }, (_, i) => i + 1);
  assert.deepEqual(mine.map((m) => m.params.progress), expected, `progress of ${label}`);
  assert(wire.messages.indexOf(mine.at(-1)) < answered, `progress of ${label} came after its answer`);
}

/** Does several things at once, while another client does the same: all that comes back belongs to this one. */
async function assertOwnAnswers({ client, call, wire }, { mine, theirs, steps }) {
  client.setRequestHandler(schemas.ElicitRequestSchema, () => ({ action: "accept", content: { name: mine } }));
  // With two clients on one child nobody can tell whose user it wants to ask.
  const elicitation = server.endsWith("-shared") ? mine : call("trigger-elicitation-request");
  const [, echoed, elicited] = await Promise.all([
    call(slow, { duration: 0.6, steps, label: mine }, { onprogress: () => {} }),
    call("echo", { message: mine }),
    elicitation,
  ]);
  assert.equal(echoed, `Echo: ${mine}`);
  assert.match(elicited, new RegExp(mine));
  assertProgress(wire, mine, steps);
  assert(!JSON.stringify(wire.messages).includes(theirs), "something of the other client arrived");
}

const all = ["everything", "python", "python-json"];
const streaming = ["everything", "python"];
const checks = [
  ["list tools", all, async ({ client }) => {
    const { tools } = await client.listTools();
    assert(tools.some((tool) => tool.name === "echo" && tool.inputSchema.type === "object"), "no echo in the list");
  }],
  ["list resources", all, async ({ client }) => {
    const { resources } = await client.listResources();
    assert(resources.length > 0, "empty list");
    const { contents } = await client.readResource({ uri: resources[0].uri });
    assert.equal(contents[0].uri, resources[0].uri);
  }],
  ["list prompts", all, async ({ client }) => {
    const { prompts } = await client.listPrompts();
    assert(prompts.some((prompt) => prompt.name === "simple-prompt"), "no simple-prompt in the list");
    const { messages } = await client.getPrompt({ name: "simple-prompt" });
    assert.equal(messages[0].content.text, "This is a simple prompt without arguments.");
  }],
  ["call a tool", all, async ({ call }) => {
    assert.equal(await call("echo", { message: "grüße, 世界 \u2028 \n" }), "Echo: grüße, 世界 \u2028 \n");
  }],
  ["error", all, async ({ client }) => {
    await assert.rejects(client.getPrompt({ name: "no-such-prompt" }), (error) => {
      assert.equal(error.code, schemas.ErrorCode.InvalidParams);
      return true;
    });
  }],
  ["large message", all, async ({ call }) => {
    const message = "0123456789abcdef".repeat(60_000);
    assert.equal((await call("echo", { message })).length, "Echo: ".length + message.length);
  }],
  ["concurrency", all, async ({ call, wire }) => {
    const long = call(slow, { duration: 1.5, steps: 1, label: "long" });
    await call("echo", { message: "fast" });
    assert(!wire.answer(wire.sent(slow, "long").id), "the fast call was answered after the slow one");
    assert.match(await long, /completed/);
  }],
  ["progress", streaming, async ({ call, wire }) => {
    const seen = [];
    const onprogress = ({ progress, total }) => seen.push(`${progress}/${total}`);
    await call(slow, { duration: 0.4, steps: 4, label: "one" }, { onprogress });
    assertProgress(wire, "one", 4);
    // Not "4/4": the SDK forgets the last one when its answer comes in the same read.
    assert.deepEqual(seen.slice(0, 3), ["1/4", "2/4", "3/4"]);
  }],
  ["progress of two calls", streaming, async ({ call, wire }) => {
    const onprogress = () => {};
    await Promise.all([
      call(slow, { duration: 0.6, steps: 3, label: "three" }, { onprogress }),
      call(slow, { duration: 0.5, steps: 5, label: "five" }, { onprogress }),
    ]);
    assertProgress(wire, "three", 3);
    assertProgress(wire, "five", 5);
  }],
  ["logging", streaming, async ({ client, call, wire }) => {
    await client.setLoggingLevel("debug");
    await call("toggle-simulated-logging");
    await wire.until((m) => m.method === "notifications/message" && /message/i.test(m.params.data), "a log message");
  }],
  ["logging level", ["python"], async ({ client, call, wire }) => {
    await client.setLoggingLevel("critical");
    await call("toggle-simulated-logging");
    const levels = wire.received("notifications/message").map((m) => m.params.level);
    assert.deepEqual(levels, ["critical", "alert", "emergency"]);
  }],
  ["sampling", streaming, async ({ client, call }) => {
    let asked;
    client.setRequestHandler(schemas.CreateMessageRequestSchema, ({ params }) => {
      asked = params.messages[0].content.text;
      return { role: "assistant", model: "none", content: { type: "text", text: "sampled-4711" } };
    });
    const answer = await call("trigger-sampling-request", { prompt: "prompt-0815", maxTokens: 10 });
    assert.match(asked ?? "", /prompt-0815/);
    assert.match(answer, /sampled-4711/);
  }],
  ["elicitation", streaming, async ({ client, call }) => {
    let asked;
    client.setRequestHandler(schemas.ElicitRequestSchema, ({ params }) => {
      asked = params.requestedSchema.properties.name.type;
      return { action: "accept", content: { name: "elicited-4711" } };
    });
    const answer = await call("trigger-elicitation-request");
    assert.equal(asked, "string");
    assert.match(answer, /elicited-4711/);
  }],
  ["roots", streaming, async ({ call }) => {
    assert.match(await call("get-roots-list"), new RegExp(ROOT));
  }],
  ["subscription", all, async ({ client, call, wire }) => {
    await client.subscribeResource({ uri: RESOURCE });
    await call("toggle-subscriber-updates");
    const update = await wire.until((m) => m.method === "notifications/resources/updated", "the update");
    assert.equal(update.params.uri, RESOURCE);
    await client.unsubscribeResource({ uri: RESOURCE });
  }],
  // server-everything says it at once when it is initialized, which a client on HTTP is too late to hear.
  ["list changed", onStdio ? all : ["python", "python-json"], async ({ call, wire }) => {
    if (kind !== "everything") await call("change-the-tools");
    await wire.until((m) => m.method === "notifications/tools/list_changed", "the notification");
  }],
  // Their requests carry the same ids and progress tokens.
  ["two clients", direct ? streaming : [], async (one) => {
    const other = await connect();
    try {
      await Promise.all([
        assertOwnAnswers(one, { mine: "one-4711", theirs: "other-0815", steps: 3 }),
        assertOwnAnswers(other, { mine: "other-0815", theirs: "one-4711", steps: 5 }),
      ]);
      assert.equal(one.wire.sent(slow, "one-4711").id, other.wire.sent(slow, "other-0815").id);
    } finally {
      await other.close();
    }
  }],
  ["cancel", streaming, async ({ call, wire }) => {
    const stop = new AbortController();
    const options = { signal: stop.signal, onprogress: () => stop.abort("enough") };
    const label = `ts-${process.pid}`;
    await assert.rejects(call(slow, { duration: 2, steps: 4, label }, options), /enough/);
    const { id } = wire.sent(slow, label);
    assert(wire.find((m) => m.sent && m.method === "notifications/cancelled" && m.params.requestId === id));
    if (kind === "python") {
      await untilSeen(call, ({ cancelled }) => cancelled.includes(label), "the cancellation");
    } else {
      // It tells nobody, but a call it knows to be cancelled it does not answer. A bridge that has to end the
      // response stream may answer with an error in its place.
      const isAnswer = (m) => !m.sent && !m.method && m.id === id && (m.result || !direct);
      await assert.rejects(wire.until(isAnswer, "an answer", 2_500), /time limit/);
    }
    assert.equal(await call("echo", { message: "still here" }), "Echo: still here");
  }],
  ["stream cut by the server", onStdio ? [] : ["python"], async ({ call }) => {
    assert.equal(await call("cut-the-stream"), "finished after the cut");
  }],
  // The one check that the shared server and connection are not for. Nothing to see without a bridge.
  ["restart of the server", direct ? [] : streaming, async ({ close }) => {
    await close();
    let { child, url: to } = await launch(0);
    try {
      const { client, call, wire, close: closeThis } = await connect(to);
      await client.subscribeResource({ uri: RESOURCE });
      assert.equal(await call("echo", { message: "before" }), "Echo: before");
      await kill(child);
      ({ child } = await launch(new URL(to).port));
      assert.equal(await call("echo", { message: "after" }), "Echo: after");
      // The new server knows of the subscription only if the bridge told it.
      await call("toggle-subscriber-updates");
      await wire.until((m) => m.method === "notifications/resources/updated", "the update after the restart");
      await closeThis();
    } finally {
      await kill(child);
    }
    return "closed";
  }],
  ["end of the session", onStdio ? [] : ["python", "python-json"], async ({ call, close }) => {
    const { session } = JSON.parse(await call("seen"));
    await close();
    const next = await connect();
    await untilSeen(next.call, ({ deleted }) => deleted.includes(session), "the end of the session");
    await next.close();
    return "closed";
  }],
];

// A check that ran out of time goes on behind our back: whatever it started ends with us.
const launched = [];
process.on("exit", () => launched.forEach((child) => child.kill("SIGKILL")));
process.on("SIGTERM", () => process.exit(143));

/** A server of our own, of the same kind, for the one check that kills it. Resolves to its process and URL. */
async function launch(port) {
  const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
  const everything = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
  const [command, ...args] = {
    everything: [process.execPath, "--require", here("servers/loopback.cjs"), here(`.peers/${everything}`), "streamableHttp"],
    python: [here(".peers/mcp1/bin/python"), here("servers/python_server.py")],
  }[server];
  const child = spawn(command, args, { env: { ...process.env, PORT: port }, stdio: ["ignore", "pipe", "ignore"] });
  launched.push(child);
  const lines = createInterface(child.stdout);
  const started = new Promise((resolve) => lines.on("line", (line) => line.startsWith("http://") && resolve(line)));
  return { child, url: await bounded(started, START_MS, "the server did not start") };
}

async function kill(child) {
  child.kill("SIGKILL");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

/** Until the Python server has seen it. */
async function untilSeen(call, wanted, what) {
  const deadline = Date.now() + WAIT_MS;
  while (!wanted(JSON.parse(await call("seen")))) {
    assert(Date.now() < deadline, `the server did not see ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function run(check) {
  const connection = await connect();
  let closed;
  try {
    closed = await bounded(check(connection), CHECK_MS, "the check did not finish");
  } catch (error) {
    await connection.close().catch(() => {});
    throw error;
  }
  if (!closed) await connection.close();
}

let failures = 0;
for (const [name, servers, check] of checks) {
  const line = `${label}: ${name}`;
  if (!servers.includes(kind) || !line.includes(filter)) continue;
  try {
    await run(check);
    console.log(`ok   ${line}`);
  } catch (error) {
    failures += 1;
    console.log(`FAIL ${line}  ${String(error.message).replace(/\s+/g, " ").slice(0, 200)}`);
  }
}
process.exit(failures ? 1 : 0);
