#!/bin/sh
# Starts a rank in its container; the agent stays outside.
exec enroot start --rw --mount '/shared/my sweeps/r.db.spool/a0001-0badcafe:/shared/my sweeps/r.db.spool/a0001-0badcafe' --mount /dev/shm:/dev/shm torch /opt/sweep/bin/sweep-rank "$@"
