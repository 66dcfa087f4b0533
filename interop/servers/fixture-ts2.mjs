// A server on the TypeScript SDK 2.x with everything that the conformance suite's scenarios of 2026-07-28 ask a server for,
// and those of 2025-11-25.
//
//   fixture-ts2.mjs             on stdin and stdout, for clients of both eras
//   fixture-ts2.mjs --new-only  … of the stateless era only
//   fixture-ts2.mjs --http      as Streamable HTTP on a free loopback port or $PORT; prints its URL as the first line
//
// The same server is asked directly and through a bridge: what differs is the bridge's doing.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(new URL("../.peers/", import.meta.url));
const { createMcpHandler, createRequestStateCodec, ProtocolError, Server } = require("@modelcontextprotocol/server");
const { serveStdio } = require("@modelcontextprotocol/server/stdio");
const { localhostHostValidation, localhostOriginValidation, toNodeHandler } = require("@modelcontextprotocol/node");

const STEP_MS = 50;
const SLOW_MS = 5000;
const INVALID_PARAMS = -32602;

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
const IN_HEADERS = {
  type: "object",
  properties: {
    region: { type: "string", "x-mcp-header": "Region" },
    priority: { type: "integer", "x-mcp-header": "Priority" },
    query: { type: "string" },
  },
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

const codec = createRequestStateCodec({ key: "interop-fixture-key-of-at-least-32-bytes" });

/** Ends the handler: the client has to come back with answers. */
class InputRequired extends Error {
  constructor(result) {
    super("input required");
    this.result = result;
  }
}

const form = (message, properties, required = Object.keys(properties)) => ({
  method: "elicitation/create",
  params: { mode: "form", message, requestedSchema: { type: "object", properties, required } },
});
const sampling = (prompt, maxTokens) => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: text(prompt) }], maxTokens },
});
const roots = { method: "roots/list", params: {} };
const name = form("What is your name?", strings("name"));

/** What a question needs of the client. */
const skills = { "elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots" };
const offers = ({ server, ctx }, method) => {
  const capabilities = ctx.mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? server.getClientCapabilities();
  return capabilities?.[skills[method]] !== undefined;
};

/** The answers to these questions; sealed ones count only with the state that was given with the questions. */
async function ask(context, questions, sealed = false) {
  const { ctx } = context;
  const state = ctx.mcpReq.requestState();
  const given = !sealed || state ? (ctx.mcpReq.inputResponses ?? {}) : {};
  const fitting = Object.entries(given).filter(([key]) => key in questions);
  const answers = { ...(context.answers ?? state?.answers), ...Object.fromEntries(fitting) };
  context.answers = answers; // for the questions that follow
  const open = Object.entries(questions).filter(([key]) => !(key in answers));
  if (open.length === 0) return answers;
  const inputRequests = Object.fromEntries(open);
  const keeps = sealed || Object.keys(answers).length > 0;
  throw new InputRequired({
    resultType: "input_required",
    inputRequests,
    ...(keeps && { requestState: await codec.mint({ answers }, ctx) }),
  });
}

