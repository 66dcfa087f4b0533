// What mcpwire makes of the faults of a real orchestrator, as its client and as its plugin.
//
//   orchestra_faults.mjs LABEL FILTER MCPWIRE ORCHESTRATOR CONFIG CERTS OTHER_CERTS
//
// CONFIG has one plugin: mcpwire in front of our reference server.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Bridge, judge } from "./bridge.mjs";

const [label, filter, mcpwire, program, config, certs, otherCerts] = process.argv.slice(2);

/** An orchestrator, where it listens, and the process of its plugin. */
async function start(address) {
  const args = ["--config", config, "--listen-addr", address, "--certs-dir", certs];
  const orchestrator = { process: spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] }) };
  for await (const line of createInterface({ input: orchestrator.process.stderr })) {
    orchestrator.address ??= line.match(/QUIC server listening on (\S+)/)?.[1];
    orchestrator.plugin ??= line.match(/started plugin .*\(pid=(\d+)\)/)?.[1];
    if (line.includes("registered with router")) return orchestrator;
  }
  throw new Error("the orchestrator did not start");
}

function children(parent) {
  const rows = execFileSync("ps", ["-eo", "pid=,ppid=,stat="], { encoding: "utf8" }).split("\n");
  return rows.map((row) => row.trim().split(/\s+/)).filter(([, of, state]) => of === parent && !state.startsWith("Z"));
}

async function until(so) {
  while (!so()) await sleep(50);
}

function runs(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** What a client is told that cannot be served. */
async function refused(target, folder) {
  const bridge = new Bridge([mcpwire, "connect", target, "--certs-dir", folder, "--wait", "1s"]);
  const { error } = await bridge.request("initialize", { protocolVersion: "2025-11-25", capabilities: {} });
  bridge.process.kill();
  return error?.message ?? "nothing";
}

let orchestrator = await start("127.0.0.1:0");
// Its plugin then ends by itself.
process.on("exit", () => orchestrator.process.kill("SIGKILL"));

const checks = {
  async "the server behind the plugin is killed"(bridge) {
    await bridge.open();
    await bridge.text("echo", { message: "before" });
    for (const [pid] of children(orchestrator.plugin)) process.kill(pid, "SIGKILL");
    assert.equal(await bridge.text("echo", { message: "after" }), "after");
  },
  async "the orchestrator is killed and started again"(bridge) {
    await bridge.open();
    await bridge.text("echo", { message: "before" });
    const { address, plugin, process: killed } = orchestrator;
    const gone = once(killed, "exit");
    killed.kill("SIGKILL");
    await gone;
    await until(() => !runs(plugin));
    orchestrator = await start(address);
    // A list may be asked for twice, and so is never lost.
    const { tools } = await bridge.result("tools/list", {});
    assert.ok(tools.some((tool) => tool.name === "echo"));
    assert.equal(await bridge.text("echo", { message: "after" }), "after");
  },
  async "certificates of another authority"() {
    assert.match(await refused(`quic://${orchestrator.address}`, otherCerts), /certificate/i);
  },
  async "an orchestrator that does not speak MCP"() {
    assert.match(await refused(`quic+mcp://${orchestrator.address}`, certs), /protocol/i);
  },
};

await judge(checks, label, filter, [mcpwire, "connect", `quic://${orchestrator.address}`, "--certs-dir", certs]);
