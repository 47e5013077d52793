//! Typed access to one section of the tree; each fault is noted and a default takes the value's
//! place.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::config::fault::{ConfigFault, TextPlace, Warning};
use crate::config::nearest::nearest;
use crate::config::text;
use crate::config::yaml::{Value, YamlEntry, YamlNode};

/// The faults and warnings of a file, which all its sections add to.
#[derive(Default)]
pub(super) struct ConfigFindings {
    pub(super) faults: RefCell<Vec<ConfigFault>>,
    pub(super) warnings: RefCell<Vec<Warning>>,
}

pub(super) struct ConfigSection<'a> {
    found: &'a ConfigFindings,
    name: String,
    place: TextPlace,
    entries: &'a [YamlEntry],
    asked: Vec<&'static str>,
}

impl<'a> ConfigSection<'a> {
    pub(super) fn root(found: &'a ConfigFindings, node: Option<&'a YamlNode>) -> Self {
        Self::of(found, String::new(), TextPlace::at(1, 1), node)
    }

    fn of(
        found: &'a ConfigFindings,
        name: String,
        place: TextPlace,
        node: Option<&'a YamlNode>,
    ) -> Self {
        let mut section = Self { found, name, place, entries: &[], asked: Vec::new() };
        match node.filter(|node| !node.is_null()) {
            None => {}
            Some(YamlNode { value: Value::Mapping(entries), .. }) => section.entries = entries,
            Some(other) => {
                let name = &section.name;
                let what = if name.is_empty() { "the file" } else { &format!("`{name}`") };
                let message = format!("{what} is {}; write `key: value` lines", other.shown());
                section.fault_at(other.place, message);
            }
        }
        section
    }

    fn read_of<T>(
        &self,
        name: String,
        place: TextPlace,
        node: Option<&'a YamlNode>,
        read: impl FnOnce(&mut ConfigSection<'a>) -> T,
    ) -> T {
        let mut section = ConfigSection::of(self.found, name, place, node);
        let value = read(&mut section);
        section.finish();
        value
    }

    /// Reads a section inside of this one.
    pub(super) fn inner<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut ConfigSection<'a>) -> T,
    ) -> T {
        self.asked.push(key);
        let entry = self.entry(key);
        let place = entry.map_or(self.place, |entry| entry.place);
        self.read_of(self.full(key), place, entry.map(|entry| &entry.node), read)
    }

