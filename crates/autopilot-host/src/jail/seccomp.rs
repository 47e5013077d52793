//! The system calls that no agent needs, in one table.
//!
//! A refused call returns an error and ends nobody. The filter is a second fence: most of what it
//! refuses needs a capability that the program no longer has, or names a process that it cannot see.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// The answer to a refused call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallAnswer {
    /// The call is not permitted.
    NotPermitted,
    /// The kernel has no such call, for programs that ask whether it does and go another way.
    NoSuchCall,
}

/// The jails in which a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusedIn {
    Every,
    /// Only where no namespace keeps the call's effect inside.
    NoNamespaces,
}

/// A test of one argument. All tests of a row must hold; pointers and numbers are compared as
/// wide as the kernel reads them.
#[derive(Debug, Clone, Copy)]
enum ArgTest {
    Is(u8, u32),
    IsNot(u8, u32),
    /// The bits of the mask have this value.
    Bits(u8, u32, u32),
    IsGiven(u8),
}

/// A row of the table.
struct CallRow {
    call: libc::c_long,
    tests: &'static [ArgTest],
    answer: CallAnswer,
    refused: RefusedIn,
}

const fn never(call: libc::c_long) -> CallRow {
    never_with(call, &[])
}

const fn never_with(call: libc::c_long, tests: &'static [ArgTest]) -> CallRow {
    CallRow { call, tests, answer: CallAnswer::NotPermitted, refused: RefusedIn::Every }
}

const fn outside(call: libc::c_long, tests: &'static [ArgTest]) -> CallRow {
    CallRow { call, tests, answer: CallAnswer::NotPermitted, refused: RefusedIn::NoNamespaces }
}

const fn absent(row: CallRow) -> CallRow {
    CallRow { answer: CallAnswer::NoSuchCall, ..row }
}

/// `open_tree_attr`, which the C library has no name for yet.
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u32 = 0x401c_5820;
const PRIO_USER: u32 = 2;
const IOPRIO_WHO_USER: u32 = 3;
const AF_VSOCK: u32 = 40;
const PTRACE_ATTACH: u32 = 16;
const PTRACE_SEIZE: u32 = 0x4206;

