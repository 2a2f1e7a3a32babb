//! Secrets of a signature, which the transcript vectors contain (`transcripts.rs`).

use super::super::opened::{extension, scalar};
use super::*;
use crate::transcripts::{hex, Json};

impl Signing {
    /// The secrets of the first round, once they exist.
    pub fn nonces(&self, other: u8) -> Option<Json> {
        let Stage::One(unique, _) = &self.stage else {
            return None;
        };
        let mut fields = vec![
            ("instance_key", hex(&scalar(&unique.instance_key))),
            ("inversion_mask", hex(&scalar(&unique.inversion_mask))),
        ];
        fields.extend(extension(&self.party, other));
        Some(Json::map(fields))
    }
}
