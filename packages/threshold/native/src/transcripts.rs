//! Transcript vectors: complete runs of both engines with a fixed source of randomness, stored in
//! `testing/vectors/`. `docs/protocol/verify` recomputes them in another language.
//!
//! The engines and this addon run unchanged. Only the system's randomness is replaced
//! (`randomness.rs`), only in this test program, and only on the thread of a recorded run.
//!
//! `CUSTODY_WRITE_VECTORS=1 cargo test transcripts` rewrites the files.

mod json;
mod parameters;
mod randomness;
mod recorder;

use crate::fault::Outcome;
use crate::frame::hash;
use crate::session::*;
use crate::vault::{HomeKey, Meta, Vault};
use crate::{dkls, frost};
pub use json::Json;
use recorder::{context, digests, play, Run};
pub use recorder::{hex, Kept, Message};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use zeroize::Zeroizing;

const PAIR: [u8; 2] = [1, 2];
const PATH: [u32; 2] = [4, 0];
const KEY_ID: &str = "transcript vectors";
const WARNING: &str =
    "The secrets of this key are public. Never send anything of value to its addresses.";

fn session_id(run: &str) -> [u8; 32] {
    hash("custody/threshold/vectors/session/v1", &[run.as_bytes()])
}

fn vault() -> Arc<Vault> {
    let key = HomeKey {
        name: [7; 8],
        key: Zeroizing::new(hash("custody/threshold/vectors/vault/v1", &[])),
    };
    Arc::new(Vault::from_keys(vec![key], None).unwrap())
}

fn meta(engine: &str, curve: &str, party: u8) -> Meta {
    Meta {
        engine: engine.into(),
        curve: curve.into(),
        key_id: KEY_ID.into(),
        epoch: 0,
        party,
    }
}

/// Runs `body` on a new thread whose system randomness is a function of `seed`.
fn with_fixed_randomness<T: Send>(seed: &str, body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(16 << 20);
        let work = || {
            // State that the standard library and `rand` create once on each thread.
            let _ = std::collections::HashMap::<u8, u8>::new();
            let _ = rand::rng();
            randomness::fix(seed);
            body()
        };
        thread.spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

fn keys_of(run: &Run) -> BTreeMap<u8, Key> {
    let done = run.done.iter();
    done.map(|(party, done)| match done {
        Done::Key(key) => (*party, key.clone()),
        Done::Signature(_) => panic!("a signature"),
    })
    .collect()
}

fn signature_of(run: &Run) -> Json {
    let signatures: Vec<&Signature> = run
        .done
        .values()
        .map(|done| match done {
            Done::Signature(signature) => signature,
            Done::Key(_) => panic!("a key"),
        })
        .collect();
    assert!(signatures
        .iter()
        .all(|each| each.bytes == signatures[0].bytes));
    let id = signatures[0].recovery_id;
    let mut fields = vec![("signature", hex(&signatures[0].bytes))];
    fields.extend(id.map(|id| ("recovery_id", Json::Number(id.into()))));
    Json::map(fields)
}

/// The values that all parties have in common, and the secret share of each.
fn keys_json(keys: &BTreeMap<u8, Key>, share_set: &[u8], shares: Json) -> Json {
    let key = &keys[&1];
    let same =
        |other: &Key| other.public_key == key.public_key && other.chain_code == key.chain_code;
    assert!(keys.values().all(same));
    Json::map(vec![
        ("public_key", hex(&key.public_key)),
        ("chain_code", hex(&key.chain_code)),
        ("share_set", hex(share_set)),
        ("shares", shares),
    ])
}

fn file(engine: &str, run: &str, parts: Vec<(&str, Json)>) -> Json {
    let mut all = vec![
        ("layout", Json::Number(1)),
        ("warning", Json::text(WARNING)),
        ("engine", Json::text(engine)),
        ("run", Json::text(run)),
    ];
    all.extend(parts);
    Json::map(all)
}

/// Compares a file of `testing/vectors` with what was computed, or writes it.
fn settle(name: &str, json: &Json) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../testing/vectors")
        .join(name);
    let text = json.print();
    if std::env::var_os("CUSTODY_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == text,
        "{name} differs from this run; CUSTODY_WRITE_VECTORS=1 rewrites it"
    );
}

