"""DKLs23 key generation and complete refresh on secp256k1, as the crate dkls23-core 0.6.2 encodes
them (docs/protocol/cryptography.md)."""

import secp256k1 as curve
from wire import Failed, Reader, Transcript, result_hash, tagged

PARTIES = (1, 2, 3)
PAIRS = ((1, 2), (2, 3), (1, 3))
KAPPA = 256
REPETITIONS = 64
ENCRYPTION_PROOF_BYTES = 540
SEED_BYTES = 32
SET_UP_BYTES = 143_052


def point_of(reader):
    return curve.decode(reader.bytes(33))


def scalar_of(reader):
    return curve.scalar(reader.bytes(32))


class DiscreteLogProof:
    """A Schnorr proof with the randomized Fischlin transform."""

    def __init__(self, reader):
        self.point = point_of(reader)
        self.commitments = [point_of(reader) for _ in range(self._count(reader))]
        self.answers = []
        for _ in range(self._count(reader)):
            challenge = reader.bytes()
            self.answers.append((challenge, scalar_of(reader)))

    @staticmethod
    def _count(reader):
        count = reader.varint()
        if count != REPETITIONS:
            raise Failed(f"a proof has {count} repetitions instead of {REPETITIONS}")
        return count

    def commitment(self, session):
        message = curve.encode(self.point) + b"".join(map(curve.encode, self.commitments))
        message += b"".join(challenge for challenge, _ in self.answers)
        message += b"".join(curve.scalar_bytes(response) for _, response in self.answers)
        return tagged("dkls23/proofs/dlog/commitment/v1", session, message)

    def holds(self, session):
        encoded = [curve.encode(commitment) for commitment in self.commitments]
        if len(set(encoded)) != REPETITIONS:
            return False
        prefix, hashes = curve.encode(curve.G) + b"".join(encoded), []
        for number, (challenge, response) in enumerate(self.answers):
            if not 1 <= len(challenge) <= 4:
                return False
            expected = curve.add(
                curve.base(response), curve.multiply(int.from_bytes(challenge, "big"), self.point)
            )
            if expected != self.commitments[number]:
                return False
            message = prefix + number.to_bytes(2, "big") + challenge + curve.scalar_bytes(response)
            hashes.append(tagged("dkls23/proofs/dlog/fischlin/v1", session, message)[0])
        half = REPETITIONS // 2
        return hashes[:half] == hashes[half:]


class EncryptionProof:
    """The proof that a receiver of the base transfer encrypted 0 or 1 (ePrint 2022/1525)."""

    def __init__(self, data):
        reader = Reader(data)
        self.proofs = [
            [point_of(reader) for _ in range(4)] + [scalar_of(reader)] for _ in range(2)
        ]
        self.commitments = [(point_of(reader), point_of(reader)) for _ in range(2)]
        self.challenges = [scalar_of(reader), scalar_of(reader)]
        reader.end()
        self.v = self.proofs[0][2]

    def holds(self, session, h):
        (g0, h0, u0, v0, _), (g1, h1, u1, v1, _) = self.proofs
        if not (g0 == g1 == curve.G and h0 == h1 == h and v0 == v1 and u0 == curve.add(u1, h)):
            return False
        points = (g0, h0, v0, u0, *self.commitments[0], *self.commitments[1])
        message = b"".join(map(curve.encode, points))
        challenge = hash_scalar("dkls23/proofs/enc/fs/v1", session, message)
        if challenge != sum(self.challenges) % curve.N:
            return False
        for (g, base, u, v, response), commitments, part in zip(
            self.proofs, self.commitments, self.challenges
        ):
            left = curve.add(curve.multiply(response, g), curve.multiply(part, u))
            right = curve.add(curve.multiply(response, base), curve.multiply(part, v))
            if (left, right) != commitments:
                return False
        return True


def hash_scalar(tag, *parts):
    return int.from_bytes(tagged(tag, *parts), "big") % curve.N


def commitment_of(message, salt):
    return tagged("dkls23/commitment/v1", salt, message)


