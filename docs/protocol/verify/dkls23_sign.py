"""A DKLs23 signature with its two-party multiplications, recomputed from the secrets of both sides."""

import hashlib
import hmac

import secp256k1 as curve
from dkls23 import (
    KAPPA,
    check_input,
    commitment_of,
    hash_scalar,
    keygen_multiplication,
    point_of,
    scalar_of,
    shares_of,
)
from wire import Reader, Transcript, frame_of, tagged

BATCH = 416
SECURITY = 208
EXTENDED = BATCH + SECURITY
INPUTS = 2
WIDTH = 2 * INPUTS
FIELD = 1 << 208 | 1 << 9 | 1 << 3 | 1 << 1 | 1


def derive(key, chain_code, path):
    """BIP32, CKDpub. Returns the child's key, its chain code and the sum of the tweaks."""
    total = 0
    for index in path:
        data = curve.encode(key) + index.to_bytes(4, "big")
        output = hmac.new(chain_code, data, hashlib.sha512).digest()
        tweak = curve.scalar(output[:32])
        total, chain_code = (total + tweak) % curve.N, output[32:]
        key = curve.add(key, curve.base(tweak))
    return key, chain_code, total


def _little(data):
    return int.from_bytes(data, "little")


def _field_multiply(one, two):
    """Multiplication in GF(2^208) with X^208 + X^9 + X^3 + X + 1."""
    result = 0
    while two:
        if two & 1:
            result ^= one
        one <<= 1
        if one >> 208:
            one ^= FIELD
        two >>= 1
    return result


