// Calls through a bridge to servers/http2.mjs, which closes its connections under load: nothing may fail or run twice.
//
//   http2.mjs LABEL FILTER COMMAND…
import assert from "node:assert/strict";
import { judge } from "./bridge.mjs";

const [label, filter, ...command] = process.argv.slice(2);
const CALLS = 800;
let next = 0;

/** Calls so many at once, and what the server knows of it afterwards. */
async function load(bridge, atOnce) {
  await bridge.open();
  const before = JSON.parse(await bridge.text("report", {}));
  const first = next;
  next += CALLS;
  const failures = [];
  let n = first;
  const worker = async () => {
    while (n < first + CALLS) {
      const mine = n++;
      const answer = await bridge.request("tools/call", { name: "work", arguments: { n: mine } });
      if (answer.result?.content[0].text !== String(mine)) failures.push(JSON.stringify(answer));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const after = JSON.parse(await bridge.text("report", {}));
  const mine = new Map(after.executions.filter(([n]) => n >= first));
  const doubled = [...mine.values()].filter((times) => times > 1).length;
  const missing = CALLS - mine.size;
  assert.ok(after.closed > before.closed, "the server closed no connection");
  assert.ok(after.refused > before.refused, "the server refused nothing");
  const found = `${failures.length} failed, ${doubled} doubled, ${missing} not executed`;
  assert.equal(found, "0 failed, 0 doubled, 0 not executed", `${found}; ${failures[0] ?? ""}`);
}

const checks = {
  "one call after the other": (bridge) => load(bridge, 1),
  "16 calls at once": (bridge) => load(bridge, 16),
  "100 calls at once": (bridge) => load(bridge, 100),
  "800 calls at once": (bridge) => load(bridge, CALLS),
};

await judge(checks, label, filter, command);
