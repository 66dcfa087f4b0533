"""Drives a server of one era with a client of the other, on the Python SDK (1.x or 2.x), one connection per check.

    eras_python.py SERVER URL FILTER [COMMAND ARG…]

SDK 1.x knows the session era only; SDK 2.x asks what the server speaks and takes the newest. SERVER is everything,
python, reference or ts2, with the transport behind the bridge after a dash. COMMAND is the bridge on stdio; without one
the client goes to URL, where a bridge listens.
"""

import re
import sys
from contextlib import asynccontextmanager
from importlib.metadata import version

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

server, url, only, *bridge = sys.argv[1:]
sdk = version("mcp").split(".")
old = sdk[0] == "1"
kind = server.split("-")[0]
label = f"python-sdk-{sdk[0]}.{sdk[1]} over {'stdio' if bridge else 'http'} x {server}"

CHECK_S = 20
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
}[kind]


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Connection:
    """The client, and what the server told and asked it."""

    def __init__(self):
        self.client = None
        self.asked = {"elicitation": 0}
        self.told = []
        self.changed = anyio.Event()

    async def sample(self, context, params):
        self.asked["sampling"] = plain(params)["messages"][0]["content"]["text"]
        content = {"type": "text", "text": "sampled-4711"}
        return types.CreateMessageResult.model_validate({"role": "assistant", "model": "none", "content": content})

    async def elicit(self, context, params):
        self.asked["elicitation"] += 1
        return types.ElicitResult.model_validate({"action": "accept", "content": HAS["form"]})

    async def roots(self, context):
        return types.ListRootsResult.model_validate({"roots": [{"uri": ROOT, "name": "root"}]})

    async def note(self, message):
        message = getattr(message, "root", message)
        self.told.append(plain(message) if hasattr(message, "method") else {})
        self.changed.set()
        self.changed = anyio.Event()

    async def log(self, params):
        pass  # `note` gets it, too

    async def until_told(self, method):
        with anyio.move_on_after(WAIT_S):
            while not (found := [m for m in self.told if m.get("method") == method]):
                await self.changed.wait()
            return found[0]
        raise AssertionError(f"{method} did not arrive within the time limit")

    async def call(self, tool, **options):
        result = plain(await self.client.call_tool(tool[0], tool[1], **options))
        assert not result.get("isError"), f"{tool[0]}: {result['content']}"
        return "\n".join(item.get("text", "") for item in result["content"])


@asynccontextmanager
async def connect(roots=True):
    connection = Connection()
    callbacks = {
        "sampling_callback": connection.sample,
        "elicitation_callback": connection.elicit,
        "list_roots_callback": connection.roots if roots else None,
        "logging_callback": connection.log,
        "message_handler": connection.note,
    }
    process = StdioServerParameters(command=bridge[0], args=bridge[1:]) if bridge else None
    if old:
        transport = stdio_client(process) if process else streamable_http_client(url)
        async with transport as streams, ClientSession(*streams[:2], **callbacks) as connection.client:
            await connection.client.initialize()
            yield connection
    else:
        from mcp import Client

        async with Client(process or url, log_level="info", **callbacks) as connection.client:
            yield connection


async def its_version(c):
    if not old:
        assert c.client.protocol_version == "2026-07-28", c.client.protocol_version


async def list_and_read(c):
    tools = plain(await c.client.list_tools())["tools"]
    assert any(tool["name"] == "echo" for tool in tools), "no echo in the list"
    prompts = plain(await c.client.list_prompts())["prompts"]
    assert any(prompt["name"] == HAS["prompt"] for prompt in prompts), "no prompt"
    assert plain(await c.client.get_prompt(HAS["prompt"]))["messages"][0]["role"] == "user"
    uri = plain(await c.client.list_resources())["resources"][0]["uri"]
    assert plain(await c.client.read_resource(uri))["contents"][0]["uri"] == uri


async def call_a_tool(c):
    text = "grüße, 世界 \u2028 \n"
    assert text in await c.call(("echo", {"message": text}))


async def error(c):
    try:
        await c.client.get_prompt("no-such-prompt")
    except Exception as rejection:
        assert rejection.error.code == types.INVALID_PARAMS, rejection
    else:
        raise AssertionError("no error for an unknown prompt")


async def many_at_once(c):
    async def echo(text):
        answer = await c.call(("echo", {"message": text}))
        assert answer.endswith(text), f"{answer} for {text}"

    async with anyio.create_task_group() as tasks:
        for i in range(8):
            tasks.start_soon(echo, f"text {i}")


