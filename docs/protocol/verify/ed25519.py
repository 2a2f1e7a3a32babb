"""Ed25519 (RFC 8032) and X25519 (RFC 7748): the groups, and the verification of signatures.

For checking public test vectors. It is slow and not constant-time: never use it with a real secret.
"""

import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
_ROOT = pow(2, (P - 1) // 4, P)
IDENTITY = (0, 1, 1, 0)


def add(one, two):
    a = (one[1] - one[0]) * (two[1] - two[0]) % P
    b = (one[1] + one[0]) * (two[1] + two[0]) % P
    c = 2 * one[3] * two[3] * D % P
    d = 2 * one[2] * two[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(scalar, point):
    result = IDENTITY
    while scalar > 0:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def equal(one, two):
    return (one[0] * two[2] - two[0] * one[2]) % P == 0 and (
        one[1] * two[2] - two[1] * one[2]
    ) % P == 0


def encode(point):
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decode(data):
    """A point of prime order in its canonical encoding, not the identity."""
    if len(data) != 32:
        raise ValueError("an Ed25519 point has 32 bytes")
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if y >= P:
        raise ValueError("y coordinate is not reduced")
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P != 0:
        x = x * _ROOT % P
    if (x * x - square) % P != 0 or (x == 0 and sign):
        raise ValueError("not a point of Ed25519")
    if x & 1 != sign:
        x = P - x
    point = (x, y, 1, x * y % P)
    if equal(point, IDENTITY) or not equal(multiply(L, point), IDENTITY):
        raise ValueError("not a point of prime order")
    return point


BASE_Y = 4 * pow(5, -1, P) % P
BASE = decode(BASE_Y.to_bytes(32, "little"))


def base(scalar):
    return multiply(scalar % L, BASE)


def scalar(data):
    """A canonical scalar of 32 bytes, little-endian."""
    value = int.from_bytes(data, "little")
    if len(data) != 32 or value >= L:
        raise ValueError("not a canonical Ed25519 scalar")
    return value


def reduce(data):
    return int.from_bytes(data, "little") % L


def lagrange(party, parties):
    """The coefficient of a party for the interpolation at 0."""
    numerator = denominator = 1
    for other in parties:
        if other != party:
            numerator = numerator * other % L
            denominator = denominator * (other - party) % L
    return numerator * pow(denominator, -1, L) % L


def verify(key, message, signature):
    """RFC 8032, section 5.1.7, without the cofactor."""
    commitment, response = decode(signature[:32]), scalar(signature[32:])
    challenge = reduce(hashlib.sha512(signature[:32] + key + message).digest())
    return equal(base(response), add(commitment, multiply(challenge, decode(key))))


def x25519(secret, point):
    """RFC 7748, section 5."""
    k = int.from_bytes(secret, "little")
    k = k & ~7 & (1 << 255) - 1 | 1 << 254
    u = int.from_bytes(point, "little") & (1 << 255) - 1
    x2, z2, x3, z3, swapped = 1, 0, u, 1, 0
    for at in range(254, -1, -1):
        bit = k >> at & 1
        if bit != swapped:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swapped = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % P, b * b % P, d * a % P, c * b % P
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, u * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swapped:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")
