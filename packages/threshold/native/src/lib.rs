//! The native half of `@custody/threshold`: two-of-three keys on secp256k1 (DKLs23) and Ed25519
//! (FROST). Shares are unsealed, used and sealed here; JavaScript sees only sealed bytes.
#![deny(unused_must_use)]

mod background;
mod derive;
mod dkls;
mod fault;
mod frame;
mod frost;
#[cfg_attr(test, allow(dead_code))] // exported to JavaScript, but unused in unit tests
mod harden;
mod private;
mod rng;
mod session;
#[cfg(test)]
mod tests;
#[cfg(all(test, target_os = "linux"))] // they replace a function of the C library
mod transcripts;
mod vault;

use fault::{Fault, Outcome};
use frame::{Inbound, PAYLOAD_BYTES_MAX};
use napi::bindgen_prelude::*;
use napi::Task;
use napi_derive::napi;
use session::{unlisted, Done, Key, Machine, Progress, Signature, PARTIES};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, Once};
use vault::{HomeKey, Meta, Vault, KEY_NAME_BYTES};
use zeroize::{Zeroize, Zeroizing};

/// Runs a body that may panic on hostile input. A panic becomes an error, and its text, which might
/// contain a secret, is not printed.
fn guarded<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|_| Err(Fault::abort("the engine refused its input (panic caught)")))
}

/// Work for a thread of the libuv pool.
pub struct Job<T: Send + 'static> {
    body: Option<Box<dyn FnOnce() -> Outcome<T> + Send>>,
}

impl<T: Send + 'static> Job<T> {
    fn run(body: impl FnOnce() -> Outcome<T> + Send + 'static) -> AsyncTask<Self>
    where
        Self: Task,
    {
        AsyncTask::new(Self {
            body: Some(Box::new(body)),
        })
    }
    fn work(&mut self) -> Result<T> {
        let body = self
            .body
            .take()
            .ok_or_else(|| Fault::abort("job run twice"))?;
        Ok(guarded(body)?)
    }
}

impl Task for Job<Vec<u8>> {
    type Output = Vec<u8>;
    type JsValue = Uint8Array;
    fn compute(&mut self) -> Result<Vec<u8>> {
        self.work()
    }
    fn resolve(&mut self, _: Env, output: Vec<u8>) -> Result<Uint8Array> {
        Ok(output.into())
    }
}

impl Task for Job<()> {
    type Output = ();
    type JsValue = ();
    fn compute(&mut self) -> Result<()> {
        self.work()
    }
    fn resolve(&mut self, _: Env, _: ()) -> Result<()> {
        Ok(())
    }
}

impl Task for Job<Vault> {
    type Output = Vault;
    type JsValue = NativeVault;
    fn compute(&mut self) -> Result<Vault> {
        self.work()
    }
    fn resolve(&mut self, _: Env, vault: Vault) -> Result<NativeVault> {
        Ok(NativeVault {
            vault: Arc::new(vault),
        })
    }
}

impl Task for Job<Progress> {
    type Output = Progress;
    type JsValue = NativeStep;
    fn compute(&mut self) -> Result<Progress> {
        self.work()
    }
    fn resolve(&mut self, _: Env, progress: Progress) -> Result<NativeStep> {
        let (key, signature) = match progress.done {
            None => (None, None),
            Some(Done::Key(key)) => (Some(key.into()), None),
            Some(Done::Signature(signature)) => (None, Some(signature.into())),
        };
        let messages = progress
            .messages
            .into_iter()
            .map(|m| NativeOutMessage {
                to: m.to.into(),
                payload: m.payload.into(),
            })
            .collect();
        Ok(NativeStep {
            round: progress.round.into(),
            messages,
            key,
            signature,
        })
    }
}

#[napi(object)]
pub struct NativeOutMessage {
    pub to: u32,
    pub payload: Uint8Array,
}

#[napi(object)]
pub struct NativeInMessage {
    pub from: u32,
    pub payload: Uint8Array,
}

#[napi(object)]
pub struct NativeMeta {
    pub engine: String,
    pub curve: String,
    pub key_id: String,
    pub epoch: u32,
    pub party: u32,
}

#[napi(object)]
pub struct NativeKey {
    pub engine: String,
    pub engine_version: String,
    pub curve: String,
    pub key_id: String,
    pub epoch: u32,
    pub party: u32,
    pub public_key: Uint8Array,
    pub chain_code: Uint8Array,
    pub sealed_share: Uint8Array,
}

#[napi(object)]
pub struct NativeSignature {
    pub signature: Uint8Array,
    pub recovery_id: Option<u32>,
}

