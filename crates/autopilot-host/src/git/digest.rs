//! Fingerprints of a change, to bind a verdict to it, and of names.

use sha2::{Digest, Sha256};

use super::object::Oid;

pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns the fingerprint of a change, made of both ends, which determine every byte of its diff.
pub fn change_digest(base_tree: &Oid, tree: &Oid) -> String {
    hex_digest(format!("{base_tree}\0{tree}").as_bytes())
}
