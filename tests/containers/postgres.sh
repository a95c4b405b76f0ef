# Starts PostgreSQL with the user and the database that the environment names.
set -eu
bin=$(echo /usr/lib/postgresql/*/bin)
data=/var/lib/postgresql/data
if [ ! -s "$data/PG_VERSION" ]; then
    "$bin/initdb" -D "$data" --auth=trust > /dev/null
    echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"
    "$bin/postgres" --single -D "$data" postgres > /dev/null << SQL
CREATE ROLE $POSTGRES_USER LOGIN PASSWORD '$POSTGRES_PASSWORD'
CREATE DATABASE $POSTGRES_DB OWNER $POSTGRES_USER
SQL
fi
exec "$bin/postgres" -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp
