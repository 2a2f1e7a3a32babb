"""FROST on Ed25519: RFC 9591, and the key generation of the FROST paper (ePrint 2020/852, figure 1)."""

import hashlib
import hmac

import ed25519
from wire import Reader, Transcript, result_hash, tagged

CONTEXT = b"FROST-ED25519-SHA512-v1"
# Version 0, and the CRC-32 of the name of the ciphersuite.
HEADER = bytes.fromhex("00b169f0da")
PARTIES = (1, 2, 3)


def _sha512(*parts):
    return hashlib.sha512(b"".join(parts)).digest()


def _identifier(party):
    return party.to_bytes(32, "little")


def share_set(points, key):
    """The hash of the public values, by which a refresh names the shares that it starts from."""
    listed = b"".join(_identifier(party) + ed25519.encode(points[party]) for party in PARTIES)
    return tagged(
        "custody/threshold/share-set/v1", HEADER + bytes([3]) + listed + key + bytes([1, 2])
    )


def _first_round(transcript, coefficients):
    """Splits the public parts of round 1."""
    chains, keys, commitments, proofs = {}, {}, {}, {}
    for party, public in transcript.broadcasts(1).items():
        reader = Reader(public)
        chains[party], keys[party] = reader.take(32), reader.take(32)
        transcript.report.check(
            f"round 1, party {party}: the package names the ciphersuite", reader.take(5) == HEADER
        )
        count = reader.varint()
        transcript.report.check(
            f"round 1, party {party}: number of coefficients", count == coefficients
        )
        commitments[party] = [ed25519.decode(reader.take(32)) for _ in range(count)]
        proofs[party] = reader.bytes(64)
        reader.end()
    return chains, keys, commitments, proofs


def _check_fragments(transcript, commitments, corrections):
    """Every fragment lies on its sender's committed polynomial, and the sums are the shares."""
    report, own = transcript.report, {}
    for receiver in PARTIES:
        total = corrections[receiver]
        for sender in PARTIES:
            if sender == receiver:
                continue
            reader = Reader(transcript.private[(3, sender, receiver)].whole())
            header, fragment = reader.take(5), ed25519.scalar(reader.take(32))
            reader.end()
            report.check(
                f"round 3, {sender} to {receiver}: the fragment is on the committed polynomial",
                header == HEADER
                and ed25519.equal(
                    ed25519.base(fragment), _evaluate(commitments[sender], receiver)
                ),
            )
            total -= fragment
        own[receiver] = total % ed25519.L
        report.check(
            f"party {receiver}: the share is the sum of the fragments",
            ed25519.equal(
                ed25519.base(own[receiver]), _evaluate(commitments[receiver], receiver)
            ),
        )


def _evaluate(coefficients, party):
    result, power = ed25519.IDENTITY, 1
    for coefficient in coefficients:
        result = ed25519.add(result, ed25519.multiply(power, coefficient))
        power *= party
    return result


def _check_line(report, points, key):
    """The three points are on one line, whose value at 0 is the public key."""
    for one, two in ((1, 2), (2, 3), (1, 3)):
        value = ed25519.add(
            ed25519.multiply(ed25519.lagrange(one, (one, two)), points[one]),
            ed25519.multiply(ed25519.lagrange(two, (one, two)), points[two]),
        )
        report.check(
            f"the points of {one} and {two} interpolate to the public key",
            ed25519.encode(value) == key,
        )


def _shares(result):
    return {int(party): ed25519.scalar(bytes.fromhex(s)) for party, s in result["shares"].items()}


def keygen(json, report):
    transcript = Transcript(json, report, direct=(3,))
    result = json["result"]
    chains, keys, commitments, proofs = _first_round(transcript, 2)
    transcript.check_encryption(keys, (3,))
    transcript.check_echo(2, transcript.echo(1), "round 2 is the echo of round 1")
    for party in PARTIES:
        constant, proof = commitments[party][0], proofs[party]
        challenge = ed25519.reduce(
            _sha512(CONTEXT, b"dkg", _identifier(party), ed25519.encode(constant), proof[:32])
        )
        left = ed25519.base(ed25519.scalar(proof[32:]))
        right = ed25519.add(ed25519.decode(proof[:32]), ed25519.multiply(challenge, constant))
        report.check(
            f"round 1, party {party}: Schnorr proof of the constant term",
            ed25519.equal(left, right),
        )
    parts = transcript.broadcasts(3)
    for party in PARTIES:
        commitment = tagged(
            "custody/threshold/chain-code/commit/v1",
            transcript.session,
            bytes([party]),
            parts[party],
        )
        report.check(
            f"round 3, party {party}: the part of the chain code fits its commitment",
            len(parts[party]) == 32 and commitment == chains[party],
        )
    chain_code = tagged(
        "custody/threshold/chain-code/v1", transcript.session, *(parts[p] for p in PARTIES)
    )
    report.check(
        "the chain code is the hash of the parts",
        chain_code.hex() == result["chain_code"],
    )
    shares = _shares(result)
    _check_fragments(transcript, commitments, shares)
    total = ed25519.IDENTITY
    for party in PARTIES:
        total = ed25519.add(total, commitments[party][0])
    key = bytes.fromhex(result["public_key"])
    report.check(
        "the public key is the sum of the committed constant terms", ed25519.encode(total) == key
    )
    points = {party: ed25519.base(shares[party]) for party in PARTIES}
    _check_line(report, points, key)
    report.check(
        "the share set is the hash of the public values",
        share_set(points, key).hex() == result["share_set"],
    )
    transcript.check_echo(
        4, result_hash(transcript.echo(3), result), "round 4 is the hash of the result"
    )
    return result


