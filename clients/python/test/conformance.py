"""Plays the conformance set (clients/conformance) with the sync and the async client. CONFORMANCE_URL is the recording
server. Prints what failed, and last one line: {"cases","passed","failed"}."""

import asyncio
import base64
import inspect
import json
import os
import platform
import sys
import traceback
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import postern_mail as library  # noqa: E402

URL = os.environ["CONFORMANCE_URL"]
OPERATIONS = json.loads((HERE.parents[1] / "conformance" / "operations.json").read_text())
KEY = "svc_test_conformance"
BACKOFF_S_MAX = 8
VERSION = platform.python_version().replace(".", "-")


def fetch(path):
    with urllib.request.urlopen(URL + path) as answer:
        return json.load(answer)


def client_of(kind, given, base, waits):
    for name in ("POSTERN_API_KEY", "POSTERN_BASE_URL"):
        os.environ.pop(name, None)
    for name, value in given.get("env", {}).items():
        os.environ[name] = value.replace("$base", base)
    settings = {}
    if given.get("api_key", KEY) is not None:
        settings["api_key"] = given.get("api_key", KEY)
    if given.get("base_url", "$base") is not None:
        settings["base_url"] = given.get("base_url", "$base").replace("$base", base)
    if "timeout_ms" in given:
        settings["timeout"] = given["timeout_ms"] / 1000
    for name in ("max_retries", "headers"):
        if name in given:
            settings[name] = given[name]
    if kind is library.Postern:
        return kind(**settings, _sleep=waits.append)

    async def sleep(seconds):
        waits.append(seconds)

    return kind(**settings, _sleep=sleep)


def perform(client, call):
    """The call's result, or what is to be awaited for it."""
    if "request" in call:
        asked = dict(call["request"])
        return client.request(asked.pop("method"), asked.pop("path"), **asked)
    place = OPERATIONS[call["op"]]
    target = client
    for name in place["resource"]:
        target = getattr(target, name)
    values = [call["path"][name] for name in place["path"]]
    named = {}
    if place["input"] == "bytes":
        values.append(base64.b64decode(call["bytes_base64"]))
    elif place["input"] == "json" and "input" in call:
        values.append(call["input"])
    elif place["input"] == "query":
        named = {
            name + "_" if name == "from" else name: value for name, value in call.get("input", {}).items()
        }
    if "options" in call:
        named["options"] = call["options"]
    return getattr(target, place["method"])(*values, **named)


async def settled(value):
    return await value if inspect.isawaitable(value) and not hasattr(value, "__aiter__") else value


async def result_of(client, one):
    call, outcome = one["call"], one["outcome"]
    if "twice" in call:
        await settled(perform(client, call["twice"]))
        call = call["twice"]
    result = await settled(perform(client, call))
    if "op" in call and OPERATIONS[call["op"]]["page"]:
        return await listed(result, outcome, call.get("take"))
    if OPERATIONS.get(call.get("op"), {}).get("answer") == "bytes":
        content = await settled(result.read())
        return {"return_base64": base64.b64encode(content).decode()}
    meta = library.response_of(result)
    response = meta and {
        "status": meta.status,
        "request_id": meta.request_id,
        "rate_limit": meta.rate_limit and vars(meta.rate_limit),
    }
    return {"return": result, "response": response}


async def listed(result, outcome, take):
    if "page" in outcome:
        page = await result if inspect.isawaitable(result) else result
        return {"page": {"items": page.items, "total": page.total, "has_more": page.has_more}}
    items = []
    if hasattr(result, "__aiter__"):
        async for item in result:
            items.append(item)
            if len(items) == take:
                break
    else:
        for item in result:
            items.append(item)
            if len(items) == take:
                break
    return {"items": items}


async def play(kind, one, base):
    waits = []
    try:
        if "verify" in one["call"]:
            asked = dict(one["call"]["verify"])
            body = base64.b64decode(asked.pop("body_base64"))
            return {
                "event": library.webhooks.verify(body, asked.pop("header"), asked.pop("secrets"), **asked)
            }, waits
        return await result_of(client_of(kind, one.get("client", {}), base, waits), one), waits
    except Exception as raised:  # noqa: BLE001 - whatever it is, the case says whether it was to be raised
        return {"raised": raised}, waits


def check(one, got, waits):
    outcome = one["outcome"]
    raised = got.get("raised")
    if "raise" in outcome:
        assert raised is not None, f"nothing was raised: {got}"
        assert type(raised).__name__ == outcome["raise"]["class"], "".join(traceback.format_exception(raised))
        for name, value in outcome["raise"].items():
            if name != "class":
                shown = str(raised) if name == "message" else getattr(raised, name)
                assert shown == value, f"{name} is {shown!r}"
        shown = "".join(traceback.format_exception(raised)) + repr(raised) + repr(vars(raised))
        assert KEY not in shown, "the error shows the key"
    elif raised is not None:
        raise raised
    else:
        for name, value in outcome.items():
            assert got.get(name) == value, f"{name} is {got.get(name)!r}"
    if "waits" in one:
        assert len(waits) == len(one["waits"]), f"waits {waits}"
        for wait, wanted in zip(waits, one["waits"]):
            assert 0 < wait <= BACKOFF_S_MAX if wanted == "backoff" else wait == wanted, f"waits {waits}"


async def main():
    cases = fetch("/cases")
    failed = 0
    for name, kind in (("sync", library.Postern), ("async", library.AsyncPostern)):
        for index, one in enumerate(cases):
            place = f"python-{VERSION}-{name}/{index}"
            try:
                check(one, *await play(kind, one, f"{URL}/case/{place}"))
                if "verify" not in one["call"]:
                    problems = fetch(f"/verdict/{place}")["problems"]
                    assert problems == [], problems
            except Exception as error:  # noqa: BLE001
                failed += 1
                print(f"✖ {name}: {one['name']}: {type(error).__name__} {error}")
    total = 2 * len(cases)
    print(json.dumps({"cases": total, "passed": total - failed, "failed": failed}))
    sys.exit(1 if failed else 0)


asyncio.run(main())
