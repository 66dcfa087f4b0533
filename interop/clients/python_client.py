"""Drives a server with the Python SDK's client (1.x or 2.x) and judges what arrives, one connection per check.

    python_client.py SERVER URL FILTER [COMMAND ARG…]

SERVER is everything, python or python-json. COMMAND is the bridge, started as an MCP client would start it;
without one the client goes to URL directly, which shows what the peers do by themselves, or what a bridge does
that listens there: SERVER is then everything-stdio or python-stdio, python-shared or python-url, after what is
behind it. A URL that ends with /sse is spoken to in the older way.
Everything is judged in its wire form, which is the same for both major versions of the SDK.
"""

import json
import os
import re
import sys
import time
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

server, url, only, *bridge = sys.argv[1:]
sdk = version("mcp").split(".")
older = url.endswith("/sse")
label = f"python-sdk-{sdk[0]}.{sdk[1]}{' over sse' if older else ''} x {server}"
kind = re.sub("-(stdio|shared|url)$", "", server)
on_stdio = server.endswith(("-stdio", "-shared"))

CHECK_S = 20
WAIT_S = 12  # server-everything repeats its updates and logs every 5 s
EOF_S = 1.9  # the SDK sends SIGTERM 2 s after it closed the bridge's stdin
RESOURCE = "demo://resource/dynamic/text/1"
ROOT = "file:///interop/root"
SLOW = "trigger-long-running-operation"


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Wire:
    """Every message of a connection in the order of the wire, so that order can be judged."""

    def __init__(self):
        self.messages = []
        self.changed = anyio.Event()

    def record(self, sent, message):
        self.messages.append({"sent": sent, **plain(message)})
        self.changed.set()
        self.changed = anyio.Event()

    def find(self, wanted):
        return next(filter(wanted, self.messages), None)

    def received(self, method):
        return [m for m in self.messages if not m["sent"] and m.get("method") == method]

    def request(self, label):
        return self.find(lambda m: m["sent"] and m.get("params", {}).get("arguments", {}).get("label") == label)

    def answer(self, request):
        return self.find(lambda m: not m["sent"] and "method" not in m and m.get("id") == request["id"])

    async def until(self, wanted, what, seconds=WAIT_S):
        with anyio.move_on_after(seconds):
            while not (found := self.find(wanted)):
                await self.changed.wait()
            return found
        raise AssertionError(f"{what} did not arrive within the time limit")


class Connection:
    """The session and its wire; `asked` holds what the server wanted to know from this client."""

    def __init__(self):
        self.wire = Wire()
        self.asked = {}
        self.session = None
        self.name = "elicited-4711"

    async def sample(self, context, params):
        self.asked["sampling"] = plain(params)["messages"][0]["content"]["text"]
        content = {"type": "text", "text": "sampled-4711"}
        return types.CreateMessageResult.model_validate({"role": "assistant", "model": "none", "content": content})

    async def elicit(self, context, params):
        self.asked["elicitation"] = plain(params)["requestedSchema"]["properties"]["name"]["type"]
        return types.ElicitResult.model_validate({"action": "accept", "content": {"name": self.name}})

    async def roots(self, context):
        return types.ListRootsResult.model_validate({"roots": [{"uri": ROOT, "name": "root"}]})

    async def call(self, name, arguments=None, **options):
        result = plain(await self.session.call_tool(name, arguments or {}, **options))
        return "\n".join(item.get("text", "") for item in result["content"])


@asynccontextmanager
async def connect():
    if bridge:
        transport = stdio_client(StdioServerParameters(command=bridge[0], args=bridge[1:]))
    else:
        transport = sse_client(url) if older else streamable_http_client(url)
    connection = Connection()
    async with transport as streams, anyio.create_task_group() as taps:
        inward, from_server = anyio.create_memory_object_stream(0)
        to_server, outward = anyio.create_memory_object_stream(0)
        taps.start_soon(tap, connection.wire, False, streams[0], inward)
        taps.start_soon(tap, connection.wire, True, outward, streams[1])
        async with ClientSession(
            from_server,
            to_server,
            sampling_callback=connection.sample,
            elicitation_callback=connection.elicit,
            list_roots_callback=connection.roots,
        ) as connection.session:
            await connection.session.initialize()
            yield connection
        taps.cancel_scope.cancel()
        started = time.monotonic()
    # The transport's own shutdown is between these lines.
    if bridge and time.monotonic() - started > EOF_S:
        raise AssertionError("the bridge did not end by itself when its stdin closed")


async def tap(wire, sent, source, sink):
    # A message may still come when its receiver is already closing.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for item in source:
            if not isinstance(item, Exception):
                wire.record(sent, item.message)
            await sink.send(item)


async def ignore_progress(progress, total, message):
    pass


def assert_equal(got, wanted):
    assert got == wanted, f"expected {wanted!r:.80}, got {got!r:.80}"


