"""The clients of the Python SDK, 1.x and 2.x, behind one face, and what the servers have for the checks."""

import os
import re
from contextlib import asynccontextmanager
from importlib.metadata import version

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

SDK = ".".join(version("mcp").split(".")[:2])
OLD = SDK.startswith("1.")
WAIT_S = 12  # server-everything repeats its updates every 5 s
ROOT = "file:///interop/root"

OF_THE_SUITE = {
    "progress": ("test_tool_with_progress", {}),
    "steps": [0, 50, 100],
    "logging": ("test_tool_with_logging", {}),
    "sampling": ("test_sampling", {"prompt": "prompt-0815"}),
    "elicitation": ("test_elicitation", {"message": "Who are you?"}),
    "form": {"username": "elicited-4711", "email": "a@example.com"},
    "roots": ("test_input_required_result_list_roots", {}),
    "change": ("test_trigger_tool_change", {}),
    "resource": "test://watched-resource",
    "touch": ("touch", {}),
    "prompt": "test_simple_prompt",
}
OF_EVERYTHING = {
    "progress": ("trigger-long-running-operation", {"duration": 0.3, "steps": 3}),
    "steps": [1, 2, 3],
    "sampling": ("trigger-sampling-request", {"prompt": "prompt-0815", "maxTokens": 10}),
    "elicitation": ("trigger-elicitation-request", {}),
    "form": {"name": "elicited-4711"},
    "roots": ("get-roots-list", {}),
    "resource": "demo://resource/dynamic/text/1",
    "touch": ("toggle-subscriber-updates", {}),
    "prompt": "simple-prompt",
}
OF_PYTHON = {"logging": ("toggle-simulated-logging", {}), "change": ("change-the-tools", {})}
HAS = {
    "everything": OF_EVERYTHING,
    "python": OF_EVERYTHING | OF_PYTHON,
    "reference": OF_THE_SUITE,
    "ts2": OF_THE_SUITE,
}


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Connection:
    """The client, and what the server told and asked it."""

    def __init__(self, form):
        self.client = None
        self.form = form
        self.asked = {"elicitation": 0}
        self.told = []
        self.changed = anyio.Event()

    async def sample(self, context, params):
        self.asked["sampling"] = plain(params)["messages"][0]["content"]["text"]
        content = {"type": "text", "text": "sampled-4711"}
        return types.CreateMessageResult.model_validate({"role": "assistant", "model": "none", "content": content})

    async def elicit(self, context, params):
        self.asked["elicitation"] += 1
        return types.ElicitResult.model_validate({"action": "accept", "content": self.form(plain(params))})

    async def roots(self, context):
        return types.ListRootsResult.model_validate({"roots": [{"uri": ROOT, "name": "root"}]})

    async def note(self, message):
        message = getattr(message, "root", message)
        self.told.append(plain(message) if hasattr(message, "method") else {})
        self.changed.set()
        self.changed = anyio.Event()

    async def log(self, params):
        pass  # `note` gets it, too

    async def until_told(self, method, since=0):
        with anyio.move_on_after(WAIT_S):
            while not (found := [m for m in self.told[since:] if m.get("method") == method]):
                await self.changed.wait()
            return found[0]
        raise AssertionError(f"{method} did not arrive within the time limit")

    async def call(self, tool, **options):
        result = plain(await self.client.call_tool(tool[0], tool[1], **options))
        assert not result.get("isError"), f"{tool[0]}: {result['content']}"
        return "\n".join(item.get("text", "") for item in result["content"])


@asynccontextmanager
async def connect(url, bridge, form, roots=True):
    """To the bridge on stdio if there is one, else to the URL."""
    connection = Connection(form)
    callbacks = {
        "sampling_callback": connection.sample,
        "elicitation_callback": connection.elicit,
        "list_roots_callback": connection.roots if roots else None,
        "logging_callback": connection.log,
        "message_handler": connection.note,
    }
    process = StdioServerParameters(command=bridge[0], args=bridge[1:], env=dict(os.environ)) if bridge else None
    if OLD:
        transport = stdio_client(process) if process else streamable_http_client(url)
        async with transport as streams, ClientSession(*streams[:2], **callbacks) as connection.client:
            await connection.client.initialize()
            yield connection
    else:
        from mcp import Client

        async with Client(process or url, log_level="info", **callbacks) as connection.client:
            yield connection


async def next_of(events):
    with anyio.move_on_after(WAIT_S):
        async for event in events:
            return event
    raise AssertionError("no event within the time limit")


async def cancel_last(client):
    """Version 1 leaves it to us to say that a call was abandoned."""
    params = types.CancelledNotificationParams(requestId=client._request_id - 1, reason="enough")
    notification = types.CancelledNotification(method="notifications/cancelled", params=params)
    await client.send_notification(types.ClientNotification(notification))


def cause(exception):
    while isinstance(exception, BaseExceptionGroup):
        exception = exception.exceptions[0]
    return re.sub(r"\s+", " ", f"{type(exception).__name__}: {exception}")[:200]