    /// Reads a mapping whose keys are the user's own names, each with a section.
    pub(super) fn named<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut ConfigSection<'a>) -> T,
    ) -> Option<BTreeMap<String, T>> {
        let entries = self.mapping(key, "`name: { … }` lines")?;
        let one = |entry: &'a YamlEntry| {
            let name = format!("{}.{}", self.full(key), entry.key);
            let value = self.read_of(name, entry.place, Some(&entry.node), &mut read);
            (entry.key.clone(), value)
        };
        Some(entries.iter().map(one).collect())
    }

    /// Reads a list of sections.
    pub(super) fn items<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut ConfigSection<'a>) -> T,
    ) -> Vec<T> {
        let items = self.sequence(key, "a list, as in `[{ … }]`").unwrap_or_default();
        let one =
            |item: &'a YamlNode| self.read_of(self.full(key), item.place, Some(item), &mut read);
        items.iter().map(one).collect()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some_and(|entry| !entry.node.is_null())
    }

    /// Reports the keys that nobody asked for as unknown.
    pub(super) fn finish(self) {
        for entry in self.entries.iter().filter(|e| !self.asked.contains(&e.key.as_str())) {
            let place =
                if self.name.is_empty() { String::new() } else { format!(" in `{}`", self.name) };
            let meant = match nearest(&entry.key, self.asked.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known: {}", self.asked.join(", ")),
            };
            self.fault_at(entry.place, format!("unknown key `{}`{place}; {meant}", entry.key));
        }
    }

    pub(super) fn path_name(&self) -> &str {
        &self.name
    }

    pub(super) fn place(&self) -> TextPlace {
        self.place
    }

    /// The place of a value, or of the section in which it is missing.
    fn place_of(&self, key: &str) -> TextPlace {
        self.entry(key).map_or(self.place, |entry| entry.node.place)
    }

    pub(super) fn warn(&self, key: &str, message: String) {
        let warning = Warning::new(self.place_of(key), message);
        self.found.warnings.borrow_mut().push(warning);
    }

    pub(super) fn fault_at(&self, place: TextPlace, message: String) {
        self.found.faults.borrow_mut().push(ConfigFault::new(place, message));
    }

    /// Reports a fault at the value of a key.
    pub(super) fn fault(&self, key: &str, message: String) {
        self.fault_at(self.place_of(key), message);
    }

    /// Reports what is wrong with the value of a key, which the message begins with.
    pub(super) fn fault_of(&self, key: &str, what: impl Display) {
        self.fault(key, format!("`{}` {what}", self.full(key)));
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn entry(&self, key: &str) -> Option<&'a YamlEntry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The part of a value that `pick` takes; a value that it does not take is reported.
    fn node<T>(
        &mut self,
        key: &'static str,
        want: &str,
        pick: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        self.asked.push(key);
        let node = &self.entry(key)?.node;
        if node.is_null() {
            return None;
        }
        let picked = pick(&node.value);
        if picked.is_none() {
            self.fault_of(key, format!("is {}; write {want}", node.shown()));
        }
        picked
    }

    fn scalar(&mut self, key: &'static str, want: &str) -> Option<&'a str> {
        self.node(key, want, |value| match value {
            Value::Scalar { text, .. } => Some(text.as_str()),
            Value::Sequence(_) | Value::Mapping(_) => None,
        })
    }

    fn sequence(&mut self, key: &'static str, want: &str) -> Option<&'a [YamlNode]> {
        self.node(key, want, |value| match value {
            Value::Sequence(items) => Some(items.as_slice()),
            Value::Scalar { .. } | Value::Mapping(_) => None,
        })
    }

    fn mapping(&mut self, key: &'static str, want: &str) -> Option<&'a [YamlEntry]> {
        self.node(key, want, |value| match value {
            Value::Mapping(entries) => Some(entries.as_slice()),
            Value::Scalar { .. } | Value::Sequence(_) => None,
        })
    }

    pub(super) fn word(&mut self, key: &'static str) -> Option<String> {
        let text = self.scalar(key, "a text")?;
        if text.contains('\0') {
            self.fault_of(key, "has a NUL character; remove it");
        }
        Some(text.to_owned())
    }

    /// Reads a text; an empty one counts as not given.
    pub(super) fn filled(&mut self, key: &'static str) -> Option<String> {
        self.word(key).filter(|text| !text.trim().is_empty())
    }

    /// Reads the name of a branch or remote: one word that no git command takes for an option.
    pub(super) fn name(&mut self, key: &'static str, or: &str) -> String {
        let Some(name) = self.word(key) else { return or.to_owned() };
        let odd = |c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c);
        if name.is_empty() || name.starts_with('-') || name.contains("..") || name.contains(odd) {
            self.fault_of(key, format!("is `{name}`, which git does not accept"));
        }
        name
    }

    /// Reads a command that is started without a shell.
    pub(super) fn command(&mut self, key: &'static str) -> Option<String> {
        let command = self.filled(key)?;
        if let Err(why) = text::words(&command) {
            self.fault_of(key, format!("can't be split into words: {why}"));
        }
        Some(command)
    }

    /// Reads the address of a server.
    pub(super) fn address(&mut self, key: &'static str) -> Option<String> {
        let url = self.filled(key)?;
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        if !rest.is_some_and(|host| !host.is_empty() && !host.contains(char::is_whitespace)) {
            self.fault_of(key, format!("is `{}`; write `https://…`", without_path(&url)));
        }
        Some(url)
    }

    pub(super) fn path(&mut self, key: &'static str) -> Option<String> {
        let path = self.filled(key)?;
        if let Some(why) = text::path_fault(&path) {
            self.fault(key, format!("`{}`: {why}", self.full(key)));
        }
        Some(path)
    }

    pub(super) fn paths(&mut self, key: &'static str) -> Vec<String> {
        let name = self.full(key);
        let fault = |path: &str| Some(format!("`{name}`: {}", text::path_fault(path)?));
        self.checked_words(key, fault).unwrap_or_default()
    }

    /// Reads the names of files below the user's home; none if the key is not there.
    pub(super) fn home_files(&mut self, key: &'static str) -> Option<Vec<String>> {
        let name = self.full(key);
        let fault = |path: &str| {
            let is_odd = path.trim().is_empty()
                || path.starts_with(['/', '~'])
                || path.split('/').any(|part| part == "..")
                || path.chars().any(char::is_control);
            let path = path.escape_debug();
            is_odd.then(|| {
                format!("`{name}`: write `{path}` as a file below your home, as in `.npmrc`")
            })
        };
        self.checked_words(key, fault)
    }

    /// Reads paths that may lie outside the repository.
    pub(super) fn outside_paths(&mut self, key: &'static str) -> Vec<String> {
        let name = self.full(key);
        let fault = |path: &str| {
            let is_odd = path.trim().is_empty() || path.split('/').any(|part| part == "..");
            is_odd.then(|| format!("`{name}`: write `{path}` out, without `..`"))
        };
        self.checked_words(key, fault).unwrap_or_default()
    }

    /// Reads paths that are the same wherever they are read from.
    pub(super) fn absolute_paths(&mut self, key: &'static str) -> Vec<String> {
        let name = self.full(key);
        let fault = |path: &str| {
            let is_plain = path.starts_with('/') && !path.split('/').any(|part| part == "..");
            (!is_plain)
                .then(|| format!("`{name}`: write `{path}` as an absolute path, without `..`"))
        };
        self.checked_words(key, fault).unwrap_or_default()
    }

    pub(super) fn flag(&mut self, key: &'static str, or: bool) -> bool {
        self.value(key, "`true` or `false`", |text| text.parse().ok()).unwrap_or(or)
    }

    /// Reads a value that `parse` understands.
    fn value<T>(
        &mut self,
        key: &'static str,
        want: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.scalar(key, want)?;
        let value = parse(text);
        if value.is_none() {
            self.fault_of(key, format!("is `{text}`; write {want}"));
        }
        value
    }

    pub(super) fn number<T>(&mut self, key: &'static str, range: RangeInclusive<T>, or: T) -> T
    where
        T: FromStr + PartialOrd + Display,
    {
        self.given_number(key, range).unwrap_or(or)
    }

    pub(super) fn given_number<T>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: FromStr + PartialOrd + Display,
    {
        let want = format!("a whole number from {} to {}", range.start(), range.end());
        self.value(key, &want, |text| text.parse().ok().filter(|number| range.contains(number)))
    }

    pub(super) fn money(&mut self, key: &'static str) -> Option<f64> {
        const USD_MAX: f64 = 1_000_000.0;
        self.value(key, "an amount in dollars, as in `5` or `2.50`", |text| {
            let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            text.parse().ok().filter(|usd| plain && (0.0..=USD_MAX).contains(usd))
        })
    }

    /// Reads an amount above zero.
    pub(super) fn some_money(&mut self, key: &'static str) -> Option<f64> {
        let amount = self.money(key)?;
        if amount <= 0.0 {
            self.fault_of(key, "is `0`; write an amount above 0, as in `2.50`");
        }
        Some(amount)
    }

    pub(super) fn duration(&mut self, key: &'static str) -> Option<Duration> {
        let duration = text::duration(self.scalar(key, "a duration, as in `6h`")?);
        duration.map_err(|why| self.fault(key, format!("`{}`: {why}", self.full(key)))).ok()
    }

    /// Reads one of the words that stand for `choices`.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[T],
        word: fn(T) -> &'static &'static str,
        or: T,
    ) -> T {
        let names: Vec<&str> = choices.iter().map(|choice| *word(*choice)).collect();
        let want = format!("one of {}", names.join(", "));
        let Some(text) = self.scalar(key, &want) else { return or };
        if let Some(choice) = choices.iter().find(|choice| *word(**choice) == text) {
            return *choice;
        }
        let hint = match nearest(text, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`? ({want})"),
            None => format!("write {want}"),
        };
        self.fault_of(key, format!("is `{text}`; {hint}"));
        or
    }

    /// Reads a list of words; none if the key is not there.
    pub(super) fn words(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.checked_words(key, |_| None)
    }

    /// Reads a list of names of environment variables; none if the key is not there.
    pub(super) fn variables(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.checked_words(key, variable_fault)
    }

    /// Reads a list of words. `fault` is what is wrong with one of them.
    pub(super) fn checked_words(
        &mut self,
        key: &'static str,
        fault: impl Fn(&str) -> Option<String>,
    ) -> Option<Vec<String>> {
        let mut words = Vec::new();
        for item in self.sequence(key, "a list, as in `[a, b]`")? {
            match &item.value {
                Value::Scalar { text, .. } if !item.is_null() => {
                    fault(text).into_iter().for_each(|fault| self.fault_at(item.place, fault));
                    words.push(text.clone());
                }
                Value::Scalar { .. } | Value::Sequence(_) | Value::Mapping(_) => {
                    let (key, shown) = (self.full(key), item.shown());
                    self.fault_at(
                        item.place,
                        format!("an item of `{key}` is {shown}; write a text"),
                    );
                }
            }
        }
        Some(words)
    }

    /// Reads environment variables with their values; none if the key is not there.
    pub(super) fn environment(&mut self, key: &'static str) -> Option<BTreeMap<String, String>> {
        let mut pairs = BTreeMap::new();
        for YamlEntry { key: name, place, node } in self.mapping(key, "`NAME: value` lines")? {
            match &node.value {
                Value::Scalar { text, .. } => {
                    let fault = variable_fault(name);
                    fault.into_iter().for_each(|fault| self.fault_at(*place, fault));
                    pairs.insert(name.clone(), text.clone());
                }
                Value::Sequence(_) | Value::Mapping(_) => {
                    let (key, shown) = (self.full(key), node.shown());
                    self.fault_at(node.place, format!("`{key}.{name}` is {shown}; write a text"));
                }
            }
        }
        Some(pairs)
    }
}

/// The address up to its host. The rest, and what is before an `@`, may be a secret.
fn without_path(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let more = if end < url.len() { "/…" } else { "" };
    match url[start..end].rsplit_once('@') {
        Some((_, host)) => format!("{}…@{host}{more}", &url[..start]),
        None => format!("{}{more}", &url[..end]),
    }
}

fn variable_fault(name: &str) -> Option<String> {
    (!is_variable(name)).then(|| format!("`{name}` is not a valid environment variable name"))
}

pub(super) fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
