// A server on the TypeScript SDK with everything that the conformance suite's scenarios of 2025-11-25 ask a server for.
//
//   fixture-ts.mjs          on stdin and stdout
//   fixture-ts.mjs --http   as Streamable HTTP on a free loopback port; prints its URL as the first line
//
// The same server is asked directly and through a bridge: what differs is the bridge's doing.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(new URL("../.peers/", import.meta.url));
const { Server } = require("@modelcontextprotocol/sdk/server/index.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const schemas = require("@modelcontextprotocol/sdk/types.js");

const RETRY_MS = 100;
const STEP_MS = 50;
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

const PNG = // one red pixel
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="; // one sample of silence

const text = (text) => ({ type: "text", text });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const embedded = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const strings = (...names) => Object.fromEntries(names.map((name) => [name, { type: "string" }]));

const EVERY_KEYWORD = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { $anchor: "addressDef", type: "object", properties: strings("street", "city") } },
  properties: {
    ...strings("name", "phone", "email"),
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const USER = {
  username: { type: "string", description: "User's response" },
  email: { type: "string", description: "User's email address" },
};
const DEFAULTS = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
};
const titled = (...titles) => titles.map((title, i) => ({ const: `value${i + 1}`, title }));
const options = ["option1", "option2", "option3"];
const ENUMS = {
  untitledSingle: { type: "string", enum: options },
  titledSingle: { type: "string", oneOf: titled("First Option", "Second Option", "Third Option") },
  legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
  untitledMulti: { type: "array", items: { type: "string", enum: options } },
  titledMulti: { type: "array", items: { anyOf: titled("First Choice", "Second Choice", "Third Choice") } },
};

/** Asks the user of the client, on the stream of the call that wants to know. */
async function elicit({ server, extra }, message, properties, required) {
  if (!server.getClientCapabilities()?.elicitation) throw new Error("the client cannot ask its user");
  const params = { message, requestedSchema: { type: "object", properties, required } };
  const request = { method: "elicitation/create", params };
  const { action, content } = await extra.sendRequest(request, schemas.ElicitResultSchema);
  return { action, content: JSON.stringify(content ?? {}) };
}

/** name -> [description, properties of the arguments (or the schema), what it does] */
const TOOLS = {
  test_simple_text: ["Answers with a text", {}, () => [text("This is a simple text response for testing.")]],
  test_image_content: ["Answers with an image", {}, () => [image]],
  test_audio_content: ["Answers with a sound", {}, () => [{ type: "audio", data: WAV, mimeType: "audio/wav" }]],
  test_embedded_resource: ["Answers with a resource", {}, () => [
    embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ]],
  test_multiple_content_types: ["Answers with a text, an image and a resource", {}, () => [
    text("Multiple content types test:"),
    image,
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ]],
  test_tool_with_logging: ["Logs three messages", {}, async ({ log }) => {
    await log("info", "Tool execution started");
    await sleep(STEP_MS);
    await log("info", "Tool processing data");
    await sleep(STEP_MS);
    await log("info", "Tool execution completed");
    return [text("Tool with logging executed successfully")];
  }],
  test_tool_with_progress: ["Reports progress three times", {}, async ({ extra }) => {
    const progressToken = extra._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progress > 0) await sleep(STEP_MS);
      if (progressToken === undefined) continue;
      await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
    }
    return [text("Tool with progress executed successfully")];
  }],
  test_error_handling: ["Always fails", {}, () => {
    throw new Error("This tool intentionally returns an error for testing");
  }],
  test_sampling: ["Asks the client's model", strings("prompt"), async ({ server, extra }, { prompt }) => {
    if (!server.getClientCapabilities()?.sampling) throw new Error("the client has no model");
    const params = { messages: [{ role: "user", content: text(prompt) }], maxTokens: 100 };
    const request = { method: "sampling/createMessage", params };
    const { content } = await extra.sendRequest(request, schemas.CreateMessageResultSchema);
    return [text(`LLM response: ${content.text ?? ""}`)];
  }],
  test_elicitation: ["Asks the user", strings("message"), async (context, { message }) => {
    const { action, content } = await elicit(context, message, USER, Object.keys(USER));
    return [text(`User response: <action: ${action}, content: ${content}>`)];
  }],
  test_elicitation_sep1034_defaults: ["Asks the user, with defaults", {}, async (context) => {
    const { action, content } = await elicit(context, "Please check the defaults", DEFAULTS, []);
    return [text(`Elicitation completed: action=${action}, content=${content}`)];
  }],
  test_elicitation_sep1330_enums: ["Asks the user, with choices", {}, async (context) => {
    const { action, content } = await elicit(context, "Please choose", ENUMS, []);
    return [text(`Elicitation completed: action=${action}, content=${content}`)];
  }],
  json_schema_2020_12_tool: ["Tool with JSON Schema 2020-12 features", EVERY_KEYWORD, (_, args) => [
    text(JSON.stringify(args)),
  ]],
  test_reconnection: ["Closes the stream of its call, if there is one, before it answers", {}, async ({ extra }) => {
    extra.closeSSEStream?.();
    await sleep(2 * STEP_MS);
    return [text("Reconnection test completed successfully.")];
  }],
};

