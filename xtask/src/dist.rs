//! The static release binary: one file that runs on any Linux of its architecture.

use std::fs;
use std::process::Command;

use crate::elf;
use crate::step::{self, Failure, failed_to};
use crate::workspace::{cargo, target_dir};

pub fn run() -> Result<(), Failure> {
    let triple = host_triple()?;
    // With `--target` the flags reach the product only; without it they would also reach proc
    // macros, which the compiler loads as shared libraries and which cannot be static.
    let mut build =
        cargo(["build", "--release", "--locked", "--target", &triple, "-p", "autopilot"]);
    step::run("release build", build.env("RUSTFLAGS", "-C target-feature=+crt-static"))?;

    let binary = target_dir().join(&triple).join("release/autopilot");
    let shown = binary.display();
    let bytes = fs::read(&binary).map_err(failed_to(format!("read `{shown}`")))?;
    match elf::needs_loader(&bytes) {
        Some(false) => {}
        Some(true) => return Err(Failure::Task(format!("`{shown}` is not static"))),
        None => return Err(Failure::Task(format!("`{shown}` is not a 64-bit ELF file"))),
    }
    println!("xtask: {shown} ({:.1} MB, static)", bytes.len() as f64 / 1e6);
    Ok(())
}

fn host_triple() -> Result<String, Failure> {
    let version = step::output_of(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::Task("`rustc -vV` names no host".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_what_the_compiler_says() {
        let triple = host_triple().unwrap();
        assert!(triple.split('-').count() >= 3, "{triple}");
    }
}
