#!/bin/sh
# Run once by the image of PostgreSQL, when its folder is empty.
set -eu
psql --username "$POSTGRES_USER" --dbname postgres --set ON_ERROR_STOP=1 --set password="$POSTERN_PASSWORD" <<'SQL'
create role postern login password :'password';
create database postern owner postern;
SQL
