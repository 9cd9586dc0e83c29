"""A conversation through Ollama's own client for Python; what came of it, as JSON lines.

Reads one line of JSON from standard input: host, api_key, question, tools, result.
"""

import json
import sys

from ollama import Client, ResponseError

asked = json.loads(sys.stdin.readline())
client = Client(host=asked["host"], headers={"Authorization": f"Bearer {asked['api_key']}"})
try:
    models = [model.model for model in client.list().models]
    shown = client.show(models[0])
    print(json.dumps({"models": models, "capabilities": shown.capabilities}), flush=True)
    messages = [{"role": "user", "content": asked["question"]}]
    for _ in range(3):
        told = {"text": "", "thinking": "", "calls": []}
        for part in client.chat(models[0], messages=messages, tools=asked.get("tools"), stream=True):
            told["text"] += part.message.content or ""
            told["thinking"] += part.message.thinking or ""
            told["calls"] += [call.model_dump() for call in part.message.tool_calls or []]
        print(json.dumps(told), flush=True)
        if not told["calls"]:
            break
        messages.append({"role": "assistant", "content": told["text"], "tool_calls": told["calls"]})
        for call in told["calls"]:
            name = call["function"]["name"]
            messages.append({"role": "tool", "tool_name": name, "content": asked["result"]})
except ResponseError as error:
    print(json.dumps({"error": error.error, "status": error.status_code}), flush=True)
