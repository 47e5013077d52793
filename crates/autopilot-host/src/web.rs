//! What every HTTP client of ours has in common: whom it trusts, and when no proxy is asked.

use std::io::Read;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// Of the file of certificates.
const CERTIFICATES_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The variable that names a file of certificates to trust instead of the public ones.
pub const CERTIFICATES_VARIABLE: &str = "SSL_CERT_FILE";

pub(crate) fn tls(certificates: Option<&str>) -> Result<TlsConfig, String> {
    let roots = match certificates {
        Some(path) => trusted(path)?,
        None => RootCerts::WebPki,
    };
    Ok(TlsConfig::builder().root_certs(roots).build())
}

/// The proxy of the environment. It is never asked for what is on this machine.
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
        return Err(format!("there is no certificate in `{path}`"));
    }
    Ok(RootCerts::new_with_certs(&certificates))
}
