//! Branch and ref names that are valid, free and can't be mistaken for options.

use std::collections::BTreeSet;

use super::error::GitError;
use super::repo::UserRepo;

const TRIES_MAX: usize = 1000;
const COMPONENT_BYTES_MAX: usize = 100;

/// The folder of all our branches.
pub(crate) const FOLDER: &str = "autopilot";

const SESSION: &str = "session-";
/// How much of a session's id is in the name of its branch.
const SESSION_BYTES_MAX: usize = 40;

/// Returns the branch of a task. A task with the name of one of our other branches gets a mark.
pub fn task_branch(task: &str) -> String {
    let name = ref_component(task);
    let reserved = name == "salvage" || name.starts_with("run-") || name.starts_with(SESSION);
    format!("{FOLDER}/{}", if reserved { marked(&name, task) } else { name })
}

/// Returns the branch onto which a run's tasks are merged.
pub fn run_branch(run: &str) -> String {
    format!("{FOLDER}/run-{}", ref_component(run))
}

/// Returns the branch for work that a person had done in a session, outside of any run's branch.
pub fn session_branch(session: &str) -> String {
    let name = ref_component(session);
    format!("{FOLDER}/{SESSION}{}", name.get(..SESSION_BYTES_MAX).unwrap_or(&name))
}

/// Returns one component of a ref name made of any text. Text that had to be changed gets a digest,
/// so that two different tasks never share a ref.
pub fn ref_component(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut name: String = text.chars().map(|c| if keep(c) { c } else { '-' }).collect();
    while name.contains("..") {
        name = name.replace("..", ".-");
    }
    name = name.trim_start_matches(['-', '.']).trim_end_matches('.').to_owned();
    name.truncate(COMPONENT_BYTES_MAX);
    if name.to_ascii_lowercase().ends_with(".lock") {
        name.push('-');
    }
    if name == text && !name.is_empty() { name } else { marked(&name, text) }
}

fn marked(name: &str, text: &str) -> String {
    let digest = super::digest::hex_digest(text.as_bytes());
    let mark = digest.get(..8).unwrap_or_default();
    if name.is_empty() { mark.to_owned() } else { format!("{name}-{mark}") }
}

/// Returns other names for a branch whose own can't be used, best first; in another folder if a
/// branch has the folder's name.
pub(crate) fn beside(branch: &str, taken: &BTreeSet<String>) -> impl Iterator<Item = String> {
    let (folder, leaf) = branch.split_once('/').unwrap_or((FOLDER, branch));
    let folder_taken = taken.contains(folder);
    (2..TRIES_MAX).map(move |n| match folder_taken {
        true => format!("{folder}-{n}/{leaf}"),
        false => format!("{folder}/{leaf}-{n}"),
    })
}

/// Returns the short names of the branches of the user's repository.
pub(crate) fn branches(repo: &UserRepo) -> Result<BTreeSet<String>, GitError> {
    let refs = repo.refs("refs/heads/")?;
    Ok(refs.into_iter().map(|(n, _)| n.trim_start_matches("refs/heads/").to_owned()).collect())
}

/// Returns whether two branches can't exist together: git keeps refs like files.
pub(crate) fn collide(one: &str, other: &str) -> bool {
    let below = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
    one == other || below(one, other) || below(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_becomes_one_valid_component() {
        assert_eq!(ref_component("T-01_a.b"), "T-01_a.b");
        for odd in
            ["a/b", "--upload-pack=x", "..", "x.lock", "", "ä ö", "a..b", "@{", &"x".repeat(300)]
        {
            let name = ref_component(odd);
            assert!(!name.is_empty() && !name.starts_with(['-', '.']), "{odd} -> {name}");
            assert!(!name.contains("..") && !name.ends_with(".lock"), "{odd} -> {name}");
            assert!(name.len() <= COMPONENT_BYTES_MAX + 9, "{odd} -> {name}");
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)));
        }
        assert_ne!(ref_component("a/b"), ref_component("a b"));
    }

    #[test]
    fn a_task_can_not_take_the_name_of_a_run_or_of_the_salvage() {
        assert_eq!(task_branch("t1"), "autopilot/t1");
        assert_ne!(task_branch("run-7"), run_branch("7"));
        assert_ne!(task_branch("salvage"), "autopilot/salvage");
    }

    #[test]
    fn a_directory_collision_is_a_collision() {
        assert!(collide("a", "a") && collide("a/x", "a") && collide("b", "b/c"));
        assert!(!collide("ab", "a") && !collide("b/cd", "b/c"));
    }
}