const sampled = (answer) => [answer.content].flat()[0]?.text ?? "";
const changes = { tools: false, prompts: false };

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
  test_tool_with_logging: ["Logs three messages", {}, logThrice],
  test_logging_tool: ["Logs three messages", {}, logThrice],
  test_tool_with_progress: ["Reports progress three times", {}, async ({ ctx }) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progress > 0) await sleep(STEP_MS);
      if (progressToken === undefined) continue;
      await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
    }
    return [text("Tool with progress executed successfully")];
  }],
  test_error_handling: ["Always fails", {}, () => {
    throw new Error("This tool intentionally returns an error for testing");
  }],
  test_sampling: ["Asks the client's model", strings("prompt"), async (context, { prompt }) => {
    const { model } = await ask(context, { model: sampling(prompt, 100) });
    return [text(`LLM response: ${sampled(model)}`)];
  }],
  test_elicitation: ["Asks the user", strings("message"), async (context, { message }) => {
    const { user } = await ask(context, { user: form(message, strings("username", "email")) });
    return [text(`User response: <action: ${user.action}, content: ${JSON.stringify(user.content ?? {})}>`)];
  }],
  test_elicitation_sep1034_defaults: ["Asks the user, with defaults", {}, (context) => askForm(context, DEFAULTS)],
  test_elicitation_sep1330_enums: ["Asks the user, with choices", {}, (context) => askForm(context, ENUMS)],
  test_reconnection: ["Takes a moment", {}, async () => {
    await sleep(10 * STEP_MS);
    return [text("Reconnection test completed successfully.")];
  }],
  json_schema_2020_12_tool: ["Tool with JSON Schema 2020-12 features", EVERY_KEYWORD, (_, args) => [
    text(JSON.stringify(args)),
  ]],
  route: ["Has arguments that go into headers", IN_HEADERS, (_, args) => [text(JSON.stringify(args))]],
  test_missing_capability: ["Answers only clients with a model", {}, (context) => {
    if (!offers(context, "sampling/createMessage")) {
      throw new ProtocolError(-32021, "the client has no model", { requiredCapabilities: { sampling: {} } });
    }
    return [text("The client has a model.")];
  }],
  test_streaming_elicitation: ["Asks the user", {}, askName],
  test_input_required_result_elicitation: ["Asks the user", {}, askName],
  test_input_required_result_sampling: ["Asks the model", {}, async (context) => {
    const { capital_question } = await ask(context, { capital_question: sampling("What is the capital of France?", 100) });
    return [text(`The model said: ${sampled(capital_question)}`)];
  }],
  test_input_required_result_list_roots: ["Asks for the roots", {}, async (context) => {
    const { client_roots } = await ask(context, { client_roots: roots });
    return [text(`Roots: ${JSON.stringify(client_roots.roots)}`)];
  }],
  test_input_required_result_request_state: ["Asks to confirm", {}, confirm],
  test_input_required_result_tampered_state: ["Asks to confirm", {}, confirm],
  test_input_required_result_multiple_inputs: ["Asks three things at once", {}, async (context) => {
    const questions = { user_name: name, greeting: sampling("Generate a greeting", 50), client_roots: roots };
    const { user_name, greeting } = await ask(context, questions, true);
    return [text(`${sampled(greeting)} ${user_name.content?.name}`)];
  }],
  test_input_required_result_multi_round: ["Asks twice", {}, async (context) => {
    const { step1 } = await ask(context, { step1: form("Step 1: What is your name?", strings("name")) }, true);
    const { step2 } = await ask(context, { step2: form("Step 2: What is your favorite color?", strings("color")) });
    return [text(`${step1.content?.name} likes ${step2.content?.color}.`)];
  }],
  test_input_required_result_capabilities: ["Asks what the client can answer", {}, async (context) => {
    const questions = { user_name: name, greeting: sampling("Generate a greeting", 50), client_roots: roots };
    const fit = Object.entries(questions).filter(([, { method }]) => offers(context, method));
    const answers = await ask(context, Object.fromEntries(fit));
    return [text(`The client answered ${Object.keys(answers).length} questions.`)];
  }],
  test_trigger_tool_change: ["Adds a tool, or takes it away", {}, async (context) => {
    changes.tools = !changes.tools;
    await tell(context, { method: "notifications/tools/list_changed" }, (notify) => notify.toolsChanged());
    return [text("The list has changed.")];
  }],
  test_trigger_prompt_change: ["Adds a prompt, or takes it away", {}, async (context) => {
    changes.prompts = !changes.prompts;
    await tell(context, { method: "notifications/prompts/list_changed" }, (notify) => notify.promptsChanged());
    return [text("The list has changed.")];
  }],
  touch: ["Changes the watched resource", {}, async (context) => {
    const uri = "test://watched-resource";
    const update = { method: "notifications/resources/updated", params: { uri } };
    await tell(context, update, (notify) => notify.resourceUpdated(uri));
    return [text("touched")];
  }],
  echo: ["Says what it was told", strings("message"), (_, { message }) => [text(message)]],
  "get-env": ["Tells what it is called", {}, () => [text(JSON.stringify({ INTEROP_NAME: process.env.INTEROP_NAME }))]],
  slow: ["Takes five seconds", {}, async ({ ctx }) => {
    await sleep(SLOW_MS, undefined, { signal: ctx.mcpReq.signal });
    return [text("slept")];
  }],
};

async function logThrice({ ctx }) {
  for (const [step, line] of ["Tool execution started", "Tool processing data", "Tool execution completed"].entries()) {
    if (step > 0) await sleep(STEP_MS);
    await ctx.mcpReq.log("info", line);
  }
  return [text("Tool with logging executed successfully")];
}

async function askName(context) {
  const { user_name } = await ask(context, { user_name: name });
  return [text(`Hello, ${user_name.content?.name ?? "nobody"}!`)];
}

async function askForm(context, properties) {
  const { user } = await ask(context, { user: form("Please check and choose", properties, []) });
  return [text(`Elicitation completed: action=${user.action}, content=${JSON.stringify(user.content ?? {})}`)];
}

async function confirm(context) {
  const { confirm } = await ask(context, { confirm: form("Please confirm", { ok: { type: "boolean" } }) }, true);
  return [text(`state-ok: ${confirm.content?.ok}`)];
}

