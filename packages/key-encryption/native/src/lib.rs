//! Wraps and unwraps a data key inside a PKCS#11 token: AES-256-GCM with a key that never leaves
//! the token. Errors are passed to JavaScript as the text `CODE|message`.
#![deny(unused_must_use)]

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error as TokenError, RvError};
use cryptoki::mechanism::{aead::GcmParams, Mechanism};
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::types::AuthPin;
use napi::bindgen_prelude::*;
use napi::Task;
use napi_derive::napi;
use std::sync::Mutex;
use zeroize::{Zeroize, Zeroizing};

const IV_BYTES: usize = 12;
const TAG_BITS: u64 = 128;
/// Lock for the use of the PKCS#11 module, which is initialised once in a process. Each user of the
/// module closes everything before it releases the lock.
static TURN: Mutex<()> = Mutex::new(());

struct Fault(&'static str, String);
type Outcome<T> = std::result::Result<T, Fault>;

impl From<Fault> for napi::Error {
    fn from(Fault(code, message): Fault) -> Self {
        napi::Error::from_reason(format!("{code}|{message}"))
    }
}

/// Converts a token's error to an error code and message for the operator.
fn fault(doing: &str, error: TokenError) -> Fault {
    let code = match &error {
        TokenError::Pkcs11(rv, _) => match rv {
            RvError::PinIncorrect
            | RvError::PinInvalid
            | RvError::PinLenRange
            | RvError::PinExpired
            | RvError::PinLocked => "DENIED",
            RvError::UserNotLoggedIn
            | RvError::KeyFunctionNotPermitted
            | RvError::AttributeSensitive => "DENIED",
            RvError::EncryptedDataInvalid
            | RvError::EncryptedDataLenRange
            | RvError::DataInvalid => "SEALED",
            RvError::MechanismInvalid
            | RvError::MechanismParamInvalid
            | RvError::FunctionNotSupported => "SETTING",
            // SoftHSM reports a wrong tag this way.
            RvError::GeneralError if doing == "unwrap" => "SEALED",
            _ => "AWAY",
        },
        TokenError::LibraryLoading(_) => "SETTING",
        _ => "AWAY",
    };
    Fault(code, format!("{doing}: {error}"))
}

#[napi(object)]
pub struct TokenKey {
    pub module: String,
    pub token: String,
    pub label: String,
    /// CKA_ID in bytes; absent: the only key with that label.
    pub id: Option<Uint8Array>,
    pub pin: Uint8Array,
}

struct Place {
    module: String,
    token: String,
    label: String,
    id: Option<Vec<u8>>,
    pin: Zeroizing<Vec<u8>>,
}

impl From<TokenKey> for Place {
    fn from(key: TokenKey) -> Self {
        let TokenKey {
            module,
            token,
            label,
            id,
            pin,
        } = key;
        Self {
            module,
            token,
            label,
            id: id.map(|id| id.to_vec()),
            pin: Zeroizing::new(pin.to_vec()),
        }
    }
}

fn within<T>(place: &Place, body: impl FnOnce(&Session) -> Outcome<T>) -> Outcome<T> {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let module = Pkcs11::new(&place.module).map_err(|e| fault("module", e))?;
    module
        .initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK))
        .map_err(|e| fault("module", e))?;
    let outcome = opened(&module, place).and_then(|session| body(&session));
    let _ = module.finalize();
    outcome
}

