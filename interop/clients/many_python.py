"""Asks a hub of many servers with the Python SDK (1.x or 2.x): all checks on one connection, as a client of a hub has it.

    many_python.py URL FILTER [COMMAND ARG…]

COMMAND is the hub on stdio; without one the client goes to URL. The servers and their order are those of interop/run-hub.
"""

import json
import sys

import anyio
import mcp.types as types
from python_sdk import HAS, OLD, ROOT, SDK, cancel_last, cause, connect, next_of, plain

url, only, *bridge = sys.argv[1:]
label = f"python-sdk-{SDK} over {'stdio' if bridge else 'http'}"

CHECK_S = 30
SERVERS = ["everything", "python", "ts2", "legacy", "mcphub", "folder"]
# Those that are asked for everything; mcp-hub asks its clients nothing, and a folder neither.
ABLE = {"everything": HAS["everything"], "python": HAS["python"], "ts2": HAS["ts2"], "legacy": HAS["everything"]}


def form(question):
    return HAS["ts2" if "username" in question["requestedSchema"]["properties"] else "everything"]["form"]


def at(server, tool):
    return f"{server}__{tool[0]}", tool[1]


async def proves(c, server, word):
    """Each server's own word for it: the variable INTEROP_NAME, or what nobody else could say."""
    if server == "folder":
        prompt = plain(await c.client.get_prompt("folder__summarize", {"text": word}))
        text = prompt["messages"][0]["content"]["text"]
        assert word in text and len(text) > len(word), text
        return
    inner = "everything__" if server == "mcphub" else ""
    echo = await c.call(at(server, (f"{inner}echo", {"message": word})))
    assert echo == (word if server == "ts2" else f"Echo: {word}"), echo
    env = json.loads(await c.call(at(server, (f"{inner}get-env", {}))))
    assert env["INTEROP_NAME"] == server, env["INTEROP_NAME"]


async def for_all(check):
    async with anyio.create_task_group() as tasks:
        for server, has in ABLE.items():
            tasks.start_soon(check, server, has)


async def names(c):
    return [tool["name"] for tool in plain(await c.client.list_tools())["tools"]]


def in_order(all_names):
    place = [SERVERS.index(name.split("__")[0]) for name in all_names]
    return place == sorted(place) and set(place) == set(range(len(SERVERS))) and len(set(all_names)) == len(all_names)


async def names_and_order(c):
    if not OLD:
        assert c.client.protocol_version == "2026-07-28", c.client.protocol_version
    tools = await names(c)
    assert in_order(tools) and await names(c) == tools, tools
    prompts = [prompt["name"] for prompt in plain(await c.client.list_prompts())["prompts"]]
    assert in_order(prompts), prompts


async def each_is_reached(c):
    for server in SERVERS:
        await proves(c, server, f"grüße, 世界 \u2028 {server}")


async def errors(c):
    for name in ["no-such-prompt", "ts2__no-such-prompt"]:
        try:
            await c.client.get_prompt(name)
        except Exception as rejection:
            assert rejection.error.code == types.INVALID_PARAMS and "no-such-prompt" in str(rejection), rejection
        else:
            raise AssertionError("no error for an unknown prompt")
    failed = plain(await c.client.call_tool("ts2__test_error_handling", {}))
    assert failed["isError"] and "intentionally" in failed["content"][0]["text"], failed


async def many_at_once(c):
    async with anyio.create_task_group() as tasks:
        for i in range(8):
            for server in SERVERS:
                tasks.start_soon(proves, c, server, f"{server} {i}")


async def read(c, uri):
    return plain(await c.client.read_resource(uri))["contents"][0]["text"]


async def resources(c):
    uris = ["demo://resource/static/document/features.md", "test://static-text", "orchestr8://registry"]
    if not OLD:  # SDK 1.x takes no list with mcp-hub's URIs, whose scheme has an underscore.
        listed = [resource["uri"] for resource in plain(await c.client.list_resources())["resources"]]
        assert set(uris) < set(listed) and len(set(listed)) == len(listed), listed
        uris.append(next(uri for uri in listed if uri.startswith("everything__demo://")))
    for uri in uris:
        assert await read(c, uri)
    # Two servers have this one: the one that lists it goes before the one whose template fits.
    assert (await read(c, "demo://resource/dynamic/text/1")).startswith("Resource demo")
    assert "Resource 7" in await read(c, "demo://resource/dynamic/text/7")
    assert "Data for ID: 4711" in await read(c, "test://template/4711/data")


async def prompts(c):
    for server, has in {**ABLE, "mcphub": {"prompt": "everything__simple-prompt"}}.items():
        assert plain(await c.client.get_prompt(f"{server}__{has['prompt']}"))["messages"][0]["role"] == "user"


