//! Whether a tool can be used: asked once, remembered 30 s, kept through a hiccup of 60 s, and true in every list.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod setting;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_core::{Availability, Check, Tool as _};
use hermes_runtime::registry::Entry;
use hermes_runtime::{Checks, Definitions, OwnerKind, Profile, Registry, Selection, Wanted};
use hermes_testkit::{FakeSurroundings, FakeTool};
use setting::register;

/// Checks with a clock that a test moves.
struct Watch {
    checks: Checks,
    machine: Arc<FakeSurroundings>,
    seconds: Arc<AtomicU64>,
}

impl Watch {
    fn new() -> Self {
        let (machine, seconds) = (Arc::new(FakeSurroundings::new()), Arc::new(AtomicU64::new(1_000)));
        let clock = Arc::clone(&seconds);
        let checks = Checks::with_clock(Arc::clone(&machine) as _, move || Duration::from_secs(clock.load(SeqCst)));
        Self { checks, machine, seconds }
    }

    fn wait(&self, seconds: u64) {
        self.seconds.fetch_add(seconds, SeqCst);
    }

    fn is_there(&self, tool: &Entry) -> bool {
        self.checks.of(tool).is_available()
    }
}

/// The tool as the registry has it.
fn registered(tool: FakeTool) -> Arc<Entry> {
    let registry = Registry::new();
    let name = tool.spec().name.clone();
    register(&registry, "plugin", vec![Arc::new(tool)]);
    Arc::clone(registry.snapshot().get(name.as_str()).unwrap())
}

/// A check whose answer a test decides, and that counts how often it was asked.
#[derive(Default)]
struct Daemon {
    up: AtomicBool,
    asked: AtomicUsize,
}

impl Daemon {
    fn check(self: &Arc<Self>) -> Check {
        let daemon = Arc::clone(self);
        Check::quick("daemon", move || {
            daemon.asked.fetch_add(1, SeqCst);
            if daemon.up.load(SeqCst) {
                Availability::Available
            } else {
                Availability::missing("no daemon", "start it")
            }
        })
    }
}

fn tool(name: &str, daemon: &Arc<Daemon>) -> Arc<Entry> {
    registered(FakeTool::new(name).with_check(daemon.check()))
}

#[test]
fn an_answer_holds_for_30_seconds_and_no_longer() {
    let (watch, daemon) = (Watch::new(), Arc::new(Daemon::default()));
    let tool = tool("a", &daemon);
    assert!(!watch.is_there(&tool));
    daemon.up.store(true, SeqCst);
    watch.wait(29);
    assert!(!watch.is_there(&tool));
    assert_eq!(daemon.asked.load(SeqCst), 1);
    watch.wait(1);
    assert!(watch.is_there(&tool));
    assert_eq!(daemon.asked.load(SeqCst), 2);
}

#[test]
fn a_tool_that_was_there_is_kept_through_a_hiccup_of_60_seconds() {
    let (watch, daemon) = (Watch::new(), Arc::new(Daemon::default()));
    let tool = tool("a", &daemon);
    daemon.up.store(true, SeqCst);
    assert!(watch.is_there(&tool));
    daemon.up.store(false, SeqCst);
    for _ in 0..2 {
        watch.wait(29);
        assert!(watch.is_there(&tool), "within the grace");
    }
    watch.wait(2);
    assert!(!watch.is_there(&tool), "a minute after the last good answer");
    let asked = daemon.asked.load(SeqCst);
    watch.wait(29);
    assert!(!watch.is_there(&tool));
    assert_eq!(daemon.asked.load(SeqCst), asked, "a no holds 30 s like a yes");
    // Back within the grace: nobody noticed.
    daemon.up.store(true, SeqCst);
    watch.wait(1);
    assert!(watch.is_there(&tool));
    daemon.up.store(false, SeqCst);
    watch.wait(31);
    assert!(watch.is_there(&tool));
    daemon.up.store(true, SeqCst);
    watch.wait(2);
    assert!(watch.is_there(&tool));
    daemon.up.store(false, SeqCst);
    watch.wait(59);
    assert!(watch.is_there(&tool), "the grace counts from the last good answer");
}

#[test]
fn tools_that_share_a_check_ask_it_once() {
    let (watch, daemon) = (Watch::new(), Arc::new(Daemon::default()));
    let tools: Vec<Arc<Entry>> = ["a", "b", "c", "d"].iter().map(|name| tool(name, &daemon)).collect();
    assert!(tools.iter().all(|tool| !watch.is_there(tool)));
    assert_eq!(daemon.asked.load(SeqCst), 1);
    watch.wait(31);
    watch.checks.epoch();
    assert!(tools.iter().all(|tool| !watch.is_there(tool)));
    assert_eq!(daemon.asked.load(SeqCst), 2);
}

