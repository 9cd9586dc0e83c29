"""Chat Completions through OpenAI's own client for Python; see lines.py."""

import asyncio

from lines import serve
from openai import AsyncOpenAI


async def ask(asked, told):
    client = AsyncOpenAI(base_url=asked["base_url"], api_key=asked["api_key"], max_retries=0)
    messages = [{"role": "user", "content": asked["text"]}]
    while True:
        said, calls, finish = "", [], None
        stream = await client.chat.completions.create(
            model="navi",
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            tools=asked["tools"],
            extra_headers=asked["headers"],
        )
        async with stream:
            async for chunk in stream:
                for doing in [(chunk.model_extra or {}).get("event")]:
                    if doing:
                        told(did=doing["data"]["description"])
                if not chunk.choices:
                    continue
                # As the examples of the client's own documentation do it.
                choice = chunk.choices[0]
                said += choice.delta.content or ""
                told(text=choice.delta.content, thinking=getattr(choice.delta, "reasoning_content", None))
                for call in choice.delta.tool_calls or []:
                    told(calls=call.function.name)
                    function = {"name": call.function.name, "arguments": call.function.arguments}
                    calls.append({"id": call.id, "type": "function", "function": function})
                finish = choice.finish_reason or finish
        if not calls:
            return finish
        messages.append({"role": "assistant", "content": said, "tool_calls": calls})
        for call in calls:
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": asked["result"]})


asyncio.run(serve(ask))
