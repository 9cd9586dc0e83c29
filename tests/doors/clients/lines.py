"""How the tests speak with the clients for Python: a line of JSON in for each thing that is asked,
with an `id` of its own, and lines out with what is told of it, the last one as `end`. A line
`{"stop": id}` stops it in the client's own way.
"""

import asyncio
import json
import sys


class Told:
    def __init__(self, id):
        self.id = id
        self.stop = None

    def __call__(self, **line):
        print(json.dumps({"id": self.id, **line}), flush=True)


async def lines():
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        yield json.loads(line)


async def serve(ask):
    """Has `ask(asked, told)` answer each line, until standard input ends."""

    async def answer(asked, told):
        try:
            told(end=await ask(asked, told))
        except (Exception, asyncio.CancelledError) as error:
            # What the client makes of it is what is asked about.
            told(end=f"{type(error).__name__}: {error}")

    going = {}
    async for asked in lines():
        if "stop" in asked:
            told, task = going[asked["stop"]]
            await told.stop() if told.stop else task.cancel()
        else:
            told = Told(asked.pop("id"))
            going[told.id] = told, asyncio.create_task(answer(asked, told))
