#!/bin/sh
# Creates the database and its two roles. PostgreSQL's image runs this once, on an empty volume. For an existing volume:
# docs/production/database.md#roles. The owner applies the migrations; the platform's processes connect as custody_app.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\set owner_password `cat /run/secrets/postgres_owner_password`
\set app_password `cat /run/secrets/postgres_app_password`
create role custody_owner login nosuperuser nocreatedb nocreaterole password :'owner_password';
create role custody_app login nosuperuser nocreatedb nocreaterole password :'app_password';
create database custody owner custody_owner;
SQL
