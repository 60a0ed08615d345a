//! What the sandbox adds to a command: `true` confined in every way that works here, against `true` alone.
//!
//! `cargo bench -p hermes-exec --bench sandbox` prints a Markdown table of medians. Both take turns, so that a machine
//! that gets slower hits both.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people who measure")]

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use hermes_exec::sandbox::{Confinement, Mechanism, Network, View, WritableRoot, preflight};
use hermes_testkit::measure::{in_turn, median, shown, timed};

const RUNS: usize = 200;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    let found = preflight();
    let times = (0..10).map(|_| timed(&mut || drop(preflight()))).collect();
    println!("preflight: {}\n\n| mechanism | view | network | confined | bare | added |", shown(median(times)));
    println!("|---|---|---|---|---|---|");
    for mechanism in [Mechanism::Namespaces, Mechanism::Bubblewrap, Mechanism::Landlock] {
        for (name, view) in [("everything", View::Everything), ("system", View::System { home: "/root".into() })] {
            for network in [Network::Open, Network::Off] {
                if !found.works(mechanism) {
                    continue;
                }
                let mut confinement = Confinement::new(mechanism);
                confinement.view = view.clone();
                confinement.network = network;
                confinement.writable = vec![WritableRoot::direct(&workspace)];
                let bare = Confinement::new(Mechanism::None);
                let (ours, floor) = in_turn(RUNS, || run(&confinement, &workspace), || run(&bare, &workspace));
                let added = shown(ours.saturating_sub(floor));
                println!("| {mechanism:?} | {name} | {network:?} | {} | {} | {added} |", shown(ours), shown(floor));
            }
        }
    }
}

#[expect(unsafe_code, reason = "confining happens between fork and exec")]
fn run(confinement: &Confinement, workspace: &Path) {
    let (program, arguments) = confinement.command("true".as_ref(), &[]).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(workspace);
    let confinement = confinement.clone();
    // SAFETY: this process has one thread, so the child may do what it likes.
    unsafe { command.pre_exec(move || confinement.enter(None).map(drop)) };
    let status = command.status().unwrap();
    assert!(status.success(), "{status}");
}
