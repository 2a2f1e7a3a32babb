//! Complete runs of key generation, refresh and signing among parties in one thread. They cover
//! cases that no caller of the addon can create: shares of an older version, which no build creates
//! or lists, and forged private parts.

use crate::fault::{Code, Fault, Outcome};
use crate::frame::Inbound;
use crate::private::forging;
use crate::session::*;
use crate::vault::{random, HomeKey, Meta, Vault};
use crate::{dkls, frost};
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

pub type Keys = BTreeMap<u8, Key>;
pub type Machines = BTreeMap<u8, Box<dyn Machine>>;

pub fn vault() -> Arc<Vault> {
    let key = HomeKey {
        name: [7; 8],
        key: Zeroizing::new(random().unwrap()),
    };
    Arc::new(Vault::from_keys(vec![key], None).unwrap())
}

/// Delivers messages between the parties until all are done or one has failed. Returns the results
/// of the parties that ended.
pub fn ends(mut machines: Machines) -> BTreeMap<u8, Outcome<Done>> {
    let mut inboxes: BTreeMap<u8, Vec<Inbound>> =
        machines.keys().map(|party| (*party, Vec::new())).collect();
    let mut ends = BTreeMap::new();
    while ends.len() < machines.len() && ends.values().all(Result::is_ok) {
        let mut next: BTreeMap<u8, Vec<Inbound>> =
            machines.keys().map(|party| (*party, Vec::new())).collect();
        for (from, machine) in &mut machines {
            let inbox = inboxes.remove(from).unwrap();
            let step = catch_unwind(AssertUnwindSafe(|| machine.step(inbox)));
            let progress = match step.unwrap_or_else(|_| Err(Fault::abort("a panic"))) {
                Ok(progress) => progress,
                Err(fault) => {
                    ends.insert(*from, Err(fault));
                    continue;
                }
            };
            for message in progress.messages {
                for (to, inbox) in &mut next {
                    if to != from && (message.to == 0 || message.to == *to) {
                        inbox.push(Inbound {
                            from: u32::from(*from),
                            payload: message.payload.clone(),
                        });
                    }
                }
            }
            if let Some(result) = progress.done {
                ends.insert(*from, Ok(result));
            }
        }
        inboxes = next;
    }
    ends
}

pub fn carry(machines: Machines) -> Outcome<BTreeMap<u8, Done>> {
    ends(machines)
        .into_iter()
        .map(|(party, end)| Ok((party, end?)))
        .collect()
}

pub fn keys_of(done: BTreeMap<u8, Done>) -> Keys {
    done.into_iter()
        .map(|(party, done)| match done {
            Done::Key(key) => (party, key),
            Done::Signature(_) => panic!("a signature"),
        })
        .collect()
}

pub fn generation(vault: &Arc<Vault>, engine: &str, curve: &str) -> Machines {
    let session = random().unwrap();
    let machines = PARTIES.map(|party| -> (u8, Box<dyn Machine>) {
        let meta = Meta {
            engine: engine.into(),
            curve: curve.into(),
            key_id: "key".into(),
            epoch: 0,
            party,
        };
        let vault = vault.clone();
        if curve == dkls::CURVE {
            return (
                party,
                Box::new(dkls::Generation::start_new(vault, meta, session)),
            );
        }
        (
            party,
            Box::new(frost::Generation::start_new(vault, meta, session)),
        )
    });
    machines.into()
}

pub fn generate(vault: &Arc<Vault>, engine: &str, curve: &str) -> Keys {
    keys_of(carry(generation(vault, engine, curve)).unwrap())
}

pub fn refreshing(vault: &Arc<Vault>, keys: &Keys) -> Outcome<Machines> {
    let session = random().unwrap();
    let mut machines = Machines::new();
    for (party, key) in keys {
        let (vault, key) = (vault.clone(), key.clone());
        let machine: Box<dyn Machine> = if key.meta.curve == dkls::CURVE {
            Box::new(dkls::Generation::start_refresh(vault, key, session)?)
        } else {
            Box::new(frost::Generation::start_refresh(vault, key, session)?)
        };
        machines.insert(*party, machine);
    }
    Ok(machines)
}

fn refresh(vault: &Arc<Vault>, keys: &Keys) -> Outcome<Keys> {
    carry(refreshing(vault, keys)?).map(keys_of)
}