#[test]
fn a_check_that_fails_means_missing() {
    let watch = Watch::new();
    let broken = registered(FakeTool::new("a").with_check(Check::quick("broken", || panic!("no such socket"))));
    let Availability::Missing { reason, .. } = watch.checks.of(&broken) else { panic!("it is there") };
    assert!(reason.contains("broken"), "{reason}");
}

#[test]
fn variables_and_programs_are_asked_of_the_machine_and_named_with_what_fixes_it() {
    let watch = Watch::new();
    let tool = registered(FakeTool::new("a").with_spec(|spec| {
        spec.requires_env = vec!["KEY".into()];
        spec.requires_programs = vec!["ffmpeg".into()];
    }));
    let missing = |reason: &str, fix: &str| Availability::missing(reason, fix);
    assert_eq!(watch.checks.of(&tool), missing("KEY is not set", "set KEY"));
    watch.machine.add("KEY");
    watch.checks.forget();
    assert_eq!(watch.checks.of(&tool), missing("ffmpeg not found", "install ffmpeg"));
    watch.machine.add("ffmpeg");
    watch.wait(31);
    assert!(watch.is_there(&tool));
}

#[test]
fn a_slow_check_is_asked_elsewhere_and_its_last_answer_holds_meanwhile() {
    let watch = Watch::new();
    let gate = Arc::new(Mutex::new(()));
    let asked = Arc::new(AtomicUsize::new(0));
    let check = {
        let (gate, asked) = (Arc::clone(&gate), Arc::clone(&asked));
        Check::slow("docker", move || {
            asked.fetch_add(1, SeqCst);
            drop(gate.lock().unwrap());
            Availability::Available
        })
    };
    let registry = Registry::new();
    register(&registry, "plugin", vec![Arc::new(FakeTool::new("a").with_check(check))]);
    let tool = Arc::clone(registry.snapshot().get("a").unwrap());
    let held = gate.lock().unwrap();
    // Nobody waits for the answer, and nobody asks a second time while it is on its way.
    for _ in 0..5 {
        let Availability::Missing { reason, .. } = watch.checks.of(&tool) else { panic!("it is there") };
        assert!(reason.contains("not known yet"), "{reason}");
    }
    let before = watch.checks.epoch();
    assert!(!watch.checks.settle(&registry.snapshot(), Duration::from_millis(1)));
    drop(held);
    assert!(watch.checks.settle(&registry.snapshot(), Duration::from_secs(30)));
    assert!(watch.is_there(&tool));
    assert_eq!(asked.load(SeqCst), 1);
    assert!(watch.checks.epoch() > before, "a new answer is a new epoch");
    // When it runs out, the old answer holds while the new one is looked for.
    watch.wait(31);
    let held = gate.lock().unwrap();
    assert!(watch.is_there(&tool));
    drop(held);
    assert!(watch.checks.settle(&registry.snapshot(), Duration::from_secs(30)));
    assert_eq!(asked.load(SeqCst), 2);
}

