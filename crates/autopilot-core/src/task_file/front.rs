//! Reads the front matter: an optional YAML block between two `---` lines, with `id`, `depends_on`
//! and `skills`.

use super::{ConfigFault, TextPlace, id};
use crate::config::yaml::{self, Value, YamlNode};
use crate::skill;

#[derive(Default)]
pub(super) struct Front {
    pub(super) id: Option<String>,
    pub(super) depends_on: Vec<String>,
    pub(super) skills: Option<Vec<String>>,
    pub(super) faults: Vec<ConfigFault>,
}

/// Returns the front matter and the number of its lines.
pub(super) fn read(text: &str) -> (Front, usize) {
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return (Front::default(), 0);
    }
    let Some(end) = lines.position(|line| matches!(line.trim_end(), "---" | "...")) else {
        let message =
            "the front matter is not closed; end it with a line `---` or remove the first";
        let faults = vec![ConfigFault::new(TextPlace::at(1, 1), message.to_owned())];
        return (Front { faults, ..Front::default() }, 1);
    };
    // An empty line takes the place of the first `---`, so that line numbers are those of the file.
    let block: String = std::iter::once("")
        .chain(text.lines().skip(1).take(end))
        .map(|line| format!("{line}\n"))
        .collect();
    (block_of(&block), end + 2)
}

fn block_of(block: &str) -> Front {
    let mut front = Front::default();
    let entries = match yaml::parse(block) {
        Ok(None) => return front,
        Ok(Some(YamlNode { value: Value::Mapping(entries), .. })) => entries,
        Ok(Some(node)) => {
            let message = format!("the front matter is {}; write `key: value` lines", node.shown());
            front.faults.push(ConfigFault::new(node.place, message));
            return front;
        }
        Err(faults) => {
            front.faults = faults;
            return front;
        }
    };
    for entry in entries.iter().filter(|entry| !entry.node.is_null()) {
        match entry.key.as_str() {
            "id" => front.id = ids(&entry.node, &mut front.faults).into_iter().next(),
            "depends_on" => front.depends_on = ids(&entry.node, &mut front.faults),
            "skills" => front.skills = Some(skills(&entry.node, &mut front.faults)),
            // Our own task files carry more keys (status, attempts…); they are written and never
            // read back.
            _ => {}
        }
    }
    front
}

/// Reads one id, a list of ids, or ids between commas.
fn ids(node: &YamlNode, faults: &mut Vec<ConfigFault>) -> Vec<String> {
    let given = items(node);
    for (id, place) in given.iter().filter(|(id, _)| !id::is_safe(id)) {
        let message = format!(
            "`{}` is not a valid task id; use letters, digits, `.`, `_` and `-`, as in `{}`",
            id.escape_debug(),
            id::slug(id)
        );
        faults.push(ConfigFault::new(*place, message));
    }
    given.into_iter().map(|(id, _)| id).collect()
}

/// Reads names of skills, in the same forms as ids. An empty list is an answer too: no skills.
fn skills(node: &YamlNode, faults: &mut Vec<ConfigFault>) -> Vec<String> {
    let given = items(node);
    for (name, place) in given.iter().filter(|(name, _)| !skill::is_name(name)) {
        let name = name.escape_debug();
        let message = format!(
            "`{name}` is not a valid skill name; use letters, digits, `.`, `_` and `-`, as in \
             `skills: [code-review]`"
        );
        faults.push(ConfigFault::new(*place, message));
    }
    given.into_iter().map(|(name, _)| name).collect()
}

fn items(node: &YamlNode) -> Vec<(String, TextPlace)> {
    match &node.value {
        Value::Scalar { text, .. } => {
            text.split(',').map(|id| (id.trim().to_owned(), node.place)).collect()
        }
        Value::Sequence(items) => items
            .iter()
            .map(|item| match &item.value {
                Value::Scalar { text, .. } => (text.trim().to_owned(), item.place),
                Value::Sequence(_) | Value::Mapping(_) => (String::new(), item.place),
            })
            .collect(),
        Value::Mapping(_) => vec![(String::new(), node.place)],
    }
}
