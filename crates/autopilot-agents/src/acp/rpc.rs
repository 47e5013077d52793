//! JSON-RPC 2.0 as both sides of the protocol speak it: one object per line.

use std::fmt;

use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Value, json};

pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL_ERROR: i64 = -32603;
pub(super) const AUTH_REQUIRED: i64 = -32000;
pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;

#[derive(Debug, PartialEq)]
pub(super) enum RpcMessage {
    Request { id: Value, method: String, params: Value },
    Notification { method: String, params: Value },
    Reply { id: Option<u64>, result: Result<Value, RpcError> },
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

/// Reads one message. Both sides number their requests for themselves, so an id alone tells
/// nothing: a message with a method is a request of the agent, whatever its id.
pub(super) fn read(mut object: Value) -> Option<RpcMessage> {
    let id = object["id"].take();
    if let Some(method) = object["method"].as_str().map(str::to_owned) {
        let params = object["params"].take();
        return Some(match id.is_null() {
            true => RpcMessage::Notification { method, params },
            false => RpcMessage::Request { id, method, params },
        });
    }
    let id = id.as_u64();
    if object["error"].is_object() {
        let error = &mut object["error"];
        let error = RpcError {
            code: error["code"].as_i64().unwrap_or(0),
            message: error["message"].as_str().unwrap_or("").to_owned(),
            data: error["data"].take(),
        };
        return Some(RpcMessage::Reply { id, result: Err(error) });
    }
    // A result may be null, which differs from a missing one.
    let result = object.get_mut("result")?.take();
    Some(RpcMessage::Reply { id, result: Ok(result) })
}

pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

pub(super) fn result(id: &Value, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

pub(super) fn error(id: &Value, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}

/// The id and the method of a line that was cut: whoever waits for an answer to it must get one.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CutMessage {
    pub id: Value,
    pub method: Option<String>,
}

pub(super) fn head(cut_line: &str) -> CutMessage {
    let mut head = CutMessage::default();
    let mut reader = serde_json::Deserializer::from_str(cut_line);
    // Reading ends in an error, because the line does; the keys before it are kept.
    let _cut = reader.deserialize_map(HeadVisitor { head: &mut head });
    head
}

struct HeadVisitor<'a> {
    head: &'a mut CutMessage,
}

impl<'de> Visitor<'de> for HeadVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "id" => self.head.id = map.next_value()?,
                "method" => self.head.method = map.next_value().map_err(de::Error::custom)?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<RpcMessage> {
        read(serde_json::from_str(line).unwrap())
    }

    #[test]
    fn a_request_is_told_from_a_reply_by_its_method_and_not_by_its_id() {
        let asked = of(r#"{"jsonrpc":"2.0","id":3,"method":"fs/read_text_file","params":{}}"#);
        assert!(matches!(asked, Some(RpcMessage::Request { .. })));
        let replied = of(r#"{"jsonrpc":"2.0","id":3,"result":null}"#);
        assert_eq!(replied, Some(RpcMessage::Reply { id: Some(3), result: Ok(Value::Null) }));
        let told = of(r#"{"jsonrpc":"2.0","method":"_x/y"}"#);
        assert!(matches!(told, Some(RpcMessage::Notification { .. })));
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":3}"#), None);
        assert_eq!(of(r#"{"hello":1}"#), None);
    }

    #[test]
    fn a_request_that_was_cut_still_has_its_id() {
        let head =
            head(r#"{"jsonrpc":"2.0","params":{"a":[1,{"b":2}]},"id":"x7","method":"m","z":"aaaa"#);
        assert_eq!(head, CutMessage { id: json!("x7"), method: Some("m".into()) });
        let nothing = super::head(r#"{"jsonrpc":"2.0","params":{"path":"aaaaa"#);
        assert_eq!(nothing, CutMessage::default());
    }
}