def _extend(session, number, seed):
    """The first 624 bits of the hashes of a seed."""
    parts = (number.to_bytes(2, "big"),)
    blocks = b"".join(
        tagged("dkls23/ot/extension/prg/v1", session, *parts, count.to_bytes(2, "big"), seed)
        for count in range(3)
    )
    return _little(blocks[: EXTENDED // 8])


def _check_value(row, chis):
    mask = (1 << SECURITY) - 1
    first, second, third = row & mask, row >> SECURITY & mask, row >> 2 * SECURITY
    return _field_multiply(first, chis[0]) ^ _field_multiply(second, chis[1]) ^ third


def _transpose(rows):
    """Column j of the 256 rows, for the first 416 columns."""
    columns = [0] * BATCH
    for number, row in enumerate(rows):
        for column in range(BATCH):
            columns[column] |= (row >> column & 1) << number
    return columns


def _scalars(values):
    return b"".join(curve.scalar_bytes(value) for value in values)


def _vector(values):
    """The encoding of a vector of scalars: the number of values, and each after its length."""
    count = len(values)
    start = bytes([count]) if count < 128 else bytes([count & 127 | 128, count >> 7])
    return start + b"".join(b"\x20" + curve.scalar_bytes(value) for value in values)


class Multiplication:
    """One multiplication: `receiver` has a random factor, `sender` the inputs."""

    def __init__(self, session, gadget, receiver_secrets, sender_secrets, first_body, second):
        self.session, self.gadget = session, gadget
        seeds = [
            bytes.fromhex(receiver_secrets[name]) for name in ("receiver_seeds_0", "receiver_seeds_1")
        ]
        self.seeds = [[data[at : at + 32] for at in range(0, len(data), 32)] for data in seeds]
        self.correlation = _little(bytes.fromhex(sender_secrets["sender_correlation"]))
        reader = Reader(first_body)
        reader.take(2 + 32 + 32)
        self.nonce, self.stated_rows = reader.take(32), reader.varint()
        self.row = _little(reader.take(EXTENDED // 8))
        reader.end()
        self._receive_first()
        self._read_second(second)
        self._send()
        self._receive_second()

    def _receive_first(self):
        """The receiver's message of the extension (KOS, figure 10)."""
        session = tagged(
            "dkls23/ot/extension/session/v1", b"OT Extension protocol" + self.session, self.nonce
        )
        zero = [_extend(session, number, self.seeds[0][number]) for number in range(KAPPA)]
        one = [_extend(session, number, self.seeds[1][number]) for number in range(KAPPA)]
        bits = self.row ^ zero[0] ^ one[0]
        self.u = [(a ^ b ^ bits).to_bytes(EXTENDED // 8, "little") for a, b in zip(zero, one)]
        chis = [
            _little(
                tagged("dkls23/ot/extension/chi/v1", session, name, b"".join(self.u))[
                    : SECURITY // 8
                ]
            )
            for name in (b"chi1", b"chi2")
        ]
        self.x = _check_value(bits, chis)
        self.t = [_check_value(row, chis) for row in zero]
        self.bits = [bits >> at & 1 for at in range(BATCH)]
        self.factor = sum(g for g, bit in zip(self.gadget, self.bits) if bit) % curve.N
        self.extension, self.zero, self.chis = session, zero, chis

    def first_rest(self):
        """What follows the nonce in the receiver's message."""
        size = SECURITY // 8
        rows = b"".join(self.u)
        length = len(rows)
        prefix = bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14])
        values = b"".join(value.to_bytes(size, "little") for value in self.t)
        return prefix + rows + self.x.to_bytes(size, "little") + bytes([128, 2]) + values

    def is_consistent(self):
        """The sender's check, whose failure is a proven cheat."""
        self.q = []
        for number in range(KAPPA):
            bit = self.correlation >> number & 1
            row = _extend(self.extension, number, self.seeds[bit][number])
            row ^= _little(self.u[number]) if bit else 0
            self.q.append(row)
            if _check_value(row, self.chis) != self.t[number] ^ (self.x if bit else 0):
                return False
        return True

    def _read_second(self, part):
        """Reads the sender's message: the first entries of each row of tau, and what follows."""
        row = 2 + 33 * BATCH
        rest = 32 + 32 + 2 * (1 + 33 * INPUTS)
        self.rows_at = part.length - rest - WIDTH * row
        self.first_tau = [
            scalar_of(Reader(part.get(self.rows_at + at * row + 2, 33))) for at in range(WIDTH)
        ]
        reader = Reader(part.get(part.length - rest, rest))
        self.salt, self.verify_r = reader.take(32), reader.take(32)
        self.verify_u = self._pair(reader)
        self.gamma = self._pair(reader)
        reader.end()

    @staticmethod
    def _pair(reader):
        if reader.varint() != INPUTS:
            raise ValueError("a vector has another length")
        return [scalar_of(reader) for _ in range(INPUTS)]

    def _pad(self, column, iteration, value):
        return hash_scalar(
            "dkls23/ot/extension/randomize/v1",
            self.extension,
            self.salt,
            column.to_bytes(2, "big"),
            bytes([iteration]),
            value.to_bytes(KAPPA // 8, "little"),
        )

    def _send(self):
        """The sender's pads, corrections tau and check values."""
        self.sender_is_consistent = self.is_consistent()
        columns = _transpose(self.q)
        self.sent, self.tau, self.pads = [], [], []
        for iteration in range(WIDTH):
            zero = [self._pad(j, iteration, column) for j, column in enumerate(columns)]
            one = [
                self._pad(j, iteration, column ^ self.correlation)
                for j, column in enumerate(columns)
            ]
            pad = (self.first_tau[iteration] - one[0] + zero[0]) % curve.N
            self.pads.append(pad)
            self.sent.append(zero)
            self.tau.append([(b - a + pad) % curve.N for a, b in zip(zero, one)])
        size = SECURITY // 8
        received = tagged(
            "dkls23/mul/transcript/receiver/v1",
            self.session,
            self.nonce,
            b"".join(self.u),
            self.x.to_bytes(size, "little"),
            b"".join(value.to_bytes(size, "little") for value in self.t),
        )
        transcript = tagged(
            "dkls23/mul/transcript/v1",
            self.session,
            received,
            self.salt,
            *(_scalars(row) for row in self.tau),
        )
        self.tilde, self.hat = (
            [hash_scalar(tag, self.session, bytes([i]), transcript) for i in range(INPUTS)]
            for tag in ("dkls23/mul/chi-tilde/v2", "dkls23/mul/chi-hat/v2")
        )
        rows = [
            (self.tilde[i] * a + self.hat[i] * b) % curve.N
            for i in range(INPUTS)
            for a, b in zip(self.sent[i], self.sent[INPUTS + i])
        ]
        self.sender_r = tagged("dkls23/mul/verify/v1", self.session, _scalars(rows))
        self.sender_u = [
            (self.tilde[i] * self.pads[i] + self.hat[i] * self.pads[INPUTS + i]) % curve.N
            for i in range(INPUTS)
        ]
        self.outputs = [
            sum(g * z for g, z in zip(self.gadget, self.sent[i])) % curve.N for i in range(INPUTS)
        ]

    def inputs(self):
        """The sender's inputs, which its message masks with the pads."""
        return [(self.gamma[i] + self.pads[i]) % curve.N for i in range(INPUTS)]

    def _receive_second(self):
        """The receiver's outputs and its value of the check, whose failure is a proven cheat."""
        columns = _transpose(self.zero)
        received = []
        for iteration in range(WIDTH):
            row = []
            for j, column in enumerate(columns):
                chosen = self.tau[iteration][j] if self.bits[j] else 0
                row.append((chosen - self._pad(j, iteration, column)) % curve.N)
            received.append(row)
        rows = []
        for i in range(INPUTS):
            for j in range(BATCH):
                chosen = self.verify_u[i] if self.bits[j] else 0
                value = chosen - self.tilde[i] * received[i][j]
                rows.append((value - self.hat[i] * received[INPUTS + i][j]) % curve.N)
        self.receiver_r = tagged("dkls23/mul/verify/v1", self.session, _scalars(rows))
        self.results = [
            (self.factor * self.gamma[i] + sum(g * z for g, z in zip(self.gadget, received[i])))
            % curve.N
            for i in range(INPUTS)
        ]

    def second_rest(self):
        """The sender's message from tau on."""
        rows = b"".join(_vector(row) for row in self.tau)
        checks = self.salt + self.verify_r + _vector(self.verify_u) + _vector(self.gamma)
        return bytes([WIDTH]) + rows + checks


class Signature:
    def __init__(self, json, report, result, set_ups):
        self.report = report
        self.transcript = Transcript(json, report, direct=(1, 2))
        check_input(self.transcript, result)
        self.secrets, self.result = json["secrets"], json["result"]
        self.pair = self.transcript.parties
        self.digest = bytes.fromhex(self.transcript.context["message"])
        self.share_set = bytes.fromhex(result["share_set"])
        self.set_ups = set_ups
        self.key, self.chain_code, tweak = derive(
            curve.decode(bytes.fromhex(result["public_key"])),
            bytes.fromhex(result["chain_code"]),
            self.transcript.context["path"],
        )
        self.shares = {
            party: (shares_of(result)[party] + tweak) % curve.N for party in self.pair
        }
        # What every hash of a signature contains.
        self.named = (
            self.share_set,
            self.transcript.session,
            self.chain_code,
            curve.encode(self.key),
            self.digest,
            bytes(self.pair),
        )

    def _secret(self, party, name):
        return curve.scalar(bytes.fromhex(self.secrets[str(party)][name]))

    def _key_shares(self):
        """Each party's additive share of the key: Lagrange coefficient, and a share of zero."""
        low, high = self.pair
        session = tagged("dkls23/sign/zero-session/v1", *self.named)
        seed = bytes(
            a ^ b
            for a, b in zip(
                self.set_ups[(low, high)].zero_seed, self.set_ups[(high, low)].zero_seed
            )
        )
        zero = hash_scalar("dkls23/zero-share/fragment/v1", session, seed)
        self.key_shares = {
            party: (
                self.shares[party] * curve.lagrange(party, self.pair)
                + (-zero if party == low else zero)
            )
            % curve.N
            for party in self.pair
        }

    def _gadget(self, receiver, sender):
        session = keygen_multiplication(self.share_set, receiver, sender)
        nonce = self.set_ups[(receiver, sender)].nonce
        return [
            hash_scalar("dkls23/mul/gadget/v1", session, curve.scalar_bytes(nonce + at))
            for at in range(1, BATCH + 1)
        ]

    def _binding(self, phase, sender, receiver, nonces):
        return tagged(
            "dkls23/sign/session-binding/v1",
            *self.named,
            bytes([phase, sender, receiver]),
            nonces,
            self.pair_set_up,
        )

    def _multiply(self):
        """Recomputes both multiplications, and compares round 1."""
        low, high = self.pair
        gadgets = {place: self._gadget(*place) for place in ((low, high), (high, low))}
        self.pair_set_up = tagged(
            "dkls23/sign/pair-setup/v1", _scalars(gadgets[(low, high)]), _scalars(gadgets[(high, low)])
        )
        self.products = {}
        for receiver, sender in gadgets:
            first = self.transcript.private[(1, receiver, sender)]
            session = tagged(
                "dkls23/sign/mul-session/v1", *self.named, bytes([receiver, sender])
            )
            product = Multiplication(
                session,
                gadgets[(receiver, sender)],
                self.secrets[str(receiver)],
                self.secrets[str(sender)],
                first.slices[0],
                self.transcript.private[(2, sender, receiver)],
            )
            self.products[(receiver, sender)] = product
            name = f"multiplication with {receiver} as receiver and {sender} as sender"
            start = bytes([receiver, sender]) + self._binding(1, receiver, sender, b"")
            body = start + first.get(34, 32) + product.nonce + product.first_rest()
            self._check_body(1, receiver, sender, body)
            self.report.check(
                f"{name}: the sender's check of the extension holds", product.sender_is_consistent
            )
            self.report.check(
                f"{name}: the receiver's check of the product holds",
                product.sender_r == product.verify_r == product.receiver_r
                and product.sender_u == product.verify_u,
            )
            self.report.check(
                f"{name}: the inputs are nonce and key share of the sender",
                product.inputs()
                == [self._secret(sender, "instance_key"), self.key_shares[sender]],
            )
            self.report.check(
                f"{name}: both outputs add up to the products",
                all(
                    (a + b - product.factor * value) % curve.N == 0
                    for a, b, value in zip(product.outputs, product.results, product.inputs())
                ),
            )

    def _check_body(self, number, sender, receiver, body):
        place = (number, sender, receiver)
        part = self.transcript.private[place]
        frame = frame_of(self.transcript.session, *place, b"", body)
        self.report.check(
            f"round {number}, {sender} to {receiver}: the message and its frame are reproduced",
            len(body) == part.length
            and hashlib.sha256(body).hexdigest() == part.sha256
            and self.transcript.is_frame(place, frame)
            and all(body[at : at + len(data)] == data for at, data in part.slices.items()),
        )

    def _check_second(self, sender, receiver):
        """The sender's second message: the opened commitment and the check values."""
        own, other = self.products[(receiver, sender)], self.products[(sender, receiver)]
        reader = Reader(self.transcript.private[(2, sender, receiver)].slices[0])
        reader.take(34)
        gamma_u, gamma_v, psi = point_of(reader), point_of(reader), scalar_of(reader)
        public_share, instance, salt = point_of(reader), point_of(reader), reader.bytes(64)
        name = f"round 2, {sender} to {receiver}"
        self.report.check(
            f"{name}: nonce point and key point are those of the secrets",
            instance == curve.base(self._secret(sender, "instance_key"))
            and public_share == curve.base(self.key_shares[sender]),
        )
        opened = curve.encode(instance) + curve.scalar_bytes(psi)
        commitment = self.transcript.private[(1, sender, receiver)].get(34, 32)
        self.report.check(
            f"{name}: nonce point and psi fit the commitment of round 1",
            commitment_of(opened, salt) == commitment,
        )
        self.report.check(
            f"{name}: psi is the inversion mask less the factor",
            (psi + other.factor - self._secret(sender, "inversion_mask")) % curve.N == 0,
        )
        for gamma, point, result, part in (
            (gamma_u, instance, own.results[0], "nonce"),
            (gamma_v, public_share, own.results[1], "key share"),
        ):
            self.report.check(
                f"{name}: the receiver's check of the {part} holds",
                curve.multiply(own.factor, point) == curve.add(curve.base(result), gamma),
            )
        binding = self._binding(2, sender, receiver, own.nonce + other.nonce)
        body = bytes([sender, receiver]) + binding
        for point in (gamma_u, gamma_v):
            body += b"\x21" + curve.encode(point)
        body += b"\x20" + curve.scalar_bytes(psi)
        for point in (public_share, instance):
            body += b"\x21" + curve.encode(point)
        body += b"\x40" + salt + own.second_rest()
        self._check_body(2, sender, receiver, body)
        return public_share, instance, psi

    def _check_third(self, sent):
        """The broadcasts u and w. Returns their sums."""
        masks, total = {}, curve.IDENTITY
        for party in self.pair:
            total = curve.add(total, sent[party][1])
        r = total[0] % curve.N
        sums = [0, 0]
        for party in self.pair:
            other = sum(self.pair) - party
            reader = Reader(self.transcript.broadcast(3, party))
            u, w = scalar_of(reader), scalar_of(reader)
            reader.end()
            masks[party] = self._secret(party, "inversion_mask")
            phi = masks[party] + sent[other][2]
            sending, receiving = self.products[(other, party)], self.products[(party, other)]
            products = [sending.outputs[at] + receiving.results[at] for at in range(INPUTS)]
            key_part = self.key_shares[party] * phi + products[1]
            number = int.from_bytes(self.digest, "big")
            self.report.check(
                f"round 3, party {party}: u and w follow from the secrets and the products",
                u == (self._secret(party, "instance_key") * phi + products[0]) % curve.N
                and w == (number * masks[party] + r * key_part) % curve.N,
            )
            sums = [sums[0] + u, sums[1] + w]
        return total, r, sums

    def verify(self):
        self._key_shares()
        self._multiply()
        low, high = self.pair
        sent = {low: self._check_second(low, high), high: self._check_second(high, low)}
        self.report.check(
            "the key points add up to the child key",
            curve.add(sent[low][0], sent[high][0]) == self.key,
        )
        total, r, (u, w) = self._check_third(sent)
        s = w * pow(u, -1, curve.N) % curve.N
        low_s = min(s, curve.N - s)
        signature = bytes.fromhex(self.result["signature"])
        self.report.check(
            "r is the x coordinate of the sum of the nonce points, s the quotient of the sums",
            signature == curve.scalar_bytes(r) + curve.scalar_bytes(low_s),
        )
        self.report.check("s is in the lower half", low_s <= curve.N // 2)
        point = curve.verify_ecdsa(self.key, self.digest, signature)
        self.report.check("the signature verifies under the child key", point is not None)
        self.report.check(
            "the recovery id belongs to the point of the signature",
            self.result["recovery_id"] == (point[1] & 1) + 2 * (point[0] >= curve.N)
            and point == (total if s == low_s else curve.negate(total)),
        )


def sign(json, report, keys):
    result, set_ups = keys
    Signature(json, report, result, set_ups).verify()
