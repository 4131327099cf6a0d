"""Makes the calls of ``calls.jsonl`` over MCP (streamable HTTP). Needs the standard library alone."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any

URL = os.environ.get("SKILLHORIZON_URL", "http://world:8000/mcp")
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def post(message: dict[str, Any]) -> Any:
    request = urllib.request.Request(URL, json.dumps({"jsonrpc": "2.0", **message}).encode(), HEADERS)
    with urllib.request.urlopen(request) as answer:
        HEADERS.setdefault("mcp-session-id", answer.headers.get("mcp-session-id", ""))
        body = answer.read()
    return json.loads(body) if body else None


def main() -> int:
    client = {"name": "reference", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    post({"id": 0, "method": "initialize", "params": hello})
    HEADERS["mcp-protocol-version"] = "2025-11-25"
    post({"method": "notifications/initialized"})
    for number, line in enumerate(Path(__file__).with_name("calls.jsonl").open(encoding="utf-8"), 1):
        call = json.loads(line)
        params = {"name": call["name"], "arguments": call["arguments"]}
        observation = post({"id": number, "method": "tools/call", "params": params})["result"]["structuredContent"]
        if observation["ok"] is not call["ok"]:
            print(f"call {number} went another way: {json.dumps(observation)}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
