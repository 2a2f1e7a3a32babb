"""What both engines share: hashes, frames, the binding, encrypted parts, and the reader of bodies."""

import hashlib

import aes_gcm
import ed25519


class Failed(Exception):
    """A check that does not hold."""


class Report:
    """Prints one line for each check, and ends at the first that fails."""

    def __init__(self):
        self.count = 0
        self.run = ""

    def check(self, name, holds):
        if not holds:
            raise Failed(f"{self.run}: {name}")
        self.count += 1
        print(f"ok    {self.run}: {name}")


def tagged(tag, *parts):
    """SHA-256 over the tag and the parts, each after its length in 8 bytes, big-endian."""
    digest = hashlib.sha256()
    for part in (tag.encode() if isinstance(tag, str) else tag, *parts):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def binding(context):
    """The hash of everything that the participants of a session agree on."""
    protocol = context["protocol"]
    if context["made_version"]:
        protocol += "/makes " + context["made_version"]
    return tagged(
        "custody/threshold/session/v1",
        protocol.encode(),
        context["engine"].encode(),
        context["engine_version"].encode(),
        bytes.fromhex(context["session_id"]),
        context["key_id"].encode(),
        context["epoch"].to_bytes(4, "big"),
        bytes(context["participants"]),
        bytes.fromhex(context["key"]),
        bytes.fromhex(context["share_set"]),
        b"".join(index.to_bytes(4, "big") for index in context["path"]),
        bytes.fromhex(context["message"]),
    )


def frame_of(session, round_number, sender, receiver, public, private):
    header = b"TSH1" + bytes([round_number, sender, receiver]) + session
    body = len(public).to_bytes(4, "big") + public + private
    return header + tagged("custody/threshold/frame/v1", header, body)[:16] + body


class Part:
    """A private part of which the file has all bytes, or its hash and some slices."""

    def __init__(self, json):
        self.length = json["bytes"]
        self.sha256 = json.get("sha256")
        if "whole" in json:
            self.slices = {0: bytes.fromhex(json["whole"])}
            if len(self.slices[0]) != self.length:
                raise Failed("a private part has another length")
        else:
            self.slices = {int(at): bytes.fromhex(data) for at, data in json["slices"].items()}

    def get(self, at, length):
        for start, data in self.slices.items():
            if start <= at and at + length <= start + len(data):
                return data[at - start : at - start + length]
        raise Failed(f"bytes {at} to {at + length} of a private part are missing")

    def whole(self):
        return self.get(0, self.length)


class Reader:
    """Reads a body in the encoding of postcard: parts in sequence, lengths as varints."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, length):
        if self.at + length > len(self.data):
            raise Failed("a body is cut short")
        self.at += length
        return self.data[self.at - length : self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def bytes(self, length=None):
        stated = self.varint()
        if length is not None and stated != length:
            raise Failed(f"a field has {stated} bytes instead of {length}")
        return self.take(stated)

    def end(self):
        if self.at != len(self.data):
            raise Failed("bytes follow a body")


class Transcript:
    """The messages of a run, by round, sender and receiver (0 = all)."""

    def __init__(self, json, report, direct):
        """`direct`: the rounds whose messages have one receiver each."""
        self.json = json
        self.context = json["context"]
        self.parties = self.context["participants"]
        self.session = binding(self.context)
        self.report = report
        self.public, self.private, self.frames = {}, {}, {}
        report.check(
            "the binding is the hash of the context",
            self.session == bytes.fromhex(self.context["binding"]),
        )
        rounds = max(message["round"] for message in json["messages"])
        expected = set()
        for number in range(1, rounds + 1):
            for sender in self.parties:
                others = [party for party in self.parties if party != sender]
                expected |= {(number, sender, to) for to in (others if number in direct else [0])}
        for message in json["messages"]:
            self._read(message)
        report.check("each party sent exactly its messages", set(self.frames) == expected)
        report.check(
            "all stored frames have the header, checksum and hash of their content", self._sound()
        )

    def _read(self, message):
        place = (message["round"], message["from"], message["to"])
        if place in self.frames:
            raise Failed(f"two messages {place}")
        self.frames[place] = message
        if "private" in message:
            self.private[place] = Part(message["private"])
        if "frame" in message:
            frame = bytes.fromhex(message["frame"])
            length = int.from_bytes(frame[55:59], "big")
            self.public[place] = frame[59 : 59 + length]
        elif "public" in message:
            self.public[place] = bytes.fromhex(message["public"])
        else:
            same = (message["round"], message["from"], message["public_as_to"])
            self.public[place] = self.public[same]

    def _sound(self):
        for place, message in self.frames.items():
            if "frame" not in message:
                continue
            frame = bytes.fromhex(message["frame"])
            rest = frame[59 + len(self.public[place]) :]
            if frame != frame_of(self.session, *place, self.public[place], rest):
                return False
            if not self.is_frame(place, frame):
                return False
        return True

    def has_encrypted_length(self, place):
        """The frame has its header, the public part, and the private part with a tag of 16 bytes."""
        length = 59 + len(self.public[place]) + self.private[place].length + 16
        return self.frames[place]["frame_bytes"] == length

    def is_frame(self, place, frame):
        message = self.frames[place]
        return len(frame) == message["frame_bytes"] and hashlib.sha256(
            frame
        ).hexdigest() == message["frame_sha256"]

    def broadcast(self, number, sender):
        """The public part of a round, which must be the same for all receivers."""
        parts = {
            data
            for (each, party, _), data in self.public.items()
            if (each, party) == (number, sender)
        }
        if len(parts) != 1:
            raise Failed(f"party {sender} sent different public parts in round {number}")
        return parts.pop()

    def broadcasts(self, number):
        return {party: self.broadcast(number, party) for party in self.parties}

    def echo(self, number):
        parts = [self.session, bytes([number])]
        for party, public in sorted(self.broadcasts(number).items()):
            parts += [bytes([party]), public]
        return tagged("custody/threshold/echo/v1", *parts)

    def check_echo(self, number, value, name):
        self.report.check(
            name, all(echo == value for echo in self.broadcasts(number).values())
        )

    def check_encryption(self, publics, rounds):
        """The X25519 keys, and the encrypted parts of these rounds."""
        secrets = {int(p): bytes.fromhex(s) for p, s in self.json["session_keys"].items()}
        basis = (9).to_bytes(32, "little")
        self.report.check(
            "the session keys are those of round 1, and differ",
            all(ed25519.x25519(secrets[party], basis) == publics[party] for party in self.parties)
            and len(set(publics.values())) == len(self.parties),
        )
        for place, message in self.frames.items():
            number, sender, receiver = place
            if number not in rounds:
                continue
            shared = ed25519.x25519(secrets[sender], publics[receiver])
            info = b"custody/threshold/private/v1" + bytes([sender, receiver, number])
            info += publics[sender] + publics[receiver]
            key = aes_gcm.hkdf(self.session, shared, info, 32)
            frame = bytes.fromhex(message["frame"])
            sealed = frame[59 + len(self.public[place]) :]
            opened = aes_gcm.open_sealed(key, bytes(12), sealed)
            self.report.check(
                f"round {number}, {sender} to {receiver}: the private part opens to the stored one",
                opened == self.private[place].whole(),
            )


def result_hash(seen, result):
    return tagged(
        "custody/threshold/result/v1",
        seen,
        bytes.fromhex(result["public_key"]),
        bytes.fromhex(result["chain_code"]),
        bytes.fromhex(result["share_set"]),
    )
