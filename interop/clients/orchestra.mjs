// Drives a bridge to an orchestrator line by line and judges what arrives. Behind it is our reference server.
//
//   orchestra.mjs LABEL FILTER COMMAND ARG…
//
// No SDK: Orchestra's own bridge answers some things in ways that SDKs refuse.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const [label, filter, ...command] = process.argv.slice(2);
const CHECK_MS = 20_000;
const EOF_MS = 3_000;

/** The bridge, and who waits for which answer. */
class Bridge {
  waiting = new Map();
  next = 1;

  constructor() {
    this.process = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.process.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    });
  }

  request(method, params) {
    const id = this.next++;
    const answer = new Promise((resolve) => this.waiting.set(id, resolve));
    this.process.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    return answer;
  }

  async result(method, params) {
    const answer = await this.request(method, params);
    assert.ok(answer.result, JSON.stringify(answer));
    return answer.result;
  }

  async open() {
    const clientInfo = { name: "interop", version: "1" };
    const result = await this.result("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
    this.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    return result;
  }

  call(name, args) {
    return this.result("tools/call", { name, arguments: args });
  }

  async close() {
    const ended = once(this.process, "exit");
    this.process.stdin.end();
    const late = setTimeout(() => this.process.kill("SIGKILL"), EOF_MS);
    const [code] = await ended;
    clearTimeout(late);
    assert.equal(code, 0, "the bridge did not end by itself");
  }
}

const checks = {
  async handshake(bridge, opened) {
    assert.equal(opened.protocolVersion, "2025-11-25");
    assert.ok(opened.capabilities.tools);
    assert.deepEqual(await bridge.result("ping", {}), {});
  },
  async "tools are listed"(bridge) {
    const { tools } = await bridge.result("tools/list", {});
    const echo = tools.find((tool) => tool.name === "echo");
    assert.equal(echo.inputSchema.type, "object");
  },
  async "a call"(bridge) {
    const { content } = await bridge.call("echo", { message: "grüß 🙂" });
    assert.deepEqual(content, [{ type: "text", text: "grüß 🙂" }]);
  },
  async "whole numbers stay whole"(bridge) {
    const { content } = await bridge.call("add", { a: 1, b: 2 });
    assert.equal(content[0].text, '{"sum":3}');
  },
  async "an unknown tool"(bridge) {
    const result = await bridge.call("no_such_tool", {});
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, /no_such_tool/);
  },
  async "an unknown method"(bridge) {
    assert.equal((await bridge.request("no/such", {})).error.code, -32601);
  },
  async "50 calls at once"(bridge) {
    const texts = Array.from({ length: 50 }, (_, n) => `call ${n}`);
    const answers = await Promise.all(texts.map((message) => bridge.call("echo", { message })));
    assert.deepEqual(answers.map((answer) => answer.content[0].text), texts);
  },
  async "a slow call does not hold up ping"(bridge) {
    let done = false;
    const slow = bridge.call("slow", { ms: 1000 }).then(() => (done = true));
    await bridge.result("ping", {});
    assert.equal(done, false);
    await slow;
  },
  async "a megabyte"(bridge) {
    const message = "0123456789".repeat(100_000);
    assert.equal((await bridge.call("echo", { message })).content[0].text, message);
  },
  async "prompts are listed"(bridge) {
    const { prompts } = await bridge.result("prompts/list", {});
    assert.ok(prompts.some((prompt) => prompt.name === "test_simple_prompt"));
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  const line = `${label}: ${name}`;
  if (!line.includes(filter)) continue;
  const bridge = new Bridge();
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("no end within the time limit")), CHECK_MS);
  });
  try {
    await Promise.race([bridge.open().then((opened) => check(bridge, opened)), late]);
    await bridge.close();
    console.log(`ok   ${line}`);
  } catch (error) {
    failed++;
    bridge.process.kill("SIGKILL");
    console.log(`FAIL ${line}  ${String(error.message).split("\n")[0]}`);
  }
  clearTimeout(timer);
}
process.exit(failed > 0 ? 1 : 0);
