//! Secrets of a run, which the transcript vectors contain (`transcripts.rs`).

use super::*;
use crate::transcripts::{hex, Json};

/// The hash of the public values, and the secret share of each party.
pub fn shares(vault: &Arc<Vault>, keys: &BTreeMap<u8, Key>) -> Outcome<([u8; 32], Json)> {
    let mut all = Vec::new();
    let mut set = None;
    for (party, key) in keys {
        let loaded = load(vault, key)?;
        let own = loaded.share_set()?;
        assert_eq!(*set.get_or_insert(own), own);
        let share = loaded.key.signing_share().serialize();
        all.push((party.to_string(), hex(&share)));
    }
    Ok((set.ok_or_else(over)?, Json::Map(all)))
}

impl Generation {
    pub fn round(&self) -> u8 {
        self.wire.round
    }

    pub fn session_secret(&self) -> [u8; 32] {
        self.pairwise.as_ref().unwrap().secret()
    }
}

impl Signing {
    /// The nonces, once they exist.
    pub fn nonces(&self) -> Option<Json> {
        let Stage::One(nonces, _) = &self.stage else {
            return None;
        };
        Some(Json::map(vec![
            ("hiding_nonce", hex(&nonces.hiding().serialize())),
            ("binding_nonce", hex(&nonces.binding().serialize())),
        ]))
    }
}
