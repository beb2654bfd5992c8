#!/bin/bash
# What the official image documents: an empty PGDATA gets a database of POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB,
# made by a server that listens on its socket only; then the server proper starts.
set -euo pipefail
[ "$1" = postgres ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
  install -d -o postgres -g postgres -m 3775 /var/run/postgresql
  install -d -o postgres -g postgres -m 700 "$PGDATA"
  exec gosu postgres "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile=<(echo "$POSTGRES_PASSWORD")
  printf '\nhost all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"
  pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
  createdb --username="$POSTGRES_USER" --maintenance-db=postgres "$POSTGRES_DB"
  pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@"
