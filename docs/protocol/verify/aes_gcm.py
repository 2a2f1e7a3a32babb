"""AES-256-GCM (FIPS 197, NIST SP 800-38D) and HKDF-SHA256 (RFC 5869), for short test vectors only."""

import hashlib
import hmac


def hkdf(salt, secret, info, length):
    key = hmac.new(salt, secret, hashlib.sha256).digest()
    out, block = b"", b""
    for number in range(1, (length + 31) // 32 + 1):
        block = hmac.new(key, block + info + bytes([number]), hashlib.sha256).digest()
        out += block
    return out[:length]


def _times_x(value):
    value <<= 1
    return value ^ 0x11B if value & 0x100 else value


def _sbox():
    box, p, q = [0] * 256, 1, 1
    while True:
        p ^= _times_x(p)
        for shift in (1, 2, 4):
            q ^= q << shift & 0xFF
        if q & 0x80:
            q ^= 0x09
        value = q
        for turn in (1, 2, 3, 4):
            value ^= (q << turn | q >> 8 - turn) & 0xFF
        box[p] = value ^ 0x63
        if p == 1:
            box[0] = 0x63
            return box


_BOX = _sbox()


def _round_keys(key):
    words = [list(key[at : at + 4]) for at in range(0, 32, 4)]
    factor = 1
    for at in range(8, 60):
        word = list(words[at - 1])
        if at % 8 == 0:
            word = [_BOX[byte] for byte in word[1:] + word[:1]]
            word[0] ^= factor
            factor = _times_x(factor)
        elif at % 8 == 4:
            word = [_BOX[byte] for byte in word]
        words.append([a ^ b for a, b in zip(words[at - 8], word)])
    return [sum(words[at : at + 4], []) for at in range(0, 60, 4)]


def _encrypt_block(keys, block):
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number in range(1, 15):
        state = [_BOX[state[(at + 4 * (at % 4)) % 16]] for at in range(16)]
        if number < 14:
            mixed = []
            for column in range(0, 16, 4):
                part = state[column : column + 4]
                every = part[0] ^ part[1] ^ part[2] ^ part[3]
                for at in range(4):
                    mixed.append(part[at] ^ every ^ _times_x(part[at] ^ part[(at + 1) % 4]))
            state = mixed
        state = [a ^ b for a, b in zip(state, keys[number])]
    return bytes(state)


def _multiply(x, y):
    result = 0
    for at in range(127, -1, -1):
        if x >> at & 1:
            result ^= y
        y = y >> 1 ^ (0xE1 << 120 if y & 1 else 0)
    return result


def open_sealed(key, nonce, sealed):
    """Decrypts without associated data. Returns None if the tag does not fit."""
    text, tag = sealed[:-16], sealed[-16:]
    keys = _round_keys(key)
    point = int.from_bytes(_encrypt_block(keys, bytes(16)), "big")
    total = 0
    padded = text + bytes(-len(text) % 16) + bytes(8) + (8 * len(text)).to_bytes(8, "big")
    for at in range(0, len(padded), 16):
        total = _multiply(total ^ int.from_bytes(padded[at : at + 16], "big"), point)
    mask = _encrypt_block(keys, nonce + (1).to_bytes(4, "big"))
    if bytes(a ^ b for a, b in zip(total.to_bytes(16, "big"), mask)) != tag:
        return None
    out = b""
    for at in range(0, len(text), 16):
        stream = _encrypt_block(keys, nonce + (at // 16 + 2).to_bytes(4, "big"))
        out += bytes(a ^ b for a, b in zip(text[at : at + 16], stream))
    return out
