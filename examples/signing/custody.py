"""A signed request. Needs PyJWT and cryptography (pip install pyjwt cryptography).

    CUSTODY_URL=http://127.0.0.1:8080 CUSTODY_API_KEY=… CUSTODY_KEY=my-key.pem python3 custody.py GET '/dac/v1/wallets?asset=ETH'
    … python3 custody.py POST /dac/v1/create-wallet '{"asset":"ETH"}'
"""
import hashlib
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

import jwt

TIMEOUT_S = 30


class IdempotencyMismatch(Exception):
    """The sequence_id was used before with another payload: nothing was created for this request.

    The text of the earlier request's answer is `answer`.
    """

    def __init__(self, answer: str) -> None:
        super().__init__("sequence_id: was used before with another payload; nothing was created for this request")
        self.answer = answer


def request(method: str, path: str, body: str = "") -> tuple[int, str]:
    """Status and text of the answer. Read amounts with json.loads(text, parse_float=decimal.Decimal)."""
    data = body.encode()
    now = int(time.time())
    with open(os.environ["CUSTODY_KEY"], encoding="ascii") as file:
        key = file.read()
    token = jwt.encode(
        {
            "uri": path,
            "method": method,
            "nonce": str(uuid.uuid4()),
            "iat": now,
            "exp": now + 25,
            "sub": os.environ["CUSTODY_API_KEY"],
            # The hash of exactly the bytes that are sent.
            "bodyHash": hashlib.sha256(data).hexdigest(),
        },
        key,
        algorithm="RS256",
    )
    headers = {"Authorization": f"Bearer {token}", "x-api-key": os.environ["CUSTODY_API_KEY"]}
    if body:
        headers["Content-Type"] = "application/json"
    call = urllib.request.Request(os.environ["CUSTODY_URL"] + path, data=data if body else None, headers=headers, method=method)
    try:
        with urllib.request.urlopen(call, timeout=TIMEOUT_S) as answer:
            text = answer.read().decode()
            if "299 custody " in (answer.headers["warning"] or ""):
                raise IdempotencyMismatch(text)
            return answer.status, text
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


if __name__ == "__main__":
    try:
        status, text = request(*sys.argv[1:])
    except IdempotencyMismatch as mismatch:
        print(mismatch.answer)
        print(mismatch, file=sys.stderr)
        sys.exit(2)
    print(text)
    sys.exit(0 if status < 300 else 1)
