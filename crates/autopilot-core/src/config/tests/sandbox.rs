//! What the configuration says about the sandbox.

use super::*;

#[test]
fn the_sandbox_lets_through_what_is_named_and_nothing_else() {
    let config = parsed(MINIMAL);
    assert_eq!((config.sandbox.sockets, config.sandbox.network), (vec![], SandboxNetwork::Open));
    let text = "sandbox: { sockets: [/run/docker.sock], network: off }\n";
    let config = parsed(&format!("{MINIMAL}{text}"));
    assert_eq!(config.sandbox.sockets, ["/run/docker.sock"]);
    assert_eq!(config.sandbox.network, SandboxNetwork::Off);
    assert!(faults("sandbox:\n  sockets: [docker.sock]\n").contains("as an absolute path"));
    assert!(faults("sandbox:\n  network: closed\n").contains("write one of open, off"));
}

#[test]
fn a_configuration_kept_before_there_were_sockets_is_still_read() {
    let old = serde_json::json!({ "mode": "auto", "write": ["/dev/shm"] });
    let config: SandboxConfig = serde_json::from_value(old).unwrap();
    assert_eq!((config.sockets, config.network), (vec![], SandboxNetwork::Open));
}
