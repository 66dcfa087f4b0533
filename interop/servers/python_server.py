"""A Streamable HTTP server on the Python SDK; prints its URL as the first line. With `--stdio` on stdin and stdout.

Its tools carry the names of server-everything's where that has one, so that the same checks fit both.
On top it has what server-everything lacks: it tells what it saw (`seen`), keeps an exact log level,
and can drop a response stream in the middle of a call (`cut-the-stream`).
`--json` makes it answer with plain JSON bodies instead of event streams; $PORT sets the port, as it does there.
"""

import json
import os
import sys
import weakref

import anyio
import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import McpError
from pydantic import AnyUrl
from python_http import RETRY_MS, serve_http

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
RESOURCE = "demo://resource/dynamic/text/1"

levels = weakref.WeakKeyDictionary()  # session -> the level its client asked for
subscriptions = weakref.WeakKeyDictionary()  # session -> URIs
cancelled = []  # labels of the long operations that were cancelled
deleted = []  # ids of the sessions that a client ended with DELETE


class PythonServer(Server):
    def get_capabilities(self, *args, **kwargs):
        # The SDK says `subscribe: false` even when there is a handler, and knows nothing of `change-the-tools`.
        capabilities = super().get_capabilities(*args, **kwargs)
        capabilities.resources.subscribe = True
        capabilities.tools.listChanged = True
        return capabilities


server = PythonServer("interop-python", version="1.0.0")


def tool(name, **properties):
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return types.Tool(name=name, description=name.replace("-", " "), inputSchema=schema)


@server.list_tools()
async def list_tools():
    return [
        tool("echo", message="string"),
        tool("trigger-long-running-operation", duration="number", steps="integer", label="string"),
        tool("trigger-sampling-request", prompt="string", maxTokens="integer"),
        tool("trigger-elicitation-request"),
        tool("get-env"),
        tool("get-roots-list"),
        tool("toggle-simulated-logging"),
        tool("toggle-subscriber-updates"),
        tool("change-the-tools"),
        tool("cut-the-stream"),
        tool("seen"),
    ]


@server.call_tool()
async def call_tool(name, arguments):
    context = server.request_context
    answer = await TOOLS[name](context, arguments)
    return [types.TextContent(type="text", text=answer)]


async def echo(context, arguments):
    return "Echo: " + arguments["message"]


async def get_env(context, arguments):
    return json.dumps({"INTEROP_NAME": os.environ.get("INTEROP_NAME")})


async def long_operation(context, arguments):
    duration, steps = arguments["duration"], arguments["steps"]
    token = context.meta.progressToken if context.meta else None
    try:
        for step in range(1, steps + 1):
            await anyio.sleep(duration / steps)
            if token is not None:
                await context.session.send_progress_notification(
                    token, step, steps, related_request_id=str(context.request_id)
                )
    except anyio.get_cancelled_exc_class():
        cancelled.append(arguments.get("label"))
        raise
    return f"Long running operation completed. Duration: {duration} seconds, Steps: {steps}."


async def ask_model(context, arguments):
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=arguments["prompt"]))
    result = await context.session.create_message(
        [message], max_tokens=arguments["maxTokens"], related_request_id=context.request_id
    )
    return "LLM sampling result: " + result.model_dump_json()


async def ask_user(context, arguments):
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    result = await context.session.elicit("Who are you?", schema, related_request_id=context.request_id)
    return "Raw result: " + result.model_dump_json()


async def ask_roots(context, arguments):
    # The SDK ties this request to no call: it rides on the GET stream.
    result = await context.session.list_roots()
    return "Roots: " + ", ".join(str(root.uri) for root in result.roots)


async def log_every_level(context, arguments):
    wanted = levels.get(context.session, "debug")
    for level in LEVELS[LEVELS.index(wanted) :]:
        await context.session.send_log_message(level, f"{level} message", related_request_id=context.request_id)
    return "logged"


async def update_subscribers(context, arguments):
    # Tied to no call either: the GET stream again.
    for uri in subscriptions.get(context.session, ()):
        await context.session.send_resource_updated(AnyUrl(uri))
    return "updated"


async def change_the_tools(context, arguments):
    # And again.
    await context.session.send_tool_list_changed()
    return "changed"


async def cut_the_stream(context, arguments):
    await context.close_sse_stream()
    await anyio.sleep(3 * RETRY_MS / 1000)
    return "finished after the cut"


async def seen(context, arguments):
    session = context.request.headers.get("mcp-session-id") if context.request else None
    return json.dumps({"session": session, "cancelled": cancelled, "deleted": deleted})


TOOLS = {
    "echo": echo,
    "trigger-long-running-operation": long_operation,
    "trigger-sampling-request": ask_model,
    "trigger-elicitation-request": ask_user,
    "get-env": get_env,
    "get-roots-list": ask_roots,
    "toggle-simulated-logging": log_every_level,
    "toggle-subscriber-updates": update_subscribers,
    "change-the-tools": change_the_tools,
    "cut-the-stream": cut_the_stream,
    "seen": seen,
}


@server.list_resources()
async def list_resources():
    return [types.Resource(uri=AnyUrl(RESOURCE), name="text 1", mimeType="text/plain")]


@server.read_resource()
async def read_resource(uri):
    return f"Resource {uri}"


@server.list_prompts()
async def list_prompts():
    return [types.Prompt(name="simple-prompt", description="a prompt without arguments")]


@server.get_prompt()
async def get_prompt(name, arguments):
    if name != "simple-prompt":
        raise McpError(types.ErrorData(code=types.INVALID_PARAMS, message=f"no prompt {name}"))
    text = types.TextContent(type="text", text="This is a simple prompt without arguments.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


@server.set_logging_level()
async def set_logging_level(level):
    levels[server.request_context.session] = level


@server.subscribe_resource()
async def subscribe_resource(uri):
    subscriptions.setdefault(server.request_context.session, set()).add(str(uri))


@server.unsubscribe_resource()
async def unsubscribe_resource(uri):
    subscriptions.get(server.request_context.session, set()).discard(str(uri))


async def serve_stdio():
    async with stdio_server() as (from_client, to_client):
        await server.run(from_client, to_client, server.create_initialization_options())


if "--stdio" in sys.argv[1:]:
    anyio.run(serve_stdio)
else:
    serve_http(server, deleted, json_bodies="--json" in sys.argv[1:])
