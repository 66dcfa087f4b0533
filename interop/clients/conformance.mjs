// The client that the conformance suite's client scenarios ask about: the TypeScript SDK's, on stdio, with a bridge
// (`mcpwire connect`) to the suite's server. The suite gives the URL as the last argument, and says the rest in the
// environment.
import { createRequire } from "node:module";

const require = createRequire(new URL("../.peers/", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const url = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? "2025-11-25";
const mode = version === "2026-07-28" ? { pin: version } : "legacy";

// The stateless era needs no question before the first request, and one scenario refuses whatever comes first.
const capabilities = { sampling: {}, elicitation: { form: { applyDefaults: true } }, roots: {} };
const client = new Client({ name: "interop-conformance", version: "1.0.0" }, { capabilities, versionNegotiation: { mode } });
client.setRequestHandler("roots/list", () => ({ roots: [] }));
client.setRequestHandler("elicitation/create", ({ params }) => ({
  action: "accept",
  content: scenario.includes("defaults") ? {} : filled(params.requestedSchema),
}));
client.setRequestHandler("sampling/createMessage", () => ({
  role: "assistant",
  model: "none",
  content: { type: "text", text: "sampled" },
}));

/** Something that fits a schema of plain properties. */
function filled({ properties = {} }) {
  const samples = { string: "text", integer: 5, number: 3, boolean: true, array: [], object: {} };
  return Object.fromEntries(Object.entries(properties).map(([name, { type }]) => [name, samples[type] ?? "text"]));
}

const bridge = process.env.MCPWIRE;
const transport = bridge
  ? new StdioClientTransport({ command: bridge, args: ["connect", url] })
  : new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);

const quietly = (promise) => promise.catch((error) => console.error(`${scenario}: ${error.message}`));
if (scenario !== "initialize") {
  const { tools } = await client.listTools();
  const focal = tools.find(({ name }) => name === "json_schema_2020_12_tool");
  const calls = context.toolCalls ?? tools.map(({ name, inputSchema }) => {
    const args = name !== focal?.name && focal ? { schema: focal.inputSchema } : filled(inputSchema);
    return { name, arguments: args };
  });
  await Promise.all(calls.map((call) => quietly(client.callTool(call))));
}
if (scenario === "http-standard-headers") {
  const { resources } = await client.listResources();
  for (const { uri } of resources) await quietly(client.readResource({ uri }));
  const { prompts } = await client.listPrompts();
  for (const { name } of prompts) await quietly(client.getPrompt({ name, arguments: {} }));
}
await transport.terminateSession?.();
await client.close();
