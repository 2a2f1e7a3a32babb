#!/bin/sh
# A signed request with curl and openssl.
#   CUSTODY_URL=http://127.0.0.1:8080 CUSTODY_API_KEY=… CUSTODY_KEY=my-key.pem sh custody.sh GET '/dac/v1/wallets?asset=ETH'
#   … sh custody.sh POST /dac/v1/create-wallet '{"asset":"ETH"}'
set -eu
method=$1 path=$2 body=${3-}

base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }

now=$(date +%s)
# The hash of exactly the bytes that are sent.
hash=$(printf '%s' "$body" | openssl dgst -sha256 -r | cut -d' ' -f1)
header=$(printf '{"alg":"RS256","typ":"JWT"}' | base64url)
claims=$(printf '{"uri":"%s","method":"%s","nonce":"%s","iat":%s,"exp":%s,"sub":"%s","bodyHash":"%s"}' \
  "$path" "$method" "$(openssl rand -hex 16)" "$now" "$((now + 25))" "$CUSTODY_API_KEY" "$hash" | base64url)
signature=$(printf '%s' "$header.$claims" | openssl dgst -sha256 -sign "$CUSTODY_KEY" -binary | base64url)

headers=$(mktemp)
trap 'rm -f "$headers"' EXIT
set -- --silent --show-error --fail-with-body --max-time 30 --request "$method" --dump-header "$headers" \
  --header "Authorization: Bearer $header.$claims.$signature" --header "x-api-key: $CUSTODY_API_KEY"
if [ -n "$body" ]; then set -- "$@" --header 'Content-Type: application/json' --data-binary "$body"; fi
curl "$@" "$CUSTODY_URL$path"
# The answer is that of an earlier request: stop, or a payment that was not made is taken for made.
if grep -qi '^warning:.*299 custody ' "$headers"; then
  echo 'sequence_id: was used before with another payload; nothing was created for this request' >&2
  exit 2
fi