class SetUp:
    """A private part of round 5: the zero-share seed and the set-up of the multiplication.

    Its sender is the receiver of the multiplication in `proof` and `nonce`, and the sender of the
    multiplication in the encryption proofs and `seed`.
    """

    def __init__(self, part, sender, receiver):
        self.part = part
        direction = bytes([sender, receiver])
        reader = Reader(part.get(0, 99))
        self.zero_named = reader.take(2) == direction
        self.zero_seed, self.zero_salt = reader.take(32), reader.bytes(64)
        self.is_complete = len(part.slices) > 1
        if not self.is_complete:
            return
        reader = Reader(part.slices[0])
        reader.take(99)
        self.named = reader.take(2) == direction
        self.proof = DiscreteLogProof(reader)
        self.nonce = scalar_of(reader)
        self.count = reader.varint()
        reader.end()
        self.start = reader.at
        self.seed = part.get(part.length - SEED_BYTES, SEED_BYTES)

    def is_full_length(self):
        rest = self.part.length - self.start - SEED_BYTES
        return self.count == KAPPA and rest == KAPPA * ENCRYPTION_PROOF_BYTES

    def samples(self):
        for at in self.part.slices:
            number, rest = divmod(at - self.start, ENCRYPTION_PROOF_BYTES)
            if at > 0 and rest == 0 and number < KAPPA:
                yield number, EncryptionProof(self.part.get(at, ENCRYPTION_PROOF_BYTES))


def _set_ups(transcript):
    return {
        (sender, to): SetUp(part, sender, to)
        for (number, sender, to), part in transcript.private.items()
        if number == 5
    }


def _check_fragments(transcript, values, is_refresh):
    """The fragments of each party are on one line, and the sums are the shares."""
    fragments = {}
    for (number, sender, receiver), part in transcript.private.items():
        if number == 2:
            reader = Reader(part.whole())
            fragments[(sender, receiver)] = scalar_of(reader)
            reader.end()
    for party in PARTIES:
        received = sum(fragments[(other, party)] for other in PARTIES if other != party)
        fragments[(party, party)] = (values[party] - received) % curve.N
    for sender in PARTIES:
        one, two, three = (fragments[(sender, receiver)] for receiver in PARTIES)
        transcript.report.check(
            f"round 2, party {sender}: the fragments are on one line",
            (one - 2 * two + three) % curve.N == 0,
        )
        if is_refresh:
            transcript.report.check(
                f"round 2, party {sender}: the line is 0 at 0", (2 * one - two) % curve.N == 0
            )


def _check_proofs(transcript, values, has_chain_code):
    """Opens the commitments of round 3. Returns the points and the parts of the chain code."""
    report, points, codes = transcript.report, {}, {}
    for party in PARTIES:
        reader = Reader(transcript.broadcast(3, party))
        commitment = reader.take(32)
        chain_commitment = None
        if reader.take(1) == b"\1":
            sender, chain_commitment = reader.take(1)[0], reader.take(32)
        reader.end()
        reader = Reader(transcript.broadcast(5, party))
        proof = DiscreteLogProof(reader)
        opened = None
        if reader.take(1) == b"\1":
            opened = (reader.take(1)[0], reader.take(32), reader.bytes(64))
        reader.end()
        report.check(
            f"round 5, party {party}: the proof fits its commitment",
            proof.commitment(transcript.session) == commitment,
        )
        report.check(
            f"round 5, party {party}: Fischlin proof of the share", proof.holds(transcript.session)
        )
        report.check(
            f"round 5, party {party}: the point is that of the share",
            proof.point == curve.base(values[party]),
        )
        points[party] = proof.point
        if has_chain_code:
            report.check(
                f"round 5, party {party}: the part of the chain code fits its commitment",
                opened is not None
                and sender == opened[0] == party
                and commitment_of(opened[1], opened[2]) == chain_commitment,
            )
            codes[party] = opened[1]
        else:
            report.check(
                f"rounds 3 and 5, party {party}: there is no chain code",
                opened is None and chain_commitment is None,
            )
    return points, codes