fn opened(module: &Pkcs11, place: &Place) -> Outcome<Session> {
    let slots = module
        .get_slots_with_token()
        .map_err(|e| fault("slots", e))?;
    let mut found = Vec::new();
    for slot in slots {
        let info = module.get_token_info(slot).map_err(|e| fault("token", e))?;
        if info.token_initialized() && info.label().trim_end() == place.token {
            found.push(slot);
        }
    }
    let slot = match found[..] {
        [slot] => slot,
        [] => {
            return Err(Fault(
                "AWAY",
                format!("token: there is none of the label {:?}", place.token),
            ))
        }
        _ => {
            return Err(Fault(
                "SETTING",
                format!("token: several have the label {:?}", place.token),
            ))
        }
    };
    let session = module
        .open_rw_session(slot)
        .map_err(|e| fault("session", e))?;
    let mut text = String::from_utf8(place.pin.to_vec())
        .map_err(|_| Fault("SETTING", "pin: not a text".into()))?;
    let pin = AuthPin::new(text.clone().into_boxed_str());
    text.zeroize();
    session
        .login(UserType::User, Some(&pin))
        .map_err(|e| fault("login", e))?;
    Ok(session)
}

/// Finds the one AES-256 key with that name and checks that it can never leave the token.
fn key_of(session: &Session, place: &Place) -> Outcome<(ObjectHandle, Vec<u8>)> {
    let mut wanted = vec![
        Attribute::Class(ObjectClass::SECRET_KEY),
        Attribute::KeyType(KeyType::AES),
        Attribute::Label(place.label.as_bytes().to_vec()),
    ];
    if let Some(id) = &place.id {
        wanted.push(Attribute::Id(id.clone()));
    }
    let found = session.find_objects(&wanted).map_err(|e| fault("key", e))?;
    let key = match found[..] {
        [key] => key,
        [] => {
            return Err(Fault(
                "NO_KEY",
                format!("key: the token has no AES key {:?} of that id", place.label),
            ))
        }
        _ => {
            return Err(Fault(
                "SETTING",
                format!(
                    "key: several have the label {:?}; name one by its id",
                    place.label
                ),
            ))
        }
    };
    let asked = [
        AttributeType::Id,
        AttributeType::Sensitive,
        AttributeType::Extractable,
        AttributeType::ValueLen,
    ];
    let mut id = None;
    for attribute in session
        .get_attributes(key, &asked)
        .map_err(|e| fault("key", e))?
    {
        match attribute {
            Attribute::Id(bytes) => id = Some(bytes),
            Attribute::Sensitive(false) => {
                return Err(Fault(
                    "SETTING",
                    "key: is not sensitive (CKA_SENSITIVE)".into(),
                ))
            }
            Attribute::Extractable(true) => {
                return Err(Fault(
                    "SETTING",
                    "key: may leave the token (CKA_EXTRACTABLE)".into(),
                ))
            }
            Attribute::ValueLen(length) if u64::from(length) != 32 => {
                return Err(Fault("SETTING", "key: is not of 256 bits".into()))
            }
            _ => {}
        }
    }
    match id {
        Some(id) if !id.is_empty() => Ok((key, id)),
        _ => Err(Fault("SETTING", "key: has no id (CKA_ID)".into())),
    }
}

fn wrap(place: &Place, aad: &[u8], data_key: &[u8]) -> Outcome<Wrapped> {
    within(place, |session| {
        let (key, id) = key_of(session, place)?;
        let mut iv = [0; IV_BYTES];
        getrandom::fill(&mut iv)
            .map_err(|_| Fault("AWAY", "the system gives no randomness".into()))?;
        // Some tokens generate the IV themselves and write it here, so it is read afterwards.
        let params = GcmParams::new(&mut iv, aad, TAG_BITS.into()).map_err(|e| fault("wrap", e))?;
        let text = session
            .encrypt(&Mechanism::AesGcm(params), key, data_key)
            .map_err(|e| fault("wrap", e))?;
        Ok(Wrapped {
            id,
            iv: iv.to_vec(),
            text,
        })
    })
}

fn unwrap(place: &Place, aad: &[u8], iv: &[u8], text: &[u8]) -> Outcome<Zeroizing<Vec<u8>>> {
    within(place, |session| {
        let (key, _) = key_of(session, place)?;
        let mut iv = iv.to_vec();
        let params =
            GcmParams::new(&mut iv, aad, TAG_BITS.into()).map_err(|e| fault("unwrap", e))?;
        let opened = session
            .decrypt(&Mechanism::AesGcm(params), key, text)
            .map_err(|e| fault("unwrap", e))?;
        Ok(Zeroizing::new(opened))
    })
}