def assert_progress(wire, label, steps):
    """Progress of the call with this label: its own token, 1, 2, 3 …, all of it before the answer."""
    request = wire.request(label)
    token = request["params"]["_meta"]["progressToken"]
    mine = [m for m in wire.received("notifications/progress") if m["params"]["progressToken"] == token]
    assert_equal([m["params"]["progress"] for m in mine], list(range(1, steps + 1)))
    answered = wire.messages.index(wire.answer(request))
    assert wire.messages.index(mine[-1]) < answered, f"progress of {label} came after its answer"


async def list_tools(c):
    tools = plain(await c.session.list_tools())["tools"]
    assert any(tool["name"] == "echo" for tool in tools), "no echo in the list"


async def list_resources(c):
    resources = plain(await c.session.list_resources())["resources"]
    uri = resources[0]["uri"]
    assert_equal(plain(await c.session.read_resource(uri))["contents"][0]["uri"], uri)


async def list_prompts(c):
    prompts = plain(await c.session.list_prompts())["prompts"]
    assert any(prompt["name"] == "simple-prompt" for prompt in prompts), "no simple-prompt in the list"
    prompt = plain(await c.session.get_prompt("simple-prompt"))
    assert_equal(prompt["messages"][0]["content"]["text"], "This is a simple prompt without arguments.")


async def call_a_tool(c):
    text = "grüße, 世界 \u2028 \n"
    assert_equal(await c.call("echo", {"message": text}), "Echo: " + text)


async def error(c):
    try:
        await c.session.get_prompt("no-such-prompt")
    except Exception as rejection:
        assert_equal(rejection.error.code, types.INVALID_PARAMS)
    else:
        raise AssertionError("no error for an unknown prompt")


async def large_message(c):
    text = "0123456789abcdef" * 60_000
    assert_equal(len(await c.call("echo", {"message": text})), len("Echo: " + text))


async def concurrency(c):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(c.call, SLOW, {"duration": 1.5, "steps": 1, "label": "long"})
        await c.wire.until(lambda m: c.wire.request("long"), "the slow request")
        await c.call("echo", {"message": "fast"})
        slow = c.wire.request("long")
        assert not c.wire.answer(slow), "the fast call was answered after the slow one"
    assert "completed" in json.dumps(c.wire.answer(slow))


async def progress(c):
    seen = []

    async def note(progress, total, message):
        seen.append(progress)

    await c.call(SLOW, {"duration": 0.4, "steps": 4, "label": "one"}, progress_callback=note)
    assert_progress(c.wire, "one", 4)
    assert_equal(seen[:3], [1, 2, 3])


async def progress_of_two_calls(c):
    async def slow(duration, steps, label):
        arguments = {"duration": duration, "steps": steps, "label": label}
        await c.call(SLOW, arguments, progress_callback=ignore_progress)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(slow, 0.6, 3, "three")
        tasks.start_soon(slow, 0.5, 5, "five")
    assert_progress(c.wire, "three", 3)
    assert_progress(c.wire, "five", 5)


async def logging(c):
    await c.session.set_logging_level("debug")
    await c.call("toggle-simulated-logging")
    await c.wire.until(
        lambda m: m.get("method") == "notifications/message" and re.search("message", m["params"]["data"]),
        "a log message",
    )


async def logging_level(c):
    await c.session.set_logging_level("critical")
    await c.call("toggle-simulated-logging")
    levels = [m["params"]["level"] for m in c.wire.received("notifications/message")]
    assert_equal(levels, ["critical", "alert", "emergency"])


async def sampling(c):
    answer = await c.call("trigger-sampling-request", {"prompt": "prompt-0815", "maxTokens": 10})
    assert "prompt-0815" in c.asked.get("sampling", ""), "the client was not asked"
    assert "sampled-4711" in answer, f"the answer did not reach the server: {answer}"


async def elicitation(c):
    answer = await c.call("trigger-elicitation-request")
    assert_equal(c.asked.get("elicitation"), "string")
    assert "elicited-4711" in answer, f"the answer did not reach the server: {answer}"


async def roots(c):
    answer = await c.call("get-roots-list")
    assert ROOT in answer, f"the answer did not reach the server: {answer}"


async def subscription(c):
    await c.session.subscribe_resource(RESOURCE)
    await c.call("toggle-subscriber-updates")
    update = await c.wire.until(lambda m: m.get("method") == "notifications/resources/updated", "the update")
    assert_equal(update["params"]["uri"], RESOURCE)
    await c.session.unsubscribe_resource(RESOURCE)


async def list_changed(c):
    # server-everything says it at once when it is initialized, which a client on HTTP is too late to hear.
    if kind != "everything":
        await c.call("change-the-tools")
    await c.wire.until(lambda m: m.get("method") == "notifications/tools/list_changed", "the notification")


