//! Takes files of sections apart: TOML by table and key, INI by section. The order and the look of the
//! side with the product stay.

/// What a table or key of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyShare {
    Product,
    Yardstick,
    /// A dependency of tests: one that is new with the change does no harm to the base's tests, and
    /// without it the lock file would not fit.
    TestDependency,
    /// It can change what tests show and is part of the product as well.
    Told,
}

/// How a file of sections is written, and whose its keys are.
#[derive(Clone, Copy)]
pub(super) struct SectionRules {
    pub form: SectionForm,
    /// Whose a key is, by the path of its table and itself; of the table alone, whose all of it is.
    pub share: fn(&[&str]) -> KeyShare,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionForm {
    Toml,
    Ini,
}

/// A table or key that is no product.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SectionUnit<'a> {
    key: String,
    start: usize,
    end: usize,
    text: &'a str,
    /// The table in which a single key stands.
    table: Option<TableName<'a>>,
    share: KeyShare,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TableName<'a> {
    key: String,
    /// The line with the name in brackets.
    line: &'a str,
    is_list: bool,
}

/// Whether a file has keys of the yardstick. None if it can't be read.
pub(super) fn has_yardstick(rules: SectionRules, text: &str) -> Option<bool> {
    Some(units(rules, text)?.iter().any(|unit| unit.share != KeyShare::Product))
}

/// The keys that are only told, with their values.
pub(super) fn told(rules: SectionRules, text: &str) -> Vec<String> {
    let units = units(rules, text).unwrap_or_default();
    let told = units.into_iter().filter(|unit| unit.share == KeyShare::Told);
    told.map(|unit| format!("{} {}", unit.key, unit.text.trim())).collect()
}

/// Whether two texts have different dependencies of tests.
pub(super) fn differs_in_dependencies(rules: SectionRules, one: &str, other: &str) -> bool {
    let of = |text| {
        let units = units(rules, text).unwrap_or_default();
        let own = units.into_iter().filter(|unit| unit.share == KeyShare::TestDependency);
        own.map(|unit| (unit.key.clone(), unit.text.trim().to_owned())).collect::<Vec<_>>()
    };
    of(one) != of(other)
}

/// Which dependencies of tests stay although the side that gives the tests does not have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddedDependency {
    Stays,
    Goes,
}

/// The product of one text with the yardstick of another. None if one can't be read.
pub(super) fn composed(
    rules: SectionRules,
    code: &str,
    tests: &str,
    added: AddedDependency,
) -> Option<String> {
    let is_moved = |unit: &SectionUnit<'_>| match unit.share {
        KeyShare::Yardstick | KeyShare::TestDependency => true,
        KeyShare::Told | KeyShare::Product => false,
    };
    let own: Vec<SectionUnit<'_>> = units(rules, code)?.into_iter().filter(is_moved).collect();
    let mut wanted: Vec<SectionUnit<'_>> =
        units(rules, tests)?.into_iter().filter(is_moved).collect();
    let mut result = String::new();
    let mut at = 0;
    for unit in &own {
        result.push_str(&code[at..unit.start]);
        at = unit.end;
        if let Some(found) = wanted.iter().position(|other| other.key == unit.key) {
            result.push_str(wanted.remove(found).text);
            if !result.ends_with('\n') {
                result.push('\n');
            }
        } else if added == AddedDependency::Stays && is_plain_dependency(unit) {
            result.push_str(unit.text);
        }
    }
    result.push_str(&code[at..]);
    if !code.ends_with('\n') && code == tests {
        return Some(code.to_owned());
    }
    for unit in wanted {
        insert(rules, &mut result, &unit)?;
    }
    Some(result)
}

/// Whether a dependency is a package of the registry and nothing of this repository.
fn is_plain_dependency(unit: &SectionUnit<'_>) -> bool {
    const OWN: [&str; 5] = ["path", "git", "registry", "package", "features"];
    unit.share == KeyShare::TestDependency
        && !unit.text.split(|c: char| !c.is_alphanumeric()).any(|word| OWN.contains(&word))
}

/// Puts a table at the end of a text, or a key at the end of its table.
fn insert(rules: SectionRules, result: &mut String, unit: &SectionUnit<'_>) -> Option<()> {
    if !result.is_empty() && !result.ends_with('\n') {
        result.push('\n');
    }
    let Some(table) = &unit.table else {
        if !result.is_empty() {
            result.push('\n');
        }
        result.push_str(unit.text.trim_start_matches('\n'));
        return Some(());
    };
    match table_end(rules, result, &table.key)? {
        Some(end) => {
            let line = format!("{}\n", unit.text.trim_matches('\n'));
            result.insert_str(end, &line);
        }
        // A program that this side does not have needs no tests.
        None if table.is_list => {}
        None if table.line.is_empty() => result.insert_str(0, unit.text),
        None => {
            let text = format!("\n{}\n{}\n", table.line.trim(), unit.text.trim_matches('\n'));
            result.push_str(&text);
        }
    }
    Some(())
}

/// The byte behind the last key of a table; the inner none if there is no such table.
fn table_end(rules: SectionRules, text: &str, key: &str) -> Option<Option<usize>> {
    let (mut open, mut end) = (key.is_empty(), None);
    for statement in statements(rules.form, text)? {
        match statement.kind {
            StatementKind::Table { path, is_list } => {
                open = table_key(&text[statement.end..], &path, is_list) == key;
                if open {
                    end = Some(statement.end);
                }
            }
            StatementKind::Key { .. } if open => end = Some(statement.end),
            StatementKind::Key { .. } => {}
        }
    }
    Some(end)
}