def refresh(json, report, old):
    transcript = Transcript(json, report, direct=(3,))
    result = json["result"]
    check_input(transcript, old)
    chains, keys, commitments, _ = _first_round(transcript, 1)
    report.check(
        "round 1 has zero bytes instead of commitments to a chain code",
        all(chain == bytes(32) for chain in chains.values()),
    )
    transcript.check_encryption(keys, (3,))
    transcript.check_echo(2, transcript.echo(1), "round 2 is the echo of round 1")
    before, after = _shares(old), _shares(result)
    corrections = {party: after[party] - before[party] for party in PARTIES}
    constant = {party: [ed25519.IDENTITY, *commitments[party]] for party in PARTIES}
    _check_fragments(transcript, constant, corrections)
    key = bytes.fromhex(result["public_key"])
    report.check(
        "public key and chain code are the old ones",
        all(result[name] == old[name] for name in ("public_key", "chain_code")),
    )
    points = {party: ed25519.base(after[party]) for party in PARTIES}
    report.check(
        "every share and its point changed",
        all(corrections[party] % ed25519.L != 0 for party in PARTIES),
    )
    _check_line(report, points, key)
    report.check(
        "the share set is the hash of the new public values, and not the old one",
        share_set(points, key).hex() == result["share_set"] != old["share_set"],
    )
    transcript.check_echo(
        4, result_hash(transcript.echo(3), result), "round 4 is the hash of the result"
    )


def check_input(transcript, old):
    """The context names the key and the shares that key generation made."""
    transcript.report.check(
        "the context names the key and the shares of the key generation",
        transcript.context["key"] == old["public_key"] + old["chain_code"]
        and transcript.context["share_set"] == old["share_set"],
    )


def derive(key, chain_code, path):
    """The derivation in the README of packages/threshold. Returns the child's key and the tweak."""
    tweak, point = 0, ed25519.decode(key)
    for index in path:
        output = hmac.new(chain_code, key + index.to_bytes(4, "big"), hashlib.sha512).digest()
        level = ed25519.reduce(output[:32])
        tweak, chain_code = (tweak + level) % ed25519.L, output[32:]
        point = ed25519.add(point, ed25519.base(level))
        key = ed25519.encode(point)
    return key, tweak


def sign(json, report, keys):
    transcript = Transcript(json, report, direct=())
    check_input(transcript, keys)
    message = bytes.fromhex(transcript.context["message"])
    pair = transcript.parties
    key, tweak = derive(
        bytes.fromhex(keys["public_key"]),
        bytes.fromhex(keys["chain_code"]),
        transcript.context["path"],
    )
    shares = {party: (_shares(keys)[party] + tweak) % ed25519.L for party in pair}
    points = {party: ed25519.base(shares[party]) for party in pair}
    commitments, encoded = {}, b""
    for party in pair:
        body = transcript.broadcast(1, party)
        report.check(
            f"round 1, party {party}: the commitments name the ciphersuite",
            body[:5] == HEADER and len(body) == 69,
        )
        nonces = json["secrets"][str(party)]
        hiding, binding = (
            ed25519.scalar(bytes.fromhex(nonces[name])) for name in ("hiding_nonce", "binding_nonce")
        )
        commitments[party] = (ed25519.decode(body[5:37]), ed25519.decode(body[37:]), hiding, binding)
        report.check(
            f"round 1, party {party}: the commitments are the points of the nonces",
            ed25519.equal(ed25519.base(hiding), commitments[party][0])
            and ed25519.equal(ed25519.base(binding), commitments[party][1]),
        )
        encoded += _identifier(party) + body[5:]
    # RFC 9591, section 4.4.
    prefix = key + _sha512(CONTEXT, b"msg", message) + _sha512(CONTEXT, b"com", encoded)
    factors = {
        party: ed25519.reduce(_sha512(CONTEXT, b"rho", prefix, _identifier(party)))
        for party in pair
    }
    commitment_shares = {
        party: ed25519.add(
            commitments[party][0], ed25519.multiply(factors[party], commitments[party][1])
        )
        for party in pair
    }
    commitment = ed25519.add(*commitment_shares.values())
    challenge = ed25519.reduce(_sha512(ed25519.encode(commitment), key, message))
    total = 0
    for party in pair:
        share = ed25519.scalar(transcript.broadcast(2, party))
        weight = ed25519.lagrange(party, pair) * challenge % ed25519.L
        _, _, hiding, binding = commitments[party]
        report.check(
            f"round 2, party {party}: the signature share follows from nonces and share",
            share == (hiding + binding * factors[party] + weight * shares[party]) % ed25519.L,
        )
        report.check(
            f"round 2, party {party}: the signature share fits the verifying share",
            ed25519.equal(
                ed25519.base(share),
                ed25519.add(
                    commitment_shares[party], ed25519.multiply(weight, points[party])
                ),
            ),
        )
        total += share
    signature = bytes.fromhex(json["result"]["signature"])
    report.check(
        "the signature is the group commitment and the sum of the shares",
        signature == ed25519.encode(commitment) + (total % ed25519.L).to_bytes(32, "little"),
    )
    report.check(
        "the signature verifies by RFC 8032 under the child key",
        ed25519.verify(key, message, signature),
    )
