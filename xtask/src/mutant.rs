//! The mutants campaign: plant each known bug in a copy of the sources and check that the
//! scenarios or the simulator notice. A bug nobody notices means the tests prove less than we say.

mod recipe;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::argument::Arguments;
use crate::slice::Slice;
use crate::step::{Failure, failed_to};
use crate::tree;
use crate::workspace::{root, target_dir};
use recipe::Recipe;
use trial::{Bench, Verdict};

/// Each has a copy of the sources and a build of its own.
const BENCHES_MAX: usize = 4;

/// Which mutants are tried.
pub enum Choice {
    All,
    Named(String),
    Part(Slice),
}

impl Choice {
    pub fn from_arguments(arguments: &mut Arguments) -> Result<Self, Failure> {
        let slice = arguments.value("--slice")?.map(|text| text.parse()).transpose()?;
        match (arguments.word(), slice) {
            (None, None) => Ok(Choice::All),
            (Some(name), None) => Ok(Choice::Named(name)),
            (None, Some(slice)) => Ok(Choice::Part(slice)),
            (Some(_), Some(_)) => Err(Failure::Usage(
                "`--slice` tries a part of the mutants; it goes without a name".to_owned(),
            )),
        }
    }
}

/// Reads every recipe and finds its text in the sources, which takes no time worth speaking of.
pub fn check_recipes() -> Result<(), Failure> {
    let recipes = recipes_that_apply()?;
    println!("xtask: the texts of {} mutants are in the sources", recipes.len());
    Ok(())
}

pub fn run(choice: &Choice) -> Result<(), Failure> {
    let recipes = chosen(recipes_that_apply()?, choice)?;
    let scratch = target_dir().join("mutants");
    println!("xtask: {} mutants, tried in `{}`", recipes.len(), scratch.display());
    let benches = benches(&scratch, recipes.len())?;
    report(&try_all(&benches, &recipes)?)
}

/// As many as there are cores: most of a trial is the one compiler that nothing can help.
fn benches(scratch: &Path, trials: usize) -> Result<Vec<Bench>, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let place = |number: usize| scratch.join(number.to_string());
    let copy = |number: usize| {
        let copy = place(number).join("tree");
        tree::copy_sources(&root(), &copy).map(|()| copy)
    };
    let mut benches = vec![Bench::prepare(&copy(0)?, &place(0))?];
    for number in 1..cores.min(BENCHES_MAX).min(trials) {
        benches.push(benches[0].another(&copy(number)?, &place(number))?);
    }
    Ok(benches)
}

/// The verdicts in the order of the recipes.
fn try_all<'a>(
    benches: &[Bench],
    recipes: &'a [Recipe],
) -> Result<Vec<(&'a Recipe, Verdict)>, Failure> {
    let next = AtomicUsize::new(0);
    let work = |bench: &Bench| {
        let mut rows = Vec::new();
        while let Some(recipe) = recipes.get(next.fetch_add(1, Ordering::Relaxed)) {
            let verdict = try_one(bench, recipe).inspect_err(|_| {
                // Nobody begins another one.
                next.store(recipes.len(), Ordering::Relaxed);
            })?;
            println!("xtask: mutant {}: {verdict}", recipe.name);
            rows.push((recipe, verdict));
        }
        Ok(rows)
    };
    let mut rows = Vec::new();
    for done in thread::scope(|scope| {
        let started: Vec<_> = benches.iter().map(|bench| scope.spawn(|| work(bench))).collect();
        started.into_iter().map(|worker| worker.join()).collect::<Vec<_>>()
    }) {
        let done = done.map_err(|_| Failure::Task("a trial of mutants panicked".to_owned()))?;
        rows.extend(done?);
    }
    rows.sort_by(|(one, _): &(&Recipe, Verdict), (two, _)| one.name.cmp(&two.name));
    Ok(rows)
}

pub fn recipe_dir() -> PathBuf {
    root().join("crates/autopilot-testkit/mutants")
}

fn recipes_that_apply() -> Result<Vec<Recipe>, Failure> {
    let recipes = read_all(&recipe_dir())?;
    check_all_apply(&recipes)?;
    Ok(recipes)
}

fn read_all(dir: &Path) -> Result<Vec<Recipe>, Failure> {
    let listing =
        fs::read_dir(dir).map_err(failed_to(format!("list the mutants in `{}`", dir.display())))?;
    let mut files: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "mutant"));
    files.sort();
    files.iter().map(|file| Recipe::read(file)).collect()
}

fn chosen(mut recipes: Vec<Recipe>, choice: &Choice) -> Result<Vec<Recipe>, Failure> {
    match choice {
        Choice::All if recipes.is_empty() => {
            Err(Failure::Task(format!("no mutants in `{}`", recipe_dir().display())))
        }
        Choice::All => Ok(recipes),
        Choice::Named(name) => {
            recipes.retain(|recipe| recipe.name == *name);
            if recipes.is_empty() {
                return Err(Failure::Usage(format!("no mutant named `{name}`")));
            }
            Ok(recipes)
        }
        Choice::Part(slice) => {
            let part = slice.range(recipes.len())?;
            println!("xtask: to try the same mutants: cargo xtask mutants --slice {slice}");
            Ok(recipes.drain(part).collect())
        }
    }
}

