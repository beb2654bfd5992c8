#!/bin/sh
# As the official image: root gives the folder to the user redis and goes on as that user.
set -e
[ "$1" = redis-server ] || exec "$@"
chown redis /data
exec setpriv --reuid=redis --regid=redis --clear-groups -- "$@" --protected-mode no