async def own_answers(c, mine, theirs, steps):
    """Does several things at once, while another client does the same: all that comes back belongs to this one."""
    c.name = mine
    async with anyio.create_task_group() as tasks:

        async def slow():
            arguments = {"duration": 0.6, "steps": steps, "label": mine}
            await c.call(SLOW, arguments, progress_callback=ignore_progress)

        async def ask():
            assert mine in await c.call("trigger-elicitation-request"), "the answer did not reach the server"

        tasks.start_soon(slow)
        if not server.endswith("-shared"):  # With two clients on one child nobody can tell whose user it wants to ask.
            tasks.start_soon(ask)
        assert_equal(await c.call("echo", {"message": mine}), f"Echo: {mine}")
    assert_progress(c.wire, mine, steps)
    assert theirs not in json.dumps(c.wire.messages), "something of the other client arrived"


async def two_clients(one):
    # Their requests carry the same ids and progress tokens.
    async with connect() as other, anyio.create_task_group() as tasks:
        tasks.start_soon(own_answers, one, "one-4711", "other-0815", 3)
        tasks.start_soon(own_answers, other, "other-0815", "one-4711", 5)


async def cancel(c):
    label = f"python-{os.getpid()}"
    arguments = {"duration": 2, "steps": 4, "label": label}
    async with anyio.create_task_group() as tasks:

        async def slow():
            await c.call(SLOW, arguments, progress_callback=ignore_progress)

        tasks.start_soon(slow)
        await c.wire.until(lambda m: m.get("method") == "notifications/progress", "progress")
        request = c.wire.request(label)
        if sdk[0] == "1":  # Version 2 says it by itself when a call is abandoned.
            params = types.CancelledNotificationParams(requestId=request["id"], reason="enough")
            notification = types.CancelledNotification(method="notifications/cancelled", params=params)
            await c.session.send_notification(types.ClientNotification(notification))
        tasks.cancel_scope.cancel()
    assert any(m["sent"] and m.get("method") == "notifications/cancelled" for m in c.wire.messages), "not sent"
    if kind == "python":
        await until_seen(c, "cancelled", label)
    else:
        # It tells nobody, but a call it knows to be cancelled it does not answer. A bridge that has to end the
        # response stream may answer with an error in its place.
        await anyio.sleep(2.5)
        answer = c.wire.answer(request)
        refused = not bridge and answer and "error" in answer
        assert not answer or refused, "the call was answered although it was cancelled"
    assert_equal(await c.call("echo", {"message": "still here"}), "Echo: still here")


async def until_seen(c, what, which):
    """Until the Python server has seen it."""
    with anyio.move_on_after(WAIT_S):
        while which not in json.loads(await c.call("seen"))[what]:
            await anyio.sleep(0.05)
        return
    raise AssertionError(f"not seen by the server as {what}")


async def stream_cut_by_the_server(c):
    assert_equal(await c.call("cut-the-stream"), "finished after the cut")


session_before = None


async def end_of_the_session(c):
    global session_before
    session_before = json.loads(await c.call("seen"))["session"]


async def end_of_the_session_seen(c):
    await until_seen(c, "deleted", session_before)


ALL = ["everything", "python", "python-json"]
STREAMING = ["everything", "python"]
# Each check is one or more steps, each on a connection of its own.
CHECKS = {
    "list tools": (ALL, [list_tools]),
    "list resources": (ALL, [list_resources]),
    "list prompts": (ALL, [list_prompts]),
    "call a tool": (ALL, [call_a_tool]),
    "error": (ALL, [error]),
    "large message": (ALL, [large_message]),
    "concurrency": (ALL, [concurrency]),
    "progress": (STREAMING, [progress]),
    "progress of two calls": (STREAMING, [progress_of_two_calls]),
    "logging": (STREAMING, [logging]),
    "logging level": (["python"], [logging_level]),
    "sampling": (STREAMING, [sampling]),
    "elicitation": (STREAMING, [elicitation]),
    "roots": (STREAMING, [roots]),
    "subscription": (ALL, [subscription]),
    "list changed": (ALL if on_stdio else ["python", "python-json"], [list_changed]),
    "two clients": ([] if bridge else STREAMING, [two_clients]),
    "cancel": (STREAMING, [cancel]),
    "stream cut by the server": ([] if on_stdio else ["python"], [stream_cut_by_the_server]),
    "end of the session": (
        [] if on_stdio else ["python", "python-json"],
        [end_of_the_session, end_of_the_session_seen],
    ),
}


async def run(steps):
    with anyio.move_on_after(CHECK_S) as limit:
        for step in steps:
            async with connect() as connection:
                await step(connection)
    if limit.cancelled_caught:
        raise AssertionError("the check did not finish within the time limit")


def cause(exception):
    while isinstance(exception, BaseExceptionGroup):
        exception = exception.exceptions[0]
    return re.sub(r"\s+", " ", f"{type(exception).__name__}: {exception}")[:200]


def main():
    failures = 0
    for name, (servers, steps) in CHECKS.items():
        line = f"{label}: {name}"
        if kind not in servers or only not in line:
            continue
        try:
            anyio.run(run, steps)
        except Exception as exception:
            failures += 1
            print(f"FAIL {line}  {cause(exception)}", flush=True)
        else:
            print(f"ok   {line}", flush=True)
    sys.exit(1 if failures else 0)


main()