fn dkls_keygen(vault: &Arc<Vault>) -> (BTreeMap<u8, Key>, Json) {
    let session = session_id("dkls23 keygen");
    let start = |party| {
        let meta = meta(dkls::ENGINE, dkls::CURVE, party);
        (
            party,
            dkls::Generation::start_new(vault.clone(), meta, session),
        )
    };
    let mut machines: BTreeMap<u8, dkls::Generation> = PARTIES.map(start).into();
    let mut keys = BTreeMap::new();
    let run = play(
        &mut machines,
        dkls::opened::set_up_slices,
        |party, machine| {
            if machine.round() == 1 {
                keys.insert(party, machine.session_secret());
            }
        },
    );
    let made = keys_of(&run);
    let (share_set, shares) = dkls::opened::shares(vault, &made);
    let parts = vec![
        (
            "context",
            context(&Context {
                protocol: "keygen",
                engine: dkls::ENGINE,
                engine_version: dkls::VERSIONS[0],
                made_version: dkls::VERSIONS[0],
                session_id: &session,
                key_id: KEY_ID,
                epoch: 0,
                participants: &PARTIES,
                key: &[],
                share_set: &[],
                path: &[],
                message: &[],
            }),
        ),
        ("session_keys", digests(&keys)),
        ("messages", run.messages.clone()),
        ("result", keys_json(&made, &share_set, shares)),
    ];
    let json = file(dkls::ENGINE, "keygen", parts);
    (made, json)
}

fn dkls_refresh(vault: &Arc<Vault>, keys: &BTreeMap<u8, Key>) -> Json {
    let session = session_id("dkls23 refresh");
    let mut machines: BTreeMap<u8, dkls::Generation> = keys
        .iter()
        .map(|(party, key)| {
            let start = dkls::Generation::start_refresh(vault.clone(), key.clone(), session);
            (*party, start.unwrap())
        })
        .collect();
    let (share_set, _) = dkls::opened::shares(vault, keys);
    let (mut session_keys, mut base) = (BTreeMap::new(), BTreeMap::new());
    let run = play(
        &mut machines,
        dkls::opened::refresh_slices,
        |party, machine| {
            if machine.round() == 1 {
                session_keys.insert(party, machine.session_secret());
            }
            if machine.round() == 5 {
                base.insert(party, machine.base_secrets());
            }
        },
    );
    let made = keys_of(&run);
    let (new_set, shares) = dkls::opened::shares(vault, &made);
    let named = [&keys[&1].public_key[..], &keys[&1].chain_code].concat();
    let parts = vec![
        (
            "context",
            context(&Context {
                protocol: "refresh",
                engine: dkls::ENGINE,
                engine_version: dkls::VERSIONS[0],
                made_version: dkls::VERSIONS[0],
                session_id: &session,
                key_id: KEY_ID,
                epoch: 1,
                participants: &PARTIES,
                key: &named,
                share_set: &share_set,
                path: &[],
                message: &[],
            }),
        ),
        ("session_keys", digests(&session_keys)),
        ("messages", run.messages.clone()),
        (
            "base_transfer",
            dkls::opened::base_transfer(vault, &made, &base),
        ),
        ("result", keys_json(&made, &new_set, shares)),
    ];
    file(dkls::ENGINE, "refresh", parts)
}

fn dkls_sign(vault: &Arc<Vault>, keys: &BTreeMap<u8, Key>) -> Json {
    let session = session_id("dkls23 sign");
    let digest = hash("custody/threshold/vectors/digest/v1", &[]);
    let start = |party: u8| -> (u8, dkls::Signing) {
        let key = keys[&party].clone();
        let machine = dkls::Signing::start(vault.clone(), key, session, PAIR, &PATH, digest);
        (party, machine.unwrap())
    };
    let mut machines: BTreeMap<u8, dkls::Signing> = PAIR.map(start).into();
    let mut secrets = Vec::new();
    let run = play(
        &mut machines,
        dkls::opened::sign_slices,
        |party, machine| {
            if let Some(json) = machine.nonces(3 - party) {
                secrets.push((party.to_string(), json));
            }
        },
    );
    let (share_set, _) = dkls::opened::shares(vault, keys);
    let named = [&keys[&1].public_key[..], &keys[&1].chain_code].concat();
    let parts = vec![
        (
            "context",
            context(&Context {
                protocol: "sign",
                engine: dkls::ENGINE,
                engine_version: dkls::VERSIONS[0],
                made_version: "",
                session_id: &session,
                key_id: KEY_ID,
                epoch: 0,
                participants: &PAIR,
                key: &named,
                share_set: &share_set,
                path: &PATH,
                message: &digest,
            }),
        ),
        ("secrets", Json::Map(secrets)),
        ("messages", run.messages.clone()),
        ("result", signature_of(&run)),
    ];
    file(dkls::ENGINE, "sign", parts)
}

