"""A conversation through the protocol's own library for Python; what came of it, as JSON lines.

Reads one line of JSON from standard input: navi, env, decide (the kind of an option), prompts.
"""

import asyncio
import json
import sys

import acp
from acp.schema import AllowedOutcome, ClientCapabilities, DeniedOutcome, RequestPermissionResponse

asked = json.loads(sys.stdin.readline())


class Editor(acp.Client):
    def __init__(self):
        self.told = []

    async def session_update(self, session_id, update, **kwargs):
        self.told.append(update.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        for option in options:
            if option.kind == asked["decide"]:
                outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=outcome)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


async def main():
    editor = Editor()
    async with acp.spawn_agent_process(editor, asked["navi"], "acp", env=asked["env"]) as (agent, _):
        can = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=ClientCapabilities())
        session = await agent.new_session(cwd="/", mcp_servers=[])
        stops = []
        for text in asked["prompts"]:
            try:
                answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(text)])
                stops.append(answer.stop_reason)
            except acp.RequestError as error:
                stops.append(str(error))
        live, editor.told = editor.told, []
        await agent.load_session(cwd="/", session_id=session.session_id, mcp_servers=[])
        listed = await agent.list_sessions()
        print(json.dumps({
            "version": can.protocol_version,
            "stops": stops,
            "live": live,
            "replay": editor.told,
            "listed": [listed.session_id for listed in listed.sessions],
            "session": session.session_id,
        }), flush=True)


asyncio.run(main())
