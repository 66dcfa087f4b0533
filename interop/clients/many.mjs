// Asks a hub of many servers with the TypeScript SDK: all checks on one connection, as a client of a hub has it.
//
//   many.mjs CLIENT URL FILTER [COMMAND ARG…]
//
// CLIENT is `1`, `2-auto` or `2-new`, see sdk.mjs. COMMAND is the hub on stdio; without one the client goes to URL.
// The servers and their order are those of interop/run-hub.
import assert from "node:assert/strict";
import { bounded, HAS, load, LOG_LEVEL, newClient, newTransport, ROOT } from "./sdk.mjs";

const [generation, url, filter, ...bridge] = process.argv.slice(2);
const old = generation === "1";
const sdk = load(generation);
const label = `ts-sdk-${sdk.version.split(".").slice(0, 2).join(".")}${{ "2-new": " pinned" }[generation] ?? ""} over ${bridge.length > 0 ? "stdio" : "http"}`;

const CHECK_MS = 30_000;
const WAIT_MS = 12_000; // server-everything repeats its updates every 5 s
const SERVERS = ["everything", "python", "ts2", "legacy", "mcphub", "folder"];
/** Those that are asked for everything; mcp-hub asks its clients nothing, and a folder neither. */
const ABLE = { everything: HAS.everything, python: HAS.python, ts2: HAS.ts2, legacy: HAS.everything };

const received = []; // as it stands on the wire
let wake = () => {};
const transport = newTransport(sdk, url, bridge);
transport.onmessage = (message) => (received.push(message), wake());
const form = ({ params }) => (params.requestedSchema.properties.username ? HAS.ts2.form : HAS.everything.form);
const { client, asked } = newClient(sdk, "interop-hub", form);

/** A message that came after the first `since`. */
async function told(since, what, fits) {
  const arrived = async () => {
    while (!received.slice(since).some(fits)) await new Promise((resolve) => (wake = resolve));
  };
  await bounded(arrived(), WAIT_MS, `${what} did not arrive`);
}

async function call(server, [name, args], options, _meta) {
  const params = { name: `${server}__${name}`, arguments: args, ...(_meta && { _meta }) };
  const result = await sdk.call(client, params, options);
  assert(!result.isError, `${params.name}: ${JSON.stringify(result.content)}`);
  return result.content.map((item) => item.text ?? "").join("\n");
}

/** Each server's own word for it: the variable INTEROP_NAME, or what nobody else could say. */
async function proves(server, word) {
  const messages = ({ messages }) => messages.map(({ content }) => content.text).join("\n");
  if (server === "folder") {
    const text = messages(await client.getPrompt({ name: "folder__summarize", arguments: { text: word } }));
    return assert(text.includes(word) && text.length > word.length, text);
  }
  const inner = server === "mcphub" ? "everything__" : "";
  assert.equal(await call(server, [`${inner}echo`, { message: word }]), server === "ts2" ? word : `Echo: ${word}`);
  assert.equal(JSON.parse(await call(server, [`${inner}get-env`, {}])).INTEROP_NAME, server);
}

const of = (names, server) => names.filter((name) => name.startsWith(`${server}__`)).map((name) => name.slice(server.length + 2));
const names = async () => (await client.listTools()).tools.map(({ name }) => name);
const forAll = (table, check) => Promise.all(Object.entries(table).map(([server, has]) => check(server, has)));
const inTurn = async (table, check) => {
  for (const [server, has] of Object.entries(table)) await check(server, has);
};
const refuses = (promise, text) => assert.rejects(promise, ({ code, message }) => code === -32602 && message.includes(text));

