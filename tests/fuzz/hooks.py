"""What the fuzzer cannot know from the document: names of what there is, and which refusals are right.

A refusal that is let pass stands in ``RIGHTLY_REFUSED``, with its reason.
"""

import gc
import os
import re

import schemathesis
from hypothesis.internal.intervalsets import IntervalSet
from hypothesis.strategies._internal import regex
from schemathesis.openapi.checks import IgnoredAuth, RejectedPositiveData

# A fifth of the time would go into looking through all that is kept, again and again.
gc.set_threshold(100_000)

NAMES = {"model": "navi", "profile_id": "secretary", "command": "false"}
"""What a body may name, and one of each that there is: with any other name it gets no further."""

MODEL = "fake:latest"
"""The model that a session may have."""

SERVER = os.environ["NAVI_TEST_MODEL"]
"""Where a model server is: no other address is asked for anything."""

RIGHTLY_REFUSED = [
    ("PUT /agents/profiles/{id}/file", "", "a profile is TOML, which no schema of a text describes"),
    ("/mcp/{name}", "give either", "a server is a program or an address, and fields of both may be there"),
    ("/mcp/{name}", "field `url`", "what an address is no pattern says"),
    ("/mcp/{name}", "needs a value", "nor which values there were"),
    ("/mcp/{name}", "it needs the environment variable", "nor which variables there are"),
    ("/mcp/{name}", "a name must have", "nor what the names of variables are made of"),
    ("/mcp/{name}", "NUL character", "nor that programs are given no NUL"),
    ("/mcp/{name}", "is not known", "nor what [hidden] stood for"),
    ("/mcp/{name}", "bytes", "lengths count characters"),
    ("/mcp/{name}", "there are more than", "nor does any schema count the servers of a file"),
    ("PATCH /api/settings", " should be ", "each setting takes something else, in a text"),
    ("POST /sessions/import", "a result must name a call", "no schema compares two messages"),
    ("POST /sessions/import", "have the same id", "nor two calls by a part of them"),
    ("/messages", "is attached twice", "nor two files"),
    ("/api/account/", "by no token", "no schema says that a program asks"),
    ("/leave", "is yours", "nor whose a conversation is"),
    ("/workspace", " bytes, and ", "lengths count characters, and paths are limited in bytes"),
    ("/files", "Error during field parsing", "the name of a part is sent in bytes that no header has"),
    ("/v1/chat/completions", "messages must end with", "no schema says what the last of a list is"),
    ("/v1/chat/completions", "the message is empty", "nor what the last one has"),
    ("/v1/chat/completions", "NUL character", "nor what the others may have"),
    ("/v1/chat/completions", "came before with another question", "nor two requests with one key"),
    ("/v1/chat/completions", "a result must name a call", "no schema compares two messages"),
    ("/v1/chat/completions", "have the same id", "nor two calls by a part of them"),
    ("/v1/chat/completions", "demanded", "no schema makes the model say what it should"),
    ("/api/chat", "demanded", "nor here"),
    ("/api/generate", "demanded", "nor here"),
    ("/v1/responses", "demanded", "nor here"),
    ("/v1/chat/completions", "in tools has this name", "no schema compares two names"),
    ("/v1/responses", "in tools has this name", "no schema compares two names"),
    ("/v1/responses", "messages must end with", "no schema says what the last of a list is"),
    ("/v1/responses", "the message is empty", "nor what the last one has"),
    ("/v1/responses", "NUL character", "nor what the others may have"),
    ("/v1/responses", "came before with another question", "nor two requests with one key"),
    ("/v1/responses", "a result must name a call", "no schema compares two messages"),
    ("/v1/responses", "have the same id", "nor two calls by a part of them"),
    ("/v1/responses", "are answered for one run at a time", "nor two answers"),
    ("/v1/responses", "conversation must have", "its id and a word of the program's own have one limit"),
    ("/v1/chat/completions", "images and the limit is", "nor how many parts of a list are images"),
    ("/v1/responses", "images and the limit is", "nor how many parts of a list are images"),
    ("/api/chat", "messages must end with", "no schema says what the last of a list is"),
    ("/api/chat", "a result must name a call", "no schema compares two messages"),
    ("/api/chat", "the message is empty", "nor what the last one has"),
    ("/api/chat", "NUL character", "nor what the others may have"),
    ("/api/chat", "came before with another question", "nor two requests with one key"),
    ("/api/chat", "have the same id", "nor two calls by a part of them"),
    ("/api/generate", "the message is empty", "with images a prompt may be blank, without them not"),
    ("/api/generate", "NUL character", "a small task may have one, a message not"),
    ("/api/generate", "came before with another question", "no schema compares two requests with one key"),
]
"""A part of the operation's name, one of what its error says, and why the schema lets it pass."""


class Runs(regex.CharactersBuilder):
    """Hypothesis' classes of characters, kept as ranges.

    Of those that nobody sees there are 143,000: one by one they take seconds for each pattern.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self._runs = []
        self._is_plain = not self._flags & re.IGNORECASE

    def add_char(self, c):
        if not self._is_plain or len(c) != 1:
            super().add_char(c)
        elif self._runs and self._runs[-1][1] + 1 == ord(c):
            self._runs[-1][1] += 1
        else:
            self._runs.append([ord(c), ord(c)])

    @property
    def strategy(self):
        runs = IntervalSet(sorted(self._runs))
        self._intervals |= runs.union(runs)
        return super().strategy


regex.CharactersBuilder = Runs


@schemathesis.hook
def before_call(context, case, kwargs):
    """Has a request name what there is, where it names anything."""
    if isinstance(case.body, dict):
        for field, name in NAMES.items():
            if isinstance(case.body.get(field), str):
                case.body[field] = name
        address = case.body.get("base_url")
        if isinstance(address, str) and 0 < len(address) <= 2048:
            case.body["base_url"] = SERVER
        if "/mcp/" in case.operation.label and str(case.body.get("url")).startswith("http"):
            case.body["url"] = SERVER
        if "/sessions" in case.operation.label and isinstance(case.body.get("model"), str):
            case.body["model"] = MODEL


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Whether it is a failure at all."""
    if isinstance(failure, IgnoredAuth):
        # Who sends many wrong tokens is told to wait, and is refused as well.
        return "got `429 " not in failure.message
    if not isinstance(failure, RejectedPositiveData):
        return True
    # What one operation told is tried in another's path, whatever the document lets stand there.
    path = case.operation.path_parameters.get_strict_validator()
    if not path.is_valid(case.path_parameters):
        return False
    operation, said = case.operation.label, response.text
    return not any(where in operation and words in said for where, words, _ in RIGHTLY_REFUSED)
