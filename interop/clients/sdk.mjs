// The TypeScript SDKs of both generations behind one face, and what the servers have for the checks.
import { createRequire } from "node:module";

export const require = createRequire(new URL("../.peers/", import.meta.url));

export const ROOT = "file:///interop/root";
export const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

/** What does what at the servers: [tool, arguments]. */
const USER = { username: "elicited-4711", email: "a@example.com" };
const OF_THE_SUITE = {
  progress: ["test_tool_with_progress", {}],
  steps: [0, 50, 100],
  logging: ["test_tool_with_logging", {}],
  sampling: ["test_sampling", { prompt: "prompt-0815" }],
  elicitation: ["test_elicitation", { message: "Who are you?" }],
  form: USER,
  roots: ["test_input_required_result_list_roots", {}],
  change: ["test_trigger_tool_change", {}],
  resource: "test://watched-resource",
  touch: ["touch", {}],
  prompt: "test_simple_prompt",
};
const OF_EVERYTHING = {
  progress: ["trigger-long-running-operation", { duration: 0.3, steps: 3 }],
  steps: [1, 2, 3],
  sampling: ["trigger-sampling-request", { prompt: "prompt-0815", maxTokens: 10 }],
  elicitation: ["trigger-elicitation-request", {}],
  form: { name: "elicited-4711" },
  roots: ["get-roots-list", {}],
  resource: "demo://resource/dynamic/text/1",
  touch: ["toggle-subscriber-updates", {}],
  prompt: "simple-prompt",
};
export const HAS = {
  everything: OF_EVERYTHING,
  python: { ...OF_EVERYTHING, logging: ["toggle-simulated-logging", {}], change: ["change-the-tools", {}] },
  reference: OF_THE_SUITE,
  ts2: OF_THE_SUITE,
};

/** `1` is SDK 1.x, which knows the session era only, `2-auto` SDK 2.x, which finds out, `2-new` SDK 2.x pinned to the stateless era. */
export function load(generation) {
  return generation === "1" ? loadOld() : loadNew(generation);
}

/** SDK 1.x. */
function loadOld() {
  const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
  const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const schemas = require("@modelcontextprotocol/sdk/types.js");
  const { version } = require("./node_modules/@modelcontextprotocol/sdk/package.json");
  const asked = {
    "roots/list": schemas.ListRootsRequestSchema,
    "elicitation/create": schemas.ElicitRequestSchema,
    "sampling/createMessage": schemas.CreateMessageRequestSchema,
  };
  const told = {
    "notifications/message": schemas.LoggingMessageNotificationSchema,
    "notifications/resources/updated": schemas.ResourceUpdatedNotificationSchema,
    "notifications/tools/list_changed": schemas.ToolListChangedNotificationSchema,
  };
  return {
    version,
    StdioClientTransport,
    StreamableHTTPClientTransport,
    client: (info, options) => new Client(info, options),
    onRequest: (client, method, answer) => client.setRequestHandler(asked[method], answer),
    onNotification: (client, method, note) => client.setNotificationHandler(told[method], note),
    call: (client, params, options) => client.callTool(params, undefined, options),
  };
}

/** SDK 2.x. */
function loadNew(generation) {
  const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
  const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
  const { version } = require("./node_modules/@modelcontextprotocol/client/package.json");
  const mode = generation === "2-new" ? { pin: "2026-07-28" } : "auto";
  return {
    version,
    StdioClientTransport,
    StreamableHTTPClientTransport,
    client: (info, options) => new Client(info, { ...options, versionNegotiation: { mode } }),
    onRequest: (client, method, answer) => client.setRequestHandler(method, answer),
    onNotification: (client, method, note) => client.setNotificationHandler(method, note),
    call: (client, params, options) => client.callTool(params, options),
  };
}

export async function bounded(promise, ms, complaint) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${complaint} within the time limit`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Collects notifications; `next` waits for one more. */
export function notes(sdk, client, method) {
  const seen = [];
  let wake = () => {};
  sdk.onNotification(client, method, ({ params }) => (seen.push(params), wake()));
  const next = () => (seen.length > 0 ? undefined : new Promise((resolve) => (wake = resolve)));
  return { seen, next: () => bounded(next(), 12_000, `${method} did not arrive`) };
}

/** Offers all that a server can ask a client for; `asked` tells what it was asked. */
export function newClient(sdk, name, form, { roots = true } = {}) {
  const capabilities = { sampling: {}, elicitation: { form: {} }, ...(roots && { roots: {} }) };
  const client = sdk.client({ name, version: "1.0.0" }, { capabilities });
  const asked = { elicitation: 0 };
  if (roots) sdk.onRequest(client, "roots/list", () => ({ roots: [{ uri: ROOT, name: "root" }] }));
  sdk.onRequest(client, "elicitation/create", (request) => ((asked.elicitation += 1), { action: "accept", content: form(request) }));
  sdk.onRequest(client, "sampling/createMessage", ({ params }) => {
    asked.sampling = params.messages[0].content.text;
    return { role: "assistant", model: "none", content: { type: "text", text: "sampled-4711" } };
  });
  return { client, asked };
}

/** To the bridge on stdio if there is one, else to the URL. */
export function newTransport(sdk, url, [command, ...args]) {
  return command
    ? new sdk.StdioClientTransport({ command, args, env: process.env, stderr: "inherit" })
    : new sdk.StreamableHTTPClientTransport(new URL(url));
}
