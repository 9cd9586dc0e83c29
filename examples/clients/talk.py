#!/usr/bin/env python3
"""Talks with Navi in a session, with nothing but Python.

    NAVI_TOKEN=… python3 talk.py "What is on my desk?" [SESSION]

The token is what `navi token add NAME` prints. The answer is printed as it comes. Where Navi asks
whether she may do something, answer y or n; Ctrl-C stops her.
"""

import json
import os
import sys
import threading
import urllib.error
import urllib.request

URL = os.environ.get("NAVI_URL", "http://127.0.0.1:8000")
TOKEN = os.environ["NAVI_TOKEN"]


def request(method, path, body=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(URL + path, data, headers, method=method))


def told(response):
    """What happens in the session from here on, one event after the other."""
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def follow(session, response):
    """Prints the answer, and asks about what has to be allowed, until the run ends."""
    for event in told(response):
        kind, is_child = event["type"], "parent_run_id" in event
        if kind == "stream_delta" and not is_child:
            print(event["delta"], end="", flush=True)
        elif kind == "approval_requested":
            print(f"\nMay Navi {event['request']['summary']}? [y/n]", file=sys.stderr, flush=True)
            decision = "allow" if sys.stdin.readline().strip() == "y" else "deny"
            request("POST", f"/sessions/{session}/approvals/{event['approval_id']}", {"decision": decision})
        elif kind in ("stream_end", "stream_stopped", "run_interrupted") and not is_child:
            print()
            return
        elif kind == "error" and not event["recoverable"]:
            return


def talk(text, session=None):
    session = session or json.load(request("POST", "/sessions", {}))["session_id"]
    print(f"session {session}", file=sys.stderr, flush=True)
    events = request("GET", f"/sessions/{session}/events")
    follower = threading.Thread(target=follow, args=(session, events), daemon=True)
    follower.start()
    try:
        # Answers when the run is done; what comes meanwhile, the events tell.
        request("POST", f"/sessions/{session}/messages", {"content": text, "consent": "ask"})
        follower.join()
    except KeyboardInterrupt:
        request("POST", f"/sessions/{session}/stop")
        print("\nstopped", file=sys.stderr)
        sys.exit(130)


try:
    talk(*sys.argv[1:])
except urllib.error.HTTPError as refused:
    sys.exit(json.load(refused)["message"])
