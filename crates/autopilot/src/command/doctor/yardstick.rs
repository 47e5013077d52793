//! The files of the base that decide a verdict, as a run will take them.

use super::finding::DoctorFinding;
use autopilot_core::config::Config;
use autopilot_core::task_file::CommandOverrides;
use autopilot_core::yardstick::{TreeView, YardstickCensus, YardstickRules, census, needs_text};
use autopilot_host::git::{GitError, TextLimits, TreeTexts, UserRepo, tree_texts};
use autopilot_view::count;

const NAME: &str = "yardstick";
/// The number of files that are named for each reason.
const NAMED_MAX: usize = 3;
const LIMITS: TextLimits =
    TextLimits { paths_max: 100_000, bytes_max: 1 << 20, all_bytes_max: 256 << 20 };

/// Counts the files at the tip of the base branch by the reason for which they count.
pub fn look(repo: &UserRepo, config: &Config) -> DoctorFinding {
    match counted(repo, config) {
        Err(error) => DoctorFinding::warning(NAME, autopilot_engine::cause::chain(&error)),
        Ok((census, is_cut)) => {
            let mut finding = DoctorFinding::ok(NAME, text(&census, is_cut));
            finding.details = serde_json::to_value(&census.files).ok();
            finding
        }
    }
}

fn counted(repo: &UserRepo, config: &Config) -> Result<(YardstickCensus, bool), GitError> {
    let read = |is_wanted: &dyn Fn(&str) -> bool| {
        tree_texts(&repo.common_dir, &repo.base_tip, is_wanted, LIMITS)
    };
    let commands: Vec<(String, String)> = config
        .commands
        .all(&CommandOverrides::default())
        .into_iter()
        .map(|(name, line)| (name.to_owned(), line))
        .collect();
    // Scripts may be files of any kind; most trees have few beside those whose texts are needed.
    let TreeTexts { paths, texts, is_cut } = read(&|path| needs_text(path) || is_script(path))?;
    let text = |path: &str| texts.get(path).cloned();
    let trees = [TreeView { paths: &paths, read: &text }];
    let rules = YardstickRules::new(&config.gates.yardstick, &commands, &trees);
    Ok((census(&rules, trees[0]), is_cut))
}

/// Whether a file may be a script that a command comes to.
fn is_script(path: &str) -> bool {
    const SCRIPTS: [&str; 9] = ["sh", "bash", "zsh", "pl", "rb", "php", "ini", "yml", "mk"];
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_none_or(|(_, ending)| SCRIPTS.contains(&ending))
}

fn text(census: &YardstickCensus, is_cut: bool) -> String {
    if census.count() == 0 {
        return "no file of the base decides a verdict: name tests in `gates.yardstick`".to_owned();
    }
    let mut lines = vec![format!("{} of the base decide a verdict", count(census.count(), "file"))];
    if is_cut {
        lines.push("not all of the tree was read: it is too large".to_owned());
    }
    for (reason, files) in &census.files {
        let mut named: Vec<String> = files
            .iter()
            .take(NAMED_MAX)
            .map(|path| {
                let part = if census.in_part.contains(path) { " (in part)" } else { "" };
                format!("{path}{part}")
            })
            .collect();
        if files.len() > NAMED_MAX {
            named.push("…".to_owned());
        }
        lines.push(format!("{reason}: {} ({})", files.len(), named.join(", ")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_files_of_each_reason_are_named() {
        let mut census = YardstickCensus::default();
        assert!(text(&census, false).starts_with("no file"));
        let files = ["a", "b", "c", "d"].map(str::to_owned);
        census.files.insert("tests".to_owned(), files.into());
        census.in_part.insert("b".to_owned());
        assert_eq!(
            text(&census, true),
            "4 files of the base decide a verdict\nnot all of the tree was read: it is too large\n\
             tests: 4 (a, b (in part), c, …)"
        );
    }
}