/** On HTTP every request has a server of its own, and the handler knows who listens; on stdio the one server does. */
let handler;
const tell = ({ server }, notification, publish) => (handler ? publish(handler.notify) : server.notification(notification));

const tools = () => {
  const all = Object.entries(TOOLS).map(([name, [description, properties]]) => {
    const inputSchema = properties.type === "object" ? properties : { type: "object", properties };
    return { name, description, inputSchema };
  });
  const added = { name: "test_dynamic_item", description: "Added at run time", inputSchema: { type: "object" } };
  return changes.tools ? [...all, added] : all;
};

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
  if (!found) throw new ProtocolError(INVALID_PARAMS, "Resource not found", { uri });
  return { contents: [{ uri, ...found }] };
}

const argument = (name, description) => ({ name, description, required: true });

/** name -> [description, arguments, contents of its messages] */
const PROMPTS = {
  test_simple_prompt: ["A prompt without arguments", [], () => [text("This is a simple prompt for testing.")]],
  test_prompt_with_arguments: [
    "A prompt with arguments",
    [argument("arg1", "First test argument"), argument("arg2", "Second test argument")],
    (_, { arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  ],
  test_prompt_with_embedded_resource: [
    "A prompt with a resource",
    [argument("resourceUri", "URI of the resource")],
    (_, { resourceUri }) => [
      embedded(resourceUri, "text/plain", "Embedded resource content for testing."),
      text("Please process the embedded resource above."),
    ],
  ],
  test_prompt_with_image: ["A prompt with an image", [], () => [image, text("Please analyze the image above.")]],
  test_input_required_result_prompt: ["A prompt that asks the user", [], async (context) => {
    const question = form("What context should the prompt use?", strings("context"));
    const { user_context } = await ask(context, { user_context: question });
    return [text(`Prompt with context: ${user_context.content?.context ?? "none"}`)];
  }],
};
const prompts = () => {
  const all = Object.entries(PROMPTS).map(([name, [description, args]]) => ({ name, description, arguments: args }));
  return changes.prompts ? [...all, { name: "test_dynamic_item", description: "Added at run time" }] : all;
};

/** What a handler returns, or what it wants to know first. */
async function orInput(handle) {
  try {
    return await handle();
  } catch (error) {
    if (error instanceof InputRequired) return error.result;
    throw error;
  }
}

/** A server for one connection, or for one request. */
function newServer() {
  const listChanged = true;
  const capabilities = {
    tools: { listChanged },
    resources: { subscribe: true, listChanged },
    prompts: { listChanged },
    logging: {},
    completions: {},
  };
  const options = { capabilities, requestState: { verify: codec.verify } };
  const server = new Server({ name: "fixture-ts2", version: "1.0.0" }, options);
  const on = (method, handle) => server.setRequestHandler(method, handle);

  on("tools/list", () => ({ tools: tools() }));
  on("tools/call", ({ params }, ctx) => orInput(async () => {
    const tool = TOOLS[params.name];
    if (!tool) throw new ProtocolError(INVALID_PARAMS, `no tool ${params.name}`);
    try {
      return { content: await tool[2]({ server, ctx }, params.arguments ?? {}) };
    } catch (error) {
      if (error instanceof InputRequired || error instanceof ProtocolError) throw error;
      return { content: [text(error.message)], isError: true };
    }
  }));
  on("resources/list", () => ({ resources }));
  on("resources/templates/list", () => ({ resourceTemplates: [template] }));
  on("resources/read", ({ params }) => readResource(params.uri));
  on("resources/subscribe", ({ params }) => (readResource(params.uri), {}));
  on("resources/unsubscribe", () => ({}));
  on("prompts/list", () => ({ prompts: prompts() }));
  on("prompts/get", ({ params }, ctx) => orInput(async () => {
    const prompt = PROMPTS[params.name];
    if (!prompt) throw new ProtocolError(INVALID_PARAMS, `no prompt ${params.name}`);
    const contents = await prompt[2]({ server, ctx }, params.arguments ?? {});
    return { messages: contents.map((content) => ({ role: "user", content })) };
  }));
  on("completion/complete", ({ params }) => {
    const values = ["testValue1", "testValue2"].filter((value) => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return server;
}

const newOnly = process.argv.includes("--new-only");
if (process.argv.includes("--http")) {
  handler = createMcpHandler(newServer, { legacy: newOnly ? "reject" : "stateless" });
  const serve = toNodeHandler(handler);
  const guards = [localhostHostValidation(), localhostOriginValidation()];
  const http = createServer((request, response) => {
    if (guards.every((guard) => guard(request, response))) void serve(request, response);
  });
  http.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
} else {
  serveStdio(newServer, { legacy: newOnly ? "reject" : "serve" });
}
