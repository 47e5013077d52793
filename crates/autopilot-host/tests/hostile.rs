//! Hostile process trees against the real supervisor, with nobody left as the only good end.
//!
//! This binary runs copies of itself: as supervisor (`__exec`), as a controller to be killed
//! (`__controller`) and as agents that fork without end (`__bomb`, `__comets`) or try what a jail
//! refuses (`__calls`, `__memory`). It has its own
//! runner, which understands `--list`, `--exact` and a filter.

#![allow(clippy::unwrap_used, reason = "a test fails where something is missing")]
#![allow(clippy::expect_used, reason = "a test fails where something is missing")]
#![allow(clippy::panic, reason = "a test fails where something is missing")]
#![allow(clippy::print_stdout, reason = "the runner reports to the terminal")]

#[path = "hostile/ending.rs"]
mod ending;
#[path = "hostile/flood.rs"]
mod flood;
#[path = "hostile/jail.rs"]
mod jail;
#[path = "hostile/kept.rs"]
mod kept;
#[path = "hostile/silence.rs"]
mod silence;
#[path = "hostile/sweeping.rs"]
mod sweeping;
#[path = "hostile/whole.rs"]
mod whole;
#[path = "hostile/world.rs"]
mod world;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use world::{Fence, User};

/// Trees that must end whatever their jail is. Each runs without one, in the jail, in a jail without
/// namespaces, and in the jail as a user without privileges.
const TREES: &[(&str, fn())] = &[
    ("p04_an_agent_that_ignores_term_is_killed_after_its_grace", ending::ignores_term),
    ("an_agent_may_use_its_grace", ending::uses_grace),
    ("p05_daemons_do_not_survive_a_kill", ending::daemons_killed),
    ("p05_daemons_do_not_survive_the_agents_exit", ending::daemons_leaked),
    ("p06_a_fork_bomb_ends", ending::fork_bomb),
    ("p06_processes_that_fork_and_exit_for_ever_end", ending::comets),
    ("p07_a_descendant_that_holds_stdout_does_not_hold_the_end", ending::holds_stdout),
    ("p13_a_stopped_agent_is_continued_once_then_reported", ending::stops_itself),
    ("p15_agents_that_end_at_once_are_all_reaped", ending::ends_at_once),
    ("p16_the_controllers_death_ends_everything", ending::controller_killed),
    ("p21_a_killed_supervisor_leaves_nobody_and_hurts_no_sibling", ending::supervisor_killed),
    ("p21_a_stopped_supervisor_still_ends", ending::supervisor_stopped),
    ("p22_what_outlives_controller_and_supervisor_is_swept", sweeping::both_killed),
    ("c03_a_program_runs_only_when_its_tree_is_registered", sweeping::registered_first),
    ("a_register_that_can_not_be_written_lets_no_program_run", sweeping::unregistered),
    ("a_tree_that_has_ended_is_not_registered", sweeping::struck_out),
    ("dropping_the_owner_ends_everything", ending::owner_dropped),
    ("rounds_of_mixed_trees_leave_nobody", ending::rounds),
    ("codes_and_signals_are_told", ending::codes_and_signals),
    ("p08_silent_but_busy_lives_until_the_timeout", silence::busy),
    ("p08_silent_with_a_tool_at_work_is_left_alone", silence::tool),
    ("p09_silent_and_idle_is_suspected_then_ended", silence::idle),
    ("p10_a_trickle_meets_the_timeout", silence::trickle),
    ("p13_an_agent_that_stops_again_is_stuck", silence::stopped),
    ("an_agent_that_ends_in_time_has_simply_exited", silence::exits),
];

/// What every jail keeps, with and without namespaces, as root and as a user without privileges.
const JAILS: &[(&str, fn())] = &[
    ("only_the_given_paths_can_be_written", jail::writes),
    ("signals_stay_inside", jail::signals),
    ("mode_owner_and_times_of_other_files_are_kept_where_there_are_mounts", jail::metadata),
    ("no_capability_is_left_and_none_can_be_gained", kept::capabilities),
    ("calls_that_nobody_needs_are_refused_and_kill_nobody", kept::calls),
    ("shared_memory_does_not_outlive_its_program", kept::shared_memory),
    ("no_program_can_shed_its_mark", sweeping::mark_stays),
    ("abstract_sockets_of_others_are_out_of_reach", kept::abstract_sockets),
];