fn generate(place: &Place) -> Outcome<()> {
    within(place, |session| {
        match key_of(session, place) {
            Err(Fault("NO_KEY", _)) => {}
            Err(other) => return Err(other),
            Ok(_) => {
                return Err(Fault(
                    "SETTING",
                    "key: there is one of that label and id already".into(),
                ))
            }
        }
        let id = place
            .id
            .clone()
            .ok_or_else(|| Fault("SETTING", "key: needs an id".into()))?;
        let attributes = [
            Attribute::Token(true),
            Attribute::Private(true),
            Attribute::Sensitive(true),
            Attribute::Extractable(false),
            Attribute::Encrypt(true),
            Attribute::Decrypt(true),
            Attribute::ValueLen(32.into()),
            Attribute::Label(place.label.as_bytes().to_vec()),
            Attribute::Id(id),
        ];
        session
            .generate_key(&Mechanism::AesKeyGen, &attributes)
            .map_err(|e| fault("key", e))?;
        Ok(())
    })
}

pub struct Wrapped {
    id: Vec<u8>,
    iv: Vec<u8>,
    text: Vec<u8>,
}

#[napi(object)]
pub struct WrappedKey {
    pub id: Uint8Array,
    pub iv: Uint8Array,
    pub text: Uint8Array,
}

/// Work for a thread of the libuv pool, because a token on a network may be slow.
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
            .ok_or_else(|| Fault("AWAY", "job run twice".into()))?;
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        Ok(outcome.unwrap_or_else(|_| Err(Fault("AWAY", "the token's module failed".into())))?)
    }
}

impl Task for Job<Wrapped> {
    type Output = Wrapped;
    type JsValue = WrappedKey;
    fn compute(&mut self) -> Result<Wrapped> {
        self.work()
    }
    fn resolve(&mut self, _: Env, output: Wrapped) -> Result<WrappedKey> {
        Ok(WrappedKey {
            id: output.id.into(),
            iv: output.iv.into(),
            text: output.text.into(),
        })
    }
}

impl Task for Job<Zeroizing<Vec<u8>>> {
    type Output = Zeroizing<Vec<u8>>;
    type JsValue = Uint8Array;
    fn compute(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        self.work()
    }
    fn resolve(&mut self, _: Env, output: Zeroizing<Vec<u8>>) -> Result<Uint8Array> {
        Ok(output.to_vec().into())
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

#[napi(ts_return_type = "Promise<WrappedKey>")]
pub fn wrap_key(key: TokenKey, aad: Uint8Array, data_key: Uint8Array) -> AsyncTask<Job<Wrapped>> {
    let (place, aad, data_key) = (
        Place::from(key),
        aad.to_vec(),
        Zeroizing::new(data_key.to_vec()),
    );
    Job::run(move || wrap(&place, &aad, &data_key))
}

#[napi(ts_return_type = "Promise<Uint8Array>")]
pub fn unwrap_key(
    key: TokenKey,
    aad: Uint8Array,
    iv: Uint8Array,
    text: Uint8Array,
) -> AsyncTask<Job<Zeroizing<Vec<u8>>>> {
    let (place, aad, iv, text) = (Place::from(key), aad.to_vec(), iv.to_vec(), text.to_vec());
    Job::run(move || unwrap(&place, &aad, &iv, &text))
}

/// Generates an AES-256 key, sensitive and not extractable, with the given label and id.
#[napi(ts_return_type = "Promise<void>")]
pub fn generate_key(key: TokenKey) -> AsyncTask<Job<()>> {
    let place = Place::from(key);
    Job::run(move || generate(&place))
}
