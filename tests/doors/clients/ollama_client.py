"""Ollama's API through Ollama's own client for Python; see lines.py."""

import asyncio

from lines import serve
from ollama import AsyncClient


async def ask(asked, told):
    client = AsyncClient(host=asked["host"], headers={"Authorization": f"Bearer {asked['api_key']}", **asked["headers"]})
    model = (await client.list()).models[0].model
    told(model=model, can=(await client.show(model)).capabilities)
    messages = [{"role": "user", "content": asked["text"]}]
    while True:
        said, calls, why = "", [], None
        async for part in await client.chat(model, messages=messages, tools=asked["tools"], stream=True):
            said += part.message.content or ""
            told(text=part.message.content, thinking=part.message.thinking)
            calls += [call.model_dump() for call in part.message.tool_calls or []]
            why = part.done_reason or why
        if not calls:
            return why
        messages.append({"role": "assistant", "content": said, "tool_calls": calls})
        for call in calls:
            name = call["function"]["name"]
            told(calls=name)
            messages.append({"role": "tool", "tool_name": name, "content": asked["result"]})


asyncio.run(serve(ask))