const tools = Object.entries(TOOLS).map(([name, [description, properties]]) => {
  const inputSchema = properties.type === "object" ? properties : { type: "object", properties };
  return { name, description, inputSchema };
});

const RESOURCES = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched resource content." },
};
const resources = Object.entries(RESOURCES).map(([uri, { mimeType }]) => {
  const name = uri.slice("test://".length);
  return { uri, name, mimeType, description: `The ${name.replace("-", " ")} resource` };
});
const template = {
  uriTemplate: "test://template/{id}/data",
  name: "template",
  description: "Data for an id",
  mimeType: "application/json",
};

function readResource(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  const found = id
    ? { mimeType: template.mimeType, text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }
    : RESOURCES[uri];
  if (!found) throw new schemas.McpError(-32002, "Resource not found", { uri });
  return { contents: [{ uri, ...found }] };
}

const argument = (name, description) => ({ name, description, required: true });

/** name -> [description, arguments, contents of its messages] */
const PROMPTS = {
  test_simple_prompt: ["A prompt without arguments", [], () => [text("This is a simple prompt for testing.")]],
  test_prompt_with_arguments: [
    "A prompt with arguments",
    [argument("arg1", "First test argument"), argument("arg2", "Second test argument")],
    ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  ],
  test_prompt_with_embedded_resource: [
    "A prompt with a resource",
    [argument("resourceUri", "URI of the resource")],
    ({ resourceUri }) => [
      embedded(resourceUri, "text/plain", "Embedded resource content for testing."),
      text("Please process the embedded resource above."),
    ],
  ],
  test_prompt_with_image: ["A prompt with an image", [], () => [image, text("Please analyze the image above.")]],
};
const prompts = Object.entries(PROMPTS).map(([name, [description, args]]) => ({ name, description, arguments: args }));

/** A server for one session. */
function newServer() {
  const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };
  const server = new Server({ name: "fixture-ts", version: "1.0.0" }, { capabilities });
  const on = (schema, handler) => server.setRequestHandler(schema, handler);
  let least = 0;

  on(schemas.SetLevelRequestSchema, ({ params }) => ((least = LEVELS.indexOf(params.level)), {}));
  on(schemas.ListToolsRequestSchema, () => ({ tools }));
  on(schemas.CallToolRequestSchema, async ({ params }, extra) => {
    const tool = TOOLS[params.name];
    if (!tool) throw new schemas.McpError(schemas.ErrorCode.InvalidParams, `no tool ${params.name}`);
    const log = async (level, data) => {
      if (LEVELS.indexOf(level) < least) return;
      await extra.sendNotification({ method: "notifications/message", params: { level, data } });
    };
    try {
      return { content: await tool[2]({ server, extra, log }, params.arguments ?? {}) };
    } catch (error) {
      return { content: [text(error.message)], isError: true };
    }
  });
  on(schemas.ListResourcesRequestSchema, () => ({ resources }));
  on(schemas.ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [template] }));
  on(schemas.ReadResourceRequestSchema, ({ params }) => readResource(params.uri));
  on(schemas.SubscribeRequestSchema, ({ params }) => (readResource(params.uri), {}));
  on(schemas.UnsubscribeRequestSchema, () => ({}));
  on(schemas.ListPromptsRequestSchema, () => ({ prompts }));
  on(schemas.GetPromptRequestSchema, ({ params }) => {
    const prompt = PROMPTS[params.name];
    if (!prompt) throw new schemas.McpError(schemas.ErrorCode.InvalidParams, `no prompt ${params.name}`);
    return { messages: prompt[2](params.arguments ?? {}).map((content) => ({ role: "user", content })) };
  });
  on(schemas.CompleteRequestSchema, ({ params }) => {
    const values = ["testValue1", "testValue2"].filter((value) => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return server;
}

/** The events of one session in their order; an event id is its place. */
class Events {
  events = [];

  async storeEvent(stream, message) {
    return String(this.events.push({ stream, message }) - 1);
  }

  async replayEventsAfter(lastEventId, { send }) {
    const last = Number(lastEventId);
    const { stream } = this.events[last];
    for (const [place, event] of this.events.entries()) {
      const isPriming = !event.message.jsonrpc;
      if (place > last && event.stream === stream && !isPriming) await send(String(place), event.message);
    }
    return stream;
  }
}

function serveHttp() {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    let transport = sessions.get(id);
    if (id && !transport) return response.writeHead(404).end();
    if (!transport) {
      const host = `127.0.0.1:${http.address().port}`;
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => sessions.delete(id),
        eventStore: new Events(),
        retryInterval: RETRY_MS,
        enableDnsRebindingProtection: true,
        allowedHosts: [host],
        allowedOrigins: [`http://${host}`],
      });
      await newServer().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}

if (process.argv.includes("--http")) serveHttp();
else await newServer().connect(new StdioServerTransport());
