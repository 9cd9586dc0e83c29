"""Responses through OpenAI's own client for Python; see lines.py."""

import asyncio

from lines import serve
from openai import AsyncOpenAI


async def ask(asked, told):
    client = AsyncOpenAI(base_url=asked["base_url"], api_key=asked["api_key"], max_retries=0)

    async def heard(event):
        if event.type == "response.created":
            told(response=event.response.id)
            told.stop = lambda: client.responses.cancel(event.response.id)
        elif event.type == "response.output_text.delta":
            told(text=event.delta, number=event.sequence_number)
        elif event.type == "response.reasoning_summary_text.delta":
            told(thinking=event.delta)
        elif event.type == "response.output_item.done" and event.item.type == "mcp_call":
            told(did=event.item.name)
        elif event.type in ("response.failed", "response.incomplete"):
            error = event.response.error
            return f"{event.response.status}: {error.message}" if error else event.response.status

    if "response" in asked:
        stream = await client.responses.retrieve(asked["response"], stream=True, starting_after=asked["number"])
        async for event in stream:
            if end := await heard(event):
                return end
        return (await client.responses.retrieve(asked["response"])).status

    inputs, previous = asked["text"], {}
    while True:
        # The helper checks each event against what it has so far.
        async with client.responses.stream(
            model="navi", input=inputs, tools=asked["tools"], extra_headers=asked["headers"], **previous
        ) as stream:
            async for event in stream:
                if end := await heard(event):
                    return end
            last = await stream.get_final_response()
        kept = await client.responses.retrieve(last.id)
        assert (kept.output_text, kept.status) == (last.output_text, last.status), kept
        inputs, previous = [], {"previous_response_id": last.id}
        for item in last.output:
            if item.type == "function_call":
                told(calls=item.name)
                inputs.append({"type": "function_call_output", "call_id": item.call_id, "output": asked["result"]})
            elif item.type == "mcp_approval_request":
                told(asked=item.arguments)
                answer = {"approval_request_id": item.id, "approve": asked["decide"] == "once"}
                inputs.append({"type": "mcp_approval_response", **answer})
        if not inputs:
            return last.status


asyncio.run(serve(ask))
