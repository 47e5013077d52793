//! Typed access to one section of the tree; each fault goes to the reader and a default takes the
//! value's place.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use super::agent::is_variable;
use crate::config::fault::{ConfigFault, TextPlace};
use crate::config::nearest::nearest;
use crate::config::text;
use crate::config::yaml::{Value, YamlEntry, YamlNode};

#[derive(Default)]
pub(super) struct ConfigReader {
    pub(super) faults: Vec<ConfigFault>,
    pub(super) warnings: Vec<ConfigFault>,
}

impl ConfigReader {
    pub(super) fn warn(&mut self, place: TextPlace, message: String) {
        self.warnings.push(ConfigFault::new(place, message));
    }

    pub(super) fn fault(&mut self, place: TextPlace, message: String) {
        self.faults.push(ConfigFault::new(place, message));
    }
}

pub(super) struct ConfigSection<'a> {
    name: String,
    place: TextPlace,
    entries: &'a [YamlEntry],
    asked: Vec<&'static str>,
}

impl<'a> ConfigSection<'a> {
    pub(super) fn root(r: &mut ConfigReader, node: Option<&'a YamlNode>) -> Self {
        Self::of(r, String::new(), TextPlace::at(1, 1), node)
    }

    fn of(
        r: &mut ConfigReader,
        name: String,
        place: TextPlace,
        node: Option<&'a YamlNode>,
    ) -> Self {
        let entries: &'a [YamlEntry] = match node.filter(|node| !node.is_null()) {
            None => &[],
            Some(YamlNode { value: Value::Mapping(entries), .. }) => entries,
            Some(other) => {
                let what = if name.is_empty() { "the file" } else { &format!("`{name}`") };
                let shown = other.shown();
                r.fault(other.place, format!("{what} is {shown}; write `key: value` lines"));
                &[]
            }
        };
        Self { name, place, entries, asked: Vec::new() }
    }

    pub(super) fn inner<T>(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
        read: impl FnOnce(&mut ConfigReader, &mut ConfigSection<'a>) -> T,
    ) -> T {
        self.asked.push(key);
        let entry = self.entries.iter().find(|entry| entry.key == key);
        let place = entry.map_or(self.place, |entry| entry.place);
        let mut section =
            ConfigSection::of(r, self.full(key), place, entry.map(|entry| &entry.node));
        let value = read(r, &mut section);
        section.finish(r);
        value
    }

    /// Reads a mapping whose keys are the user's own names, each with a section.
    pub(super) fn named<T>(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
        mut read: impl FnMut(&mut ConfigReader, &mut ConfigSection<'a>) -> T,
    ) -> Vec<(String, T)> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let Value::Mapping(entries) = &node.value else {
            let (key, shown) = (self.full(key), node.shown());
            r.fault(node.place, format!("`{key}` is {shown}; write `name: {{ … }}` lines"));
            return Vec::new();
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = format!("{}.{}", self.full(key), entry.key);
            let mut section = ConfigSection::of(r, name, entry.place, Some(&entry.node));
            found.push((entry.key.clone(), read(r, &mut section)));
            section.finish(r);
        }
        found
    }

    /// Reads a list of sections.
    pub(super) fn items<T>(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
        mut read: impl FnMut(&mut ConfigReader, &mut ConfigSection<'a>) -> T,
    ) -> Vec<T> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let Value::Sequence(items) = &node.value else {
            let (key, shown) = (self.full(key), node.shown());
            r.fault(node.place, format!("`{key}` is {shown}; write a list, as in `[{{ … }}]`"));
            return Vec::new();
        };
        let mut found = Vec::new();
        for item in items {
            let mut section = ConfigSection::of(r, self.full(key), item.place, Some(item));
            found.push(read(r, &mut section));
            section.finish(r);
        }
        found
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key && !entry.node.is_null())
    }

    /// Reports the keys that nobody asked for as unknown.
    pub(super) fn finish(self, r: &mut ConfigReader) {
        for entry in self.entries.iter().filter(|e| !self.asked.contains(&e.key.as_str())) {
            let place =
                if self.name.is_empty() { String::new() } else { format!(" in `{}`", self.name) };
            let meant = match nearest(&entry.key, self.asked.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known: {}", self.asked.join(", ")),
            };
            r.fault(entry.place, format!("unknown key `{}`{place}; {meant}", entry.key));
        }
    }

    pub(super) fn path_name(&self) -> &str {
        &self.name
    }

    pub(super) fn place(&self) -> TextPlace {
        self.place
    }

    /// The place of a value, or of the section in which it is missing.
    pub(super) fn place_of(&self, key: &str) -> TextPlace {
        let entry = self.entries.iter().find(|entry| entry.key == key);
        entry.map_or(self.place, |entry| entry.node.place)
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn node(&mut self, key: &'static str) -> Option<&'a YamlNode> {
        self.asked.push(key);
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        (!entry.node.is_null()).then_some(&entry.node)
    }

    fn scalar(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
        want: &str,
    ) -> Option<(&'a str, TextPlace)> {
        let node = self.node(key)?;
        match &node.value {
            Value::Scalar { text, .. } => Some((text.as_str(), node.place)),
            Value::Sequence(_) | Value::Mapping(_) => {
                r.fault(
                    node.place,
                    format!("`{}` is {}; write {want}", self.full(key), node.shown()),
                );
                None
            }
        }
    }

    pub(super) fn word(&mut self, r: &mut ConfigReader, key: &'static str) -> Option<String> {
        let (text, place) = self.scalar(r, key, "a text")?;
        if text.contains('\0') {
            r.fault(place, format!("`{}` has a NUL character; remove it", self.full(key)));
        }
        Some(text.to_owned())
    }

    /// Reads a text; an empty one counts as not given.
    pub(super) fn filled(&mut self, r: &mut ConfigReader, key: &'static str) -> Option<String> {
        self.word(r, key).filter(|text| !text.trim().is_empty())
    }

    /// Reads the name of a branch or remote: one word that no git command takes for an option.
    pub(super) fn name(&mut self, r: &mut ConfigReader, key: &'static str, or: &str) -> String {
        let place = self.place_of(key);
        let Some(name) = self.word(r, key) else { return or.to_owned() };
        let odd = |c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c);
        if name.is_empty() || name.starts_with('-') || name.contains("..") || name.contains(odd) {
            r.fault(place, format!("`{}` is `{name}`, which git does not accept", self.full(key)));
        }
        name
    }

    /// Reads a command that is started without a shell.
    pub(super) fn command(&mut self, r: &mut ConfigReader, key: &'static str) -> Option<String> {
        let place = self.place_of(key);
        let command = self.filled(r, key)?;
        if let Err(why) = text::words(&command) {
            r.fault(place, format!("`{}` can't be split into words: {why}", self.full(key)));
        }
        Some(command)
    }

    pub(super) fn path(&mut self, r: &mut ConfigReader, key: &'static str) -> Option<String> {
        let place = self.place_of(key);
        let path = self.filled(r, key)?;
        if let Some(why) = text::path_fault(&path) {
            r.fault(place, format!("`{}`: {why}", self.full(key)));
        }
        Some(path)
    }

    pub(super) fn paths(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
        or: &[&str],
    ) -> Vec<String> {
        let paths = self.placed_words(r, key, or);
        for (path, place) in &paths {
            if let Some(why) = text::path_fault(path) {
                r.fault(*place, format!("`{}`: {why}", self.full(key)));
            }
        }
        paths.into_iter().map(|(path, _)| path).collect()
    }

    /// Reads paths that may lie outside the repository.
    pub(super) fn outside_paths(&mut self, r: &mut ConfigReader, key: &'static str) -> Vec<String> {
        let paths = self.placed_words(r, key, &[]);
        for (path, place) in &paths {
            if path.trim().is_empty() || path.split('/').any(|part| part == "..") {
                let key = self.full(key);
                r.fault(*place, format!("`{key}`: write `{path}` out, without `..`"));
            }
        }
        paths.into_iter().map(|(path, _)| path).collect()
    }

    pub(super) fn flag(&mut self, r: &mut ConfigReader, key: &'static str, or: bool) -> bool {
        let Some((text, place)) = self.scalar(r, key, "`true` or `false`") else { return or };
        match text {
            "true" => true,
            "false" => false,
            _ => {
                let key = self.full(key);
                r.fault(place, format!("`{key}` is `{text}`; write `true` or `false`"));
                or
            }
        }
    }

    pub(super) fn number<T>(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
        range: RangeInclusive<T>,
        or: T,
    ) -> T
    where
        T: FromStr + PartialOrd + Display,
    {
        self.given_number(r, key, range).unwrap_or(or)
    }

    pub(super) fn given_number<T>(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: FromStr + PartialOrd + Display,
    {
        let want = format!("a whole number from {} to {}", range.start(), range.end());
        let (text, place) = self.scalar(r, key, &want)?;
        let number = text.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            r.fault(place, format!("`{}` is `{text}`; write {want}", self.full(key)));
        }
        number
    }

    pub(super) fn money(&mut self, r: &mut ConfigReader, key: &'static str) -> Option<f64> {
        const USD_MAX: f64 = 1_000_000.0;
        let want = "an amount in dollars, as in `5` or `2.50`";
        let (text, place) = self.scalar(r, key, want)?;
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let amount = text.parse().ok().filter(|usd| plain && (0.0..=USD_MAX).contains(usd));
        if amount.is_none() {
            r.fault(place, format!("`{}` is `{text}`; write {want}", self.full(key)));
        }
        amount
    }

    /// Reads an amount above zero.
    pub(super) fn some_money(&mut self, r: &mut ConfigReader, key: &'static str) -> Option<f64> {
        let place = self.place_of(key);
        let amount = self.money(r, key)?;
        if amount <= 0.0 {
            let key = self.full(key);
            r.fault(place, format!("`{key}` is `0`; write an amount above 0, as in `2.50`"));
        }
        Some(amount)
    }

    pub(super) fn duration(&mut self, r: &mut ConfigReader, key: &'static str) -> Option<Duration> {
        let (text, place) = self.scalar(r, key, "a duration, as in `6h`")?;
        match text::duration(text) {
            Ok(duration) => Some(duration),
            Err(why) => {
                r.fault(place, format!("`{}`: {why}", self.full(key)));
                None
            }
        }
    }

    pub(super) fn choice<T: Copy>(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
        choices: &[(&'static str, T)],
        or: T,
    ) -> T {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let want = format!("one of {}", names.join(", "));
        let Some((text, place)) = self.scalar(r, key, &want) else { return or };
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return *choice;
        }
        let hint = match nearest(text, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`? ({want})"),
            None => format!("write {want}"),
        };
        r.fault(place, format!("`{}` is `{text}`; {hint}", self.full(key)));
        or
    }

    pub(super) fn words(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
        or: &[&str],
    ) -> Vec<String> {
        self.placed_words(r, key, or).into_iter().map(|(word, _)| word).collect()
    }

    pub(super) fn variables(&mut self, r: &mut ConfigReader, key: &'static str) -> Vec<String> {
        let names = self.placed_words(r, key, &[]);
        for (name, place) in names.iter().filter(|(name, _)| !is_variable(name)) {
            r.fault(*place, format!("`{name}` is not a valid environment variable name"));
        }
        names.into_iter().map(|(name, _)| name).collect()
    }

    pub(super) fn placed_words(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
        or: &[&str],
    ) -> Vec<(String, TextPlace)> {
        let place = self.place;
        let standing_in = || or.iter().map(|word| ((*word).to_owned(), place)).collect();
        let Some(node) = self.node(key) else { return standing_in() };
        let Value::Sequence(items) = &node.value else {
            let (key, shown) = (self.full(key), node.shown());
            r.fault(node.place, format!("`{key}` is {shown}; write a list, as in `[a, b]`"));
            return standing_in();
        };
        let mut words = Vec::new();
        for item in items {
            match &item.value {
                Value::Scalar { text, .. } if !item.is_null() => {
                    words.push((text.clone(), item.place))
                }
                Value::Scalar { .. } | Value::Sequence(_) | Value::Mapping(_) => {
                    let (key, shown) = (self.full(key), item.shown());
                    r.fault(item.place, format!("an item of `{key}` is {shown}; write a text"));
                }
            }
        }
        words
    }

    pub(super) fn pairs(
        &mut self,
        r: &mut ConfigReader,
        key: &'static str,
    ) -> Vec<(String, String, TextPlace)> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let Value::Mapping(entries) = &node.value else {
            let (key, shown) = (self.full(key), node.shown());
            r.fault(node.place, format!("`{key}` is {shown}; write `NAME: value` lines"));
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for entry in entries {
            match &entry.node.value {
                Value::Scalar { text, .. } => {
                    pairs.push((entry.key.clone(), text.clone(), entry.place));
                }
                Value::Sequence(_) | Value::Mapping(_) => {
                    let (key, shown) = (self.full(key), entry.node.shown());
                    let name = &entry.key;
                    r.fault(entry.node.place, format!("`{key}.{name}` is {shown}; write a text"));
                }
            }
        }
        pairs
    }
}
