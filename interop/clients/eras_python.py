"""Drives a server of one era with a client of the other, on the Python SDK (1.x or 2.x), one connection per check.

    eras_python.py SERVER URL FILTER [COMMAND ARG…]

SDK 1.x knows the session era only; SDK 2.x asks what the server speaks and takes the newest. SERVER is everything,
python, reference or ts2, with the transport behind the bridge after a dash. COMMAND is the bridge on stdio; without one
the client goes to URL, where a bridge listens.
"""

import sys

import anyio
import mcp.types as types
from python_sdk import HAS as HAS_ALL
from python_sdk import OLD, ROOT, SDK, cancel_last, cause, connect, next_of, plain

server, url, only, *bridge = sys.argv[1:]
kind = server.split("-")[0]
label = f"python-sdk-{SDK} over {'stdio' if bridge else 'http'} x {server}"

CHECK_S = 20
HAS = HAS_ALL[kind]


async def its_version(c):
    if not OLD:
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
    if OLD:
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
    if OLD:
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
    if OLD:
        await c.call(HAS["change"])
        await c.until_told("notifications/tools/list_changed")
    else:
        async with c.client.listen(tools_list_changed=True) as events:
            await c.call(HAS["change"])
            await next_of(events)


async def cancel(c):
    slow = {"reference": ("slow", {"ms": 5000}), "ts2": ("slow", {})}
    tool = slow.get(kind, ("trigger-long-running-operation", {"duration": 5, "steps": 50}))
    with anyio.move_on_after(0.5) as limit:
        await c.call(tool)
    assert limit.cancelled_caught, "it was faster than the limit"
    if OLD:  # Version 2 says it by itself when a call is abandoned.
        await cancel_last(c.client)
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
        async with connect(url, bridge, lambda _: HAS["form"], roots=check is not progress) as connection:
            await check(connection)
    if limit.cancelled_caught:
        raise AssertionError("the check did not finish within the time limit")


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
