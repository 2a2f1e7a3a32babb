#!/usr/bin/env python3
"""sign.py METHOD PATH [BODY]    one signed request with Python; needs the package cryptography (Debian: python3-cryptography)

CUSTODY_URL, CUSTODY_API_KEY, CUSTODY_KEY (PEM file of the private key)
"""
import base64
import hashlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(key, api_key: str, path: str, body: bytes) -> str:
    now = int(time.time())
    claims = {
        "uri": path, "nonce": str(uuid.uuid4()), "iat": now, "exp": now + 25, "sub": api_key,
        "bodyHash": hashlib.sha256(body).hexdigest(),
    }
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "RS256", "typ": "JWT"}, claims)]
    signed = ".".join(base64url(part) for part in parts)
    return signed + "." + base64url(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))


def main() -> int:
    method, path, body = sys.argv[1], sys.argv[2], (sys.argv[3] if len(sys.argv) > 3 else "").encode()
    api_key = os.environ["CUSTODY_API_KEY"]
    with open(os.environ["CUSTODY_KEY"], "rb") as file:
        key = serialization.load_pem_private_key(file.read(), password=None)
    headers = {"Authorization": "Bearer " + token(key, api_key, path, body), "x-api-key": api_key}
    if body:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(os.environ["CUSTODY_URL"] + path, data=body or None, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            print(answer.read().decode())
            return 0
    except urllib.error.HTTPError as refused:
        print(refused.read().decode())
        return 1


sys.exit(main())
