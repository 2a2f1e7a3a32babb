//! Forged content that a hostile engine can put inside the private part of key generation or
//! refresh on Ed25519: the engine's header of five bytes and the fragment. `testing/cheating.ts`
//! forges public parts.

use super::*;
use crate::tests::*;

const HEADER: usize = 5;

fn fragment(change: fn(Scalar) -> Scalar) -> impl Fn(&mut Vec<u8>) {
    move |body| {
        let bytes: [u8; 32] = body[HEADER..].try_into().unwrap();
        let scalar = Scalar::from_canonical_bytes(bytes).unwrap();
        body.splice(HEADER.., change(scalar).to_bytes());
    }
}

/// The order of the group, which is a scalar that is not reduced.
fn order() -> [u8; 32] {
    let mut bytes = (-Scalar::ONE).to_bytes();
    bytes[0] += 1;
    bytes
}

fn all() -> Vec<Forgery> {
    use End::*;
    let raw = |end, name, change: fn(&mut Vec<u8>)| Forgery::new(3, end, name, change);
    vec![
        Forgery::new(
            3,
            Abort,
            "a wrong fragment",
            fragment(|scalar| scalar + Scalar::ONE),
        ),
        Forgery::new(3, Abort, "a fragment of zero", fragment(|_| Scalar::ZERO)),
        Forgery::new(
            3,
            Abort,
            "the negative fragment",
            fragment(|scalar| -scalar),
        ),
        raw(Malformed, "a fragment that is not reduced", |body| {
            drop(body.splice(HEADER.., order()))
        }),
        raw(Malformed, "another version", |body| body[0] ^= 1),
        raw(Malformed, "another cipher suite", |body| body[1] ^= 1),
        raw(Malformed, "a short fragment", |body| {
            body.truncate(body.len() - 1)
        }),
        raw(Malformed, "a long fragment", |body| body.push(0)),
        raw(Malformed, "a header alone", |body| body.truncate(HEADER)),
        raw(Malformed, "no fragment", Vec::clear),
    ]
}

#[test]
fn forged_private_parts_of_key_generation() {
    let vault = vault();
    judge(all(), || generation(&vault, ENGINE, CURVE));
}

#[test]
fn forged_private_parts_of_a_refresh() {
    let vault = vault();
    let keys = generate(&vault, ENGINE, CURVE);
    judge(all(), || refreshing(&vault, &keys).unwrap());
}