const ROWS: &[CallRow] = &[
    // Devices: a node of a disk would be the whole disk. Pipes, sockets and files stay allowed.
    never_with(libc::SYS_mknodat, &[ArgTest::Bits(2, libc::S_IFMT, libc::S_IFBLK)]),
    never_with(libc::SYS_mknodat, &[ArgTest::Bits(2, libc::S_IFMT, libc::S_IFCHR)]),
    // Limits of another process: RLIMIT_CPU ends it, the jail's own init included. Reading is
    // allowed, and so is setting one's own, which the C library does by number 0. A program that
    // names itself by its number is refused as well: a filter can't tell.
    never_with(libc::SYS_prlimit64, &[ArgTest::IsNot(0, 0), ArgTest::IsGiven(2)]),
    // The mark by which what a dead run left is found. The limit it is written in limits nothing.
    never_with(libc::SYS_prlimit64, &[ArgTest::Is(1, libc::RLIMIT_LOCKS), ArgTest::IsGiven(2)]),
    never_with(libc::SYS_setrlimit, &[ArgTest::Is(0, libc::RLIMIT_LOCKS)]),
    // Keyrings are shared by all processes of the user.
    never(libc::SYS_keyctl),
    never(libc::SYS_add_key),
    never(libc::SYS_request_key),
    // Mounts. Landlock refuses most of these too. Who finds the newer calls missing takes `mount`.
    never(libc::SYS_mount),
    never(libc::SYS_umount2),
    never(libc::SYS_pivot_root),
    never(libc::SYS_setns),
    never(libc::SYS_open_by_handle_at),
    absent(never(libc::SYS_open_tree)),
    absent(never(libc::SYS_move_mount)),
    absent(never(libc::SYS_fsopen)),
    absent(never(libc::SYS_fsconfig)),
    absent(never(libc::SYS_fsmount)),
    absent(never(libc::SYS_fspick)),
    absent(never(libc::SYS_mount_setattr)),
    absent(never(SYS_OPEN_TREE_ATTR)),
    // The kernel itself.
    never(libc::SYS_bpf),
    never(libc::SYS_perf_event_open),
    never(libc::SYS_userfaultfd),
    never(libc::SYS_kexec_load),
    never(libc::SYS_kexec_file_load),
    never(libc::SYS_init_module),
    never(libc::SYS_finit_module),
    never(libc::SYS_delete_module),
    never(libc::SYS_reboot),
    never(libc::SYS_swapon),
    never(libc::SYS_swapoff),
    never(libc::SYS_acct),
    never(libc::SYS_quotactl),
    never(libc::SYS_syslog),
    never(libc::SYS_vhangup),
    // The clock.
    never(libc::SYS_clock_settime),
    never(libc::SYS_clock_adjtime),
    never(libc::SYS_settimeofday),
    never(libc::SYS_adjtimex),
    // Typing into a terminal, and the sockets of a virtual machine's host.
    never_with(libc::SYS_ioctl, &[ArgTest::Is(1, TIOCSTI)]),
    never_with(libc::SYS_ioctl, &[ArgTest::Is(1, TIOCLINUX)]),
    never_with(libc::SYS_socket, &[ArgTest::Is(0, AF_VSOCK)]),
    // A ring makes calls that no filter sees, `socket` among them. Who finds it missing calls.
    absent(never(libc::SYS_io_uring_setup)),
    // Other processes. A PID namespace shows the program its own ones only, so debuggers work
    // there; else Landlock alone keeps the others safe, and these calls are a risk too many.
    // `personality` is nobody's but one's own, and debuggers call it: it stays allowed.
    outside(libc::SYS_ptrace, &[ArgTest::Is(0, PTRACE_ATTACH)]),
    outside(libc::SYS_ptrace, &[ArgTest::Is(0, PTRACE_SEIZE)]),
    outside(libc::SYS_process_vm_readv, &[]),
    outside(libc::SYS_process_vm_writev, &[]),
    outside(libc::SYS_setpriority, &[ArgTest::IsNot(1, 0)]),
    outside(libc::SYS_setpriority, &[ArgTest::Is(0, PRIO_USER)]),
    outside(libc::SYS_ioprio_set, &[ArgTest::IsNot(1, 0)]),
    outside(libc::SYS_ioprio_set, &[ArgTest::Is(0, IOPRIO_WHO_USER)]),
    outside(libc::SYS_sched_setaffinity, &[ArgTest::IsNot(0, 0)]),
    outside(libc::SYS_sched_setscheduler, &[ArgTest::IsNot(0, 0)]),
    outside(libc::SYS_sched_setparam, &[ArgTest::IsNot(0, 0)]),
    outside(libc::SYS_sched_setattr, &[ArgTest::IsNot(0, 0)]),
    // Flags of files that a read-only mount would protect.
    outside(libc::SYS_ioctl, &[ArgTest::Is(1, FS_IOC_SETFLAGS)]),
    outside(libc::SYS_ioctl, &[ArgTest::Is(1, FS_IOC_FSSETXATTR)]),
    // What outlives its program and is seen by the next one, where there is no IPC namespace.
    absent(outside(libc::SYS_shmget, &[])),
    absent(outside(libc::SYS_shmat, &[])),
    absent(outside(libc::SYS_semget, &[])),
    absent(outside(libc::SYS_msgget, &[])),
    absent(outside(libc::SYS_mq_open, &[])),
];

/// Calls that only this processor has.
#[cfg(target_arch = "x86_64")]
const ROWS_OF_PROCESSOR: &[CallRow] = &[
    never_with(libc::SYS_mknod, &[ArgTest::Bits(1, libc::S_IFMT, libc::S_IFBLK)]),
    never_with(libc::SYS_mknod, &[ArgTest::Bits(1, libc::S_IFMT, libc::S_IFCHR)]),
    never(libc::SYS_ioperm),
    never(libc::SYS_iopl),
];
#[cfg(not(target_arch = "x86_64"))]
const ROWS_OF_PROCESSOR: &[CallRow] = &[];

/// The filters of a jail, ready to be put in force.
pub struct CallFilters(Vec<BpfProgram>);