fn frost_generation(
    vault: &Arc<Vault>,
    old: Option<&BTreeMap<u8, Key>>,
) -> Outcome<(BTreeMap<u8, Key>, Json)> {
    let name = if old.is_some() { "refresh" } else { "keygen" };
    let session = session_id(&format!("frost {name}"));
    let mut machines = BTreeMap::new();
    for party in PARTIES {
        let machine = match old {
            None => {
                let meta = meta(frost::ENGINE, frost::CURVE, party);
                frost::Generation::start_new(vault.clone(), meta, session)
            }
            Some(keys) => {
                frost::Generation::start_refresh(vault.clone(), keys[&party].clone(), session)?
            }
        };
        machines.insert(party, machine);
    }
    let mut session_keys = BTreeMap::new();
    let run = play(&mut machines, Kept::whole, |party, machine| {
        if machine.round() == 1 {
            session_keys.insert(party, machine.session_secret());
        }
    });
    let made = keys_of(&run);
    let (share_set, shares) = frost::opened::shares(vault, &made)?;
    let (mut named, mut old_set) = (Vec::new(), Vec::new());
    if let Some(keys) = old {
        named = [&keys[&1].public_key[..], &keys[&1].chain_code].concat();
        old_set = frost::opened::shares(vault, keys)?.0.to_vec();
    }
    let parts = vec![
        (
            "context",
            context(&Context {
                protocol: name,
                engine: frost::ENGINE,
                engine_version: frost::VERSIONS[0],
                made_version: frost::VERSIONS[0],
                session_id: &session,
                key_id: KEY_ID,
                epoch: u32::from(old.is_some()),
                participants: &PARTIES,
                key: &named,
                share_set: &old_set,
                path: &[],
                message: &[],
            }),
        ),
        ("session_keys", digests(&session_keys)),
        ("messages", run.messages.clone()),
        ("result", keys_json(&made, &share_set, shares)),
    ];
    let json = file(frost::ENGINE, name, parts);
    Ok((made, json))
}

fn frost_sign(vault: &Arc<Vault>, keys: &BTreeMap<u8, Key>) -> Outcome<Json> {
    let session = session_id("frost sign");
    let message = b"transcript vectors of the custody platform".to_vec();
    let mut machines = BTreeMap::new();
    for party in PAIR {
        let key = keys[&party].clone();
        let message = message.clone();
        let machine = frost::Signing::start(vault.clone(), key, session, PAIR, &PATH, message)?;
        machines.insert(party, machine);
    }
    let mut secrets = Vec::new();
    let run = play(&mut machines, Kept::whole, |party, machine| {
        if let Some(json) = machine.nonces() {
            secrets.push((party.to_string(), json));
        }
    });
    let named = [&keys[&1].public_key[..], &keys[&1].chain_code].concat();
    let parts = vec![
        (
            "context",
            context(&Context {
                protocol: "sign",
                engine: frost::ENGINE,
                engine_version: frost::VERSIONS[0],
                made_version: "",
                session_id: &session,
                key_id: KEY_ID,
                epoch: 0,
                participants: &PAIR,
                key: &named,
                share_set: &frost::opened::shares(vault, keys)?.0,
                path: &PATH,
                message: &message,
            }),
        ),
        ("secrets", Json::Map(secrets)),
        ("messages", run.messages.clone()),
        ("result", signature_of(&run)),
    ];
    Ok(file(frost::ENGINE, "sign", parts))
}

#[test]
fn the_stored_transcripts_of_dkls23_are_reproduced() {
    let vault = vault();
    let [keygen, sign, refresh] = with_fixed_randomness("dkls23", || {
        let (keys, keygen) = dkls_keygen(&vault);
        let sign = dkls_sign(&vault, &keys);
        [keygen, sign, dkls_refresh(&vault, &keys)]
    });
    settle("dkls23-keygen.json", &keygen);
    settle("dkls23-sign.json", &sign);
    settle("dkls23-refresh.json", &refresh);
}

#[test]
fn the_stored_transcripts_of_frost_are_reproduced() {
    let vault = vault();
    let [keygen, sign, refresh] = with_fixed_randomness("frost", || {
        let (keys, keygen) = frost_generation(&vault, None).unwrap();
        let sign = frost_sign(&vault, &keys).unwrap();
        let refresh = frost_generation(&vault, Some(&keys)).unwrap().1;
        [keygen, sign, refresh]
    });
    settle("frost-keygen.json", &keygen);
    settle("frost-sign.json", &sign);
    settle("frost-refresh.json", &refresh);
}
