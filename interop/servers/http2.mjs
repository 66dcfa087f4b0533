// An MCP server on HTTP/2 that keeps closing its connections while it works: after every so many requests with GOAWAY (no
// error), in good order. Some requests it refuses with REFUSED_STREAM. In both cases RFC 9113, 8.7, guarantees that they
// were not processed.
//
//   http2.mjs CERT KEY
//
// The tool `work` counts how often each `n` was worked on; `report` gives that, and how often it closed and refused.
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";

const [cert, key] = process.argv.slice(2).map((path) => readFileSync(path));
const CLOSE_AFTER = 40;
const REFUSE_EVERY = 29;

const executions = new Map();
let streams = 0;
let closed = 0;
let refused = 0;

const tools = {
  async work({ n }) {
    executions.set(n, (executions.get(n) ?? 0) + 1);
    await sleep(Math.random() * 10);
    return String(n);
  },
  async report() {
    return JSON.stringify({ executions: [...executions], closed, refused });
  },
};

async function answer({ method, params }) {
  switch (method) {
    case "initialize":
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "http2", version: "1" } };
    case "tools/call":
      return { content: [{ type: "text", text: await tools[params.name](params.arguments) }] };
    default:
      return {};
  }
}

const server = http2.createSecureServer({ cert, key });
server.on("session", (session) => session.on("error", () => {}));
server.on("stream", async (stream, headers) => {
  stream.on("error", () => {});
  streams++;
  const { session } = stream;
  session.requests = (session.requests ?? 0) + 1;
  if (headers[":method"] !== "POST") {
    stream.respond({ ":status": 405 }, { endStream: true });
    return;
  }
  if (streams % REFUSE_EVERY === 0) {
    refused++;
    stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    return;
  }
  if (session.requests === CLOSE_AFTER) {
    closed++;
    session.close();
  }
  let body = "";
  for await (const chunk of stream.setEncoding("utf8")) body += chunk;
  const message = JSON.parse(body);
  if (message.id === undefined) {
    stream.respond({ ":status": 202 }, { endStream: true });
    return;
  }
  const result = await answer(message);
  if (stream.destroyed) return;
  stream.respond({ ":status": 200, "content-type": "application/json", "mcp-session-id": "http2" });
  stream.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
});
server.listen(0, "127.0.0.1", () => console.log(`https://localhost:${server.address().port}/mcp`));