#[napi(object)]
pub struct NativeStep {
    pub round: u32,
    pub messages: Vec<NativeOutMessage>,
    pub key: Option<NativeKey>,
    pub signature: Option<NativeSignature>,
}

impl From<Key> for NativeKey {
    fn from(key: Key) -> Self {
        Self {
            engine: key.meta.engine,
            engine_version: key.engine_version,
            curve: key.meta.curve,
            key_id: key.meta.key_id,
            epoch: key.meta.epoch,
            party: key.meta.party.into(),
            public_key: key.public_key.into(),
            chain_code: key.chain_code.to_vec().into(),
            sealed_share: key.sealed.into(),
        }
    }
}

impl From<Signature> for NativeSignature {
    fn from(signature: Signature) -> Self {
        Self {
            signature: signature.bytes.to_vec().into(),
            recovery_id: signature.recovery_id.map(u32::from),
        }
    }
}

fn bytes32(bytes: &[u8], name: &str) -> Outcome<[u8; 32]> {
    bytes
        .try_into()
        .map_err(|_| Fault::argument(format!("{name} has 32 bytes")))
}

fn party(number: u32) -> Outcome<u8> {
    PARTIES
        .into_iter()
        .find(|party| u32::from(*party) == number)
        .ok_or_else(|| Fault::argument("a party is 1, 2 or 3"))
}

