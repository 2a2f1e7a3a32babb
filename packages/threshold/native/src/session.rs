//! Types that both engines share: sessions, their context and their results.

use crate::fault::{Fault, Outcome};
use crate::frame::{hash, Inbound, Outbound, Wire};
use crate::vault::{Meta, Share, Vault};
use std::sync::Arc;

pub const PARTIES: [u8; 3] = [1, 2, 3];
pub const THRESHOLD: u8 = 2;
/// Version of the shares that unit tests create as "older" ones. No build of the addon lists it.
pub const OLDER_IN_TESTS: &str = "0.0.1-test";

/// Returns why shares of this version cannot be opened; `None` if they can.
pub fn unlisted(engine: &str, version: &str, listed: &[&str]) -> Option<String> {
    if listed.contains(&version) {
        return None;
    }
    let named: String = version.chars().take(40).collect();
    Some(format!(
        "the share is of {engine} {named:?}, and this addon opens shares of {}: use a release whose list has that \
         version, and refresh the key there before changing to this one",
        listed.join(", ")
    ))
}

/// A key in the form in which the caller stores it.
#[derive(Clone)]
pub struct Key {
    pub meta: Meta,
    pub engine_version: String,
    pub public_key: Vec<u8>,
    pub chain_code: [u8; 32],
    pub sealed: Vec<u8>,
}

pub struct Signature {
    pub bytes: [u8; 64],
    pub recovery_id: Option<u8>,
}

pub enum Done {
    Key(Key),
    Signature(Signature),
}

pub struct Progress {
    pub round: u8,
    pub messages: Vec<Outbound>,
    pub done: Option<Done>,
}

impl Progress {
    pub fn send(wire: &Wire, messages: Vec<Outbound>) -> Self {
        Self {
            round: wire.round,
            messages,
            done: None,
        }
    }
    pub fn done(wire: &Wire, done: Done) -> Self {
        Self {
            round: wire.round,
            messages: Vec::new(),
            done: Some(done),
        }
    }
}

/// One party's side of one protocol run. Any error ends it.
pub trait Machine: Send {
    fn step(&mut self, inbox: Vec<Inbound>) -> Outcome<Progress>;
}

/// Values that all participants of a run must agree on before its first message.
pub struct Context<'a> {
    pub protocol: &'a str,
    pub engine: &'a str,
    /// Version of the input shares; in key generation, of the resulting ones.
    pub engine_version: &'a str,
    /// Version of the resulting shares; empty if there are none.
    pub made_version: &'a str,
    pub session_id: &'a [u8; 32],
    pub key_id: &'a str,
    pub epoch: u32,
    pub participants: &'a [u8],
    /// Public key and chain code, or nothing in key generation.
    pub key: &'a [u8],
    /// Identifies this set of shares among all sets that the key ever had.
    pub share_set: &'a [u8],
    pub path: &'a [u32],
    pub message: &'a [u8],
}

impl Context<'_> {
    pub fn binding(&self) -> [u8; 32] {
        let path: Vec<u8> = self
            .path
            .iter()
            .flat_map(|index| index.to_be_bytes())
            .collect();
        // Signing keeps its original binding, so that nodes with different releases can sign
        // together.
        let protocol = match self.made_version {
            "" => self.protocol.to_owned(),
            made => format!("{}/makes {made}", self.protocol),
        };
        hash(
            "custody/threshold/session/v1",
            &[
                protocol.as_bytes(),
                self.engine.as_bytes(),
                self.engine_version.as_bytes(),
                self.session_id,
                self.key_id.as_bytes(),
                &self.epoch.to_be_bytes(),
                self.participants,
                self.key,
                self.share_set,
                &path,
                self.message,
            ],
        )
    }
}

/// Unseals a share, and compares the caller's metadata with the sealed metadata.
pub fn unseal(vault: &Arc<Vault>, key: &Key, curve: &str) -> Outcome<Share> {
    if key.meta.curve != curve {
        return Err(Fault::argument("key of another curve"));
    }
    let share = vault.unseal(&key.meta, &key.sealed)?;
    if share.public_key != key.public_key
        || share.chain_code != key.chain_code
        || share.engine_version != key.engine_version
    {
        return Err(Fault::sealed(
            "public key, chain code or version differ from the sealed ones",
        ));
    }
    Ok(share)
}
