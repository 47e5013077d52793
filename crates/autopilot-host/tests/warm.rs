//! Seeds and layers with real mounts, real git and a real cargo project, as root and as a plain user,
//! for each kind of layer.
//!
//! This binary runs copies of itself: for a test on the ground that root has prepared for it, as its
//! supervisors (`__exec`) and as a controller that is killed (`__controller`). It has its own runner,
//! which understands `--list`, `--exact` and a filter.

#![allow(clippy::unwrap_used, reason = "a test fails where something is missing")]
#![allow(clippy::expect_used, reason = "a test fails where something is missing")]
#![allow(clippy::panic, reason = "a test fails where something is missing")]
#![allow(clippy::print_stdout, reason = "the runner reports to the terminal")]

#[path = "warm/cheat.rs"]
mod cheat;
#[path = "warm/crash.rs"]
mod crash;
#[path = "warm/ground.rs"]
mod ground;
#[path = "warm/sealing.rs"]
mod sealing;
#[path = "warm/sight.rs"]
mod sight;
#[path = "warm/slot.rs"]
mod slot;
#[path = "warm/tree.rs"]
mod tree;
#[path = "warm/world.rs"]
mod world;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use autopilot_host::warm::LayerKind;
use ground::{GroundKind, TestUser};

type LayerTest = (&'static str, fn(LayerKind));

/// Tests that are made for each kind of layer.
const OF_LAYERS: &[LayerTest] = &[
    ("a_filled_layer_is_as_a_new_worktree", tree::as_cold),
    ("what_a_command_does_to_tracked_files_is_seen", tree::seen),
    ("a_change_that_a_layer_cannot_give_goes_cold", tree::refused),
    ("a_broken_change_is_red_whatever_its_files_are_dated", cheat::times),
    ("what_the_base_left_behind_makes_no_change_pass", cheat::left_overs),
    ("nothing_that_a_gate_plants_is_found_by_another", cheat::planted),
    ("what_misleads_a_build_over_a_seed_does_not_from_nothing", cheat::within_one_command),
    ("compiled_python_of_the_base_is_not_used_for_changed_sources", cheat::python),
    ("two_layers_over_one_seed_know_nothing_of_each_other", sight::two_at_once),
    ("seeds_and_layers_cannot_be_seen_in_a_jail", sight::hidden),
    ("after_a_kill_at_any_moment_nothing_is_left", crash::killed),
];

/// Tests that have nothing to do with the kind of layer.
const OTHERS: &[(&str, fn())] = &[
    ("one_upper_directory_serves_one_jail_at_a_time", sight::one_upper),
    ("any_path_of_a_state_directory_will_do", sight::odd_paths),
    ("planted_attributes_have_no_effect", sight::planted),
    ("this_machine_is_asked_by_doing", sight::probed),
    ("a_room_that_cannot_be_trusted_is_not_sealed", sealing::refused),
    ("copies_of_ignored_files_are_sealed_as_the_user_has_them", sealing::copied),
    ("what_the_setup_made_is_sealed_and_what_tests_left_is_not", sealing::set_up),
    ("on_a_full_disk_there_is_no_seed", sealing::full_disk),
    ("seeds_are_kept_within_bounds_by_their_last_use", sealing::bounded),
    ("a_slot_gets_copies_of_what_the_base_built_with_their_times", slot::filled),
    ("a_slot_gets_only_what_fits_to_its_commit", slot::fitting),
    ("a_slot_that_was_filled_in_part_is_filled_anew", slot::cut_short),
    ("a_clock_that_was_set_back_makes_gates_cold", sealing::clock),
];

/// Figures for people, made only when asked for by name.
const FIGURES: &[LayerTest] = &[("figures", sight::figures)];

/// A test on one ground, as one user.
struct Case {
    name: String,
    kind: LayerKind,
    user: TestUser,
    body: CaseBody,
}

enum CaseBody {
    Plain(fn()),
    Layer(fn(LayerKind)),
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for user in [TestUser::Own, TestUser::Plain] {
        for (name, body) in OTHERS {
            let name = format!("{name}{}", user.suffix());
            cases.push(Case { name, kind: LayerKind::Overlay, user, body: CaseBody::Plain(*body) });
        }
        for kind in [LayerKind::Overlay, LayerKind::Reflink, LayerKind::Copy] {
            for (name, body) in OF_LAYERS {
                let name = format!("{name}_by_{}{}", kind.word(), user.suffix());
                cases.push(Case { name, kind, user, body: CaseBody::Layer(*body) });
            }
        }
    }
    cases
}

fn figures() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [LayerKind::Overlay, LayerKind::Reflink, LayerKind::Copy] {
        for (name, body) in FIGURES {
            let name = format!("{name}_by_{}", kind.word());
            cases.push(Case { name, kind, user: TestUser::Own, body: CaseBody::Layer(*body) });
        }
    }
    cases
}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|arg| arg.to_str()) {
        Some(autopilot_host::exec::ARGUMENT) => {
            let code = autopilot_host::exec::main(&args);
            return ExitCode::from(u8::try_from(code).unwrap_or(1));
        }
        Some(crash::CONTROLLER) => crash::controller(&args[1..]),
        _ => return run(&args.iter().filter_map(|arg| arg.to_str()).collect::<Vec<_>>()),
    }
    ExitCode::SUCCESS
}

fn run(args: &[&str]) -> ExitCode {
    let exact = args.contains(&"--exact");
    // A runner asks for the list with `--format terse`; the word is not a filter.
    let is_word = |place: usize| place > 0 && args[place - 1] == "--format";
    let filters: Vec<&&str> = args
        .iter()
        .enumerate()
        .filter(|(place, arg)| !arg.starts_with('-') && !is_word(*place))
        .map(|(_, arg)| arg)
        .collect();
    let matches =
        |name: &str, filter: &str| if exact { name == filter } else { name.contains(filter) };
    let wanted =
        |name: &str| filters.is_empty() || filters.iter().any(|filter| matches(name, filter));
    let asked_for = |case: &Case| filters.iter().any(|filter| matches(&case.name, filter));
    let mut failed = 0;
    for case in cases().into_iter().chain(figures().into_iter().filter(asked_for)) {
        if !wanted(&case.name) || args.contains(&"--ignored") {
            continue;
        }
        if args.contains(&"--list") {
            println!("{}: test", case.name);
            continue;
        }
        let started = Instant::now();
        let passed = if ground::is_prepared() {
            let body = || match case.body {
                CaseBody::Plain(body) => body(),
                CaseBody::Layer(body) => body(case.kind),
            };
            std::panic::catch_unwind(body).is_ok()
        } else {
            ground::run_on(GroundKind::of(case.kind), case.user, &case.name)
        };
        let verdict = if passed { "ok" } else { "FAILED" };
        println!("test {} ... {verdict} ({} ms)", case.name, started.elapsed().as_millis());
        failed += u8::from(!passed);
    }
    ExitCode::from(failed.min(1))
}
