"""A conversation through OpenAI's own client for Python; what came of each turn, as JSON lines.

Reads one line of JSON from standard input: base_url, api_key, session, turns. A turn is a message,
or the text of a tool's result, which goes with the call before it.
"""

import json
import sys

from openai import OpenAI

asked = json.loads(sys.stdin.readline())
client = OpenAI(base_url=asked["base_url"], api_key=asked["api_key"], max_retries=2)
messages = []
for turn in asked["turns"]:
    if "result" in turn:
        call = messages[-1]["tool_calls"][0]
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": turn["result"]})
    else:
        messages.append({"role": "user", "content": turn["text"]})
    told = {"text": "", "thinking": "", "calls": [], "finish": None, "usage": None, "error": None}
    try:
        stream = client.chat.completions.create(
            model="navi",
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            tools=asked.get("tools") or [],
            extra_headers=asked.get("headers") or {},
        )
        for chunk in stream:
            if chunk.usage:
                told["usage"] = chunk.usage.total_tokens
            if not chunk.choices:
                continue
            # As the examples of the client's own documentation do it.
            choice = chunk.choices[0]
            told["text"] += choice.delta.content or ""
            told["thinking"] += getattr(choice.delta, "reasoning_content", None) or ""
            for call in choice.delta.tool_calls or []:
                function = {"name": call.function.name, "arguments": call.function.arguments}
                told["calls"].append({"id": call.id, "type": "function", "function": function})
            told["finish"] = choice.finish_reason or told["finish"]
    except Exception as error:  # what the client makes of it is what is asked about
        told["error"] = f"{type(error).__name__}: {error}"
    answer = {"role": "assistant", "content": told["text"]}
    if told["calls"]:
        answer["tool_calls"] = told["calls"]
    messages.append(answer)
    print(json.dumps(told), flush=True)
