//! The parameters of the DKLs23 crate, as `docs/protocol/cryptography.md` lists them.

use super::json::Json;
use super::settle;
use crate::{dkls, frost};
use dkls23_secp256k1::utilities::ot::extension::*;
use dkls23_secp256k1::utilities::{multiplication, oracle_tags, proofs};
use dkls23_secp256k1::{RAW_SECURITY, STAT_SECURITY};

#[test]
fn the_stored_parameters_are_those_of_the_engines() {
    let number = |value: u64| Json::Number(value);
    let tags = oracle_tags::ALL_TAGS.iter();
    let tags = tags.map(|tag| Json::text(std::str::from_utf8(tag).unwrap()));
    let json = Json::map(vec![
        ("dkls23_version", Json::text(dkls::VERSIONS[0])),
        ("frost_version", Json::text(frost::VERSIONS[0])),
        ("kappa", number(RAW_SECURITY.into())),
        ("statistical_security", number(STAT_SECURITY.into())),
        ("extension_security", number(OT_SECURITY.into())),
        ("batch_size", number(BATCH_SIZE.into())),
        ("extended_batch_size", number(EXTENDED_BATCH_SIZE.into())),
        ("extension_nonce_bytes", number(OTE_NONCE_LEN as u64)),
        ("multiplication_inputs", number(multiplication::L.into())),
        ("extension_width", number(multiplication::OT_WIDTH.into())),
        ("fischlin_repetitions", number(proofs::R.into())),
        ("fischlin_l", number(proofs::L.into())),
        ("fischlin_t", number(proofs::T.into())),
        ("tags", Json::List(tags.collect())),
    ]);
    settle("engine-parameters.json", &json);
}