async def completion(c):
    async def complete(name, argument, value):
        reference = types.PromptReference(type="ref/prompt", name=name)
        answer = plain(await c.client.complete(reference, {"name": argument, "value": value}))
        return answer["completion"]["values"]

    assert await complete("everything__completable-prompt", "department", "E") == ["Engineering"]
    assert await complete("ts2__test_prompt_with_arguments", "arg1", "testV") == ["testValue1", "testValue2"]


async def progress(c):
    async def check(server, has):
        seen = []

        async def note(progress, total, message):
            seen.append(progress)

        await c.call(at(server, has["progress"]), progress_callback=note)
        assert seen == has["steps"], f"{server}: {seen}"

    for server, has in ABLE.items():
        await check(server, has)
    await for_all(check)


async def logging(c):
    if OLD:
        await c.client.set_logging_level("info")
    for server in ["python", "ts2"]:
        since = len(c.told)
        await c.call(at(server, ABLE[server]["logging"]))
        await c.until_told("notifications/message", since)
        levels = [m["params"]["level"] for m in c.told[since:] if m.get("method") == "notifications/message"]
        assert "debug" not in levels, levels


async def elicitation(c):
    async def check(server, has):
        assert "elicited-4711" in await c.call(at(server, has["elicitation"]))

    for server, has in ABLE.items():
        await check(server, has)
    await for_all(check)
    assert c.asked["elicitation"] == 2 * len(ABLE), c.asked


async def sampling(c):
    for server, has in ABLE.items():
        c.asked["sampling"] = ""
        assert "sampled-4711" in await c.call(at(server, has["sampling"]))
        assert "prompt-0815" in c.asked["sampling"]


async def roots(c):
    for server, has in ABLE.items():
        assert ROOT in await c.call(at(server, has["roots"])), server


async def subscriptions(c):
    uris = {"everything": "demo://resource/dynamic/text/2"} | {server: HAS[server]["resource"] for server in ["python", "ts2"]}

    async def touch(server):
        # Clients may share a session of the server: another may have started the updates, and this stops them.
        if "Stopped" in await c.call(at(server, ABLE[server]["touch"])):
            await c.call(at(server, ABLE[server]["touch"]))

    for server, uri in uris.items():
        if OLD:
            await c.client.subscribe_resource(uri)
            since = len(c.told)
            await touch(server)
            update = await c.until_told("notifications/resources/updated", since)
            assert update["params"]["uri"] == uri, f"{server}: {update}"
            await c.client.unsubscribe_resource(uri)
        else:
            async with c.client.listen(resource_subscriptions=[uri]) as events:
                await touch(server)
                assert (await next_of(events)).uri == uri, server


async def list_changed(c):
    had = "ts2__test_dynamic_item" in await names(c)
    if OLD:
        since = len(c.told)
        await c.call(at("ts2", HAS["ts2"]["change"]))
        await c.until_told("notifications/tools/list_changed", since)
    else:
        async with c.client.listen(tools_list_changed=True) as events:
            await c.call(at("ts2", HAS["ts2"]["change"]))
            await next_of(events)
    assert ("ts2__test_dynamic_item" in await names(c)) != had


async def cancel(c):
    mark = f"cancelled-{label}"
    with anyio.move_on_after(0.5) as limit:
        await c.call(at("python", ("trigger-long-running-operation", {"duration": 5, "steps": 50, "label": mark})))
    assert limit.cancelled_caught, "it was faster than the limit"
    if OLD:  # Version 2 says it by itself when a call is abandoned.
        await cancel_last(c.client)
    while mark not in await c.call(at("python", ("seen", {}))):
        await anyio.sleep(0.05)


CHECKS = {
    "names and order": names_and_order,
    "each server is reached": each_is_reached,
    "errors": errors,
    "many at once": many_at_once,
    "prompts": prompts,
    "resources": resources,
    "completion": completion,
    "progress": progress,
    "logging": logging,
    "elicitation": elicitation,
    "sampling": sampling,
    "roots": roots,
    "subscriptions": subscriptions,
    "list changed": list_changed,
    "cancel": cancel,
}


async def main():
    failures = 0
    async with connect(url, bridge, form) as connection:
        for name, check in CHECKS.items():
            line = f"{label}: {name}"
            if only not in line:
                continue
            try:
                with anyio.fail_after(CHECK_S):
                    await check(connection)
            except Exception as exception:
                failures += 1
                print(f"FAIL {line}  {cause(exception)}", flush=True)
            else:
                print(f"ok   {line}", flush=True)
    sys.exit(1 if failures else 0)


anyio.run(main)