async def progress(c):
    seen = []

    async def note(progress, total, message):
        seen.append(progress)

    await c.call(HAS["progress"], progress_callback=note)
    assert seen == HAS["steps"], seen


async def logging(c):
    if old:
        await c.client.set_logging_level("info")
    await c.call(HAS["logging"])
    await c.until_told("notifications/message")
    levels = [m["params"]["level"] for m in c.told if m.get("method") == "notifications/message"]
    assert "debug" not in levels, levels


async def elicitation(c):
    assert "elicited-4711" in await c.call(HAS["elicitation"])
    assert c.asked["elicitation"] == 1


async def two_elicitations_at_once(c):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(c.call, HAS["elicitation"])
        tasks.start_soon(c.call, HAS["elicitation"])
    assert c.asked["elicitation"] == 2


async def sampling(c):
    assert "sampled-4711" in await c.call(HAS["sampling"])
    assert "prompt-0815" in c.asked["sampling"]


async def roots(c):
    assert ROOT in await c.call(HAS["roots"])


async def subscription(c):
    if old:
        await c.client.subscribe_resource(HAS["resource"])
        await c.call(HAS["touch"])
        update = await c.until_told("notifications/resources/updated")
        assert update["params"]["uri"] == HAS["resource"]
        await c.client.unsubscribe_resource(HAS["resource"])
    else:
        async with c.client.listen(resource_subscriptions=[HAS["resource"]]) as events:
            # Clients without a session share those that the bridge has: another may have started the updates, and
            # this stops them.
            if "Stopped" in await c.call(HAS["touch"]):
                await c.call(HAS["touch"])
            event = await next_of(events)
            assert event.uri == HAS["resource"]
    assert "after" in await c.call(("echo", {"message": "after"}))


async def list_changed(c):
    if old:
        await c.call(HAS["change"])
        await c.until_told("notifications/tools/list_changed")
    else:
        async with c.client.listen(tools_list_changed=True) as events:
            await c.call(HAS["change"])
            await next_of(events)


async def next_of(events):
    with anyio.move_on_after(WAIT_S):
        async for event in events:
            return event
    raise AssertionError("no event within the time limit")


async def cancel(c):
    slow = {"reference": ("slow", {"ms": 5000}), "ts2": ("slow", {})}
    tool = slow.get(kind, ("trigger-long-running-operation", {"duration": 5, "steps": 50}))
    with anyio.move_on_after(0.5) as limit:
        await c.call(tool)
    assert limit.cancelled_caught, "it was faster than the limit"
    if old:  # Version 2 says it by itself when a call is abandoned.
        params = types.CancelledNotificationParams(requestId=c.client._request_id - 1, reason="enough")
        notification = types.CancelledNotification(method="notifications/cancelled", params=params)
        await c.client.send_notification(types.ClientNotification(notification))
    assert "still here" in await c.call(("echo", {"message": "still here"}))


CHECKS = {
    "the version is the client's": its_version,
    "list and read": list_and_read,
    "call a tool": call_a_tool,
    "error": error,
    "many at once": many_at_once,
    "progress": progress,
    "logging": "logging" in HAS and logging,
    "elicitation": elicitation,
    "two elicitations at once": two_elicitations_at_once,
    "sampling": sampling,
    "roots": roots,
    "subscription": subscription,
    "list changed": "change" in HAS and list_changed,
    "cancel": cancel,
}


async def run(check):
    with anyio.move_on_after(CHECK_S) as limit:
        # server-everything asks whoever has roots for them, 350 ms after a session began: in the middle of a call, whose
        # client then hears only the last of the progress that it missed.
        async with connect(roots=check is not progress) as connection:
            await check(connection)
    if limit.cancelled_caught:
        raise AssertionError("the check did not finish within the time limit")


def cause(exception):
    while isinstance(exception, BaseExceptionGroup):
        exception = exception.exceptions[0]
    return re.sub(r"\s+", " ", f"{type(exception).__name__}: {exception}")[:200]


def main():
    failures = 0
    for name, check in CHECKS.items():
        line = f"{label}: {name}"
        if not check or only not in line:
            continue
        try:
            anyio.run(run, check)
        except Exception as exception:
            failures += 1
            print(f"FAIL {line}  {cause(exception)}", flush=True)
        else:
            print(f"ok   {line}", flush=True)
    sys.exit(1 if failures else 0)


main()