/// Minutes of building are not spent before a recipe turns out to be out of date.
fn check_all_apply(recipes: &[Recipe]) -> Result<(), Failure> {
    let complaints: Vec<String> = recipes
        .iter()
        .filter_map(|recipe| mutated(&root(), recipe).err())
        .map(|failure| failure.to_string())
        .collect();
    if complaints.is_empty() { Ok(()) } else { Err(Failure::Task(complaints.join("\n  "))) }
}

/// The text of the recipe's file under `tree`, before and after.
fn mutated(tree: &Path, recipe: &Recipe) -> Result<(String, String), Failure> {
    let whole = fs::read_to_string(tree.join(&recipe.file))
        .map_err(failed_to(format!("read `{}` for mutant `{}`", recipe.file, recipe.name)))?;
    let planted = recipe.apply(&whole)?;
    Ok((whole, planted))
}

/// The sources are whole again when this returns, whatever the verdict.
fn try_one(bench: &Bench, recipe: &Recipe) -> Result<Verdict, Failure> {
    let file = bench.copy().join(&recipe.file);
    let (whole, planted) = mutated(bench.copy(), recipe)?;
    tree::write(&file, planted.as_bytes())?;
    let verdict = bench.try_mutant(&recipe.name);
    tree::write(&file, whole.as_bytes())?;
    verdict
}

fn report(rows: &[(&Recipe, Verdict)]) -> Result<(), Failure> {
    let width = rows.iter().map(|(recipe, _)| recipe.name.len()).max().unwrap_or(0);
    println!();
    for (recipe, verdict) in rows {
        println!("{:width$}  {:<22}  {}", recipe.name, verdict.to_string(), recipe.why);
    }
    let survivors: Vec<&str> = rows
        .iter()
        .filter(|(_, verdict)| matches!(verdict, Verdict::Survived))
        .map(|(recipe, _)| recipe.name.as_str())
        .collect();
    println!(
        "\nxtask: {} mutants caught, {} survived",
        rows.len() - survivors.len(),
        survivors.len()
    );
    match survivors.first() {
        None => Ok(()),
        Some(first) => Err(Failure::Step {
            name: "mutants".to_owned(),
            why: format!("survived: {}", survivors.join(", ")),
            again: format!("cargo xtask mutants {first}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(name: &str) -> Recipe {
        Recipe {
            name: name.to_owned(),
            file: "a.rs".to_owned(),
            why: "because".to_owned(),
            find: "a".to_owned(),
            replace: "b".to_owned(),
        }
    }

    #[test]
    fn a_survivor_fails_the_campaign_and_is_named() {
        let (one, two) = (recipe("one"), recipe("two"));
        let caught = Verdict::Caught { by: "scenarios" };
        let failure = report(&[(&one, caught), (&two, Verdict::Survived)]).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("survived: two"), "{text}");
        assert!(text.contains("cargo xtask mutants two"), "{text}");
    }

    #[test]
    fn every_recipe_that_is_out_of_date_is_named_at_once() {
        let lost = |name: &str| Recipe { file: "Cargo.toml".to_owned(), ..recipe(name) };
        let (one, two) = (lost("one"), lost("two"));
        let found = Recipe { find: "[workspace]\n".to_owned(), ..lost("three") };
        let text = check_all_apply(&[one, found, two]).unwrap_err().to_string();
        assert!(text.contains("`one`") && text.contains("`two`"), "{text}");
        assert!(!text.contains("`three`"), "{text}");
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let two = Choice::Named("two".to_owned());
        assert!(chosen(vec![recipe("one")], &two).is_err());
        assert_eq!(chosen(vec![recipe("one"), recipe("two")], &two).unwrap().len(), 1);
    }

    #[test]
    fn every_mutant_of_the_project_is_in_exactly_one_slice() {
        let all = || read_all(&recipe_dir()).unwrap();
        let slices = (1..=8).map(|number| format!("{number}/8").parse().unwrap());
        let tried = slices.flat_map(|slice| chosen(all(), &Choice::Part(slice)).unwrap());
        assert_eq!(tried.collect::<Vec<_>>(), all());
    }

    #[test]
    fn a_name_and_a_slice_exclude_each_other() {
        let choice = |line: &str| {
            let mut arguments = Arguments::new(line.split_whitespace().map(str::to_owned));
            Choice::from_arguments(&mut arguments)
        };
        assert!(matches!(choice("").unwrap(), Choice::All));
        assert!(matches!(choice("one").unwrap(), Choice::Named(name) if name == "one"));
        assert!(matches!(choice("--slice 3/8").unwrap(), Choice::Part(_)));
        assert!(choice("one --slice 3/8").is_err());
        assert!(choice("--slice 9/8").is_err());
    }
}
