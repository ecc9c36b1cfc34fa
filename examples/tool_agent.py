"""Lists the tools that clove lets it call, and calls one, over MCP without a library.

    sudo clove run --grant 'tool:*' examples/tool_agent.py
"""

import json
import os
import urllib.request

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "tool_agent", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(method, **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    request = urllib.request.Request(os.environ["CLOVE_MCP_URL"], json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    for line in text.splitlines():  # a stream of events, or one value
        if line.startswith("data: "):
            text = line.removeprefix("data: ")
    return json.loads(text)["result"]


names = sorted(tool["name"] for tool in call("tools/list")["tools"])
print(*(name for name in names if not name.startswith("clove_")))
result = call("tools/call", name="grep", arguments={"pattern": "localhost$", "path": "/etc/hosts"})
print(result["content"][0]["text"].strip())
