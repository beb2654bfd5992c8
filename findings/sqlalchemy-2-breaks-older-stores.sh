#!/usr/bin/env bash
# vecs 0.4.5 and langchain-postgres 0.0.13 (PyPI) with sqlalchemy 2.1.9, which pip chooses for both, and with 2.0.58, seen 2026-11-28.
# Expect: a fresh install of a released version opens a table as its README says, since the package says which SQLAlchemy it takes.
# (no guess was written down before)
# Happens: SQLAlchemy 2.1 reads `postgresql://` as psycopg 3, and vecs installs psycopg2: the address of vecs' own README fails. It installs
# no greenlet any more, without which `import langchain_postgres` fails; 0.0.19 requires sqlalchemy[asyncio].
# Who is bitten: fresh containers and CI of applications without a lock file; running ones are not.
# Do: sqlalchemy<2.1 beside them, or `postgresql+psycopg2://` for vecs and sqlalchemy[asyncio] for the other.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --target tools uv==0.13.8
cat > program.py <<'PROGRAM'
from importlib.metadata import version
print('sqlalchemy', version('sqlalchemy'))
def attempt(label, work):
    try: print(label, work())
    except ImportError as error: print(label, type(error).__name__, 'psycopg' in str(error), 'greenlet' in str(error))
def langchain():
    from langchain_postgres import PGVector
    return PGVector.__name__
def vecs(address):
    from sqlalchemy import create_engine
    import vecs
    made = []
    # Where vecs would connect; nothing listens there.
    vecs.client.create_engine = lambda *a, **k: made.append(create_engine(*a, **k)) or made[0]
    try: vecs.create_client(address)
    except ImportError: raise
    except Exception: pass
    return made[0].driver
attempt('langchain-postgres', langchain)
attempt('vecs postgresql://', lambda: vecs('postgresql://u:p@127.0.0.1:9/db'))
attempt('vecs postgresql+psycopg2://', lambda: vecs('postgresql+psycopg2://u:p@127.0.0.1:9/db'))
PROGRAM
for sqlalchemy in 2.1.9 2.0.58; do
  tools/bin/uv venv --quiet "venv$sqlalchemy"
  # langchain-postgres installs psycopg 3, so each has its own.
  tools/bin/uv pip install --quiet --system-certs --exclude-newer 2026-11-28 --python "venv$sqlalchemy" vecs==0.4.5 "sqlalchemy==$sqlalchemy"
  "venv$sqlalchemy/bin/python" program.py | grep -v langchain
  tools/bin/uv venv --quiet "other$sqlalchemy"
  tools/bin/uv pip install --quiet --system-certs --only-binary :all: --exclude-newer 2026-11-28 --python "other$sqlalchemy" langchain-postgres==0.0.13 'psycopg[binary]==3.3.9' "sqlalchemy==$sqlalchemy"
  "other$sqlalchemy/bin/python" program.py | grep langchain
done > seen
cat seen
diff seen - <<'EXPECTED'
sqlalchemy 2.1.9
vecs postgresql:// ModuleNotFoundError True False
vecs postgresql+psycopg2:// psycopg2
langchain-postgres ImportError False True
sqlalchemy 2.0.58
vecs postgresql:// psycopg2
vecs postgresql+psycopg2:// psycopg2
langchain-postgres PGVector
EXPECTED
