"""Responses through OpenAI's own client for Python; what came of each, as JSON lines.

Reads one line of JSON from standard input: base_url, api_key, turns. A turn is the input of a
response that goes on from the one before, unless it is to begin anew.
"""

import json
import sys

from openai import OpenAI

asked = json.loads(sys.stdin.readline())
client = OpenAI(base_url=asked["base_url"], api_key=asked["api_key"], max_retries=2)
previous = None
for turn in asked["turns"]:
    told = {"text": "", "thinking": "", "output": [], "status": None, "usage": None, "error": None}
    inputs = turn["input"]
    for item in inputs if isinstance(inputs, list) else []:
        # What a turn before was handed, by its place in the output.
        for key in ("call_id", "approval_request_id"):
            if isinstance(item.get(key), int):
                handed = last.output[item[key]]
                item[key] = handed.call_id if key == "call_id" else handed.id
    try:
        # The helper checks each event against what it has so far.
        with client.responses.stream(
            model="navi",
            input=inputs,
            tools=asked.get("tools") or [],
            **({"previous_response_id": previous} if previous else {}),
        ) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    told["text"] += event.delta
                elif event.type == "response.reasoning_summary_text.delta":
                    told["thinking"] += event.delta
                elif event.type == "response.failed":
                    told["error"] = event.response.error.message
                    told["status"] = event.response.status
            if not told["error"]:
                last = stream.get_final_response()
                previous = last.id
                told["output"] = [json.loads(item.model_dump_json()) for item in last.output]
                told["status"] = last.status
                told["usage"] = last.usage.total_tokens
                kept = client.responses.retrieve(last.id)
                told["kept"] = kept.output_text == last.output_text and kept.status == last.status
    except Exception as error:  # what the client makes of it is what is asked about
        told["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(told), flush=True)
