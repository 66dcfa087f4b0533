"""Asks `mcpwire connect FOLDER` and `mcpwire expose FOLDER` with the Python SDK's client (1.x or 2.x).

folder_client.py FILTER URL MCPWIRE FOLDER
"""

import sys
from importlib.metadata import version

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

only, url, mcpwire, folder = sys.argv[1:]
sdk = version("mcp").split(".")
label = f"python-sdk-{sdk[0]}.{sdk[1]}"
MATCH = "orchestr8://agents/match?query=rest+api&maxResults=3"


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


async def check(transport):
    async with transport as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        resources = plain(await session.list_resources())["resources"]
        assert len(resources) >= 150 and resources[0]["uri"] == "orchestr8://registry", len(resources)
        match = plain(await session.read_resource(MATCH))["contents"][0]["text"]
        assert "### 1. Agent: agents/_fragments/api-designer" in match, match
        prompts = plain(await session.list_prompts())["prompts"]
        assert any(prompt["name"] == "deploy-it" for prompt in prompts), prompts
        prompt = plain(await session.get_prompt("deploy-it", {"service": "api", "environment": "staging"}))
        text = prompt["messages"][0]["content"]["text"]
        assert text.startswith("Plan the deployment of api to staging."), text
        assert len(plain(await session.list_tools())["tools"]) == 4
        arguments = {"categoryId": "people", "filters": {"skills": "python"}}
        people = plain(await session.call_tool("relevant-data.searchRecords", arguments))["structuredContent"]
        assert [person["id"] for person in people["records"]] == ["person-001", "person-003"], people


async def main():
    failed = False
    transports = {
        "stdio": lambda: stdio_client(StdioServerParameters(command=mcpwire, args=["connect", folder])),
        "http": lambda: streamable_http_client(url),
    }
    for name, transport in transports.items():
        line = f"{label} x {name}"
        if only not in line:
            continue
        try:
            with anyio.fail_after(20):
                await check(transport())
            print(f"ok {line}", flush=True)
        except BaseException as error:  # groups of errors, too
            failed = True
            print(f"FAIL {line}: {error!r}", flush=True)
    return 1 if failed else 0


sys.exit(anyio.run(main))
