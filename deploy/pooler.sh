#!/bin/sh
# Starts PgBouncer in transaction mode in front of the one database `postern`. From the environment: DATABASE_PASSWORD, DATABASE_HOST,
# DATABASE_PORT, DATABASE_CONNECTIONS (what PostgreSQL sees) and POOLER_CLIENTS (connections of all processes).
set -eu
: "${DATABASE_PASSWORD:?the password of the role postern}"
umask 077
cat >/tmp/pgbouncer.ini <<INI
[databases]
postern = host=${DATABASE_HOST:-database} port=${DATABASE_PORT:-5432}
[pgbouncer]
listen_addr = *
listen_port = ${POOLER_PORT:-6432}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = /tmp/users.txt
pool_mode = transaction
default_pool_size = ${DATABASE_CONNECTIONS:-50}
max_client_conn = ${POOLER_CLIENTS:-1000}
INI
# Between double quotes one of its own is written twice.
printf '"postern" "%s"\n' "$(printf %s "$DATABASE_PASSWORD" | sed 's/"/""/g')" >/tmp/users.txt
exec pgbouncer /tmp/pgbouncer.ini
