//! Finds JSON objects in prose, code fences, logs and other noise.
//!
//! From every `{` the parser tries to read an object; it gives up at the first byte that cannot
//! belong to one, and never goes deeper than [`DEPTH_MAX`]. A text crafted to be read over and over
//! meets a limit, after which no byte is read a second time.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::AnswerFault;

/// The longest text that is searched.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The deepest nesting of objects and arrays; the parser's own limit.
pub const DEPTH_MAX: usize = 127;
/// The number of objects that are kept: the last ones, since the answer is the last thing said.
pub const OBJECTS_MAX: usize = 1000;
/// The number of times that a byte may be read in vain, on average.
const READS_MAX: usize = 8;

/// The objects found in a text, in their order.
#[derive(Debug, Default)]
pub struct Dug {
    /// The last [`OBJECTS_MAX`] objects.
    pub objects: Vec<FoundValue>,
    /// The fault of the longest piece of text that looked like an object and could not be read.
    pub broken: Option<AnswerFault>,
}

/// One object found in a text.
#[derive(Debug)]
pub struct FoundValue {
    /// The object as parsed.
    pub value: Value,
    /// The keys given twice: which of the two values was meant is anybody's guess.
    pub faults: Vec<AnswerFault>,
    /// Whether the object lies inside a broken one.
    pub in_broken: bool,
    /// The byte offset in the text at which the object begins.
    pub start: usize,
    /// The byte offset in the text at which the object ends.
    pub end: usize,
}

/// Searches `text` for objects. A text longer than [`ANSWER_BYTES_MAX`] is an error.
pub fn dig(text: &str) -> Result<Dug, Vec<AnswerFault>> {
    if text.len() > ANSWER_BYTES_MAX {
        let what = format!("the answer has {} bytes, more than {ANSWER_BYTES_MAX}", text.len());
        return Err(vec![AnswerFault::new("", what)]);
    }
    let mut dug = Dug::default();
    let mut longest_broken = 0;
    let mut broken_until = 0;
    let mut read_in_vain = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find('{') {
        let start = at + found;
        let mut faults = Vec::new();
        let (read, bytes) = object_at(&text[start..], &mut faults);
        match read {
            Ok(value) => {
                at = start + bytes;
                if dug.objects.len() >= 2 * OBJECTS_MAX {
                    dug.objects.drain(..OBJECTS_MAX);
                }
                let in_broken = start < broken_until;
                dug.objects.push(FoundValue { value, faults, in_broken, start, end: at });
            }
            Err(error) => {
                let end = start + bytes.max(1);
                read_in_vain += bytes;
                if bytes > longest_broken {
                    longest_broken = bytes;
                    dug.broken = Some(AnswerFault::new("", broken_text(&error)));
                }
                if read_in_vain <= READS_MAX * text.len() {
                    broken_until = broken_until.max(end);
                    at = start + 1;
                } else {
                    broken_until = usize::MAX;
                    at = text.ceil_char_boundary(end);
                }
            }
        }
    }
    let too_many = dug.objects.len().saturating_sub(OBJECTS_MAX);
    dug.objects.drain(..too_many);
    Ok(dug)
}

/// Reads the object at the start of `text`; returns the number of bytes read, too.
fn object_at(text: &str, faults: &mut Vec<AnswerFault>) -> (serde_json::Result<Value>, usize) {
    let mut parser = serde_json::Deserializer::from_str(text);
    let read = KeyReader { place: &ValuePlace::Root, faults }.deserialize(&mut parser);
    (read, parser.into_iter::<Value>().byte_offset())
}

fn broken_text(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "the JSON object is cut off before its end".to_owned();
    }
    format!("the JSON object cannot be read: {error} of the object")
}

/// The position of a value in its object, written out only for a fault.
enum ValuePlace<'a> {
    Root,
    Member(&'a ValuePlace<'a>, &'a str),
    Item(&'a ValuePlace<'a>, usize),
}

impl ValuePlace<'_> {
    fn pointer(&self) -> String {
        match self {
            ValuePlace::Root => String::new(),
            ValuePlace::Member(of, key) => {
                format!("{}/{}", of.pointer(), key.replace('~', "~0").replace('/', "~1"))
            }
            ValuePlace::Item(of, index) => format!("{}/{index}", of.pointer()),
        }
    }
}

/// Reads a value and notes the keys that are given twice.
struct KeyReader<'a> {
    place: &'a ValuePlace<'a>,
    faults: &'a mut Vec<AnswerFault>,
}

impl<'de> DeserializeSeed<'de> for KeyReader<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeyReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let place = ValuePlace::Item(self.place, items.len());
            let node = KeyReader { place: &place, faults: &mut *self.faults };
            match seq.next_element_seed(node)? {
                Some(item) => items.push(item),
                None => return Ok(items.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let place = ValuePlace::Member(self.place, &key);
            if members.contains_key(&key) {
                self.faults.push(AnswerFault::new(place.pointer(), "this key is given twice"));
            }
            if self.faults.len() > super::FAULTS_MAX {
                return Err(A::Error::custom("too many keys are given twice"));
            }
            let node = KeyReader { place: &place, faults: &mut *self.faults };
            let value = map.next_value_seed(node)?;
            members.insert(key, value);
        }
        Ok(members.into())
    }
}
