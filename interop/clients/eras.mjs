// Drives a server of one era with a client of the other, on the TypeScript SDK, one connection per check.
//
//   eras.mjs CLIENT SERVER URL FILTER [COMMAND ARG…]
//
// CLIENT is `1` (SDK 1.x, which knows the session era only), `2-auto` (SDK 2.x, which finds out) or `2-new` (SDK 2.x,
// the stateless era and no other). SERVER is everything, python, reference or ts2, with the transport behind the bridge
// after a dash. COMMAND is the bridge on stdio; without one the client goes to URL, where a bridge listens.
import assert from "node:assert/strict";
import { bounded, HAS, load, LOG_LEVEL, newClient, newTransport, notes, ROOT } from "./sdk.mjs";

const [generation, server, url, filter, ...bridge] = process.argv.slice(2);
const [kind] = server.split("-");
const old = generation === "1";
const sdk = load(generation);
const has = HAS[kind];
const transport = bridge.length > 0 ? "stdio" : "http";
const label = `ts-sdk-${sdk.version.split(".").slice(0, 2).join(".")}${{ "2-new": " pinned" }[generation] ?? ""} over ${transport} x ${server}`;

const CHECK_MS = 20_000;

async function connect(offers) {
  const transport = newTransport(sdk, url, bridge);
  const received = []; // as it stands on the wire
  transport.onmessage = (message) => received.push(message);
  const { client, asked } = newClient(sdk, "interop-eras", () => has.form, offers);
  await bounded(client.connect(transport), CHECK_MS, "no connection");
  const call = async ([name, args], options, _meta) => {
    const result = await sdk.call(client, { name, arguments: args, ...(_meta && { _meta }) }, options);
    assert(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
    return result.content.map((item) => item.text ?? "").join("\n");
  };
  const close = async () => {
    await transport.terminateSession?.();
    await client.close();
  };
  return { client, received, asked, call, close };
}

const checks = {
  "the version is the client's": async ({ client }) => {
    if (old) return assert(client.getServerVersion().name.length > 0);
    assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
  },
  "list and read": async ({ client }) => {
    assert((await client.listTools()).tools.some(({ name }) => name === "echo"), "no echo in the list");
    assert((await client.listPrompts()).prompts.some(({ name }) => name === has.prompt), "no prompt");
    assert.equal((await client.getPrompt({ name: has.prompt })).messages[0].role, "user");
    const [{ uri }] = (await client.listResources()).resources;
    assert.equal((await client.readResource({ uri })).contents[0].uri, uri);
  },
  "call a tool": async ({ call }) => {
    assert.match(await call(["echo", { message: "grüße, 世界 \u2028 \n" }]), /grüße, 世界 \u2028 \n/);
  },
  "error": async ({ client }) => {
    await assert.rejects(client.getPrompt({ name: "no-such-prompt" }), ({ code }) => code === -32602);
  },
  "many at once": async ({ call }) => {
    const texts = Array.from({ length: 8 }, (_, i) => `text ${i}`);
    const answers = await Promise.all(texts.map((message) => call(["echo", { message }])));
    answers.forEach((answer, i) => assert(answer.endsWith(texts[i]), `${answer} for ${texts[i]}`));
  },
  "progress": async ({ call, received }) => {
    const told = [];
    await call(has.progress, { onprogress: ({ progress }) => told.push(progress) });
    // All of it is on the wire. The SDK forgets what it reads in one piece with the answer, on a busy machine all of it.
    const progress = received.filter(({ method }) => method === "notifications/progress");
    assert.deepEqual(progress.map(({ params }) => params.progress), has.steps);
    assert.deepEqual(told, has.steps.slice(0, told.length));
  },
  "logging": has.logging && (async ({ client, call }) => {
    const { seen, next } = notes(sdk, client, "notifications/message");
    if (old) await client.setLoggingLevel("info");
    await call(has.logging, undefined, old ? undefined : { [LOG_LEVEL]: "info" });
    await next();
    assert(seen.every(({ level }) => level !== "debug"), "a message below the level");
  }),
  "no logging unasked": has.logging && !old && (async ({ client, call }) => {
    const { seen } = notes(sdk, client, "notifications/message");
    await call(has.logging);
    await call(["echo", { message: "later" }]);
    assert.equal(seen.length, 0);
  }),
  "elicitation": async ({ call, asked }) => {
    assert.match(await call(has.elicitation), /elicited-4711/);
    assert.equal(asked.elicitation, 1);
  },
  "two elicitations at once": async ({ call, asked }) => {
    const answers = await Promise.all([call(has.elicitation), call(has.elicitation)]);
    answers.forEach((answer) => assert.match(answer, /elicited-4711/));
    assert.equal(asked.elicitation, 2);
  },
  "sampling": async ({ call, asked }) => {
    assert.match(await call(has.sampling), /sampled-4711/);
    assert.match(asked.sampling, /prompt-0815/);
  },
  "roots": async ({ call }) => assert.match(await call(has.roots), kind === "ts2" ? /root/ : new RegExp(ROOT)),
  "subscription": async ({ client, call }) => {
    const { seen, next } = notes(sdk, client, "notifications/resources/updated");
    let subscription;
    if (old) await client.subscribeResource({ uri: has.resource });
    else {
      subscription = await client.listen({ resourceSubscriptions: [has.resource] });
      assert.deepEqual(subscription.honoredFilter.resourceSubscriptions, [has.resource]);
    }
    // Clients without a session share those that the bridge has: another may have started the updates, and this stops them.
    if (/Stopped/.test(await call(has.touch))) await call(has.touch);
    await next();
    assert.equal(seen[0].uri, has.resource);
    if (old) await client.unsubscribeResource({ uri: has.resource });
    else await subscription.close();
    assert.match(await call(["echo", { message: "after" }]), /after/);
  },
  "list changed": has.change && (async ({ client, call }) => {
    const { next } = notes(sdk, client, "notifications/tools/list_changed");
    const subscription = old ? undefined : await client.listen({ toolsListChanged: true });
    await call(has.change);
    await next();
    await subscription?.close();
  }),
  "cancel": async ({ call }) => {
    const stop = new AbortController();
    const slow = kind === "reference" ? ["slow", { ms: 5000 }] : kind === "ts2" ? ["slow", {}] : ["trigger-long-running-operation", { duration: 5, steps: 50 }];
    const called = call(slow, { signal: stop.signal, onprogress: () => stop.abort("enough") });
    setTimeout(() => stop.abort("enough"), 500);
    await assert.rejects(called, /enough/);
    assert.match(await call(["echo", { message: "still here" }]), /still here/);
  },
};

/**
 * server-everything asks whoever has roots for them, 350 ms after a session began and so in the middle of whatever is
 * called then; the SDK 2.x counts each round of questions as progress of the call: 1, 2, … among the server's own.
 */
const offers = { "progress": { roots: false } };

let failures = 0;
for (const [name, check] of Object.entries(checks)) {
  const line = `${label}: ${name}`;
  if (!check || !line.includes(filter)) continue;
  let connection;
  try {
    connection = await connect(offers[name]);
    await bounded(check(connection), CHECK_MS, "the check did not finish");
    await bounded(connection.close(), CHECK_MS, "the connection did not end");
    console.log(`ok   ${line}`);
  } catch (error) {
    failures += 1;
    console.log(`FAIL ${line}  ${String(error.message).replace(/\s+/g, " ").slice(0, 200)}`);
    await connection?.close().catch(() => {});
  }
}
process.exit(failures ? 1 : 0);
