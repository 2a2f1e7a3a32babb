"""secp256k1: the group, ECDSA verification and hash_to_curve of RFC 9380.

Written from SEC 1, SEC 2 and RFC 9380 for checking public test vectors. It is slow and not
constant-time: never use it with a real secret.
"""

import hashlib

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)
IDENTITY = None


def _double(point):
    x, y, z = point
    if y == 0:
        return (0, 1, 0)
    yy = y * y % P
    s = 4 * x * yy % P
    m = 3 * x * x % P
    nx = (m * m - 2 * s) % P
    return (nx, (m * (s - nx) - 8 * yy * yy) % P, 2 * y * z % P)


def _add(one, two):
    if one[2] == 0:
        return two
    if two[2] == 0:
        return one
    x1, y1, z1 = one
    x2, y2, z2 = two
    zz1, zz2 = z1 * z1 % P, z2 * z2 % P
    u1, u2 = x1 * zz2 % P, x2 * zz1 % P
    s1, s2 = y1 * zz2 * z2 % P, y2 * zz1 * z1 % P
    if u1 == u2:
        return _double(one) if s1 == s2 else (0, 1, 0)
    h, r = (u2 - u1) % P, (s2 - s1) % P
    hh = h * h % P
    hhh, v = h * hh % P, u1 * hh % P
    nx = (r * r - hhh - 2 * v) % P
    return (nx, (r * (v - nx) - s1 * hhh) % P, h * z1 * z2 % P)


def _lift(point):
    return (0, 1, 0) if point is IDENTITY else (point[0], point[1], 1)


def _affine(point):
    if point[2] == 0:
        return IDENTITY
    inverse = pow(point[2], -1, P)
    square = inverse * inverse % P
    return (point[0] * square % P, point[1] * square * inverse % P)


def add(one, two):
    return _affine(_add(_lift(one), _lift(two)))


def negate(point):
    return IDENTITY if point is IDENTITY else (point[0], -point[1] % P)


def multiply(scalar, point):
    scalar %= N
    table = [(0, 1, 0), _lift(point)]
    for _ in range(14):
        table.append(_add(table[-1], table[1]))
    result = (0, 1, 0)
    for shift in range(252, -1, -4):
        for _ in range(4):
            result = _double(result)
        digit = scalar >> shift & 15
        if digit:
            result = _add(result, table[digit])
    return _affine(result)


_COMB = []


def base(scalar):
    """The multiple of the generator."""
    if not _COMB:
        power = _lift(G)
        for _ in range(64):
            row = [(0, 1, 0)]
            for _ in range(15):
                row.append(_add(row[-1], power))
            _COMB.append(row)
            power = _add(row[-1], power)
    scalar %= N
    result = (0, 1, 0)
    for row in _COMB:
        result = _add(result, row[scalar & 15])
        scalar >>= 4
    return _affine(result)


def encode(point):
    """The compressed encoding of SEC 1."""
    if point is IDENTITY:
        raise ValueError("the identity has no compressed encoding here")
    return bytes([2 + (point[1] & 1)]) + point[0].to_bytes(32, "big")


