//! Derives non-hardened children of public keys. The formulas must not change; see the README of
//! the package.

use crate::fault::{Fault, Outcome};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, IsIdentity};
use dkls23_secp256k1::protocols::derivation::DerivData;
use hmac::{Hmac, KeyInit, Mac};
use k256::elliptic_curve::sec1::ToSec1Point;
use sha2::Sha512;

pub const PATH_DEPTH_MAX: usize = 32;
pub const INDEX_MAX: u32 = 0x7fff_ffff;

pub fn check_path(path: &[u32]) -> Outcome<()> {
    if path.len() > PATH_DEPTH_MAX {
        return Err(Fault::argument("path deeper than 32 levels"));
    }
    if path.iter().any(|index| *index > INDEX_MAX) {
        return Err(Fault::argument(
            "path index is not in 0..2^31-1: only non-hardened children exist",
        ));
    }
    Ok(())
}

/// BIP32 public derivation. If `base` contains a share, the share is derived too.
pub fn secp256k1_child(
    mut base: DerivData<k256::Secp256k1>,
    path: &[u32],
) -> Outcome<DerivData<k256::Secp256k1>> {
    check_path(path)?;
    for index in path {
        base = base
            .derive_child(*index)
            .map_err(|e| Fault::argument(e.description))?;
    }
    Ok(base)
}

pub fn secp256k1_public(public_key: &[u8], chain_code: [u8; 32], path: &[u32]) -> Outcome<Vec<u8>> {
    if public_key.len() != 33 {
        return Err(Fault::argument(
            "a secp256k1 public key has 33 bytes (compressed)",
        ));
    }
    let point = k256::PublicKey::from_sec1_bytes(public_key)
        .map_err(|_| Fault::argument("not a secp256k1 public key"))?;
    let base = DerivData {
        depth: 0,
        child_number: 0,
        parent_fingerprint: [0; 4],
        poly_point: k256::Scalar::ZERO,
        pk: *point.as_affine(),
        chain_code,
    };
    Ok(secp256k1_bytes(&secp256k1_child(base, path)?.pk))
}

pub fn secp256k1_bytes(point: &k256::AffinePoint) -> Vec<u8> {
    point.to_sec1_point(true).as_bytes().to_vec()
}

pub struct Ed25519Child {
    /// Sum of the tweaks of all levels, which is added to every share.
    pub tweak: Scalar,
    pub tweak_point: EdwardsPoint,
    pub public_key: [u8; 32],
}

/// Derives an Ed25519 child. For each level: `I = HMAC-SHA512(chain code, public key || index as
/// u32be)`; the tweak is the left half as a little-endian integer mod l, the child's chain code is
/// the right half, and the child's key is `A + tweak·B`.
pub fn ed25519_child(
    public_key: &[u8],
    chain_code: [u8; 32],
    path: &[u32],
) -> Outcome<Ed25519Child> {
    check_path(path)?;
    let bytes: [u8; 32] = public_key
        .try_into()
        .map_err(|_| Fault::argument("an Ed25519 public key has 32 bytes"))?;
    let mut point = CompressedEdwardsY(bytes)
        .decompress()
        .filter(|point| point.is_torsion_free() && !point.is_identity())
        .filter(|point| point.compress().0 == bytes)
        .ok_or_else(|| Fault::argument("not an Ed25519 public key of prime order"))?;
    let mut key = bytes;
    let mut chain_code = chain_code;
    let mut tweak = Scalar::ZERO;
    let mut tweak_point = EdwardsPoint::identity();
    for index in path {
        let mut mac = Hmac::<Sha512>::new_from_slice(&chain_code).expect("HMAC takes any key");
        mac.update(&key);
        mac.update(&index.to_be_bytes());
        let output: [u8; 64] = mac.finalize().into_bytes().into();
        let mut left = [0; 32];
        left.copy_from_slice(&output[..32]);
        chain_code.copy_from_slice(&output[32..]);
        let level = Scalar::from_bytes_mod_order(left);
        let level_point = EdwardsPoint::mul_base(&level);
        point += level_point;
        if level == Scalar::ZERO || point.is_identity() {
            return Err(Fault::argument(
                "this index has no child key (chance 2^-252): take the next",
            ));
        }
        tweak += level;
        tweak_point += level_point;
        key = point.compress().0;
    }
    Ok(Ed25519Child {
        tweak,
        tweak_point,
        public_key: key,
    })
}
