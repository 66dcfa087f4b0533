// A bridge on stdio, driven line by line, and checks of it. No SDK: Orchestra's own bridge answers some things in ways that
// SDKs refuse.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const CHECK_MS = 30_000;
const EOF_MS = 3_000;

/** The bridge, and who waits for which answer. */
export class Bridge {
  waiting = new Map();
  next = 1;

  constructor(command) {
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

  call(name, args, _meta) {
    return this.result("tools/call", { name, arguments: args, _meta });
  }

  async text(name, args) {
    const { content, isError } = await this.call(name, args);
    assert.ok(!isError, JSON.stringify(content));
    return content[0].text;
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

/** Runs the checks whose line has the filter in it, each with a bridge of its own; ends the process. */
export async function judge(checks, label, filter, command) {
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    const line = `${label}: ${name}`;
    if (!line.includes(filter)) continue;
    const bridge = new Bridge(command);
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("no end within the time limit")), CHECK_MS);
    });
    try {
      await Promise.race([check(bridge), late]);
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
}
