// Judges what arrives through a bridge to an orchestrator.
//
//   orchestra.mjs SUITES LABEL FILTER COMMAND ARG…
//
// SUITES are joined with commas: `reference` needs our reference server behind the orchestrator, `features` Orchestra's storage and
// feature tools, `prompts` an orchestrator that finds prompts; `ours` and `ours-features` are what Orchestra's own bridge cannot do.
import assert from "node:assert/strict";
import { judge } from "./bridge.mjs";

const [names, label, filter, ...command] = process.argv.slice(2);
// More than a quic-go server has streams at once.
const MANY = 1000;

const suites = { reference: {}, prompts: {}, features: {}, ours: {}, "ours-features": {} };
const { reference, prompts, features, ours, "ours-features": oursFeatures } = suites;

const opened = (check) => async (bridge) => check(bridge, await bridge.open());

reference.handshake = opened(async (bridge, { protocolVersion, capabilities }) => {
  assert.equal(protocolVersion, "2025-11-25");
  assert.ok(capabilities.tools);
  assert.deepEqual(await bridge.result("ping", {}), {});
});

reference["tools are listed"] = opened(async (bridge) => {
  const { tools } = await bridge.result("tools/list", {});
  const echo = tools.find((tool) => tool.name === "echo");
  assert.equal(echo.inputSchema.type, "object");
});

reference["a call"] = opened(async (bridge) => {
  const { content } = await bridge.call("echo", { message: "grüß 🙂" });
  assert.deepEqual(content, [{ type: "text", text: "grüß 🙂" }]);
});

reference["whole numbers stay whole"] = opened(async (bridge) => {
  assert.equal(await bridge.text("add", { a: 1, b: 2 }), '{"sum":3}');
});

reference["a tool that fails"] = opened(async (bridge) => {
  const result = await bridge.call("test_error_handling", {});
  assert.equal(result.isError, true);
  assert.equal(result.content[0].text, "This tool intentionally returns an error for testing");
});

reference["an unknown tool"] = opened(async (bridge) => {
  const result = await bridge.call("no_such_tool", {});
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, /no_such_tool/);
});

reference["an unknown method"] = opened(async (bridge) => {
  assert.equal((await bridge.request("no/such", {})).error.code, -32601);
});

reference["a call that asks for progress"] = opened(async (bridge) => {
  const { content } = await bridge.call("test_tool_with_progress", {}, { progressToken: "p" });
  assert.equal(content[0].text, "Tool with progress executed successfully");
});

reference[`${MANY} calls at once`] = opened(async (bridge) => {
  const texts = Array.from({ length: MANY }, (_, n) => `call ${n}`);
  assert.deepEqual(await Promise.all(texts.map((message) => bridge.text("echo", { message }))), texts);
});

reference[`${MANY} calls after each other`] = opened(async (bridge) => {
  for (let n = 0; n < MANY; n++) assert.equal(await bridge.text("echo", { message: `call ${n}` }), `call ${n}`);
});

reference["a slow call does not hold up ping"] = opened(async (bridge) => {
  let done = false;
  const slow = bridge.call("slow", { ms: 1000 }).then(() => (done = true));
  await bridge.result("ping", {});
  assert.equal(done, false);
  await slow;
});

reference["a megabyte, and again"] = opened(async (bridge) => {
  const message = "0123456789".repeat(100_000);
  for (let n = 0; n < 20; n++) assert.equal(await bridge.text("echo", { message }), message);
});

reference["prompts are listed"] = opened(async (bridge) => {
  const { prompts } = await bridge.result("prompts/list", {});
  assert.ok(prompts.some((prompt) => prompt.name === "test_simple_prompt"));
});

prompts["a prompt"] = opened(async (bridge) => {
  const params = { name: "test_prompt_with_arguments", arguments: { arg1: "grüß", arg2: "2" } };
  const { messages } = await bridge.result("prompts/get", params);
  assert.equal(messages[0].role, "user");
  assert.match(messages[0].content.text, /grüß/);
});

features["its tools keep a project"] = opened(async (bridge) => {
  const name = `Interop ${process.pid} ${Date.now()}`;
  assert.match(await bridge.text("create_project", { name, description: "grüß" }), /^Created project/);
  const projects = await bridge.text("list_projects", {});
  assert.ok(projects.includes(name), projects);
});

features["its tools refuse what they do not understand"] = opened(async (bridge) => {
  const result = await bridge.call("create_feature", {});
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, /project_id/);
});

features["resources come from its storage"] = opened(async (bridge) => {
  const uri = "orchestra://notes/one";
  const { resources } = await bridge.result("resources/list", {});
  assert.ok(resources.some((resource) => resource.uri === uri), JSON.stringify(resources));
  const { contents } = await bridge.result("resources/read", { uri });
  assert.deepEqual(contents, [{ uri, mimeType: "text/markdown", text: "# grüß\n" }]);
});

ours["an image"] = opened(async (bridge) => {
  const { content } = await bridge.call("test_image_content", {});
  assert.deepEqual([content[0].type, content[0].mimeType], ["image", "image/png"]);
});

ours["a number that would arrive as another"] = opened(async (bridge) => {
  const params = '{"name":"add","arguments":{"a":9007199254740993,"b":0}}';
  const answer = new Promise((resolve) => bridge.waiting.set("big", resolve));
  bridge.process.stdin.write(`{"jsonrpc":"2.0","id":"big","method":"tools/call","params":${params}}\n`);
  assert.equal((await answer).error.code, -32602);
});

ours["a client of 2026-07-28"] = async (bridge) => {
  const said = (name, value) => [`io.modelcontextprotocol/${name}`, value];
  const _meta = Object.fromEntries([
    said("protocolVersion", "2026-07-28"),
    said("clientInfo", { name: "interop", version: "1" }),
    said("clientCapabilities", {}),
  ]);
  const { supportedVersions } = await bridge.result("server/discover", { _meta });
  assert.ok(supportedVersions.includes("2026-07-28"));
  const { resultType, content } = await bridge.call("echo", { message: "new" }, _meta);
  assert.deepEqual([resultType, content[0].text], ["complete", "new"]);
};

oursFeatures["a resource that is not there"] = opened(async (bridge) => {
  assert.equal((await bridge.request("resources/read", { uri: "orchestra://notes/none" })).error.code, -32002);
});

const chosen = Object.assign({}, ...names.split(",").map((name) => suites[name]));
await judge(chosen, label, filter, command);
