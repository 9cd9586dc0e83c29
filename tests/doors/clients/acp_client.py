"""An editor by the protocol's own library for Python, which starts `navi acp`; see lines.py."""

import asyncio
import json
import os
import sys
import tempfile

import acp
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
)
from lines import serve


CAN = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True))


class Editor(acp.Client):
    def __init__(self):
        self.going = {}

    async def session_update(self, session_id, update, **kwargs):
        for _, told in self.going.get(session_id, [])[:1]:
            told(update=update.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def read_text_file(self, session_id, path, **kwargs):
        _, told = self.going[session_id][0]
        told(calls="editor_read_file")
        return ReadTextFileResponse(content="snow in Kyiv")

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        asked, _ = self.going[session_id][0]
        for option in options:
            if option.kind == asked["decide"]:
                outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=outcome)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


async def main():
    editor = Editor()
    env = {**os.environ, **json.loads(sys.argv[1])}
    async with acp.spawn_agent_process(editor, os.environ["NAVI_BIN"], "acp", env=env) as (agent, _):
        can = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=CAN)
        assert can.protocol_version == 1

        async def ask(asked, told):
            session = asked.get("session")
            if not session:
                session = (await agent.new_session(cwd=tempfile.gettempdir(), mcp_servers=[])).session_id
            told(session=session)
            told.stop = lambda: agent.cancel(session_id=session)
            here = editor.going.setdefault(session, [])
            here.append((asked, told))
            if asked.get("session") and len(here) == 1:
                await agent.load_session(cwd=tempfile.gettempdir(), session_id=session, mcp_servers=[])
            answer = await agent.prompt(session_id=session, prompt=[acp.text_block(asked["text"])])
            here.pop(0)
            return answer.stop_reason

        await serve(ask)


asyncio.run(main())
