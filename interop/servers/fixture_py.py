"""A server on the Python SDK with everything that the conformance suite's scenarios of 2025-11-25 ask a server for.

    fixture_py.py          on stdin and stdout
    fixture_py.py --http   as Streamable HTTP on a free loopback port; prints its URL as the first line

The same server is asked directly and through a bridge: what differs is the bridge's doing.
"""

import base64
import json
import re
import sys
import weakref

import anyio
import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import McpError
from pydantic import AnyUrl

STEP_S = 0.05
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

PNG = (  # one red pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="  # one sample of silence


def text(text):
    return types.TextContent(type="text", text=text)


def embedded(uri, mime_type, text):
    resource = types.TextResourceContents(uri=AnyUrl(uri), mimeType=mime_type, text=text)
    return types.EmbeddedResource(type="resource", resource=resource)


def strings(*names):
    return {name: {"type": "string"} for name in names}


def titled(*titles):
    return [{"const": f"value{number}", "title": title} for number, title in enumerate(titles, 1)]


IMAGE = types.ImageContent(type="image", data=PNG, mimeType="image/png")
EVERY_KEYWORD = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": strings("street", "city")}},
    "properties": {
        **strings("name", "phone", "email"),
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
USER = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": titled("First Option", "Second Option", "Third Option")},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": titled("First Choice", "Second Choice", "Third Choice")}},
}


class FixtureServer(Server):
    def get_capabilities(self, *args, **kwargs):
        # The SDK says `subscribe: false` even when there is a handler.
        capabilities = super().get_capabilities(*args, **kwargs)
        capabilities.resources.subscribe = True
        return capabilities


server = FixtureServer("fixture-py", version="1.0.0")
levels = weakref.WeakKeyDictionary()  # session -> the level its client asked for
tools = {}  # name -> (its description for the list, what it does)


def tool(description, schema=None, **properties):
    """Adds a tool of the name of the function."""

    def add(function):
        name = function.__name__
        input_schema = schema or {"type": "object", "properties": properties}
        tools[name] = (types.Tool(name=name, description=description, inputSchema=input_schema), function)
        return function

    return add


@server.list_tools()
async def list_tools():
    return [listed for listed, _ in tools.values()]


@server.call_tool()
async def call_tool(name, arguments):
    if name not in tools:
        raise ValueError(f"no tool {name}")
    return await tools[name][1](server.request_context, **arguments)


@tool("Answers with a text")
async def test_simple_text(context):
    return [text("This is a simple text response for testing.")]


@tool("Answers with an image")
async def test_image_content(context):
    return [IMAGE]


@tool("Answers with a sound")
async def test_audio_content(context):
    return [types.AudioContent(type="audio", data=WAV, mimeType="audio/wav")]


@tool("Answers with a resource")
async def test_embedded_resource(context):
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


@tool("Answers with a text, an image and a resource")
async def test_multiple_content_types(context):
    data = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return [text("Multiple content types test:"), IMAGE, data]


async def log(context, level, data):
    if LEVELS.index(level) >= LEVELS.index(levels.get(context.session, "debug")):
        await context.session.send_log_message(level, data, related_request_id=context.request_id)


@tool("Logs three messages")
async def test_tool_with_logging(context):
    await log(context, "info", "Tool execution started")
    await anyio.sleep(STEP_S)
    await log(context, "info", "Tool processing data")
    await anyio.sleep(STEP_S)
    await log(context, "info", "Tool execution completed")
    return [text("Tool with logging executed successfully")]


@tool("Reports progress three times")
async def test_tool_with_progress(context):
    token = context.meta.progressToken if context.meta else None
    for progress in [0, 50, 100]:
        if progress > 0:
            await anyio.sleep(STEP_S)
        if token is not None:
            request = str(context.request_id)
            await context.session.send_progress_notification(token, progress, 100, related_request_id=request)
    return [text("Tool with progress executed successfully")]


@tool("Always fails")
async def test_error_handling(context):
    raise ValueError("This tool intentionally returns an error for testing")


def require_client(context, capability):
    if not context.session.check_client_capability(capability):
        raise ValueError("the client lacks a capability that this tool needs")


@tool("Asks the client's model", **strings("prompt"))
async def test_sampling(context, prompt):
    require_client(context, types.ClientCapabilities(sampling=types.SamplingCapability()))
    message = types.SamplingMessage(role="user", content=text(prompt))
    result = await context.session.create_message([message], max_tokens=100, related_request_id=context.request_id)
    return [text(f"LLM response: {getattr(result.content, 'text', '')}")]


async def elicit(context, message, properties, required=()):
    require_client(context, types.ClientCapabilities(elicitation=types.ElicitationCapability()))
    schema = {"type": "object", "properties": properties, "required": list(required)}
    result = await context.session.elicit(message, schema, related_request_id=context.request_id)
    return result.action, json.dumps(result.content or {})


