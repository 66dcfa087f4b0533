//! Processes as the kernel sees them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Ends a process of ours at once.
pub fn kill(process: u32) {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::KILL).expect("the process is there");
}

/// The processes whose parent is this one.
pub fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("there is /proc");
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| stat(*id).is_some_and(|(state, of)| of == parent && state != "Z")).collect()
}

/// The state of a process and its parent.
fn stat(process: u32) -> Option<(String, u32)> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses and may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// The memory that a process holds, in kB.
pub fn memory(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
