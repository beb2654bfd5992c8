#!/usr/bin/env bash
# mcp 2.3.0 and 1.30.0 (PyPI), servers over stdio, seen 2026-11-27.
# Expect: what a tool raises reaches the model as text with isError, so that it can do something about it. (guess: with its reason, 90 %)
# Happens: in 1.x it does. In 2.3 the model reads "Error executing tool read", and the reason is gone, unless the exception is a
# ToolError; a wrong argument is still explained. A tool that is running when the input ends is answered "Connection closed" and stopped in
# the middle in 2.3, and without any answer in 1.30.
# Who is bitten: servers that raised ValueError("no memory with this id") and moved to 2: agents repeat the call.
# Do: raise ToolError; keep the input of a server open until the answers are there.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
for version in 1.30.0 2.3.0; do
  tools/bin/uv venv --quiet venv-$version
  tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv-$version mcp==$version
done
cat > server.py <<'PROGRAM'
import anyio
try:
    from mcp.server.mcpserver import MCPServer as Server
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.server.fastmcp.exceptions import ToolError
server = Server('notes')
@server.tool()
def read(id: str) -> str: raise ValueError(f'no memory {id}, try list')
@server.tool()
def tell(id: str) -> str: raise ToolError(f'no memory {id}, try list')
@server.tool()
async def wait() -> str: await anyio.sleep_forever()
server.run('stdio')
PROGRAM
cat > client.py <<'PROGRAM'
import json, subprocess, sys
from importlib.metadata import version
server = subprocess.Popen([sys.executable, 'server.py'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def send(**message): server.stdin.write(json.dumps({'jsonrpc': '2.0', **message}) + '\n'); server.stdin.flush()
def ask(method, **params): send(id=1, method=method, params=params); return json.loads(server.stdout.readline())['result']
ask('initialize', protocolVersion='2025-06-18', capabilities={}, clientInfo={'name': 'x', 'version': '1'})
send(method='notifications/initialized')
for tool in ('read', 'tell'):
    answer = ask('tools/call', name=tool, arguments={'id': '7'})
    print(version('mcp'), tool, '|', answer['isError'], answer['content'][0]['text'])
send(id=2, method='tools/call', params={'name': 'wait', 'arguments': {}})
server.stdin.close()
print(version('mcp'), 'end of input |', server.stdout.read().strip() or 'no answer', '| status', server.wait())
PROGRAM
for version in 1.30.0 2.3.0; do venv-$version/bin/python client.py; done > seen 2> errors
cat seen
diff seen - <<'EXPECTED'
1.30.0 read | True Error executing tool read: no memory 7, try list
1.30.0 tell | True Error executing tool tell: no memory 7, try list
1.30.0 end of input | no answer | status 0
2.3.0 read | True Error executing tool read
2.3.0 tell | True Error executing tool tell: no memory 7, try list
2.3.0 end of input | {"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Connection closed"}} | status 0
EXPECTED