/// Returns the engine of a curve, and its versions whose shares can be opened.
fn engine_of(curve: &str) -> Outcome<(&'static str, &'static [&'static str])> {
    match curve {
        dkls::CURVE => Ok((dkls::ENGINE, dkls::VERSIONS)),
        frost::CURVE => Ok((frost::ENGINE, frost::VERSIONS)),
        _ => Err(Fault::argument("a curve is secp256k1 or ed25519")),
    }
}

fn meta(engine: String, curve: String, key_id: String, epoch: u32, number: u32) -> Outcome<Meta> {
    if engine != engine_of(&curve)?.0 {
        return Err(Fault::argument("no such engine for this curve"));
    }
    if key_id.is_empty() || key_id.len() > 256 {
        return Err(Fault::argument("a key id has 1 to 256 bytes"));
    }
    Ok(Meta {
        engine,
        curve,
        key_id,
        epoch,
        party: party(number)?,
    })
}

impl NativeMeta {
    fn read(self) -> Outcome<Meta> {
        meta(self.engine, self.curve, self.key_id, self.epoch, self.party)
    }
}

impl NativeKey {
    fn read(self) -> Outcome<Key> {
        let meta = meta(self.engine, self.curve, self.key_id, self.epoch, self.party)?;
        if let Some(why) = unlisted(
            &meta.engine,
            &self.engine_version,
            engine_of(&meta.curve)?.1,
        ) {
            return Err(Fault::argument(why));
        }
        Ok(Key {
            meta,
            engine_version: self.engine_version,
            public_key: self.public_key.to_vec(),
            chain_code: bytes32(&self.chain_code, "a chain code")?,
            sealed: self.sealed_share.to_vec(),
        })
    }
}

/// Stores the key-encryption key; no function returns it.
#[napi]
pub struct NativeVault {
    vault: Arc<Vault>,
}

#[napi]
impl NativeVault {
    #[napi(ts_return_type = "Promise<Uint8Array>")]
    pub fn seal_backup(
        &self,
        sealed: Uint8Array,
        meta: NativeMeta,
        recovery_public_key: Uint8Array,
    ) -> Result<AsyncTask<Job<Vec<u8>>>> {
        let (vault, meta) = (self.vault.clone(), meta.read()?);
        let (sealed, recovery) = (sealed.to_vec(), recovery_public_key.to_vec());
        Ok(Job::run(move || vault.backup(&meta, &sealed, &recovery)))
    }

    #[napi(ts_return_type = "Promise<Uint8Array>")]
    pub fn restore_backup(
        &self,
        backup: Uint8Array,
        recovery_secret_key: Uint8Array,
        meta: NativeMeta,
    ) -> Result<AsyncTask<Job<Vec<u8>>>> {
        let (vault, meta) = (self.vault.clone(), meta.read()?);
        let secret = Zeroizing::new(bytes32(&recovery_secret_key, "a recovery secret key")?);
        let backup = backup.to_vec();
        let listed = engine_of(&meta.curve)?.1;
        Ok(Job::run(move || {
            let sealed = vault.restore(&meta, &backup, &secret)?;
            // Checked now, because the first signature may happen much later, and the recovery key
            // is available only now.
            match unlisted(
                &meta.engine,
                &vault.unseal(&meta, &sealed)?.engine_version,
                listed,
            ) {
                Some(why) => Err(Fault::sealed(why)),
                None => Ok(sealed),
            }
        }))
    }

    #[napi(ts_return_type = "Promise<Uint8Array>")]
    pub fn rewrap(&self, sealed: Uint8Array, meta: NativeMeta) -> Result<AsyncTask<Job<Vec<u8>>>> {
        let (vault, meta) = (self.vault.clone(), meta.read()?);
        let sealed = sealed.to_vec();
        Ok(Job::run(move || vault.rewrap(&meta, &sealed)))
    }
}

#[napi(object)]
pub struct NativeHomeKey {
    pub name: Uint8Array,
    pub key: Uint8Array,
}

#[napi]
pub fn open_vault_keys(
    keys: Vec<NativeHomeKey>,
    earlier: Option<&NativeVault>,
) -> Result<NativeVault> {
    let keys = keys.iter().map(|each| {
        let name: [u8; KEY_NAME_BYTES] = each.name[..]
            .try_into()
            .map_err(|_| Fault::argument("a key's name has 8 bytes"))?;
        Ok(HomeKey {
            name,
            key: Zeroizing::new(bytes32(&each.key, "a key of a home")?),
        })
    });
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let vault = guarded(|| Vault::from_keys(keys, earlier.map(|each| &*each.vault)))?;
    Ok(NativeVault {
        vault: Arc::new(vault),
    })
}

#[napi(ts_return_type = "Promise<NativeVault>")]
pub fn open_vault_file(path: String) -> AsyncTask<Job<Vault>> {
    Job::run(move || Vault::from_file(&path))
}

#[napi(ts_return_type = "Promise<NativeVault>")]
pub fn open_vault_passphrase(mut passphrase: String, salt: Uint8Array) -> AsyncTask<Job<Vault>> {
    let salt = salt.to_vec();
    Job::run(move || {
        let opened = Vault::from_passphrase(&passphrase, &salt);
        passphrase.zeroize();
        opened
    })
}

#[napi(ts_return_type = "Promise<void>")]
pub fn create_key_file(path: String) -> AsyncTask<Job<()>> {
    Job::run(move || Vault::create_key_file(&path))
}

type Begin = Box<dyn FnOnce() -> Outcome<Box<dyn Machine>> + Send>;

/// State of a session. Secrets of the run exist only here.
enum Slot {
    /// Before the first step: the share is still sealed.
    Fresh(Begin),
    Ready(Box<dyn Machine>),
    Running,
    Over,
}

#[napi]
pub struct NativeSession {
    slot: Arc<Mutex<Slot>>,
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn session(begin: Begin) -> NativeSession {
    NativeSession {
        slot: Arc::new(Mutex::new(Slot::Fresh(begin))),
    }
}

#[napi]
impl NativeSession {
    #[napi(ts_return_type = "Promise<NativeStep>")]
    pub fn step(
        &self,
        inbox: Vec<NativeInMessage>,
        background: bool,
    ) -> Result<AsyncTask<Job<Progress>>> {
        let oversized = inbox
            .iter()
            .find(|m| m.payload.len() > PAYLOAD_BYTES_MAX)
            .map(|m| m.from);
        let crowded = inbox.len() > PARTIES.len();
        // Messages that are rejected unread are not copied either.
        let inbox: Vec<Inbound> = if oversized.is_some() || crowded {
            Vec::new()
        } else {
            inbox
                .into_iter()
                .map(|m| Inbound {
                    from: m.from,
                    payload: m.payload.to_vec(),
                })
                .collect()
        };
        let mut guard = lock(&self.slot);
        let taken = match std::mem::replace(&mut *guard, Slot::Running) {
            Slot::Running => return Err(Fault::argument("the step before has not ended").into()),
            Slot::Over => {
                *guard = Slot::Over;
                return Err(Fault::argument("this session is over").into());
            }
            other => other,
        };
        drop(guard);
        let slot = self.slot.clone();
        Ok(Job::run(move || {
            let work = move || {
                if let Some(from) = oversized {
                    let from = u8::try_from(from).unwrap_or(0);
                    return Err(Fault::malformed(from, "message over the limit of 1 MiB"));
                }
                let mut machine = match taken {
                    Slot::Fresh(begin) => {
                        if crowded || !inbox.is_empty() {
                            return Err(Fault::argument("the first step takes no messages"));
                        }
                        begin()?
                    }
                    Slot::Ready(_) if crowded => {
                        return Err(Fault {
                            code: fault::Code::Malformed,
                            counterparty: None,
                            message: "more messages than participants".into(),
                        });
                    }
                    Slot::Ready(machine) => machine,
                    Slot::Running | Slot::Over => {
                        return Err(Fault::argument("this session is over"))
                    }
                };
                let progress = machine.step(inbox)?;
                Ok((machine, progress))
            };
            let result = if background {
                background::run(|| guarded(work))
            } else {
                guarded(work)
            };
            let mut guard = lock(&slot);
            // The session was aborted while this step ran, so its result is discarded.
            let aborted = matches!(*guard, Slot::Over);
            *guard = Slot::Over;
            let (machine, progress) = result?;
            if aborted {
                return Err(Fault::abort("session aborted"));
            }
            if progress.done.is_none() {
                *guard = Slot::Ready(machine);
            }
            Ok(progress)
        }))
    }

    #[napi]
    pub fn abort(&self) {
        *lock(&self.slot) = Slot::Over;
    }
}

#[napi]
pub fn start_keygen(
    vault: &NativeVault,
    curve: String,
    key_id: String,
    session_id: Uint8Array,
    number: u32,
) -> Result<NativeSession> {
    let engine = engine_of(&curve)?.0;
    let meta = meta(engine.into(), curve, key_id, 0, number)?;
    let session_id = bytes32(&session_id, "a session id")?;
    let vault = vault.vault.clone();
    Ok(session(Box::new(move || {
        Ok(if meta.curve == dkls::CURVE {
            Box::new(dkls::Generation::start_new(vault, meta, session_id))
        } else {
            Box::new(frost::Generation::start_new(vault, meta, session_id))
        })
    })))
}

#[napi]
pub fn start_sign(
    vault: &NativeVault,
    key: NativeKey,
    session_id: Uint8Array,
    participants: Vec<u32>,
    path: Vec<u32>,
    message: Uint8Array,
) -> Result<NativeSession> {
    let key = key.read()?;
    let session_id = bytes32(&session_id, "a session id")?;
    let [first, second] = participants[..] else {
        return Err(Fault::argument("exactly two parties sign").into());
    };
    let mut pair = [party(first)?, party(second)?];
    pair.sort_unstable();
    if pair[0] == pair[1] || !pair.contains(&key.meta.party) {
        return Err(Fault::argument("two different parties sign, this one among them").into());
    }
    derive::check_path(&path)?;
    if message.len() > PAYLOAD_BYTES_MAX {
        return Err(Fault::argument("message over the limit of 1 MiB").into());
    }
    let vault = vault.vault.clone();
    if key.meta.curve == dkls::CURVE {
        let digest = bytes32(&message, "a digest")?;
        return Ok(session(Box::new(move || {
            Ok(Box::new(dkls::Signing::start(
                vault, key, session_id, pair, &path, digest,
            )?))
        })));
    }
    let message = message.to_vec();
    Ok(session(Box::new(move || {
        Ok(Box::new(frost::Signing::start(
            vault, key, session_id, pair, &path, message,
        )?))
    })))
}

#[napi]
pub fn start_refresh(
    vault: &NativeVault,
    key: NativeKey,
    session_id: Uint8Array,
) -> Result<NativeSession> {
    let key = key.read()?;
    let session_id = bytes32(&session_id, "a session id")?;
    let vault = vault.vault.clone();
    Ok(session(Box::new(move || {
        Ok(if key.meta.curve == dkls::CURVE {
            Box::new(dkls::Generation::start_refresh(vault, key, session_id)?)
        } else {
            Box::new(frost::Generation::start_refresh(vault, key, session_id)?)
        })
    })))
}

#[napi]
pub fn derive_public_key(
    curve: String,
    public_key: Uint8Array,
    chain_code: Uint8Array,
    path: Vec<u32>,
) -> Result<Uint8Array> {
    engine_of(&curve)?;
    let chain_code = bytes32(&chain_code, "a chain code")?;
    Ok(guarded(|| {
        if curve == dkls::CURVE {
            derive::secp256k1_public(&public_key, chain_code, &path)
        } else {
            Ok(derive::ed25519_child(&public_key, chain_code, &path)?
                .public_key
                .to_vec())
        }
    })?
    .into())
}

/// Returns `[curve, engine, version...]` of each engine: the versions whose shares can be opened,
/// the one of new shares first.
#[napi]
pub fn engines() -> Vec<Vec<String>> {
    let row = |curve: &str, engine: &str, versions: &[&str]| {
        [&[curve, engine], versions]
            .concat()
            .into_iter()
            .map(String::from)
            .collect()
    };
    vec![
        row(dkls::CURVE, dkls::ENGINE, dkls::VERSIONS),
        row(frost::CURVE, frost::ENGINE, frost::VERSIONS),
    ]
}