/// The name of a table; those of a list are told apart by the names they give themselves.
fn table_key(rest: &str, path: &[String], is_list: bool) -> String {
    let name = path.join(".");
    if !is_list {
        return name;
    }
    let own = rest.lines().take_while(|line| !line.trim_start().starts_with('['));
    let mut named = own.filter_map(|line| line.trim().strip_prefix("name"));
    let value = named.find_map(|rest| rest.trim_start().strip_prefix('='));
    format!("{name}[{}]", value.unwrap_or_default().trim())
}

fn units(rules: SectionRules, text: &str) -> Option<Vec<SectionUnit<'_>>> {
    let mut units: Vec<SectionUnit<'_>> = Vec::new();
    let mut table: (Vec<String>, TableName<'_>) =
        (Vec::new(), TableName { key: String::new(), line: "", is_list: false });
    // The unit of a table that belongs to the yardstick as a whole.
    let mut whole: Option<usize> = None;
    for statement in statements(rules.form, text)? {
        let span = &text[statement.start..statement.end];
        match statement.kind {
            StatementKind::Table { path, is_list } => {
                let key = table_key(&text[statement.end..], &path, is_list);
                let words: Vec<&str> = path.iter().map(String::as_str).collect();
                let share = (rules.share)(&words);
                let line = span.lines().last().unwrap_or_default();
                whole = (share != KeyShare::Product).then_some(units.len());
                if whole.is_some() {
                    let (start, end) = (statement.start, statement.end);
                    let key = format!("[{key}]");
                    units.push(SectionUnit { key, start, end, text: span, table: None, share });
                }
                table = (path, TableName { key, line, is_list });
            }
            StatementKind::Key { path } => {
                if let Some(unit) = whole.and_then(|at| units.get_mut(at)) {
                    unit.end = statement.end;
                    unit.text = &text[unit.start..unit.end];
                    continue;
                }
                let words: Vec<&str> = table.0.iter().chain(&path).map(String::as_str).collect();
                let share = (rules.share)(&words);
                if share != KeyShare::Product {
                    units.push(SectionUnit {
                        key: format!("{}.{}", table.1.key, path.join(".")),
                        start: statement.start,
                        end: statement.end,
                        text: span,
                        table: Some(table.1.clone()),
                        share,
                    });
                }
            }
        }
    }
    Some(units)
}

/// A table's name or a key with its value, with the comments in front of it and its line end.
struct Statement {
    start: usize,
    end: usize,
    kind: StatementKind,
}

enum StatementKind {
    Table { path: Vec<String>, is_list: bool },
    Key { path: Vec<String> },
}

fn statements(form: SectionForm, text: &str) -> Option<Vec<Statement>> {
    let mut found = Vec::new();
    let (mut at, mut start) = (0, 0);
    while at < text.len() {
        let line_end = text[at..].find('\n').map_or(text.len(), |found| at + found + 1);
        let line = text[at..line_end].trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with(';') {
            at = line_end;
            // A comment after an empty line belongs to what follows, with the empty line.
            continue;
        }
        let is_header = line.starts_with('[');
        let (kind, end) = match form {
            _ if is_header => (header(line)?, line_end),
            SectionForm::Toml => {
                let path = key_path(&text[at..]);
                (StatementKind::Key { path: path? }, value_end(text, at)?)
            }
            SectionForm::Ini => (StatementKind::Key { path: Vec::new() }, line_end),
        };
        found.push(Statement { start, end, kind });
        (at, start) = (end, end);
    }
    Some(found)
}

fn header(line: &str) -> Option<StatementKind> {
    let is_list = line.starts_with("[[");
    let inside = line.trim_start_matches('[');
    let end = quoted_position(inside, ']')?;
    Some(StatementKind::Table { path: dotted(&inside[..end]), is_list })
}

fn key_path(rest: &str) -> Option<Vec<String>> {
    let line = rest.lines().next()?;
    Some(dotted(&line[..quoted_position(line, '=')?]))
}

/// The place of a sign outside of quotes.
fn quoted_position(line: &str, sign: char) -> Option<usize> {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match quote {
            None if c == sign => return Some(at),
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if open == c => quote = None,
            None | Some(_) => {}
        }
    }
    None
}

/// The parts of a dotted name, without quotes.
fn dotted(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(at) = quoted_position(rest, '.') {
        parts.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    parts.push(rest);
    parts.iter().map(|part| part.trim().trim_matches(['"', '\'']).to_owned()).collect()
}

/// The end of the line on which the value of a key ends. None if it has no end.
fn value_end(text: &str, at: usize) -> Option<usize> {
    let mut depth = 0_i64;
    let mut place = at;
    while place < text.len() {
        let rest = &text[place..];
        if let Some(quote) = ["\"\"\"", "'''", "\"", "'"].iter().find(|it| rest.starts_with(**it)) {
            place += string_length(rest, quote)?;
            continue;
        }
        let c = rest.chars().next()?;
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            '\n' if depth <= 0 => return Some(place + 1),
            '#' => place += rest.find('\n').unwrap_or(rest.len()) - 1,
            _ => {}
        }
        place += c.len_utf8();
    }
    (depth == 0).then_some(text.len())
}

fn string_length(rest: &str, quote: &str) -> Option<usize> {
    let mut at = quote.len();
    loop {
        let here = rest.get(at..)?;
        if here.starts_with(quote) {
            return Some(at + quote.len());
        }
        let c = here.chars().next()?;
        at += c.len_utf8();
        if c == '\\' && quote.starts_with('"') {
            at += here.chars().nth(1)?.len_utf8();
        }
    }
}

#[cfg(test)]
mod tests;