fn signing(vault: &Arc<Vault>, keys: &Keys, pair: [u8; 2]) -> Outcome<Machines> {
    let session = random().unwrap();
    let mut machines = Machines::new();
    for party in pair {
        let (vault, key) = (vault.clone(), keys[&party].clone());
        let machine: Box<dyn Machine> = if key.meta.curve == dkls::CURVE {
            Box::new(dkls::Signing::start(
                vault,
                key,
                session,
                pair,
                &[4],
                [9; 32],
            )?)
        } else {
            Box::new(frost::Signing::start(
                vault,
                key,
                session,
                pair,
                &[4],
                vec![9; 40],
            )?)
        };
        machines.insert(party, machine);
    }
    Ok(machines)
}

fn sign(vault: &Arc<Vault>, keys: &Keys, pair: [u8; 2]) -> Outcome<()> {
    // Each party verifies the signature before it returns it.
    carry(signing(vault, keys, pair)?).map(|done| assert_eq!(done.len(), 2))
}

/// Returns the same share as sealed by an older version of the engine.
fn aged(vault: &Vault, key: &Key) -> Key {
    let mut share = vault.unseal(&key.meta, &key.sealed).unwrap();
    share.engine_version = OLDER_IN_TESTS.into();
    let sealed = vault.seal(&key.meta, &share).unwrap();
    Key {
        engine_version: OLDER_IN_TESTS.into(),
        sealed,
        ..key.clone()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Abort,
    Malformed,
}

/// A private part that its sender forges, and the expected end of its receiver's session.
#[derive(Clone)]
pub struct Forgery {
    pub name: &'static str,
    pub round: u8,
    pub end: End,
    pub change: Rc<dyn Fn(&mut Vec<u8>)>,
}

impl Forgery {
    pub fn new(
        round: u8,
        end: End,
        name: &'static str,
        change: impl Fn(&mut Vec<u8>) + 'static,
    ) -> Self {
        Self {
            name,
            round,
            end,
            change: Rc::new(change),
        }
    }
}

fn next(party: u8) -> u8 {
    party % PARTIES.len() as u8 + 1
}

/// Runs each forgery. Three of them share a run, in which each party sends a different forgery to
/// the next one: a run takes a second, and a session depends only on the messages that it receives.
pub fn judge(forgeries: Vec<Forgery>, start: impl Fn() -> Machines) {
    let mut groups: BTreeMap<(u8, End), Vec<Forgery>> = BTreeMap::new();
    for forgery in forgeries {
        groups
            .entry((forgery.round, forgery.end))
            .or_default()
            .push(forgery);
    }
    let mut wrong = Vec::new();
    for three in groups
        .values()
        .flat_map(|group| group.chunks(PARTIES.len()))
    {
        let told: BTreeMap<u8, Forgery> = PARTIES.into_iter().zip(three.iter().cloned()).collect();
        let said = told.clone();
        let change: forging::Change = Box::new(move |from, round, to, plain| {
            if let Some(forgery) = said
                .get(&from)
                .filter(|forgery| forgery.round == round && to == next(from))
            {
                let honest = plain.clone();
                (forgery.change)(plain);
                assert_ne!(honest, *plain, "{} changes nothing", forgery.name);
            }
        });
        let mut ends = forging::during(change, || ends(start()));
        for (from, Forgery { name, end, .. }) in told {
            let code = if end == End::Abort {
                Code::Abort
            } else {
                Code::Malformed
            };
            match ends.remove(&next(from)) {
                Some(Err(fault)) if fault.code == code && fault.message != "a panic" => {
                    if fault.counterparty.is_some_and(|party| party != from) {
                        wrong.push(format!("{name}: {fault:?} names another than {from}"));
                    }
                }
                Some(Err(fault)) => wrong.push(format!("{name}: {fault:?} instead of {end:?}")),
                Some(Ok(_)) => wrong.push(format!("{name}: finished instead of {end:?}")),
                None => wrong.push(format!("{name}: did not end")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A forgery that is not detected harms only the cheating party: the two others have valid keys.
/// Signing together with the cheating party fails, without a reason to ban it.
pub fn harms_itself(
    vault: &Arc<Vault>,
    cheat: u8,
    round: u8,
    change: impl Fn(&mut Vec<u8>) + 'static,
    machines: Machines,
) {
    let change: forging::Change = Box::new(move |from, at, _, plain| {
        if from == cheat && at == round {
            change(plain);
        }
    });
    let keys = forging::during(change, || keys_of(carry(machines).unwrap()));
    let (one, other) = (next(cheat), next(next(cheat)));
    sign(vault, &keys, [one.min(other), one.max(other)]).unwrap();
    for honest in [one, other] {
        let ends = ends(signing(vault, &keys, [cheat.min(honest), cheat.max(honest)]).unwrap());
        assert!(!ends.is_empty());
        for end in ends.into_values() {
            assert!(end.is_err_and(|fault| fault.code == Code::Abort && fault.message != "a panic"));
        }
    }
}

#[test]
fn shares_of_an_older_listed_version_sign_are_refreshed_and_restored() {
    for (engine, curve, versions) in [
        (dkls::ENGINE, dkls::CURVE, dkls::VERSIONS),
        (frost::ENGINE, frost::CURVE, frost::VERSIONS),
    ] {
        let vault = vault();
        let made = generate(&vault, engine, curve);
        assert!(made.values().all(|key| key.engine_version == versions[0]));
        let mut old: Keys = made
            .iter()
            .map(|(party, key)| (*party, aged(&vault, key)))
            .collect();
        sign(&vault, &old, [1, 2]).unwrap();
        // The caller's metadata must equal the sealed metadata.
        let beside = Key {
            engine_version: versions[0].into(),
            ..old[&1].clone()
        };
        let fault = sign(
            &vault,
            &Keys::from([(1, beside), (2, old[&2].clone())]),
            [1, 2],
        )
        .unwrap_err();
        assert_eq!(fault.code, Code::Sealed);
        // All shares of an epoch have one version: messages between two versions are rejected by
        // the frame's checks.
        let mixed = Keys::from([(1, made[&1].clone()), (2, old[&2].clone())]);
        let fault = sign(&vault, &mixed, [1, 2]).unwrap_err();
        assert_eq!(fault.code, Code::Malformed);
        assert!(
            fault.message.contains("another version"),
            "{}",
            fault.message
        );

        let recovery = StaticSecret::from(random::<32>().unwrap());
        let backup = vault
            .backup(
                &old[&3].meta,
                &old[&3].sealed,
                PublicKey::from(&recovery).as_bytes(),
            )
            .unwrap();
        let sealed = vault
            .restore(&old[&3].meta, &backup, &recovery.to_bytes())
            .unwrap();
        let restored = Key {
            sealed,
            ..old[&3].clone()
        };
        assert_eq!(
            vault
                .unseal(&restored.meta, &restored.sealed)
                .unwrap()
                .engine_version,
            OLDER_IN_TESTS
        );
        old.insert(3, restored);
        sign(&vault, &old, [1, 3]).unwrap();

        let fresh = refresh(&vault, &old).unwrap();
        for (party, key) in &fresh {
            assert_eq!(key.engine_version, versions[0]);
            assert_eq!(key.public_key, old[party].public_key);
            assert_eq!(
                vault.unseal(&key.meta, &key.sealed).unwrap().engine_version,
                versions[0]
            );
        }
        for pair in [[1, 2], [1, 3], [2, 3]] {
            sign(&vault, &fresh, pair).unwrap();
        }
    }
}

#[test]
fn an_unlisted_version_is_named_with_what_opens_and_what_to_do() {
    assert_eq!(unlisted("engine", "1.0.1", &["1.1.0", "1.0.1"]), None);
    let why = unlisted("engine", "0.9.0", &["1.1.0", "1.0.1"]).unwrap();
    for part in ["engine \"0.9.0\"", "1.1.0, 1.0.1", "refresh the key there"] {
        assert!(why.contains(part), "{why}");
    }
    assert!(
        unlisted("engine", &"9".repeat(10_000), &["1"])
            .unwrap()
            .len()
            < 400
    );
    // Only the exact text matches: no prefix, and no other spelling of the same number.
    for version in ["", "1", "1.0", "1.0.1 ", "v1.0.1", "1.0.10"] {
        assert!(unlisted("engine", version, &["1.0.1"]).is_some());
    }
}

#[test]
fn nodes_that_make_shares_of_different_versions_do_not_run_together() {
    let context = |protocol, made_version| {
        Context {
            protocol,
            engine: "engine",
            engine_version: "1",
            made_version,
            session_id: &[0; 32],
            key_id: "k",
            epoch: 0,
            participants: &PARTIES,
            key: &[],
            share_set: &[],
            path: &[],
            message: &[],
        }
        .binding()
    };
    assert_ne!(context("refresh", "1"), context("refresh", "2"));
    assert_ne!(context("keygen", "1"), context("keygen", "2"));
}