#[test]
fn a_change_shows_in_the_list_within_30_seconds_through_every_cache() {
    let (watch, daemon) = (Watch::new(), Arc::new(Daemon::default()));
    let registry = Arc::new(Registry::new());
    let owner = registry.owner(OwnerKind::Plugin, "p", false);
    let checked = FakeTool::new("a").with_check(daemon.check());
    registry.offer(&owner, vec![Arc::new(checked), Arc::new(FakeTool::new("b"))]).unwrap();
    let definitions = Definitions::new(registry, watch.checks.clone());
    let wanted = Arc::new(Wanted::new(Selection::exactly(&["all"]), Profile::OpenAiChat));
    let seen = || {
        let shown = definitions.current(&wanted).unwrap();
        assert_eq!(shown.list.len(), shown.tools.len());
        shown.tools.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(seen(), ["b"]);
    daemon.up.store(true, SeqCst);
    assert_eq!(seen(), ["b"]);
    watch.wait(30);
    assert_eq!(seen(), ["a", "b"], "recovery");
    daemon.up.store(false, SeqCst);
    watch.wait(30);
    assert_eq!(seen(), ["a", "b"], "a hiccup");
    watch.wait(30);
    assert_eq!(seen(), ["b"], "an outage");
    // A key was added, and somebody said so: at once.
    daemon.up.store(true, SeqCst);
    watch.checks.forget();
    assert_eq!(seen(), ["a", "b"]);
}

#[test]
fn an_epoch_moves_when_an_answer_changes_and_not_when_it_is_given_again() {
    let (watch, daemon) = (Watch::new(), Arc::new(Daemon::default()));
    let tool = tool("a", &daemon);
    watch.is_there(&tool);
    let first = watch.checks.epoch();
    for _ in 0..3 {
        watch.wait(31);
        assert_eq!(watch.checks.epoch(), first);
    }
    daemon.up.store(true, SeqCst);
    watch.wait(31);
    assert!(watch.checks.epoch() > first);
}

#[test]
fn who_does_not_answer_at_all_is_missing_after_the_grace_and_the_list_hears_of_it() {
    let watch = Watch::new();
    let gate = Arc::new(Mutex::new(()));
    let behind = Arc::clone(&gate);
    let check = Check::slow("docker", move || {
        drop(behind.lock().unwrap());
        Availability::Available
    });
    let registry = Registry::new();
    register(&registry, "plugin", vec![Arc::new(FakeTool::new("a").with_check(check))]);
    let tool = Arc::clone(registry.snapshot().get("a").unwrap());
    watch.is_there(&tool);
    assert!(watch.checks.settle(&registry.snapshot(), Duration::from_secs(30)));
    assert!(watch.is_there(&tool));
    let held = gate.lock().unwrap();
    watch.wait(31);
    assert!(watch.is_there(&tool), "the last answer holds while the next one is looked for");
    let before = watch.checks.epoch();
    watch.wait(60);
    assert!(watch.checks.epoch() > before);
    let Availability::Missing { reason, .. } = watch.checks.of(&tool) else { panic!("it is there") };
    assert!(reason.contains("has not answered"), "{reason}");
    drop(held);
    assert!(watch.checks.settle(&registry.snapshot(), Duration::from_secs(30)));
    assert!(watch.is_there(&tool));
}

#[test]
fn an_answer_to_a_question_from_before_it_was_all_forgotten_does_not_count() {
    let watch = Watch::new();
    let (gate, first) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(true)));
    let check = {
        let (gate, first) = (Arc::clone(&gate), Arc::clone(&first));
        Check::slow("key", move || {
            if first.swap(false, SeqCst) {
                drop(gate.lock().unwrap());
                return Availability::Available;
            }
            Availability::missing("no key", "set it")
        })
    };
    let registry = Registry::new();
    register(&registry, "plugin", vec![Arc::new(FakeTool::new("a").with_check(check))]);
    let tool = Arc::clone(registry.snapshot().get("a").unwrap());
    let held = gate.lock().unwrap();
    watch.is_there(&tool);
    while first.load(SeqCst) {
        std::thread::yield_now();
    }
    watch.checks.forget();
    assert!(watch.checks.settle(&registry.snapshot(), Duration::from_secs(30)));
    assert!(!watch.is_there(&tool));
    drop(held);
    // Whenever the old thread comes, it changes nothing.
    for _ in 0..1_000 {
        assert!(!watch.is_there(&tool));
        std::thread::yield_now();
    }
}

#[test]
fn whoever_uses_the_id_of_somebody_elses_check_does_not_answer_for_it() {
    let watch = Watch::new();
    let registry = Registry::new();
    let built_in = registry.owner(OwnerKind::BuiltIn, "built-in", false);
    let no = Check::quick("docker", || Availability::missing("no docker", "start it"));
    registry.offer(&built_in, vec![Arc::new(FakeTool::new("run").with_check(no))]).unwrap();
    register(
        &registry,
        "p",
        vec![Arc::new(FakeTool::new("p").with_check(Check::quick("docker", || Availability::Available)))],
    );
    let snapshot = registry.snapshot();
    for _ in 0..2 {
        assert!(watch.is_there(snapshot.get("p").unwrap()));
        assert!(!watch.is_there(snapshot.get("run").unwrap()));
    }
}

#[test]
fn nobody_goes_on_asking_about_a_tool_that_is_gone() {
    let (watch, daemon, registry) = (Watch::new(), Arc::new(Daemon::default()), Arc::new(Registry::new()));
    let owner = registry.owner(OwnerKind::Plugin, "plugin", false);
    let tool = FakeTool::new("a").with_check(daemon.check());
    registry.offer(&owner, vec![Arc::new(tool)]).unwrap();
    let definitions = Definitions::new(Arc::clone(&registry), watch.checks.clone());
    let all = Arc::new(Wanted::new(Selection::exactly(&["all"]), Profile::OpenAiChat));
    definitions.current(&all).unwrap();
    let asked = daemon.asked.load(SeqCst);
    assert!(asked > 0);
    registry.withdraw(&owner);
    definitions.current(&all).unwrap();
    watch.wait(31);
    watch.checks.epoch();
    assert_eq!(daemon.asked.load(SeqCst), asked);
}
