#!/bin/sh
# Makes what docker-compose.yml needs and no repository may hold: passwords, keys, and a certificate to try it with.
#
#   deploy/compose/prepare.sh [NAME...]
#
# NAME: host names or IPv4 addresses under which data planes reach ads, besides ads, localhost and 127.0.0.1.
# What exists is left alone, so a second run changes nothing; to renew a certificate, delete it and run this again.
set -eu
umask 077

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
environment=$root/.env
secrets=$root/deploy/compose/secrets

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

command -v openssl >/dev/null || fail "prepare.sh needs openssl: install it and run this again."
for name in "$@"; do
    case $name in
    '' | *[!A-Za-z0-9.-]*) fail "'$name' is neither a host name nor an IPv4 address." ;;
    esac
done

# value NAME: what .env has for it.
value() {
    sed -n "s/^$1=//p" "$environment"
}

# The name appears only when the content is whole.
environment_make() {
    {
        printf '%s\n' '# Made by deploy/compose/prepare.sh and read by docker compose. Keep it: PARLEY_ENCRYPTION_KEYS opens what'
        printf '%s\n' '# the database holds, and POSTGRES_PASSWORD counts only when the database is made.'
        printf 'POSTGRES_PASSWORD=%s\n' "$(openssl rand -hex 24)"
        printf 'REDIS_PASSWORD=%s\n' "$(openssl rand -hex 24)"
        printf 'PARLEY_SECRET_KEY=%s\n' "$(openssl rand -hex 32)"
        # 32 bytes in URL-safe base64; put a new key before the old one, after a comma, to rotate.
        printf 'PARLEY_ENCRYPTION_KEYS=%s\n' "$(openssl rand -base64 32 | tr '+/' '-_')"
        printf '%s\n' '# The console: user admin.'
        printf 'PARLEY_ADMIN_PASSWORD=%s\n' "$(openssl rand -hex 12)"
        printf '%s\n' '# How people reach the console. With https://, name the proxy that ends TLS in PARLEY_TRUSTED_PROXIES.'
        printf 'PARLEY_PUBLIC_URL=http://localhost:8000\n'
    } >"$environment.new"
    mv "$environment.new" "$environment"
}

# key FILE
key_make() {
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null
}

authority_make() {
    key_make "$secrets/ca/ca.key"
    openssl req -x509 -new -key "$secrets/ca/ca.key" -sha256 -days 365 -out "$secrets/ca/ca.pem" -config /dev/stdin <<END
[req]
prompt = no
distinguished_name = subject
x509_extensions = extensions
[subject]
CN = Parley trial CA
[extensions]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
END
}

# server_make ALTERNATIVE_NAMES: what ads shows its clients, for 90 days.
# Key and certificate are finished before either has its name: ads follows these files while it serves.
server_make() {
    server=$secrets/ads/server
    rm -f "$server.key.new" "$server.pem.new"
    key_make "$server.key.new"
    openssl req -new -key "$server.key.new" -subj "/CN=Parley trial server" -out "$server.csr"
    openssl x509 -req -in "$server.csr" -CA "$secrets/ca/ca.pem" -CAkey "$secrets/ca/ca.key" \
        -set_serial "0x$(openssl rand -hex 16)" -sha256 -days 90 -out "$server.pem.new" -extfile /dev/stdin 2>/dev/null <<END
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = $1
authorityKeyIdentifier = keyid
END
    rm "$server.csr"
    chmod 444 "$server.key.new" "$server.pem.new"
    mv -f "$server.key.new" "$server.key"
    mv -f "$server.pem.new" "$server.pem"
}

server_names() {
    printf 'DNS:ads, DNS:localhost, IP:127.0.0.1'
    for name in "$@"; do
        case $name in
        *[!0-9.]*) printf ', DNS:%s' "$name" ;;
        *) printf ', IP:%s' "$name" ;;
        esac
    done
}

made=''
if [ ! -e "$environment" ]; then
    environment_make
    made="$made .env"
fi

# Containers run as users that do not exist here, so what is mounted must be readable to everybody; this folder is not.
mkdir -p "$secrets"
chmod 700 "$secrets"
mkdir -p "$secrets/ads" "$secrets/ca" "$secrets/client"
chmod 755 "$secrets/ads"

if [ ! -e "$secrets/redis.conf" ]; then
    password=$(value REDIS_PASSWORD)
    [ -n "$password" ] || fail "$environment has no REDIS_PASSWORD: add one, or delete the file and run this again."
    printf 'requirepass %s\n' "$password" >"$secrets/redis.conf.new"
    chmod 444 "$secrets/redis.conf.new"
    mv "$secrets/redis.conf.new" "$secrets/redis.conf"
    made="$made redis.conf"
fi

if [ ! -e "$secrets/ca/ca.pem" ]; then
    authority_make
    made="$made ca"
fi
if [ ! -e "$secrets/ads/server.pem" ]; then
    server_make "$(server_names "$@")"
    made="$made server"
fi
if [ ! -e "$secrets/client/server-ca.pem" ]; then
    cp "$secrets/ca/ca.pem" "$secrets/client/server-ca.pem"
    made="$made client"
fi

printf 'Made:%s\n' "${made:- nothing, everything was there}"
printf '  password of admin    PARLEY_ADMIN_PASSWORD in %s\n' "$environment"
printf '  what clients trust   %s\n' "$secrets/client/server-ca.pem"
printf 'Next: docker compose up --detach --build --wait\n'
