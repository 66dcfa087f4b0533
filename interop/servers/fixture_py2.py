"""A server on the Python SDK 2.x with everything that the conformance suite's scenarios of 2026-07-28 ask a server for,
and those of 2025-11-25.

    fixture_py2.py          on stdin and stdout, for clients of both eras
    fixture_py2.py --http   as Streamable HTTP on a free loopback port; prints its URL as the first line

The same server is asked directly and through a bridge: what differs is the bridge's doing.
"""

import json
import re
import socket
import sys
import warnings

import anyio
import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged

warnings.simplefilter("ignore")  # logging is deprecated, and asked for by the suite

STEP_S = 0.05
INVALID_PARAMS = -32602
STATELESS = "2026-07-28"
PNG = (  # one red pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="  # one sample of silence


def text(text):
    return {"type": "text", "text": text}


def embedded(uri, mime_type, text):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}}


def strings(*names):
    return {name: {"type": "string"} for name in names}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
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
IN_HEADERS = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "x-mcp-header": "Priority"},
        "query": {"type": "string"},
    },
}


def titled(*titles):
    return [{"const": f"value{number}", "title": title} for number, title in enumerate(titles, 1)]


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


def form(message, properties, required=None):
    required = list(properties) if required is None else required
    schema = {"type": "object", "properties": properties, "required": required}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def sampling(prompt, max_tokens):
    messages = [{"role": "user", "content": text(prompt)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": max_tokens}}


ROOTS = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", strings("name"))
SKILLS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


class InputRequired(Exception):
    """Ends the handler: the client has to come back with answers."""

    def __init__(self, result):
        super().__init__("input required")
        self.result = result


class Call:
    """A request under way, with what it brings along from the rounds before it."""

    def __init__(self, context):
        self.context = context
        params = context.params or {}
        state = params.get("requestState")
        self.trusted = state is not None
        self.given = params.get("inputResponses") or {}
        self.answers = json.loads(state) if state else {}

    async def ask(self, questions, sealed=False):
        """The answers to these questions; sealed ones count only with the state that was given with the questions."""
        if self.context.session.protocol_version < STATELESS:
            return [await self.request(question) for question in questions.values()]
        if self.trusted or not sealed:
            self.answers |= {key: answer for key, answer in self.given.items() if key in questions}
        open_ones = {key: question for key, question in questions.items() if key not in self.answers}
        if not open_ones:
            return [self.answers[key] for key in questions]
        result = {"resultType": "input_required", "inputRequests": open_ones}
        if sealed or self.answers:
            result["requestState"] = json.dumps(self.answers)
        raise InputRequired(result)

    async def request(self, question):
        """The answer of a session-era client, which is asked while the call waits."""
        session, call, params = self.context.session, self.context.request_id, question["params"]
        match question["method"]:
            case "elicitation/create":
                answer = await session.elicit_form(params["message"], params["requestedSchema"], related_request_id=call)
            case "sampling/createMessage":
                messages = [types.SamplingMessage.model_validate(message) for message in params["messages"]]
                answer = await session.create_message(messages, max_tokens=params["maxTokens"], related_request_id=call)
            case _:
                answer = await session.list_roots()
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)

    def offers(self, method):
        capabilities = self.context.session.client_capabilities
        return capabilities is not None and getattr(capabilities, SKILLS[method]) is not None

    async def log(self, line):
        await self.context.session.send_log_message("info", line, related_request_id=self.context.request_id)


def sampled(answer):
    content = answer["content"]
    return (content[0] if isinstance(content, list) else content).get("text", "")


def field(answer, name):
    return (answer.get("content") or {}).get(name)


bus = InMemorySubscriptionBus()
added = {"tools": False, "prompts": False}
tools = {}  # name -> (its description for the list, what it does)


def tool(description, schema=None, names=(), **properties):
    """Adds a tool of the name of the function, or of other names."""

    def add(function):
        input_schema = schema or {"type": "object", "properties": properties}
        for name in names or [function.__name__]:
            tools[name] = ({"name": name, "description": description, "inputSchema": input_schema}, function)
        return function

    return add


@tool("Answers with a text")
async def test_simple_text(call):
    return [text("This is a simple text response for testing.")]


@tool("Answers with an image")
async def test_image_content(call):
    return [IMAGE]


@tool("Answers with a sound")
async def test_audio_content(call):
    return [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]


@tool("Answers with a resource")
async def test_embedded_resource(call):
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


@tool("Answers with a text, an image and a resource")
async def test_multiple_content_types(call):
    data = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return [text("Multiple content types test:"), IMAGE, data]


@tool("Logs three messages", names=["test_tool_with_logging", "test_logging_tool"])
async def log_thrice(call):
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"]:
        await call.log(line)
        await anyio.sleep(STEP_S)
    return [text("Tool with logging executed successfully")]


@tool("Reports progress three times")
async def test_tool_with_progress(call):
    for progress in [0, 50, 100]:
        await call.context.session.report_progress(progress, 100)
        await anyio.sleep(STEP_S)
    return [text("Tool with progress executed successfully")]


@tool("Always fails")
async def test_error_handling(call):
    raise ValueError("This tool intentionally returns an error for testing")


@tool("Tool with JSON Schema 2020-12 features", EVERY_KEYWORD)
async def json_schema_2020_12_tool(call, **arguments):
    return [text(json.dumps(arguments))]


@tool("Has arguments that go into headers", IN_HEADERS)
async def route(call, **arguments):
    return [text(json.dumps(arguments))]


@tool("Answers only clients with a model")
async def test_missing_capability(call):
    if not call.offers("sampling/createMessage"):
        raise MCPError(-32021, "the client has no model", {"requiredCapabilities": {"sampling": {}}})
    return [text("The client has a model.")]


@tool("Asks the client's model", **strings("prompt"))
async def test_sampling(call, prompt):
    [model] = await call.ask({"model": sampling(prompt, 100)})
    return [text(f"LLM response: {sampled(model)}")]


@tool("Asks the user", **strings("message"))
async def test_elicitation(call, message):
    [user] = await call.ask({"user": form(message, strings("username", "email"))})
    return [text(f"User response: <action: {user['action']}, content: {json.dumps(user.get('content'))}>")]


async def ask_form(call, properties):
    [user] = await call.ask({"user": form("Please check and choose", properties, [])})
    return [text(f"Elicitation completed: action={user['action']}, content={json.dumps(user.get('content') or {})}")]


@tool("Asks the user, with defaults")
async def test_elicitation_sep1034_defaults(call):
    return await ask_form(call, DEFAULTS)


@tool("Asks the user, with choices")
async def test_elicitation_sep1330_enums(call):
    return await ask_form(call, ENUMS)


@tool("Takes a moment")
async def test_reconnection(call):
    await anyio.sleep(10 * STEP_S)
    return [text("Reconnection test completed successfully.")]


@tool("Asks the user", names=["test_streaming_elicitation", "test_input_required_result_elicitation"])
async def ask_name(call):
    [user] = await call.ask({"user_name": NAME})
    return [text(f"Hello, {field(user, 'name')}!")]


@tool("Asks the model")
async def test_input_required_result_sampling(call):
    [answer] = await call.ask({"capital_question": sampling("What is the capital of France?", 100)})
    return [text(f"The model said: {sampled(answer)}")]


@tool("Asks for the roots")
async def test_input_required_result_list_roots(call):
    [answer] = await call.ask({"client_roots": ROOTS})
    return [text(f"Roots: {json.dumps(answer['roots'])}")]


CONFIRMING = ["test_input_required_result_request_state", "test_input_required_result_tampered_state"]


@tool("Asks to confirm", names=CONFIRMING)
async def confirm(call):
    [answer] = await call.ask({"confirm": form("Please confirm", {"ok": {"type": "boolean"}})}, sealed=True)
    return [text(f"state-ok: {field(answer, 'ok')}")]


THREE = {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}


@tool("Asks three things at once")
async def test_input_required_result_multiple_inputs(call):
    name, greeting, _ = await call.ask(THREE, sealed=True)
    return [text(f"{sampled(greeting)} {field(name, 'name')}")]


@tool("Asks twice")
async def test_input_required_result_multi_round(call):
    [name] = await call.ask({"step1": form("Step 1: What is your name?", strings("name"))}, sealed=True)
    [colour] = await call.ask({"step2": form("Step 2: What is your favorite color?", strings("color"))})
    return [text(f"{field(name, 'name')} likes {field(colour, 'color')}.")]


@tool("Asks what the client can answer")
async def test_input_required_result_capabilities(call):
    fit = {key: question for key, question in THREE.items() if call.offers(question["method"])}
    return [text(f"The client answered {len(await call.ask(fit))} questions.")]


@tool("Adds a tool, or takes it away")
async def test_trigger_tool_change(call):
    added["tools"] = not added["tools"]
    await bus.publish(ToolsListChanged())
    return [text("The list has changed.")]


@tool("Adds a prompt, or takes it away")
async def test_trigger_prompt_change(call):
    added["prompts"] = not added["prompts"]
    await bus.publish(PromptsListChanged())
    return [text("The list has changed.")]


@tool("Changes the watched resource")
async def touch(call):
    await bus.publish(ResourceUpdated("test://watched-resource"))
    return [text("touched")]


@tool("Says what it was told", **strings("message"))
async def echo(call, message):
    return [text(message)]


async def list_tools(context, params):
    listed = [listed for listed, _ in tools.values()]
    if added["tools"]:
        schema = {"type": "object"}
        listed.append({"name": "test_dynamic_item", "description": "Added at run time", "inputSchema": schema})
    return types.ListToolsResult.model_validate({"tools": listed})


async def call_tool(context, params):
    if params.name not in tools:
        raise MCPError(INVALID_PARAMS, f"no tool {params.name}")
    try:
        return types.CallToolResult.model_validate({"content": await tools[params.name][1](Call(context), **params.arguments or {})})
    except InputRequired as wanted:
        return wanted.result
    except ValueError as error:
        return types.CallToolResult.model_validate({"content": [text(str(error))], "isError": True})


RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content."},
}
TEMPLATE = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}


async def list_resources(context, params):
    described = RESOURCES.items()
    listed = [{"uri": uri, "name": uri.removeprefix("test://"), "mimeType": one["mimeType"]} for uri, one in described]
    return types.ListResourcesResult.model_validate({"resources": listed})


async def list_templates(context, params):
    return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": [TEMPLATE]})


async def read_resource(context, params):
    uri = str(params.uri)
    if found := re.fullmatch("test://template/([^/]+)/data", uri):
        data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        return types.ReadResourceResult.model_validate({"contents": [{"uri": uri, "mimeType": TEMPLATE["mimeType"], "text": json.dumps(data)}]})
    if uri not in RESOURCES:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.ReadResourceResult.model_validate({"contents": [{"uri": uri, **RESOURCES[uri]}]})


async def subscribe(context, params):
    return types.EmptyResult()


async def set_level(context, params):
    return types.EmptyResult()


async def ask_context(call):
    [answer] = await call.ask({"user_context": form("What context should the prompt use?", strings("context"))})
    return [text(f"Prompt with context: {field(answer, 'context')}")]


async def simple(call):
    return [text("This is a simple prompt for testing.")]


async def with_arguments(call, arg1, arg2):
    return [text(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")]


async def with_resource(call, resourceUri):
    resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [resource, text("Please process the embedded resource above.")]


async def with_image(call):
    return [IMAGE, text("Please analyze the image above.")]


PROMPTS = {
    "test_simple_prompt": ([], simple),
    "test_prompt_with_arguments": (["arg1", "arg2"], with_arguments),
    "test_prompt_with_embedded_resource": (["resourceUri"], with_resource),
    "test_prompt_with_image": ([], with_image),
    "test_input_required_result_prompt": ([], ask_context),
}


async def list_prompts(context, params):
    def described(name, arguments):
        arguments = [{"name": one, "description": f"the {one}", "required": True} for one in arguments]
        return {"name": name, "description": name.replace("_", " "), "arguments": arguments}

    listed = [described(name, arguments) for name, (arguments, _) in PROMPTS.items()]
    return types.ListPromptsResult.model_validate({"prompts": listed + [described("test_dynamic_item", [])] * added["prompts"]})


async def get_prompt(context, params):
    if params.name not in PROMPTS:
        raise MCPError(INVALID_PARAMS, f"no prompt {params.name}")
    try:
        contents = await PROMPTS[params.name][1](Call(context), **params.arguments or {})
    except InputRequired as wanted:
        return wanted.result
    return types.GetPromptResult.model_validate({"messages": [{"role": "user", "content": content} for content in contents]})


async def complete(context, params):
    values = [value for value in ["testValue1", "testValue2"] if value.startswith(params.argument.value)]
    return types.CompleteResult.model_validate({"completion": {"values": values, "total": len(values), "hasMore": False}})


server = Server(
    "fixture-py2",
    version="1.0.0",
    get_tool_input_schema=lambda name: tools[name][0]["inputSchema"] if name in tools else None,
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=subscribe,
    on_set_logging_level=set_level,
    on_subscriptions_listen=ListenHandler(bus),
)
server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="fixture-py2"))


async def serve_stdio():
    async with stdio_server() as (from_client, to_client):
        await server.run(from_client, to_client, server.create_initialization_options())


def serve_http():
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print("http://127.0.0.1:%d/mcp" % listener.getsockname()[1], flush=True)
    # Open event streams would hold up the end for ever: give them a second.
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if "--http" in sys.argv[1:]:
    serve_http()
else:
    anyio.run(serve_stdio)
