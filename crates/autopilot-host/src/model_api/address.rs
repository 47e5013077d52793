//! The base address of an API, checked, and whether the server is near enough to go without a key.

use std::net::IpAddr;

/// An address of the form `http(s)://host[:port][/path]`, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAddress {
    text: String,
    host: String,
}

impl ApiAddress {
    /// Reads an address. The error completes "the base address … ".
    pub fn parse(text: &str) -> Result<ApiAddress, &'static str> {
        let text = text.trim().trim_end_matches('/');
        if text.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err("contains a character that is not allowed in an address");
        }
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let rest = rest.ok_or("does not start with https:// or http://")?;
        let authority = rest.split('/').next().unwrap_or_default();
        if authority.contains('@') {
            return Err("contains a user name or password; put the key in the environment");
        }
        if rest.contains(['?', '#']) {
            return Err("has a query or fragment");
        }
        let host = match authority.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        if host.is_empty() {
            return Err("has no host");
        }
        Ok(ApiAddress { text: text.to_owned(), host: host.to_ascii_lowercase() })
    }

    /// Returns the address as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the server is on this machine or in its own network, where servers commonly
    /// ask for no key.
    pub fn is_local(&self) -> bool {
        match self.host.parse() {
            Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
            Ok(IpAddr::V6(ip)) => {
                ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
            }
            Err(_) => {
                // A name without a dot is one of the local network or of a container.
                !self.host.contains('.')
                    || [".localhost", ".local", ".internal", ".lan"]
                        .iter()
                        .any(|end| self.host.ends_with(end))
            }
        }
    }

    /// Returns whether others on the network could read what is sent there.
    pub fn is_readable_by_others(&self) -> bool {
        self.text.starts_with("http://") && !self.is_local()
    }
}

impl std::fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_web_address_is_one() {
        let address = ApiAddress::parse(" https://api.example.com/v1/ ").unwrap();
        assert_eq!(address.as_str(), "https://api.example.com/v1");
        for (text, why) in [
            ("api.example.com/v1", "https://"),
            ("file:///etc", "https://"),
            ("https://me:secret@host/v1", "environment"),
            ("https:///v1", "no host"),
            ("https://host/v1?key=x", "query"),
            ("https://host/v1\nX: y", "character"),
            ("", "https://"),
        ] {
            let error = ApiAddress::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn near_servers_are_told_from_far_ones() {
        let local = |text: &str| ApiAddress::parse(text).unwrap().is_local();
        for near in [
            "http://127.0.0.1:11434/v1",
            "http://localhost:1234/v1",
            "http://[::1]:8000",
            "http://192.168.1.5/v1",
            "http://10.0.0.2",
            "http://[fd00::1]/v1",
            "http://ollama:11434/v1",
            "http://mac.local/v1",
            "http://host.docker.internal/v1",
        ] {
            assert!(local(near), "{near}");
        }
        for far in [
            "https://api.openai.com/v1",
            "https://localhost.example.com/v1",
            "https://8.8.8.8/v1",
            "https://127.0.0.1.example.com/v1",
        ] {
            assert!(!local(far), "{far}");
        }
        assert!(ApiAddress::parse("http://api.example.com").unwrap().is_readable_by_others());
        assert!(!ApiAddress::parse("https://api.example.com").unwrap().is_readable_by_others());
        assert!(!ApiAddress::parse("http://localhost").unwrap().is_readable_by_others());
    }
}
