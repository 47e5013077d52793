//! What all our HTTP clients share: which certificates they trust, when they use a proxy, and the
//! words for an answer that did not come.

use std::io::{self, Read};
use ureq::config::ConfigBuilder;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;

/// How much of the file of certificates is read.
const CERTIFICATES_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The variable that names a file of certificates to trust instead of the public ones.
pub const CERTIFICATES_VARIABLE: &str = "SSL_CERT_FILE";

/// The reason why a file of certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The file could not be read.
    #[error("cannot read `{path}`")]
    Unreadable { path: String, source: io::Error },
    /// The file holds no certificate in PEM form.
    #[error("no certificate in `{path}`")]
    Empty { path: String },
}

/// The reason why a request brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The request could not be made or sent, or its answer could not be read.
    #[error("{}", in_words(.0))]
    Http(#[from] ureq::Error),
    /// The thread of the request ended without a word.
    #[error("the request ended without an answer")]
    Dropped,
}

/// Begins the settings of a client for the server at `url`: no redirects, and every status is an
/// answer. `certificates` is a file of certificates to trust instead of the public ones.
pub(crate) fn client(
    url: &str,
    certificates: Option<&str>,
) -> Result<ConfigBuilder<AgentScope>, CertificateError> {
    let roots = certificates.map_or(Ok(RootCerts::WebPki), trusted)?;
    Ok(ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(proxy(url))
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .user_agent(concat!("autopilot/", env!("CARGO_PKG_VERSION"))))
}

/// Returns the proxy of the environment, which is never used for servers on this machine.
fn proxy(url: &str) -> Option<ureq::Proxy> {
    if is_loopback(url) { None } else { ureq::Proxy::try_from_env() }
}

fn is_loopback(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = authority.split('/').next().unwrap_or_default();
    host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
}

fn trusted(path: &str) -> Result<RootCerts, CertificateError> {
    let mut pem = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(CERTIFICATES_BYTES_MAX).read_to_end(&mut pem))
        .map_err(|source| CertificateError::Unreadable { path: path.to_owned(), source })?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(CertificateError::Empty { path: path.to_owned() });
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

/// Returns the reason why there is no answer, in words for a person.
pub(crate) fn in_words(error: &ureq::Error) -> String {
    if let ureq::Error::Timeout(_) = error {
        return "no answer in time".to_owned();
    }
    if let ureq::Error::HostNotFound = error {
        return "host not found".to_owned();
    }
    if let ureq::Error::BodyExceedsLimit(bytes_max) = error {
        return format!("the answer is longer than {bytes_max} bytes");
    }
    one_line(&error.to_string(), WORDS_CHARS_MAX)
}

/// The longest message of the HTTP library that is repeated to a person.
const WORDS_CHARS_MAX: usize = 600;

/// Returns the text without control characters, cut to a length for a message.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = text.trim();
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