@tool("Asks the user", **strings("message"))
async def test_elicitation(context, message):
    action, content = await elicit(context, message, USER, required=USER)
    return [text(f"User response: <action: {action}, content: {content}>")]


@tool("Asks the user, with defaults")
async def test_elicitation_sep1034_defaults(context):
    action, content = await elicit(context, "Please check the defaults", DEFAULTS)
    return [text(f"Elicitation completed: action={action}, content={content}")]


@tool("Asks the user, with choices")
async def test_elicitation_sep1330_enums(context):
    action, content = await elicit(context, "Please choose", ENUMS)
    return [text(f"Elicitation completed: action={action}, content={content}")]


@tool("Tool with JSON Schema 2020-12 features", schema=EVERY_KEYWORD)
async def json_schema_2020_12_tool(context, **arguments):
    return [text(json.dumps(arguments))]


@tool("Closes the stream of its call, if there is one, before it answers")
async def test_reconnection(context):
    if context.close_sse_stream:
        await context.close_sse_stream()
    await anyio.sleep(2 * STEP_S)
    return [text("Reconnection test completed successfully.")]


RESOURCES = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("image/png", base64.b64decode(PNG)),
    "test://watched-resource": ("text/plain", "Watched resource content."),
}


@server.list_resources()
async def list_resources():
    def resource(uri, mime_type):
        name = uri.removeprefix("test://")
        description = f"The {name.replace('-', ' ')} resource"
        return types.Resource(uri=AnyUrl(uri), name=name, description=description, mimeType=mime_type)

    return [resource(uri, mime_type) for uri, (mime_type, _) in RESOURCES.items()]


@server.list_resource_templates()
async def list_resource_templates():
    return [
        types.ResourceTemplate(
            uriTemplate="test://template/{id}/data",
            name="template",
            description="Data for an id",
            mimeType="application/json",
        )
    ]


@server.read_resource()
async def read_resource(uri):
    if matched := re.fullmatch(r"test://template/([^/]+)/data", str(uri)):
        key = matched[1]
        data = {"id": key, "templateTest": True, "data": f"Data for ID: {key}"}
        return [ReadResourceContents(json.dumps(data), "application/json")]
    if str(uri) not in RESOURCES:
        raise McpError(types.ErrorData(code=-32002, message="Resource not found", data={"uri": str(uri)}))
    mime_type, content = RESOURCES[str(uri)]
    return [ReadResourceContents(content, mime_type)]


@server.subscribe_resource()
async def subscribe_resource(uri):
    await read_resource(uri)


@server.unsubscribe_resource()
async def unsubscribe_resource(uri):
    pass


def prompt(description, contents, **arguments):
    listed = [types.PromptArgument(name=name, description=why, required=True) for name, why in arguments.items()]
    return description, listed, contents


PROMPTS = {
    "test_simple_prompt": prompt(
        "A prompt without arguments",
        lambda: [text("This is a simple prompt for testing.")],
    ),
    "test_prompt_with_arguments": prompt(
        "A prompt with arguments",
        lambda arg1, arg2: [text(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")],
        arg1="First test argument",
        arg2="Second test argument",
    ),
    "test_prompt_with_embedded_resource": prompt(
        "A prompt with a resource",
        lambda resourceUri: [
            embedded(resourceUri, "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        resourceUri="URI of the resource",
    ),
    "test_prompt_with_image": prompt(
        "A prompt with an image",
        lambda: [IMAGE, text("Please analyze the image above.")],
    ),
}


@server.list_prompts()
async def list_prompts():
    return [
        types.Prompt(name=name, description=description, arguments=arguments)
        for name, (description, arguments, _) in PROMPTS.items()
    ]


@server.get_prompt()
async def get_prompt(name, arguments):
    if name not in PROMPTS:
        raise McpError(types.ErrorData(code=types.INVALID_PARAMS, message=f"no prompt {name}"))
    contents = PROMPTS[name][2](**arguments or {})
    messages = [types.PromptMessage(role="user", content=content) for content in contents]
    return types.GetPromptResult(messages=messages)


@server.completion()
async def complete(reference, argument, context):
    values = [value for value in ["testValue1", "testValue2"] if value.startswith(argument.value)]
    return types.Completion(values=values, total=len(values), hasMore=False)


@server.set_logging_level()
async def set_logging_level(level):
    levels[server.request_context.session] = level


async def serve_stdio():
    async with stdio_server() as (from_client, to_client):
        await server.run(from_client, to_client, server.create_initialization_options())


if "--http" in sys.argv[1:]:
    # Only here: it takes time to load, and on stdio nobody needs it.
    from python_http import serve_http

    serve_http(server, deleted=[])
else:
    anyio.run(serve_stdio)
