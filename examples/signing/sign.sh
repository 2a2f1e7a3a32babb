#!/usr/bin/env bash
# sign.sh METHOD PATH [BODY]    one signed request with openssl and curl
# CUSTODY_URL, CUSTODY_API_KEY, CUSTODY_KEY (PEM file of the private key)
set -euo pipefail
method=$1 path=$2 body=${3-}

base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
hash=$(printf %s "$body" | openssl dgst -sha256 -r | cut -d' ' -f1)
now=$(date +%s)
nonce=$(openssl rand -hex 16)
claims=$(printf '{"uri":"%s","nonce":"%s","iat":%d,"exp":%d,"sub":"%s","bodyHash":"%s"}' \
  "$path" "$nonce" "$now" "$((now + 25))" "$CUSTODY_API_KEY" "$hash")
input="$(printf %s '{"alg":"RS256","typ":"JWT"}' | base64url).$(printf %s "$claims" | base64url)"
token="$input.$(printf %s "$input" | openssl dgst -sha256 -sign "$CUSTODY_KEY" -binary | base64url)"

send=(--silent --show-error --fail-with-body --request "$method" --header "Authorization: Bearer $token" --header "x-api-key: $CUSTODY_API_KEY")
# Exactly the bytes that were hashed: --data-raw, and no @ or newline is changed.
if [ -n "$body" ]; then send+=(--header 'Content-Type: application/json' --data-raw "$body"); fi
curl "${send[@]}" "$CUSTODY_URL$path"
