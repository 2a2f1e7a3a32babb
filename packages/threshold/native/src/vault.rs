//! Stored shares and their backups. The key-encryption key never leaves this module.
//!
//! Sealed share: `"TSS1" | wrap nonce 12 | wrapped data key 48 | nonce 12 | ciphertext`.
//! A random data key encrypts each share; the key-encryption key (KEK) encrypts the data key.
//!
//! Sealed share with one of the data folder's own keys, which an external KEK wraps (`keys.json` of
//! a node): `"TSS2" | folder key name 8 | wrap nonce 12 | wrapped data key 48 | nonce 12 |
//! ciphertext`. The key's name is associated data of the wrapped data key, so that it cannot be
//! replaced.
//!
//! Backup: `"TSB1" | ephemeral X25519 key 32 | nonce 12 | ciphertext`. The key is derived by
//! HKDF-SHA256 from the shared secret, with both public keys as salt. Restoring requires the
//! recovery secret key; the node that wrote the backup cannot decrypt it.
//!
//! Associated data of all formats: format, engine, curve, party, key id, epoch. A share that is
//! moved to another node, key or epoch cannot be opened.

use crate::fault::{Fault, Outcome};
use crate::frame::hash;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use hkdf::Hkdf;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

const SEAL_MAGIC: &[u8; 4] = b"TSS1";
const NAMED_MAGIC: &[u8; 4] = b"TSS2";
pub const KEY_NAME_BYTES: usize = 8;
/// Maximum number of keys. A rotation in progress has two; more than a few mean that rotations were
/// never completed.
const HOME_KEYS_MAX: usize = 16;
const BACKUP_MAGIC: &[u8; 4] = b"TSB1";
pub const NONCE_BYTES: usize = 12;
const WRAPPED_BYTES: usize = 32 + 16;
const SEALED_BYTES_MAX: usize = 1 << 20;
pub const KEY_FILE_BYTES: u64 = 32;
/// RFC 9106, second recommended option, but with one lane: 64 MiB, three passes.
const ARGON2_MEMORY_KIB: u32 = 64 * 1024;
const ARGON2_PASSES: u32 = 3;
const PASSPHRASE_BYTES_MIN: usize = 12;
const SALT_BYTES_MIN: usize = 16;

/// Metadata that a sealed share is bound to.
#[derive(Clone, Debug)]
pub struct Meta {
    pub engine: String,
    pub curve: String,
    pub key_id: String,
    pub epoch: u32,
    pub party: u8,
}

impl Meta {
    fn associated(&self, purpose: &str) -> [u8; 32] {
        hash(
            "custody/threshold/share/v1",
            &[
                purpose.as_bytes(),
                self.engine.as_bytes(),
                self.curve.as_bytes(),
                &[self.party],
                self.key_id.as_bytes(),
                &self.epoch.to_be_bytes(),
            ],
        )
    }
}

/// The plaintext of a sealed share.
#[derive(Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct Share {
    pub engine_version: String,
    pub public_key: Vec<u8>,
    pub chain_code: [u8; 32],
    /// The engine's own encoding of the party's state.
    pub state: Vec<u8>,
}

/// A key of the data folder, with the name by which sealed shares refer to it.
pub struct HomeKey {
    pub name: [u8; KEY_NAME_BYTES],
    pub key: Zeroizing<[u8; 32]>,
}

#[derive(Default)]
pub struct Vault {
    /// The first key seals, and all of them open.
    keys: Vec<HomeKey>,
    /// Key-encryption key of a data folder without keys of its own. It seals if there are none, and
    /// it always opens.
    kek: Option<Zeroizing<[u8; 32]>>,
}

/// The parts of a sealed share, in either format.
struct Parts<'a> {
    key: &'a [u8; 32],
    purpose: String,
    wrap_nonce: &'a [u8],
    wrapped: &'a [u8],
    nonce: &'a [u8],
    text: &'a [u8],
}

fn wrap_purpose(name: &[u8; KEY_NAME_BYTES]) -> String {
    let digits: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("wrap/{digits}")
}

pub fn random<const N: usize>() -> Outcome<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Fault::abort("the system gives no randomness"))?;
    Ok(bytes)
}

