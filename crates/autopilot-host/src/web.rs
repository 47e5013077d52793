//! The settings that all our HTTP clients share: which certificates they trust, and when they use a
//! proxy.

use std::io::Read;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// How much of the file of certificates is read.
const CERTIFICATES_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The variable that names a file of certificates to trust instead of the public ones.
pub const CERTIFICATES_VARIABLE: &str = "SSL_CERT_FILE";

/// Returns the TLS settings; `certificates` is a file of certificates to trust instead of the
/// public ones.
pub(crate) fn tls(certificates: Option<&str>) -> Result<TlsConfig, String> {
    let roots = match certificates {
        Some(path) => trusted(path)?,
        None => RootCerts::WebPki,
    };
    Ok(TlsConfig::builder().root_certs(roots).build())
}

/// Returns the proxy of the environment, which is never used for servers on this machine.
pub(crate) fn proxy(url: &str) -> Option<ureq::Proxy> {
    if is_loopback(url) { None } else { ureq::Proxy::try_from_env() }
}

fn is_loopback(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = authority.split('/').next().unwrap_or_default();
    host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
}

fn trusted(path: &str) -> Result<RootCerts, String> {
    let mut pem = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(CERTIFICATES_BYTES_MAX).read_to_end(&mut pem))
        .map_err(|error| format!("`{path}`: {error}"))?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(format!("no certificate in `{path}`"));
    }
    Ok(RootCerts::new_with_certs(&certificates))
}