impl CallFilters {
    /// Compiles the table for a jail with or without namespaces.
    pub fn new(namespaces: bool) -> io::Result<CallFilters> {
        let answers = [CallAnswer::NotPermitted, CallAnswer::NoSuchCall];
        let filters = answers.map(|answer| filter(answer, namespaces));
        let mut programs = vec![other_interfaces()];
        for program in filters {
            programs.push(program.map_err(io::Error::other)?);
        }
        Ok(CallFilters(programs))
    }

    /// Puts the filters in force for the calling thread and all it starts from now on.
    pub fn enforce(&self) -> io::Result<()> {
        self.0
            .iter()
            .try_for_each(|program| seccompiler::apply_filter(program).map_err(io::Error::other))
    }
}

fn filter(answer: CallAnswer, namespaces: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for row in ROWS.iter().chain(ROWS_OF_PROCESSOR) {
        if row.answer != answer || (namespaces && row.refused == RefusedIn::NoNamespaces) {
            continue;
        }
        let of_call = rules.entry(row.call).or_default();
        if !row.tests.is_empty() {
            let tests = row.tests.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
            of_call.push(SeccompRule::new(tests)?);
        }
    }
    let refuse = SeccompAction::Errno(answer.errno().cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, processor())?;
    let program: BpfProgram = filter.try_into()?;
    Ok(program.into_iter().map(spare).collect())
}

impl CallAnswer {
    fn errno(self) -> i32 {
        match self {
            CallAnswer::NotPermitted => libc::EPERM,
            CallAnswer::NoSuchCall => libc::ENOSYS,
        }
    }
}

fn condition(test: &ArgTest) -> Result<SeccompCondition, seccompiler::BackendError> {
    let narrow = SeccompCmpArgLen::Dword;
    match *test {
        ArgTest::Is(arg, value) => {
            SeccompCondition::new(arg, narrow, SeccompCmpOp::Eq, value.into())
        }
        ArgTest::IsNot(arg, value) => {
            SeccompCondition::new(arg, narrow, SeccompCmpOp::Ne, value.into())
        }
        ArgTest::Bits(arg, mask, value) => {
            SeccompCondition::new(arg, narrow, SeccompCmpOp::MaskedEq(mask.into()), value.into())
        }
        ArgTest::IsGiven(arg) => {
            SeccompCondition::new(arg, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn processor() -> TargetArch {
    TargetArch::x86_64
}
#[cfg(target_arch = "aarch64")]
fn processor() -> TargetArch {
    TargetArch::aarch64
}

const RETURN: u16 = 0x06;
const NO_SUCH_CALL: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();

/// Turns the library's answer to calls of another processor's interface (32-bit programs), which is
/// to kill the caller, into an error.
fn spare(step: sock_filter) -> sock_filter {
    if step.code == RETURN && step.k == libc::SECCOMP_RET_KILL_PROCESS {
        return sock_filter { k: NO_SUCH_CALL, ..step };
    }
    step
}

/// Refuses the calls of the x32 interface, which have numbers of their own and would pass by the
/// table. No call of another interface has such a number.
fn other_interfaces() -> BpfProgram {
    const LOAD_CALL: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const X32_FIRST: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD_CALL, 0, 0, 0),
        step(JUMP_IF_AT_LEAST, 0, 1, X32_FIRST),
        step(RETURN, 0, 0, NO_SUCH_CALL),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_filter_kills_and_both_tables_compile() {
        for namespaces in [true, false] {
            let filters = CallFilters::new(namespaces).unwrap();
            let kills = |step: &&sock_filter| {
                step.code == RETURN && step.k == libc::SECCOMP_RET_KILL_PROCESS
            };
            assert_eq!(filters.0.iter().flatten().filter(kills).count(), 0);
        }
    }

    #[test]
    fn a_call_that_is_always_refused_has_no_second_row() {
        let rows: Vec<&CallRow> = ROWS.iter().chain(ROWS_OF_PROCESSOR).collect();
        for row in rows.iter().filter(|row| row.tests.is_empty()) {
            let same = rows.iter().filter(|other| other.call == row.call).count();
            assert_eq!(same, 1, "call {}", row.call);
        }
    }
}