def decode(data):
    if len(data) != 33 or data[0] not in (2, 3):
        raise ValueError("not a compressed secp256k1 point")
    x = int.from_bytes(data[1:], "big")
    if x >= P:
        raise ValueError("x coordinate is not reduced")
    square = (x**3 + 7) % P
    y = pow(square, (P + 1) // 4, P)
    if y * y % P != square:
        raise ValueError("no point has this x coordinate")
    return (x, y if y & 1 == data[0] & 1 else P - y)


def scalar(data):
    """A canonical scalar of 32 bytes, big-endian."""
    value = int.from_bytes(data, "big")
    if len(data) != 32 or value >= N:
        raise ValueError("not a canonical secp256k1 scalar")
    return value


def scalar_bytes(value):
    return (value % N).to_bytes(32, "big")


def lagrange(party, parties):
    """The coefficient of a party for the interpolation at 0."""
    numerator = denominator = 1
    for other in parties:
        if other != party:
            numerator = numerator * other % N
            denominator = denominator * (other - party) % N
    return numerator * pow(denominator, -1, N) % N


def interpolate(points, parties):
    """The value at 0 of the line through the points of these parties."""
    result = IDENTITY
    for party in parties:
        result = add(result, multiply(lagrange(party, parties), points[party]))
    return result


def verify_ecdsa(key, digest, signature):
    """Verifies r | s, and returns the point R that the signature belongs to, or None."""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    if not (0 < r < N and 0 < s < N):
        return None
    inverse = pow(s, -1, N)
    number = int.from_bytes(digest, "big") % N
    point = add(base(number * inverse), multiply(r * inverse, key))
    return point if point is not IDENTITY and point[0] % N == r else None


# RFC 9380, suite secp256k1_XMD:SHA-256_SSWU_RO_ (sections 5, 6.6.3, 8.7 and E.1).
_A = 0x3F8731ABDD661ADCA08A5558F0F5D272E953D363CB6F0E5D405447C01A444533
_B = 1771
_Z = -11 % P
_X_NUMERATOR = [
    0x8E38E38E38E38E38E38E38E38E38E38E38E38E38E38E38E38E38E38DAAAAA8C7,
    0x07D3D4C80BC321D5B9F315CEA7FD44C5D595D2FC0BF63B92DFFF1044F17C6581,
    0x534C328D23F234E6E2A413DECA25CAECE4506144037C40314ECBD0B53D9DD262,
    0x8E38E38E38E38E38E38E38E38E38E38E38E38E38E38E38E38E38E38DAAAAA88C,
]
_X_DENOMINATOR = [
    0xD35771193D94918A9CA34CCBB7B640DD86CD409542F8487D9FE6B745781EB49B,
    0xEDADC6F64383DC1DF7C4B2D51B54225406D36B641F5E41BBC52A56612A8C6D14,
    1,
]
_Y_NUMERATOR = [
    0x4BDA12F684BDA12F684BDA12F684BDA12F684BDA12F684BDA12F684B8E38E23C,
    0xC75E0C32D5CB7C0FA9D0A54B12A0A6D5647AB046D686DA6FDFFC90FC201D71A3,
    0x29A6194691F91A73715209EF6512E576722830A201BE2018A765E85A9ECEE931,
    0x2F684BDA12F684BDA12F684BDA12F684BDA12F684BDA12F684BDA12F38E38D84,
]
_Y_DENOMINATOR = [
    0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFF93B,
    0x7A06534BB8BDB49FD5E9E6632722C2989467C1BFC8E8D978DFB425D2685C2573,
    0x6484AA716545CA2CF3A70C3FA8FE337E0A3D21162F0D6299A7BF8192BFD2A76F,
    1,
]


def _polynomial(coefficients, x):
    result = 0
    for coefficient in reversed(coefficients):
        result = (result * x + coefficient) % P
    return result


def _expand(message, tag, length):
    prime = tag + bytes([len(tag)])
    first = hashlib.sha256(bytes(64) + message + length.to_bytes(2, "big") + b"\0" + prime).digest()
    block = hashlib.sha256(first + b"\1" + prime).digest()
    blocks = block
    for number in range(2, (length + 31) // 32 + 1):
        mixed = bytes(a ^ b for a, b in zip(first, block))
        block = hashlib.sha256(mixed + bytes([number]) + prime).digest()
        blocks += block
    return blocks[:length]


def _map(u):
    factor = (_Z * _Z * pow(u, 4, P) + _Z * u * u) % P
    x1 = -_B * pow(_A, -1, P) % P
    x1 = x1 * (1 + pow(factor, -1, P)) % P if factor else _B * pow(_Z * _A, -1, P) % P
    x, square = x1, (x1**3 + _A * x1 + _B) % P
    y = pow(square, (P + 1) // 4, P)
    if y * y % P != square:
        x = _Z * u * u * x1 % P
        square = (x**3 + _A * x + _B) % P
        y = pow(square, (P + 1) // 4, P)
    if u & 1 != y & 1:
        y = -y % P
    nx = _polynomial(_X_NUMERATOR, x) * pow(_polynomial(_X_DENOMINATOR, x), -1, P) % P
    ny = y * _polynomial(_Y_NUMERATOR, x) * pow(_polynomial(_Y_DENOMINATOR, x), -1, P) % P
    return (nx, ny)


def hash_to_curve(message, tag):
    data = _expand(message, tag, 96)
    return add(
        _map(int.from_bytes(data[:48], "big") % P), _map(int.from_bytes(data[48:], "big") % P)
    )
