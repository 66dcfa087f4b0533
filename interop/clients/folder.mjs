// Asks `mcpwire connect FOLDER` and `mcpwire expose FOLDER`: by hand, every answer held against the protocol's JSON
// schema of its version; and with the TypeScript SDK's client.
//
//   folder.mjs FILTER URL MCPWIRE FOLDER
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../.peers/", import.meta.url));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const Ajv = require("ajv").default;
const Ajv2020 = require("ajv/dist/2020.js").default;
const formats = require("ajv-formats").default;

const [filter, url, mcpwire, folder] = process.argv.slice(2);
const MATCH = "orchestr8://agents/match?query=rest+api&maxResults=3";
const SEARCH = { name: "relevant-data.searchRecords", arguments: { categoryId: "people", filters: { skills: "python" } } };
const ASK = { name: "relevant-data.ask", arguments: { question: "list apps", topic: "apps", criteria: { criticality: "HIGH" } } };
const DEPLOY = { name: "deploy-it", arguments: { service: "api", environment: "staging" } };
const VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/** What is asked, and the definition that the answer must fit. */
const QUESTIONS = [
  ["resources/list", {}, "ListResourcesResult"],
  ["resources/templates/list", {}, "ListResourceTemplatesResult"],
  ["resources/read", { uri: "orchestr8://registry" }, "ReadResourceResult"],
  ["resources/read", { uri: "orchestr8://agents" }, "ReadResourceResult"],
  ["resources/read", { uri: MATCH }, "ReadResourceResult"],
  ["resources/read", { uri: `${MATCH}&mode=full` }, "ReadResourceResult"],
  ["resources/read", { uri: "orchestr8://examples/blue-square.png" }, "ReadResourceResult"],
  ["prompts/list", {}, "ListPromptsResult"],
  ["prompts/get", DEPLOY, "GetPromptResult"],
  ["completion/complete", { ref: { type: "ref/prompt", name: "deploy-it" }, argument: { name: "environment", value: "s" } }, "CompleteResult"],
  ["tools/list", {}, "ListToolsResult"],
  ["tools/call", SEARCH, "CallToolResult"],
  ["tools/call", ASK, "CallToolResult"],
  ["tools/call", { name: "relevant-data.describeCategory", arguments: { categoryId: "people" } }, "CallToolResult"],
  ["tools/call", { name: "relevant-data.insight", arguments: { categoryId: "people" } }, "CallToolResult"],
];

function validator(version) {
  const schema = JSON.parse(readFileSync(new URL(`../../crates/mcpwire-proto/tests/schema/${version}.json`, import.meta.url), "utf8"));
  const modern = "$defs" in schema;
  const ajv = formats(new (modern ? Ajv2020 : Ajv)({ strict: false, allErrors: true }));
  // A format of the schema that has no checker.
  ajv.addFormat("byte", /^[A-Za-z0-9+/]*={0,2}$/);
  ajv.addSchema(schema, "mcp");
  return (definition, value) => {
    const check = ajv.getSchema(`mcp#/${modern ? "$defs" : "definitions"}/${definition}`);
    assert(check(value), `${definition}: ${ajv.errorsText(check.errors)}`);
  };
}

/** Speaks JSON lines with the process; one answer after the other. */
class Wire {
  constructor() {
    this.child = spawn(mcpwire, ["connect", folder, "--log-level", "error"], { stdio: ["pipe", "pipe", "inherit"] });
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
    this.id = 0;
  }

  async ask(method, params) {
    this.id += 1;
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: this.id, method, params })}\n`);
    const { value } = await this.lines.next();
    const answer = JSON.parse(value);
    assert.equal(answer.id, this.id);
    return answer;
  }

  async close() {
    this.child.stdin.end();
    const [code] = await once(this.child, "exit");
    assert.equal(code, 0, "exit code");
  }
}

async function againstSchema(version) {
  const validate = validator(version);
  const stateless = version >= "2026";
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const wire = new Wire();
  if (stateless) {
    validate("DiscoverResult", (await wire.ask("server/discover", { _meta })).result);
  } else {
    const clientInfo = { name: "interop", version: "1" };
    const opened = await wire.ask("initialize", { protocolVersion: version, capabilities: {}, clientInfo });
    assert.equal(opened.result.protocolVersion, version);
    validate("InitializeResult", opened.result);
  }
  for (const [method, params, definition] of QUESTIONS) {
    const answer = await wire.ask(method, stateless ? { ...params, _meta } : params);
    assert(answer.result, `${method}: ${JSON.stringify(answer.error)}`);
    validate(definition, answer.result);
  }
  await wire.close();
}

async function withSdk(transport) {
  const client = new Client({ name: "interop-ts", version: "1" });
  await client.connect(transport);
  const { resources } = await client.listResources();
  assert(resources.length >= 150, `${resources.length} resources`);
  assert.equal(resources[0].uri, "orchestr8://registry");
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 15);
  const match = await client.readResource({ uri: MATCH });
  assert.match(match.contents[0].text, /### 1\. Agent: agents\/_fragments\/api-designer/);
  const { prompts } = await client.listPrompts();
  assert(prompts.some((prompt) => prompt.name === "deploy-it"));
  const prompt = await client.getPrompt(DEPLOY);
  assert.match(prompt.messages[0].content.text, /^Plan the deployment of api to staging\./);
  // The client holds structured content against the output schema it has listed.
  assert.equal((await client.listTools()).tools.length, 4);
  const people = await client.callTool(SEARCH);
  assert.deepEqual(people.structuredContent.records.map((person) => person.id), ["person-001", "person-003"]);
  assert.equal((await client.callTool(ASK)).structuredContent.payload.total, 3);
  assert.equal((await client.callTool({ name: SEARCH.name, arguments: {} })).isError, true);
  await assert.rejects(client.readResource({ uri: "orchestr8://agents/none" }), /not found/);
  await client.close();
}

const checks = VERSIONS.map((version) => [`schema ${version} x stdio`, () => againstSchema(version)]);
checks.push(
  ["ts-sdk x stdio", () => withSdk(new StdioClientTransport({ command: mcpwire, args: ["connect", folder] }))],
  ["ts-sdk x http", () => withSdk(new StreamableHTTPClientTransport(new URL(url)))],
);
let failed = false;
for (const [name, check] of checks) {
  if (!name.includes(filter)) continue;
  try {
    await check();
    console.log(`ok ${name}`);
  } catch (error) {
    failed = true;
    console.log(`FAIL ${name}: ${String(error.message).split("\n")[0]}`);
  }
}
process.exitCode = failed ? 1 : 0;
