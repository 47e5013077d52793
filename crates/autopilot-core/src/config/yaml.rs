//! YAML as a tree in which every node knows its place, so that each fault can name one.
//!
//! Scalars keep their text and are typed by whoever reads them: `off` is the word off, never a
//! boolean. Anchors, aliases and several documents are refused; none of our files needs them.

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span};

use super::fault::{ConfigFault, TextPlace};

/// A value and its place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlNode {
    pub place: TextPlace,
    pub value: Value,
}

/// The kinds of YAML values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A single value. `plain` tells that it was written without quotes.
    Scalar {
        text: String,
        plain: bool,
    },
    Sequence(Vec<YamlNode>),
    Mapping(Vec<YamlEntry>),
}

/// A key of a mapping and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlEntry {
    pub key: String,
    pub place: TextPlace,
    pub node: YamlNode,
}

impl YamlNode {
    /// Whether the value is left out, `~` or `null`.
    pub fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar { text, plain } => *plain && matches!(text.as_str(), "" | "~" | "null"),
            Value::Sequence(_) | Value::Mapping(_) => false,
        }
    }

    /// The node in the words of an error.
    pub fn shown(&self) -> String {
        match &self.value {
            Value::Scalar { text, .. } if text.is_empty() => "nothing".to_owned(),
            Value::Scalar { text, .. } => format!("`{}`", short(text)),
            Value::Sequence(_) => "a list".to_owned(),
            Value::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

/// A fault quotes the start of a value and does not repeat it whole.
fn short(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

/// Parses a text; `None` if it has no content. Parsing stops at the first fault of syntax, because
/// the rest can't be trusted; faults of meaning are gathered by the reader of the tree.
pub fn parse(text: &str) -> Result<Option<YamlNode>, Vec<ConfigFault>> {
    let mut tree = YamlTree::default();
    for next in Parser::new_from_str(text) {
        let (event, span) = match next {
            Ok(next) => next,
            Err(error) => {
                let place =
                    TextPlace { line: error.marker().line(), column: error.marker().col() + 1 };
                tree.faults
                    .push(ConfigFault::new(place, format!("not valid YAML: {}", error.info())));
                break;
            }
        };
        tree.take(event, place_of(&span));
    }
    if tree.faults.is_empty() { Ok(tree.root) } else { Err(tree.faults) }
}

fn place_of(span: &Span) -> TextPlace {
    TextPlace { line: span.start.line(), column: span.start.col() + 1 }
}

#[derive(Default)]
struct YamlTree {
    root: Option<YamlNode>,
    documents: usize,
    open: Vec<Open>,
    faults: Vec<ConfigFault>,
}

enum Open {
    Sequence { place: TextPlace, items: Vec<YamlNode> },
    Mapping { place: TextPlace, entries: Vec<YamlEntry>, key: Option<(String, TextPlace)> },
}

impl YamlTree {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum: what is left is layout")]
    fn take(&mut self, event: Event<'_>, place: TextPlace) {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.fault(place, "a second document starts here; keep one (remove `---`)");
                }
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.fault(place, "aliases (`*name`) are not supported; write the value out");
                self.close(YamlNode { place, value: plain("") });
            }
            Event::Scalar(text, style, ..) => {
                let plain = matches!(style, ScalarStyle::Plain);
                self.close(YamlNode {
                    place,
                    value: Value::Scalar { text: text.into_owned(), plain },
                });
            }
            Event::SequenceStart(..) => self.open.push(Open::Sequence { place, items: Vec::new() }),
            Event::MappingStart(..) => {
                self.open.push(Open::Mapping { place, entries: Vec::new(), key: None });
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::Sequence { place, items }) => {
                    self.close(YamlNode { place, value: Value::Sequence(items) });
                }
                Some(Open::Mapping { place, entries, .. }) => {
                    self.close(YamlNode { place, value: Value::Mapping(entries) });
                }
                None => {}
            },
            _ => {}
        }
    }

    fn close(&mut self, node: YamlNode) {
        match self.open.last_mut() {
            None if self.documents <= 1 => self.root = Some(node),
            None => {}
            Some(Open::Sequence { items, .. }) => items.push(node),
            Some(Open::Mapping { entries, key, .. }) => match key.take() {
                None => match node.value {
                    Value::Scalar { text, .. } => *key = Some((text, node.place)),
                    Value::Sequence(_) | Value::Mapping(_) => {
                        *key = Some((String::new(), node.place));
                        self.fault(node.place, "a key must be a word, not a list or a mapping");
                    }
                },
                Some((name, place)) => {
                    let first = entries.iter().find(|entry| entry.key == name);
                    if let Some(line) = first.map(|entry| entry.place.line) {
                        let said = format!("key `{name}` is given twice, first in line {line}");
                        self.fault(place, &said);
                    } else {
                        entries.push(YamlEntry { key: name, place, node });
                    }
                }
            },
        }
    }

    fn fault(&mut self, place: TextPlace, message: &str) {
        self.faults.push(ConfigFault::new(place, message.to_owned()));
    }
}

fn plain(text: &str) -> Value {
    Value::Scalar { text: text.to_owned(), plain: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn faults(text: &str) -> String {
        let faults = parse(text).unwrap_err();
        faults.iter().map(ConfigFault::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn nodes_know_their_place_and_scalars_their_text() {
        let root = parse("# c\na: off\nb:\n  - 'null'\n  -\n").unwrap().unwrap();
        let Value::Mapping(entries) = root.value else { panic!("a mapping") };
        assert_eq!(
            (entries[0].place, entries[0].node.place),
            (TextPlace::at(2, 1), TextPlace::at(2, 4))
        );
        assert_eq!(entries[0].node.value, plain("off"));
        let Value::Sequence(items) = &entries[1].node.value else { panic!("a list") };
        assert!(!items[0].is_null() && items[1].is_null());
    }

    #[test]
    fn what_we_do_not_read_is_refused_with_its_place() {
        assert_eq!(
            faults("a: 1\na: 2\n"),
            "line 2, column 1: key `a` is given twice, first in line 1"
        );
        assert_eq!(
            faults("a: &x 1\nb: *x\n"),
            "line 2, column 4: aliases (`*name`) are not supported; write the value out"
        );
        assert_eq!(
            faults("a: 1\n---\nb: 1\n"),
            "line 2, column 1: a second document starts here; keep one (remove `---`)"
        );
        assert!(faults("a: [1\nb: 2").contains("not valid YAML"));
    }

    #[test]
    fn deep_nesting_is_a_fault_and_no_overflow() {
        assert!(faults(&"[".repeat(100_000)).contains("not valid YAML"));
    }

    #[test]
    fn nothing_is_no_node() {
        assert_eq!(parse("").unwrap(), None);
        assert_eq!(parse("# only words\n").unwrap(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\n\t\u{e9}]{0,200}") {
            let _ = parse(&text);
        }
    }
}
