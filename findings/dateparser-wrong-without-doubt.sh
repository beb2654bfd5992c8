#!/usr/bin/env bash
# dateparser 1.5.0 (PyPI), seen 2026-11-27. The day is Friday, 27 November 2026, 12:00.
# Expect: what it does not understand is None, as for "end of month". (guess: None or right, 65 %)
# Happens: German "heute morgen" (this morning) is tomorrow, "tomorrow at 5" keeps the hour of now, "3 days" is in the past,
# "Q3 2025" is the 27th of August, and 2025-13-01 is the 13th of January.
# Who is bitten: filters by time that people or models write in words.
# Do: name the languages, set STRICT_PARSING, and show the day that was understood.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
tools/bin/uv venv --quiet venv
tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python venv dateparser==1.5.0
venv/bin/python - > seen <<'PROGRAM'
import datetime, warnings
warnings.simplefilter('ignore')
import dateparser
from importlib.metadata import version
now = datetime.datetime(2026, 11, 27, 12)
print('dateparser', version('dateparser'))
for text, languages in (('heute morgen', ['de']), ('tomorrow at 5', ['en']), ('3 days', ['en']), ('Q3 2025', ['en']), ('2025-13-01', ['en']), ('end of month', ['en']), ('am Montag', ['de'])):
    print(text, languages[0], '->', dateparser.parse(text, languages=languages, settings={'RELATIVE_BASE': now}))
PROGRAM
cat seen
diff seen - <<'EXPECTED'
dateparser 1.5.0
heute morgen de -> 2026-11-28 12:00:00
tomorrow at 5 en -> 2026-11-28 12:00:00
3 days en -> 2026-11-24 12:00:00
Q3 2025 en -> 2025-08-27 00:00:00
2025-13-01 en -> 2025-01-13 00:00:00
end of month en -> None
am Montag de -> None
EXPECTED