def _check_zero_shares(transcript, set_ups, protocol, sessions):
    for (sender, to), each in set_ups.items():
        reader = Reader(transcript.private[(3, sender, to)].whole())
        named, commitment = reader.take(2) == bytes([sender, to]), reader.take(32)
        reader.end()
        context = tagged(
            "dkls23/zero-share/seed-context/v1", protocol, *sessions, bytes([sender, to])
        )
        transcript.report.check(
            f"rounds 3 and 5, {sender} to {to}: the zero-share seed fits its commitment",
            named
            and each.zero_named
            and commitment_of(each.zero_seed + context, each.zero_salt) == commitment,
        )


def _transfer_base(number, session, seed):
    """Session id of one base transfer, and its point h."""
    own = number.to_bytes(2, "big") + session
    message = b"".join(len(part).to_bytes(8, "big") + part for part in (own, seed))
    tag = b"dkls23/ot/base/h/v2-with-secp256k1_XMD:SHA-256_SSWU_RO_"
    return own, curve.hash_to_curve(message, tag)


def _check_set_ups(transcript, set_ups, session_of):
    report = transcript.report
    for (sender, to), each in set_ups.items():
        name = f"round 5, {sender} to {to}"
        report.check(
            f"{name}: the set-up and its frame have the length of 256 base transfers",
            each.part.length == SET_UP_BYTES and transcript.has_encrypted_length((5, sender, to)),
        )
        if not each.is_complete:
            continue
        report.check(
            f"{name}: the set-up names the parties, and has 256 encryption proofs",
            each.named and each.is_full_length(),
        )
        report.check(
            f"{name}: Fischlin proof of the base transfer", each.proof.holds(session_of(sender, to))
        )
        samples = dict(each.samples())
        for number, proof in samples.items():
            own, h = _transfer_base(number, session_of(to, sender), each.seed)
            report.check(f"{name}: encryption proof {number}", proof.holds(own, h))
        report.check(f"{name}: two encryption proofs are stored", len(samples) == 2)


def _check_key(report, points, key, name):
    for pair in PAIRS:
        value = curve.interpolate(points, pair)
        report.check(f"the {name} of {pair[0]} and {pair[1]} interpolate to the key", value == key)


def shares_of(result):
    return {int(party): curve.scalar(bytes.fromhex(s)) for party, s in result["shares"].items()}


def keygen(json, report):
    """Returns the result and the set-ups, from which a signature starts."""
    transcript = Transcript(json, report, direct=(2, 3, 5))
    result, session = json["result"], transcript.session
    transcript.check_encryption(transcript.broadcasts(1), (2, 3))
    transcript.check_echo(2, transcript.echo(1), "round 2 has the echo of round 1")
    transcript.check_echo(4, transcript.echo(3), "round 4 is the echo of round 3")
    shares, set_ups = shares_of(result), _set_ups(transcript)
    _check_fragments(transcript, shares, False)
    points, codes = _check_proofs(transcript, shares, True)
    _check_key(report, points, curve.decode(bytes.fromhex(result["public_key"])), "points")
    mixed = bytes(a ^ b ^ c for a, b, c in zip(*(codes[party] for party in PARTIES)))
    report.check("the chain code is the XOR of the parts", mixed.hex() == result["chain_code"])
    _check_zero_shares(transcript, set_ups, b"dkg", [session])
    _check_set_ups(transcript, set_ups, lambda one, two: keygen_multiplication(session, one, two))
    report.check(
        "the session id of the shares is the binding", result["share_set"] == session.hex()
    )
    transcript.check_echo(
        6, result_hash(transcript.echo(5), result), "round 6 is the hash of the result"
    )
    return result, set_ups


def keygen_multiplication(session, receiver, sender):
    return b"Multiplication protocol" + bytes([receiver, sender]) + session


