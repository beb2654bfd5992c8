#!/usr/bin/env bash
# natural 8.1.1 (npm), seen 2026-11-27.
# Expect: importing a library for stems and distances reads no file of the project and prints nothing. (guess: nothing, 97 %)
# Happens: the import reads `.env` of the working folder into process.env and writes five lines to standard output: its storage
# classes, which nobody asked for, call dotenv.
# Who is bitten: MCP servers over stdio (the first lines of their output are no JSON) and programs that refuse a setting on purpose,
# such as tests that must not see the keys in `.env`.
# Do: set DOTENV_CONFIG_QUIET=true and DOTENV_CONFIG_PATH to an empty file before the import, or use a stemmer alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 natural@8.1.1
for package in natural; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
echo 'NOTES_KEY=from the file' > .env
run() { node --input-type=module -e "const { default: natural } = await import('natural'); console.error(natural.PorterStemmer.stem('running'), '| NOTES_KEY:', process.env.NOTES_KEY)"; }
{
  echo "lines on standard output: $(run 2> result | wc -l); $(cat result)"
  echo "begin of the first: $(run 2> /dev/null | head -1 | sed 's/ tip.*//; s/ \/\/.*//')"
  echo "quiet, empty file: $(DOTENV_CONFIG_QUIET=true DOTENV_CONFIG_PATH=/dev/null run 2> result | wc -l); $(cat result)"
} > seen
cat seen
diff seen - <<'EXPECTED'
lines on standard output: 5; run | NOTES_KEY: from the file
begin of the first: ◇ injected env (1) from .env
quiet, empty file: 0; run | NOTES_KEY: from the file
EXPECTED
