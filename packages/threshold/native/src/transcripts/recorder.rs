//! Runs machines to their end, and describes every message as JSON.

use super::json::Json;
use crate::frame::Inbound;
use crate::private::forging;
use crate::session::*;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Frames of at most this size are stored whole.
const FRAME_BYTES_MAX: usize = 6 << 10;
const HEADER_BYTES: usize = 4 + 3 + 32 + 16;

pub fn hex(bytes: &[u8]) -> Json {
    Json::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub fn digests(values: &BTreeMap<u8, [u8; 32]>) -> Json {
    let fields = values.iter();
    Json::Map(
        fields
            .map(|(party, value)| (party.to_string(), hex(value)))
            .collect(),
    )
}

/// Which bytes of a private part are stored: pairs of offset and length.
pub struct Kept(pub Vec<(usize, usize)>);

impl Kept {
    pub fn whole(_: &Message) -> Self {
        Self(Vec::new())
    }
}

pub struct Message {
    pub round: u8,
    pub from: u8,
    pub to: u8,
    pub private: Vec<u8>,
}

/// Private parts by sender, round and receiver, before they were encrypted.
type Plaintexts = Rc<RefCell<BTreeMap<(u8, u8, u8), Vec<u8>>>>;

pub struct Run {
    pub messages: Json,
    pub done: BTreeMap<u8, Done>,
}

/// The context of a session, and its hash.
pub fn context(context: &Context) -> Json {
    let numbers = |all: &[u32]| Json::Numbers(all.iter().map(|n| u64::from(*n)).collect());
    let participants: Vec<u32> = context.participants.iter().map(|p| u32::from(*p)).collect();
    Json::map(vec![
        ("protocol", Json::text(context.protocol)),
        ("engine", Json::text(context.engine)),
        ("engine_version", Json::text(context.engine_version)),
        ("made_version", Json::text(context.made_version)),
        ("session_id", hex(context.session_id)),
        ("key_id", Json::text(context.key_id)),
        ("epoch", Json::Number(context.epoch.into())),
        ("participants", numbers(&participants)),
        ("key", hex(context.key)),
        ("share_set", hex(context.share_set)),
        ("path", numbers(context.path)),
        ("message", hex(context.message)),
        ("binding", hex(&context.binding())),
    ])
}

fn private_json(message: &Message, kept: &Kept) -> Json {
    let bytes = &message.private;
    if kept.0.is_empty() {
        return Json::map(vec![
            ("bytes", Json::Number(bytes.len() as u64)),
            ("whole", hex(bytes)),
        ]);
    }
    let slices = kept.0.iter();
    let slices = slices.map(|(at, length)| (at.to_string(), hex(&bytes[*at..at + length])));
    Json::map(vec![
        ("bytes", Json::Number(bytes.len() as u64)),
        ("sha256", hex(&Sha256::digest(bytes))),
        ("slices", Json::Map(slices.collect())),
    ])
}

/// Returns the description of a message. `same` is an earlier receiver of the same public part.
fn message_json(message: &Message, frame: &[u8], kept: &Kept, same: Option<u8>) -> Json {
    let public = &frame[HEADER_BYTES + 4..][..public_length(frame)];
    let mut fields = vec![
        ("round", Json::Number(message.round.into())),
        ("from", Json::Number(message.from.into())),
        ("to", Json::Number(message.to.into())),
        ("frame_bytes", Json::Number(frame.len() as u64)),
        ("frame_sha256", hex(&Sha256::digest(frame))),
    ];
    if frame.len() <= FRAME_BYTES_MAX {
        fields.push(("frame", hex(frame)));
    } else if let Some(to) = same {
        fields.push(("public_as_to", Json::Number(to.into())));
    } else {
        fields.push(("public", hex(public)));
    }
    if !message.private.is_empty() {
        fields.push(("private", private_json(message, kept)));
    }
    Json::map(fields)
}

fn public_length(frame: &[u8]) -> usize {
    let length = frame[HEADER_BYTES..HEADER_BYTES + 4].try_into().unwrap();
    u32::from_be_bytes(length) as usize
}

/// Delivers all messages in the order of the parties. `watch` sees each machine after each step.
pub fn play<M: Machine>(
    machines: &mut BTreeMap<u8, M>,
    kept: impl Fn(&Message) -> Kept,
    mut watch: impl FnMut(u8, &M),
) -> Run {
    let plain: Plaintexts = Rc::default();
    let seen = plain.clone();
    let keep = move |from: u8, round: u8, to: u8, bytes: &mut Vec<u8>| {
        seen.borrow_mut().insert((from, round, to), bytes.clone());
    };
    let parties: Vec<u8> = machines.keys().copied().collect();
    let mut inboxes: BTreeMap<u8, Vec<Inbound>> = BTreeMap::new();
    let (mut messages, mut done) = (Vec::new(), BTreeMap::new());
    let run = || {
        while done.len() < machines.len() {
            let mut next: BTreeMap<u8, Vec<Inbound>> = BTreeMap::new();
            for (&from, machine) in machines.iter_mut() {
                let inbox = inboxes.remove(&from).unwrap_or_default();
                let progress = machine.step(inbox).unwrap();
                watch(from, machine);
                let mut first = None;
                for sent in progress.messages {
                    let (round, to, frame) = (progress.round, sent.to, sent.payload);
                    let in_clear = || frame[HEADER_BYTES + 4 + public_length(&frame)..].to_vec();
                    let encrypted = plain.borrow_mut().remove(&(from, round, to));
                    let private = encrypted.unwrap_or_else(in_clear);
                    let message = Message {
                        round,
                        from,
                        to,
                        private,
                    };
                    messages.push(message_json(&message, &frame, &kept(&message), first));
                    first.get_or_insert(to);
                    for other in &parties {
                        if *other != from && (to == 0 || to == *other) {
                            let (from, payload) = (from.into(), frame.clone());
                            next.entry(*other)
                                .or_default()
                                .push(Inbound { from, payload });
                        }
                    }
                }
                done.extend(progress.done.map(|result| (from, result)));
            }
            inboxes = next;
        }
    };
    forging::during(Box::new(keep), run);
    Run {
        messages: Json::List(messages),
        done,
    }
}