/// What a jail with namespaces keeps besides, as root and as a user without privileges.
const WHOLE_JAILS: &[(&str, fn())] = &[
    ("a_killed_init_leaves_neither_process_nor_mount_and_nobody_saw_the_end", whole::init_killed),
    ("no_mount_is_left_when_supervisor_or_controller_is_killed", whole::mounts_left),
    ("orphans_are_collected_inside", whole::orphans),
    ("the_agent_is_known_by_its_number_outside", whole::identity),
    ("temporary_files_are_the_attempts_own", whole::temporary),
    ("what_is_named_below_tmp_stays_visible", whole::below_tmp),
    ("hidden_paths_are_empty_but_for_what_is_named_in_them", whole::hidden),
    ("sockets_of_others_are_covered_unless_let_through", whole::sockets),
    ("the_init_has_no_privilege_when_the_program_begins", whole::init_powerless),
    ("without_a_network_only_loopback_is_up", whole::network),
    ("devices_terminals_and_processes_are_the_jails_own", whole::devices),
    ("a_directory_can_be_bound_elsewhere", whole::bound),
    ("spawning_is_quick", whole::quick),
];

/// Tests that choose their sandbox themselves.
const OTHERS: &[(&str, fn())] = &[
    ("a05_a_huge_line_costs_little_memory", flood::one_line),
    ("a05_many_lines_arrive_whole", flood::many_lines),
    ("a_sandbox_that_cannot_be_prepared_is_an_error", jail::unprepared),
    ("bubblewrap_allows_only_the_given_paths", jail::bwrap_writes),
    ("bubblewrap_keeps_mode_owner_and_times_of_other_files", jail::bwrap_metadata),
    ("p23_under_bubblewrap_the_agent_has_its_grace", jail::bwrap_grace),
    ("where_user_namespaces_are_refused_the_probe_says_so", jail::refused),
];

/// A test under one fence, as one user.
struct Case {
    name: String,
    fence: Fence,
    user: User,
    body: fn(),
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |tests: &[(&str, fn())], fence: Fence, user: User| {
        cases.extend(tests.iter().map(|(name, body)| {
            let name = format!("{name}{}{}", fence.suffix(), user.suffix());
            Case { name, fence, user, body: *body }
        }));
    };
    add(OTHERS, Fence::Off, User::Own);
    add(TREES, Fence::Off, User::Own);
    for user in [User::Own, User::Plain] {
        add(TREES, Fence::Jail, user);
        add(JAILS, Fence::Jail, user);
        add(WHOLE_JAILS, Fence::Jail, user);
        add(JAILS, Fence::NoNamespaces, user);
    }
    add(TREES, Fence::NoNamespaces, User::Own);
    cases
}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|arg| arg.to_str()) {
        Some(autopilot_host::exec::ARGUMENT) => {
            let code = autopilot_host::exec::main(&args);
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Some("__bomb") => world::bomb(),
        Some("__comets") => world::comets(),
        Some("__controller") => world::controller(&args[1..]),
        Some("__calls") => kept::try_calls(),
        Some("__memory") => kept::leave_memory(),
        _ => run(&args.iter().filter_map(|arg| arg.to_str()).collect::<Vec<_>>()),
    }
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
    let wanted = |name: &str| {
        filters.is_empty()
            || filters
                .iter()
                .any(|filter| if exact { name == **filter } else { name.contains(**filter) })
    };
    let mut failed = 0;
    for case in cases() {
        if !wanted(&case.name) || args.contains(&"--ignored") {
            continue;
        }
        if args.contains(&"--list") {
            println!("{}: test", case.name);
            continue;
        }
        let started = Instant::now();
        let passed = match case.user {
            User::Plain if world::is_root() => world::run_as_plain_user(&case.name),
            User::Own | User::Plain => {
                world::set_fence(case.fence);
                std::panic::catch_unwind(case.body).is_ok()
            }
        };
        let verdict = if passed { "ok" } else { "FAILED" };
        println!("test {} ... {verdict} ({} ms)", case.name, started.elapsed().as_millis());
        failed += u8::from(!passed);
    }
    ExitCode::from(failed.min(1))
}