pub fn encrypt(
    key: &[u8; 32],
    nonce: &[u8; NONCE_BYTES],
    aad: &[u8],
    msg: &[u8],
) -> Outcome<Vec<u8>> {
    Aes256Gcm::new(&Key::<Aes256Gcm>::from(*key))
        .encrypt(&Nonce::from(*nonce), Payload { msg, aad })
        .map_err(|_| Fault::sealed("encryption failed"))
}

pub fn decrypt(
    key: &[u8; 32],
    nonce: &[u8],
    aad: &[u8],
    msg: &[u8],
) -> Outcome<Zeroizing<Vec<u8>>> {
    let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| Fault::sealed("damaged"))?;
    Aes256Gcm::new(&Key::<Aes256Gcm>::from(*key))
        .decrypt(&Nonce::from(nonce), Payload { msg, aad })
        .map(Zeroizing::new)
        .map_err(|_| Fault::sealed("does not open: another key, another share, or changed bytes"))
}

impl Vault {
    /// Opens a vault with a file of 32 random bytes that only its owner can read.
    pub fn from_file(path: &str) -> Outcome<Self> {
        let failed = |e: std::io::Error| Fault::sealed(format!("key file {path}: {e}"));
        let mut file = std::fs::File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(Fault::sealed(format!(
                "key file {path}: not a regular file"
            )));
        }
        if meta.mode() & 0o077 != 0 {
            return Err(Fault::sealed(format!(
                "key file {path}: mode {:o} lets others read it; it must be 600",
                meta.mode() & 0o777
            )));
        }
        // SAFETY: geteuid has no preconditions and cannot fail.
        let user = unsafe { libc::geteuid() };
        if meta.uid() != user && meta.uid() != 0 {
            return Err(Fault::sealed(format!(
                "key file {path}: belongs to another user"
            )));
        }
        if meta.len() != KEY_FILE_BYTES {
            return Err(Fault::sealed(format!(
                "key file {path}: must hold exactly 32 bytes"
            )));
        }
        let mut kek = Zeroizing::new([0; 32]);
        file.read_exact(&mut kek[..]).map_err(failed)?;
        if kek.iter().all(|byte| *byte == kek[0]) {
            return Err(Fault::sealed(format!("key file {path}: not random")));
        }
        Ok(Self {
            keys: Vec::new(),
            kek: Some(kek),
        })
    }

    pub fn from_passphrase(passphrase: &str, salt: &[u8]) -> Outcome<Self> {
        if passphrase.len() < PASSPHRASE_BYTES_MIN {
            return Err(Fault::argument("a passphrase has at least 12 bytes"));
        }
        if salt.len() < SALT_BYTES_MIN || salt.len() > 1024 {
            return Err(Fault::argument("a salt has 16 to 1024 bytes"));
        }
        let params = argon2::Params::new(ARGON2_MEMORY_KIB, ARGON2_PASSES, 1, Some(32))
            .map_err(|_| Fault::argument("argon2 parameters"))?;
        let mut kek = Zeroizing::new([0; 32]);
        argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params)
            .hash_password_into(passphrase.as_bytes(), salt, &mut kek[..])
            .map_err(|e| Fault::argument(format!("argon2: {e}")))?;
        Ok(Self {
            keys: Vec::new(),
            kek: Some(kek),
        })
    }

    /// Writes a new key file, and never replaces an existing one.
    pub fn create_key_file(path: &str) -> Outcome<()> {
        let failed = |e: std::io::Error| Fault::sealed(format!("key file {path}: {e}"));
        let kek = Zeroizing::new(random::<32>()?);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        file.write_all(&kek[..]).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        // The file's name, like its content, must survive a power failure.
        let parent = std::path::Path::new(path)
            .parent()
            .filter(|p| !p.as_os_str().is_empty());
        std::fs::File::open(parent.unwrap_or(std::path::Path::new(".")))
            .and_then(|folder| folder.sync_all())
            .map_err(failed)
    }

    pub fn seal(&self, meta: &Meta, share: &Share) -> Outcome<Vec<u8>> {
        // The full capacity is allocated first: a growing vector would leave copies of the share.
        let room = share.state.len() + share.public_key.len() + 256;
        let plain = Zeroizing::new(
            postcard::to_extend(share, Vec::with_capacity(room))
                .map_err(|_| Fault::sealed("share does not encode"))?,
        );
        self.seal_plain(meta, &plain)
    }

    /// Opens a vault with the data folder's own keys, of which the first seals. `earlier` opens
    /// shares that were sealed before it had keys.
    pub fn from_keys(keys: Vec<HomeKey>, earlier: Option<&Vault>) -> Outcome<Self> {
        if keys.is_empty() || keys.len() > HOME_KEYS_MAX {
            return Err(Fault::argument("a vault has 1 to 16 keys"));
        }
        for (at, each) in keys.iter().enumerate() {
            if keys[..at].iter().any(|before| before.name == each.name) {
                return Err(Fault::argument("two keys of one name"));
            }
            if each.key.iter().all(|byte| *byte == each.key[0]) {
                return Err(Fault::argument("a key is not random"));
            }
        }
        Ok(Self {
            keys,
            kek: earlier.and_then(|vault| vault.kek.clone()),
        })
    }

    fn seal_plain(&self, meta: &Meta, plain: &[u8]) -> Outcome<Vec<u8>> {
        let data_key = Zeroizing::new(random::<32>()?);
        let nonce = random::<NONCE_BYTES>()?;
        let sealed = encrypt(&data_key, &nonce, &meta.associated("share"), plain)?;
        self.head(meta, &data_key, &nonce, &sealed)
    }

    /// Returns the sealed share: the data key wrapped with the current key, and the unchanged
    /// rest.
    fn head(
        &self,
        meta: &Meta,
        data_key: &[u8; 32],
        nonce: &[u8],
        sealed: &[u8],
    ) -> Outcome<Vec<u8>> {
        let wrap_nonce = random::<NONCE_BYTES>()?;
        if let Some(HomeKey { name, key }) = self.keys.first() {
            let associated = meta.associated(&wrap_purpose(name));
            let wrapped = encrypt(key, &wrap_nonce, &associated, data_key)?;
            return Ok([&NAMED_MAGIC[..], name, &wrap_nonce, &wrapped, nonce, sealed].concat());
        }
        let kek = self
            .kek
            .as_ref()
            .ok_or_else(|| Fault::argument("a vault without a key"))?;
        let wrapped = encrypt(kek, &wrap_nonce, &meta.associated("wrap"), data_key)?;
        Ok([&SEAL_MAGIC[..], &wrap_nonce, &wrapped, nonce, sealed].concat())
    }

    fn parts<'a>(&'a self, sealed: &'a [u8]) -> Outcome<Parts<'a>> {
        const REST: usize = NONCE_BYTES + WRAPPED_BYTES + NONCE_BYTES;
        let named = sealed.len() > 4 && &sealed[..4] == NAMED_MAGIC;
        let head = 4 + if named { KEY_NAME_BYTES } else { 0 };
        let known = named || (sealed.len() > 4 && &sealed[..4] == SEAL_MAGIC);
        if !known || sealed.len() < head + REST + 16 || sealed.len() > SEALED_BYTES_MAX {
            return Err(Fault::sealed("not a sealed share"));
        }
        let (key, purpose) = if named {
            let found = self.keys.iter().find(|each| each.name == sealed[4..head]);
            let HomeKey { name, key } = found
                .ok_or_else(|| Fault::sealed("sealed under a key that this home does not have"))?;
            (&**key, wrap_purpose(name))
        } else {
            let kek = self.kek.as_ref();
            let kek = kek
                .ok_or_else(|| Fault::sealed("sealed under a key that this home does not have"))?;
            (&**kek, "wrap".to_owned())
        };
        let (wrap_nonce, rest) = sealed[head..].split_at(NONCE_BYTES);
        let (wrapped, rest) = rest.split_at(WRAPPED_BYTES);
        let (nonce, text) = rest.split_at(NONCE_BYTES);
        Ok(Parts {
            key,
            purpose,
            wrap_nonce,
            wrapped,
            nonce,
            text,
        })
    }

    fn data_key(&self, meta: &Meta, parts: &Parts) -> Outcome<Zeroizing<[u8; 32]>> {
        let opened = decrypt(
            parts.key,
            parts.wrap_nonce,
            &meta.associated(&parts.purpose),
            parts.wrapped,
        )?;
        let mut data_key = Zeroizing::new([0; 32]);
        if opened.len() != 32 {
            return Err(Fault::sealed("damaged"));
        }
        data_key.copy_from_slice(&opened);
        Ok(data_key)
    }

    fn open_plain(&self, meta: &Meta, sealed: &[u8]) -> Outcome<Zeroizing<Vec<u8>>> {
        let parts = self.parts(sealed)?;
        let data_key = self.data_key(meta, &parts)?;
        decrypt(
            &data_key,
            parts.nonce,
            &meta.associated("share"),
            parts.text,
        )
    }

    /// Returns the same share, sealed with the current key. The share is opened temporarily, so
    /// that a damaged one is detected.
    pub fn rewrap(&self, meta: &Meta, sealed: &[u8]) -> Outcome<Vec<u8>> {
        let parts = self.parts(sealed)?;
        let data_key = self.data_key(meta, &parts)?;
        decrypt(
            &data_key,
            parts.nonce,
            &meta.associated("share"),
            parts.text,
        )?;
        self.head(meta, &data_key, parts.nonce, parts.text)
    }

    pub fn unseal(&self, meta: &Meta, sealed: &[u8]) -> Outcome<Share> {
        let plain = self.open_plain(meta, sealed)?;
        match postcard::take_from_bytes::<Share>(&plain) {
            Ok((share, [])) => Ok(share),
            _ => Err(Fault::sealed("share does not decode")),
        }
    }

    pub fn backup(&self, meta: &Meta, sealed: &[u8], recovery: &[u8]) -> Outcome<Vec<u8>> {
        let recovery: [u8; 32] = recovery
            .try_into()
            .map_err(|_| Fault::argument("a recovery public key has 32 bytes (X25519)"))?;
        let plain = self.open_plain(meta, sealed)?;
        let ephemeral = StaticSecret::from(*Zeroizing::new(random::<32>()?));
        let ephemeral_public = PublicKey::from(&ephemeral);
        let key = backup_key(
            &ephemeral,
            &PublicKey::from(recovery),
            &ephemeral_public,
            &recovery,
        )
        .ok_or_else(|| Fault::argument("not a usable X25519 public key"))?;
        let nonce = random::<NONCE_BYTES>()?;
        let sealed = encrypt(&key, &nonce, &meta.associated("backup"), &plain)?;
        Ok([
            &BACKUP_MAGIC[..],
            ephemeral_public.as_bytes(),
            &nonce,
            &sealed,
        ]
        .concat())
    }

    pub fn restore(&self, meta: &Meta, backup: &[u8], secret: &[u8; 32]) -> Outcome<Vec<u8>> {
        const HEAD: usize = 4 + 32 + NONCE_BYTES;
        if backup.len() < HEAD + 16
            || backup.len() > SEALED_BYTES_MAX
            || &backup[..4] != BACKUP_MAGIC
        {
            return Err(Fault::sealed("not a backup of a share"));
        }
        let mut ephemeral = [0; 32];
        ephemeral.copy_from_slice(&backup[4..36]);
        let ephemeral = PublicKey::from(ephemeral);
        let secret = StaticSecret::from(*secret);
        let recovery = PublicKey::from(&secret);
        let key = backup_key(&secret, &ephemeral, &ephemeral, recovery.as_bytes())
            .ok_or_else(|| Fault::sealed("not a backup of a share"))?;
        let plain = decrypt(
            &key,
            &backup[36..HEAD],
            &meta.associated("backup"),
            &backup[HEAD..],
        )?;
        self.seal_plain(meta, &plain)
    }
}

fn backup_key(
    secret: &StaticSecret,
    other: &PublicKey,
    ephemeral: &PublicKey,
    recovery: &[u8; 32],
) -> Option<Zeroizing<[u8; 32]>> {
    let shared = secret.diffie_hellman(other);
    if !shared.was_contributory() {
        return None;
    }
    let salt = [&ephemeral.as_bytes()[..], recovery].concat();
    let mut key = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(Some(&salt), shared.as_bytes())
        .expand(b"custody/threshold/backup/v1", &mut key[..])
        .ok()?;
    Some(key)
}
