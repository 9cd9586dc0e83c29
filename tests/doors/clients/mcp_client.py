"""Navi through MCP's own client for Python, for as long as standard input is open.

The first line of JSON says how to connect: url and token, or command, args and env. Each other
one is a call: id, tool, args, timeout_seconds. What comes is told as JSON lines: `ready` first, then `progress` and
`came` by the call's id, and `asked` where the server has its user asked, which is answered by the
next of `answers`, a line of its own.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import ElicitResult


def tell(**line):
    print(json.dumps(line), flush=True)


def why(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def lines():
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        yield json.loads(line)


async def call(client, asked):
    async def progress(progress, total, message):
        tell(progress=asked["id"], message=message)

    try:
        result = await client.call_tool(asked["tool"], asked["args"], asked["timeout_seconds"], progress)
        text = "".join(part.text for part in result.content if part.type == "text")
        tell(came=asked["id"], data=result.structured_content, text=text, failed=bool(result.is_error))
    except Exception as error:
        tell(came=asked["id"], error=why(error))


async def main():
    said = lines()
    how = await anext(said)
    answers = asyncio.Queue()

    async def elicit(context, params):
        tell(asked=params.message, schema=params.requested_schema)
        return ElicitResult(**await answers.get())

    if "url" in how:
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {how['token']}"})
        server = streamable_http_client(how["url"], http_client=http)
    else:
        server = StdioServerParameters(command=how["command"], args=how["args"], env=how["env"])
    async with Client(server, elicitation_callback=elicit) as client:
        tools = [tool.model_dump(by_alias=True) for tool in (await client.list_tools()).tools]
        tell(ready=client.protocol_version, name=client.server_info.name, tools=tools)
        going = set()
        async for asked in said:
            if "answer" in asked:
                answers.put_nowait(asked["answer"])
                continue
            task = asyncio.create_task(call(client, asked))
            going.add(task)
            task.add_done_callback(going.discard)


try:
    asyncio.run(main())
except Exception as error:
    tell(refused=why(error))