const checks = {
  "the version, and what all can do": async () => {
    if (!old) assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
    const { tools, prompts, resources, completions, logging } = client.getServerCapabilities();
    assert(tools.listChanged && prompts && resources.subscribe && completions && logging);
    assert.match(client.getInstructions(), /everything/);
  },
  "names and order": async () => {
    const all = await names();
    assert.equal(new Set(all).size, all.length, "a name twice");
    assert.deepEqual(all, SERVERS.flatMap((server) => of(all, server).map((name) => `${server}__${name}`)));
    assert.deepEqual(await names(), all);
    assert.deepEqual(of(all, "python").slice(0, 3), ["echo", "trigger-long-running-operation", "trigger-sampling-request"]);
    assert(of(all, "mcphub").every((name) => name.startsWith("everything__")), "names of mcp-hub");
    const prompts = (await client.listPrompts()).prompts.map(({ name }) => name);
    assert.deepEqual(prompts, SERVERS.flatMap((server) => of(prompts, server).map((name) => `${server}__${name}`)));
    assert(SERVERS.every((server) => of(all, server).length > 2 && of(prompts, server).length > 0), "nothing of a server");
  },
  "each server is reached": async () => {
    for (const server of SERVERS) await proves(server, `grüße, 世界 \u2028 ${server}`);
  },
  "errors": async () => {
    await refuses(sdk.call(client, { name: "nobody__echo", arguments: {} }), "nobody__echo");
    await refuses(client.getPrompt({ name: "ts2__no-such-prompt" }), "no-such-prompt");
    await refuses(client.getPrompt({ name: "no-such-prompt" }), "no-such-prompt");
    const failed = await sdk.call(client, { name: "ts2__test_error_handling", arguments: {} });
    assert(failed.isError && /intentionally/.test(failed.content[0].text));
  },
  "many at once": () =>
    Promise.all(Array.from({ length: 8 }, (_, i) => SERVERS.map((server) => proves(server, `${server} ${i}`))).flat()),
  "prompts": () => forAll({ ...ABLE, mcphub: { prompt: "everything__simple-prompt" } }, async (server, { prompt }) => {
    assert.equal((await client.getPrompt({ name: `${server}__${prompt}` })).messages[0].role, "user");
  }),
  "resources": async () => {
    const { resources } = await client.listResources();
    const read = async (uri) => (await client.readResource({ uri })).contents[0];
    for (const prefix of ["demo://resource/static/", "demo://resource/dynamic/", "test://", "everything__demo://", "orchestr8://"]) {
      const { uri } = resources.find(({ uri }) => uri.startsWith(prefix)) ?? assert.fail(`no ${prefix}`);
      assert((await read(uri)).text.length > 0);
    }
    // Two servers have this one: the one that lists it goes before the one whose template fits.
    assert.match((await read("demo://resource/dynamic/text/1")).text, /^Resource demo/);
    assert.match((await read("demo://resource/dynamic/text/7")).text, /Resource 7/);
    assert.match((await read("test://template/4711/data")).text, /Data for ID: 4711/);
    // Nobody lists it: all are asked in turn, and one of them has whatever it is asked for.
    assert.equal((await read("nowhere://nothing")).text, "Resource nowhere://nothing");
    assert.equal(new Set(resources.map(({ uri }) => uri)).size, resources.length, "a URI twice");
  },
  "completion": async () => {
    const complete = async (ref, name, value) => (await client.complete({ ref, argument: { name, value } })).completion.values;
    const prompt = (name) => ({ type: "ref/prompt", name });
    assert.deepEqual(await complete(prompt("everything__completable-prompt"), "department", "E"), ["Engineering"]);
    assert.deepEqual(await complete(prompt("ts2__test_prompt_with_arguments"), "arg1", "testV"), ["testValue1", "testValue2"]);
    const template = { type: "ref/resource", uri: "test://template/{id}/data" };
    assert.deepEqual(await complete(template, "id", "testValue2"), ["testValue2"]);
  },
  "progress": () => inTurn(ABLE, async (server, has) => {
    const since = received.length;
    const seen = [];
    await call(server, has.progress, { onprogress: ({ progress }) => seen.push(progress) });
    // The SDK forgets what it reads in one piece with the answer; and 2.x counts rounds of questions as progress, too.
    const progress = received.slice(since).filter(({ method }) => method === "notifications/progress");
    assert.deepEqual(progress.map(({ params }) => params.progress), has.steps, server);
  }),
  "progress of all at once": () => forAll(ABLE, async (server, has) => {
    const seen = [];
    await call(server, has.progress, { onprogress: ({ progress }) => seen.push(progress) });
    assert.deepEqual(seen, has.steps.slice(0, seen.length), server);
  }),
  "logging": async () => {
    if (old) await client.setLoggingLevel("info");
    for (const server of ["python", "ts2"]) {
      const since = received.length;
      await call(server, ABLE[server].logging, undefined, old ? undefined : { [LOG_LEVEL]: "info" });
      const isLog = ({ method }) => method === "notifications/message";
      await told(since, `a log message of ${server}`, isLog);
      assert(received.slice(since).filter(isLog).every(({ params }) => params.level !== "debug"), "a message below the level");
    }
  },
  "elicitation": () => inTurn(ABLE, async (server, has) => {
    const before = asked.elicitation;
    assert.match(await call(server, has.elicitation), /elicited-4711/);
    assert.equal(asked.elicitation, before + 1, server);
  }),
  "elicitations of all at once": async () => {
    const before = asked.elicitation;
    await forAll(ABLE, async (server, has) => assert.match(await call(server, has.elicitation), /elicited-4711/));
    assert.equal(asked.elicitation, before + SERVERS.filter((server) => server in ABLE).length);
  },
  "sampling": () => inTurn(ABLE, async (server, has) => {
    asked.sampling = "";
    assert.match(await call(server, has.sampling), /sampled-4711/, server);
    assert.match(asked.sampling, /prompt-0815/);
  }),
  "roots": () => inTurn(ABLE, async (server, has) => {
    assert.match(await call(server, has.roots), server === "ts2" ? /root/ : new RegExp(ROOT), server);
  }),
  "subscriptions": async () => {
    const uris = { everything: "demo://resource/dynamic/text/2", python: HAS.python.resource, ts2: HAS.ts2.resource };
    let subscription;
    if (old) for (const uri of Object.values(uris)) await client.subscribeResource({ uri });
    else {
      subscription = await client.listen({ resourceSubscriptions: Object.values(uris) });
      assert.deepEqual(subscription.honoredFilter.resourceSubscriptions.toSorted(), Object.values(uris).toSorted());
    }
    await inTurn(uris, async (server, uri) => {
      const since = received.length;
      // Clients may share a session of the server: another may have started the updates, and this stops them.
      if (/Stopped/.test(await call(server, ABLE[server].touch))) await call(server, ABLE[server].touch);
      await told(since, `an update of ${server}`, ({ method, params }) => method === "notifications/resources/updated" && params.uri === uri);
    });
    if (old) for (const uri of Object.values(uris)) await client.unsubscribeResource({ uri });
    else await subscription.close();
    const since = received.length;
    await call("ts2", HAS.ts2.touch);
    await proves("everything", "after");
    const late = received.slice(since).filter(({ method, params }) => method?.endsWith("/updated") && params.uri === uris.ts2);
    assert.deepEqual(late, []);
  },
  "list changed": async () => {
    const subscription = old ? undefined : await client.listen({ toolsListChanged: true });
    const had = (await names()).includes("ts2__test_dynamic_item");
    const since = received.length;
    await call("ts2", HAS.ts2.change);
    await told(since, "list_changed", ({ method }) => method === "notifications/tools/list_changed");
    assert.equal((await names()).includes("ts2__test_dynamic_item"), !had);
    await subscription?.close();
  },
  "cancel": () => inTurn({ everything: 0, python: 0, ts2: 0 }, async (server) => {
    const mark = `cancelled-${label}`;
    const stop = new AbortController();
    const slow = server === "ts2" ? ["slow", {}] : ["trigger-long-running-operation", { duration: 5, steps: 50, ...(server === "python" && { label: mark }) }];
    setTimeout(() => stop.abort("enough"), 300);
    await assert.rejects(call(server, slow, { signal: stop.signal }), /enough/);
    await proves(server, "still here");
    if (server !== "python") return;
    const reached = async () => {
      while (!(await call("python", ["seen", {}])).includes(mark)) await new Promise((resolve) => setTimeout(resolve, 50));
    };
    await bounded(reached(), WAIT_MS, "the server did not hear of the cancelling");
  }),
};

let failures = 0;
const report = (line, error) => {
  failures += error ? 1 : 0;
  console.log(error ? `FAIL ${line}  ${String(error.message).replace(/\s+/g, " ").slice(0, 300)}` : `ok   ${line}`);
};
try {
  await bounded(client.connect(transport), CHECK_MS, "no connection");
  for (const [name, check] of Object.entries(checks)) {
    const line = `${label}: ${name}`;
    if (line.includes(filter)) await bounded(check(), CHECK_MS, "the check did not finish").then(() => report(line), (error) => report(line, error));
  }
  await transport.terminateSession?.();
  await bounded(client.close(), CHECK_MS, "the connection did not end");
} catch (error) {
  report(`${label}: connection`, error);
}
process.exit(failures ? 1 : 0);