def _check_base_transfer(json, report, set_ups, session_of):
    """The base transfer gives its receiver the one of two seeds that its bit selects."""
    for sender, receiver in ((1, 2), (2, 1)):
        secret = curve.scalar(bytes.fromhex(json[str(sender)]["sender_scalar"]))
        proof = set_ups[(sender, receiver)].proof
        report.check(
            f"base transfer {sender} to {receiver}: the point is that of the sender's scalar",
            curve.base(secret) == proof.point,
        )
        samples = dict(set_ups[(receiver, sender)].samples())
        for number, encryption in samples.items():
            sent = json[str(sender)]["samples"][str(number)]
            got = json[str(receiver)]["samples"][str(number)]
            session = session_of(sender, receiver)
            own, h = _transfer_base(number, session, set_ups[(receiver, sender)].seed)

            def seed(point):
                return tagged("dkls23/ot/base/msg/v1", own, curve.encode(point)).hex()

            other = curve.add(encryption.v, curve.negate(h))
            scalar = curve.scalar(bytes.fromhex(got["receiver_scalar"]))
            report.check(
                f"base transfer {number}, {sender} to {receiver}: the two seeds of the sender",
                sent["sent_0"] == seed(curve.multiply(secret, encryption.v))
                and sent["sent_1"] == seed(curve.multiply(secret, other)),
            )
            report.check(
                f"base transfer {number}, {sender} to {receiver}: the receiver has the chosen seed",
                got["received"]
                == seed(curve.multiply(scalar, proof.point))
                == sent[f"sent_{got['receiver_bit']}"],
            )


def refresh(json, report, old):
    transcript = Transcript(json, report, direct=(2, 3, 5))
    result, session = json["result"], transcript.session
    check_input(transcript, old)
    previous = bytes.fromhex(old["share_set"])
    transcript.check_encryption(transcript.broadcasts(1), (2, 3))
    transcript.check_echo(2, transcript.echo(1), "round 2 has the echo of round 1")
    transcript.check_echo(4, transcript.echo(3), "round 4 is the echo of round 3")
    before, after = shares_of(old), shares_of(result)
    corrections = {party: (after[party] - before[party]) % curve.N for party in PARTIES}
    set_ups = _set_ups(transcript)
    _check_fragments(transcript, corrections, True)
    points, _ = _check_proofs(transcript, corrections, False)
    for pair in PAIRS:
        report.check(
            f"the corrections of {pair[0]} and {pair[1]} interpolate to the identity",
            curve.interpolate(points, pair) is curve.IDENTITY,
        )
    report.check(
        "public key and chain code are the old ones",
        all(result[name] == old[name] for name in ("public_key", "chain_code")),
    )
    report.check(
        "every share and its point changed", all(corrections[party] != 0 for party in PARTIES)
    )
    new = {party: curve.base(after[party]) for party in PARTIES}
    _check_key(report, new, curve.decode(bytes.fromhex(result["public_key"])), "new points")
    _check_zero_shares(transcript, set_ups, b"refresh-complete", [previous, session])

    def session_of(receiver, sender):
        return tagged(
            "dkls23/refresh/mul-session/v1", previous, bytes([receiver]), bytes([sender]), session
        )

    _check_set_ups(transcript, set_ups, session_of)
    _check_base_transfer(json["base_transfer"], report, set_ups, session_of)
    attempt = b"".join(
        bytes([party]) + transcript.broadcast(3, party)[:32] for party in PARTIES
    )
    report.check(
        "the session id of the shares chains the old one, this run and its commitments",
        tagged("dkls23/refresh/session/v1", previous, session, attempt).hex()
        == result["share_set"],
    )
    transcript.check_echo(
        6, result_hash(transcript.echo(5), result), "round 6 is the hash of the result"
    )


def check_input(transcript, old):
    """The context names the key and the shares that key generation made."""
    transcript.report.check(
        "the context names the key and the shares of the key generation",
        transcript.context["key"] == old["public_key"] + old["chain_code"]
        and transcript.context["share_set"] == old["share_set"],
    )
