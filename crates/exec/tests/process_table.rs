//! The table of processes in the background: names, limits, news, and what others read of it.
//!
//! Where only the table's own rules are in question, the processes are made up and the time stands still; where
//! something has to arrive in time, they are real.
#![allow(clippy::unwrap_used)]

mod again;
mod made_up;
mod observed;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::poll;
use hermes_core::{
    AtLimit, CancellationToken, Command, Environment as _, FinishedHow, InputError, Process, ProcessFacts, ProcessNews,
    ProcessState, Processes as _, Start, TerminalSize,
};
use hermes_exec::processes::{Attached, ProcessTable, Record};
use made_up::{MadeUp, MaskingRedactor, SetClock, facts, line, setup};
use observed::{Here, PATIENCE, is_alive, kill, mark, parent, processes_with, until};

/// A table over a folder of its own with a time of its own.
struct Table {
    table: ProcessTable,
    clock: Arc<SetClock>,
    folder: tempfile::TempDir,
}

fn a_table() -> Table {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(SetClock::new());
    let table = ProcessTable::new(setup(folder.path(), "somebody", &clock));
    Table { table, clock, folder }
}

impl Table {
    fn add(&self, facts: ProcessFacts) -> (String, Arc<MadeUp>) {
        let reserved = self.table.reserve(facts).unwrap();
        let (id, process) = (reserved.id.clone(), Arc::new(MadeUp::new()));
        self.table.register(reserved, Arc::<MadeUp>::clone(&process));
        // No two begin at the same time.
        self.clock.advance(Duration::from_secs(1));
        (id, process)
    }

    /// What there is to tell, in words: `ID: LINE` and `ID ended`.
    fn news(&self) -> Vec<String> {
        in_words(self.table.news())
    }
}

fn in_words(news: Vec<ProcessNews>) -> Vec<String> {
    let words = news.into_iter().map(|news| match news {
        ProcessNews::Ended(entry) => format!("{} ended", entry.id),
        ProcessNews::Line(entry, line) => format!("{}: {}", entry.id, line.line),
    });
    words.collect()
}

fn notifying(command: &str) -> ProcessFacts {
    ProcessFacts { notify_on_complete: true, ..facts(command) }
}

fn watching(command: &str, pattern: &str) -> ProcessFacts {
    ProcessFacts { watch_patterns: vec![pattern.into()], ..facts(command) }
}

/// Starts something real and puts it into a table.
async fn start_in(table: &ProcessTable, here: &Here, facts: ProcessFacts) -> (String, Arc<dyn Process>) {
    let reserved = table.reserve(facts).unwrap();
    let mut start = Start::new(&reserved.facts.command, reserved.place.clone());
    start.watch.clone_from(&reserved.facts.watch_patterns);
    start.terminal = reserved.facts.terminal.then(TerminalSize::default);
    let (id, process) = (reserved.id.clone(), here.environment.spawn(start).await.unwrap());
    table.register(reserved, Arc::clone(&process));
    (id, process)
}

async fn until_news(table: &ProcessTable) {
    let never = CancellationToken::new();
    tokio::time::timeout(PATIENCE, table.until_news(&never)).await.expect("news in time");
}

#[tokio::test]
async fn names_are_twelve_digits_and_nobody_has_the_same() {
    let table = a_table();
    let names: HashSet<String> = (0..30).map(|_| table.add(facts("x")).0).collect();
    assert_eq!(names.len(), 30);
    for name in names {
        let digits = name.strip_prefix("proc_").unwrap();
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        assert!(digits.len() == 12 && digits.bytes().all(is_digit), "{name}");
    }
}

#[tokio::test]
async fn a_process_of_somebody_else_is_not_found() {
    let mine = a_table();
    let theirs = ProcessTable::new(setup(mine.folder.path(), "another", &mine.clock));
    let (id, process) = mine.add(facts("x"));
    assert!(theirs.find(&id).is_none() && theirs.list().is_empty());
    assert_eq!(theirs.kill(&id).await, None);
    assert_eq!(process.state(), ProcessState::Running);
    assert_eq!(mine.table.find(&id).unwrap().facts.command, "x");
}

#[tokio::test]
async fn thirty_two_may_run_at_once() {
    let table = a_table();
    let all: Vec<_> = (0..32).map(|_| table.add(facts("x"))).collect();
    let error = table.table.reserve(facts("x")).unwrap_err();
    assert!(error.contains("32 processes run in the background already"), "{error}");
    all[5].1.end(0);
    assert!(table.table.reserve(facts("x")).is_ok());
}

#[tokio::test]
async fn of_more_than_sixty_four_the_one_that_ended_first_goes() {
    let table = a_table();
    let (running, _process) = table.add(facts("runs on"));
    let (late, late_process) = table.add(facts("begins early, ends late"));
    let mut ended = Vec::new();
    for _ in 0..62 {
        let (id, process) = table.add(facts("x"));
        process.end(0);
        table.table.list();
        ended.push(id);
    }
    late_process.end(0);
    assert_eq!(table.table.list().len(), 64);
    table.add(facts("one more"));
    let left: Vec<String> = table.table.list().into_iter().map(|entry| entry.id).collect();
    assert_eq!(left.len(), 64);
    assert!(!left.contains(&ended[0]) && left.contains(&ended[1]));
    assert!(left.contains(&running) && left.contains(&late));
}

#[tokio::test]
async fn what_has_ended_is_kept_for_half_an_hour_from_its_end() {
    let table = a_table();
    let (id, process) = table.add(facts("x"));
    table.clock.advance(Duration::from_secs(7_200));
    assert_eq!(table.table.find(&id).unwrap().ended, None);
    process.end(3);
    assert!(table.table.find(&id).unwrap().ended.is_some());
    table.clock.advance(Duration::from_secs(1_800));
    assert!(table.table.find(&id).is_some());
    table.clock.advance(Duration::from_secs(1));
    assert!(table.table.find(&id).is_none());
}

#[tokio::test]
async fn an_end_is_told_once_and_only_where_it_is_wanted() {
    let table = a_table();
    let (id, process) = table.add(notifying("x"));
    let (_, silent) = table.add(facts("y"));
    assert_eq!(table.news(), [] as [&str; 0]);
    process.end(0);
    silent.end(0);
    assert_eq!(table.news(), [format!("{id} ended")]);
    assert_eq!(table.news(), [] as [&str; 0]);
}

#[tokio::test]
async fn an_end_that_was_seen_or_brought_about_is_not_told() {
    let table = a_table();
    let (seen, process) = table.add(notifying("x"));
    process.end(0);
    table.table.seen(&seen);
    let (killed, _process) = table.add(notifying("y"));
    assert_eq!(table.table.kill(&killed).await, Some(0));
    assert!(table.table.find(&killed).unwrap().killed && !table.table.find(&seen).unwrap().killed);
    assert_eq!(table.news(), [] as [&str; 0]);
    let never = CancellationToken::new();
    assert!(poll!(std::pin::pin!(table.table.until_news(&never))).is_pending());
}

#[tokio::test]
async fn fifteen_lines_are_told_in_ten_seconds_and_the_rest_later() {
    let table = a_table();
    let all: Vec<_> = (0..20).map(|_| table.add(watching("x", "ready"))).collect();
    for (_, process) in &all {
        process.print(line("ready", 0, false));
    }
    assert_eq!(table.news().len(), 15);
    table.clock.advance(Duration::from_secs(9));
    assert_eq!(table.news().len(), 0);
    let cancel = CancellationToken::new();
    {
        let mut waiting = std::pin::pin!(table.table.until_news(&cancel));
        assert!(poll!(&mut waiting).is_pending(), "there is no room for what waits");
    }
    table.clock.advance(Duration::from_secs(1));
    until_news(&table.table).await;
    assert_eq!(table.news().len(), 5);
}

#[tokio::test]
async fn a_line_that_a_look_at_the_table_took_is_still_news() {
    let table = a_table();
    let (id, process) = table.add(watching("x", "ready"));
    process.print(line("server ready", 2, false));
    assert_eq!(table.table.list()[0].watch_hits, 3);
    until_news(&table.table).await;
    assert_eq!(table.news(), [format!("{id}: server ready")]);
}

#[tokio::test]
async fn whoever_waits_for_news_is_not_kept_busy_by_ends_that_are_none() {
    let table = a_table();
    let (_, process) = table.add(watching("x", "ready"));
    process.end(0);
    let cancel = CancellationToken::new();
    let mut waiting = std::pin::pin!(table.table.until_news(&cancel));
    assert!(poll!(&mut waiting).is_pending(), "its end is not to be told");
    cancel.cancel();
    waiting.await;
}

#[tokio::test]
async fn after_a_last_line_the_end_is_told_instead() {
    let table = a_table();
    let (id, process) = table.add(watching("x", "ready"));
    process.print(line("ready again", 700, true));
    assert_eq!(table.news(), [format!("{id}: ready again")]);
    process.end(0);
    until_news(&table.table).await;
    assert_eq!(table.news(), [format!("{id} ended")]);
}

#[tokio::test]
async fn the_end_of_what_ends_at_once_is_never_lost() {
    let (here, table) = (Here::new(), a_table());
    for _ in 0..200 {
        let (id, _process) = start_in(&table.table, &here, notifying("true")).await;
        until_news(&table.table).await;
        assert_eq!(table.news(), [format!("{id} ended")]);
    }
}

#[tokio::test]
async fn what_ends_at_its_limit_has_ended_or_goes_on_and_is_never_lost() {
    let (here, table) = (Here::new(), a_table());
    let mut kept = 0;
    for round in 0..100 {
        let reserved = table.table.reserve(facts("")).unwrap();
        // Around the moment in which it ends by itself.
        let limit = Duration::from_micros(20_000 + 200 * round);
        let mut command = Command::new("sleep 0.025; echo done", limit, 1_000);
        command.at_limit = AtLimit::Keep(reserved.place.clone());
        let log = reserved.place.log.clone();
        let finished = here.environment.run(command, &CancellationToken::new()).await.unwrap();
        match (finished.how, finished.process) {
            (FinishedHow::Exited(0), None) => assert_eq!(finished.output, "done\n"),
            (FinishedHow::Kept(_), Some(process)) => {
                process.ended().await;
                assert_eq!(process.text(0..100).await.unwrap(), "done\n");
                let records = Record::all(table.folder.path());
                let record = records.iter().find(|record| record.log == log).unwrap();
                assert_eq!(record.state, ProcessState::Ended(FinishedHow::Exited(0)));
                kept += 1;
            }
            (how, _) => panic!("{how:?}"),
        }
    }
    assert!(kept > 0, "none was let go");
}

#[tokio::test]
async fn a_line_that_comes_in_pieces_is_found_and_so_is_a_last_one_without_an_end() {
    let (here, table) = (Here::new(), a_table());
    let script = "printf 'server re'; sleep 0.1; echo 'ady on 80'";
    let (id, _process) = start_in(&table.table, &here, watching(script, "ready on")).await;
    until_news(&table.table).await;
    assert_eq!(table.news(), [format!("{id}: server ready on 80")]);

    // It does not end before the line is there: nothing else would say that there is one.
    let (id, process) = start_in(&table.table, &here, watching("printf 'all ready'", "ready")).await;
    process.ended().await;
    assert_eq!(table.news(), [format!("{id}: all ready")]);
}

#[tokio::test]
async fn secrets_are_not_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut setup = setup(folder.path(), "somebody", &Arc::new(SetClock::new()));
    setup.redactor = Some(Arc::new(MaskingRedactor));
    let (here, table) = (Here::new(), ProcessTable::new(setup));
    let (id, process) = start_in(&table, &here, facts("echo hunter2")).await;
    process.ended().await;
    assert_eq!(table.find(&id).unwrap().facts.command, "echo hunter2");
    assert_eq!(process.text(0..100).await.unwrap(), "hunter2\n", "what runs is not changed");
    let record = &Record::all(folder.path())[0];
    assert_eq!(record.facts.command, "echo ***");
    let written = fs::read_to_string(record.log.with_extension("jsonl")).unwrap();
    assert!(!written.contains("hunter2"), "{written}");
}

/// The place of the records, for a program that only looks.
const RECORDS: &str = "TEST_RECORDS";

#[tokio::test]
async fn another_program_reads_how_each_process_is() {
    if again::is_again() {
        for record in Record::all(Path::new(&std::env::var_os(RECORDS).unwrap())) {
            println!("record {} of {}: {:?}", record.facts.command, record.owner, record.state);
        }
        return;
    }
    let (here, table, mark) = (Here::new(), a_table(), mark());
    let running = format!("sleep {mark}; :");
    for script in [&running, "exit 4", "kill -TERM $$"] {
        let (_, process) = start_in(&table.table, &here, facts(script)).await;
        if script != running {
            process.ended().await;
        }
        table.clock.advance(Duration::from_secs(1));
    }
    let (_, lost) = start_in(&table.table, &here, facts("sleep 300; : lost")).await;
    let supervisor = parent(lost.pid()).unwrap();
    kill(supervisor);
    lost.ended().await;
    // It holds the lock on the record until it is dead to the last.
    until("the supervisor is dead", || !is_alive(supervisor)).await;
    assert_eq!(lost.kill(Duration::from_secs(1)).await, 0);

    let mut command = again::command("another_program_reads_how_each_process_is");
    let output = command.env(RECORDS, table.folder.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    // The first one shares its line with the harness, which says what it runs.
    let records: Vec<&str> = said.lines().filter_map(|line| Some(line.split_once("record ")?.1)).collect();
    let wanted = [
        &format!("{running} of somebody: Running"),
        "exit 4 of somebody: Ended(Exited(4))",
        "kill -TERM $$ of somebody: Ended(Signalled(15))",
        "sleep 300; : lost of somebody: Lost",
    ];
    assert_eq!(records, wanted, "{said}");
    here.environment.close().await;
    assert_eq!(Record::all(table.folder.path())[0].state, ProcessState::Ended(FinishedHow::Signalled(15)));
    assert!(processes_with(&mark).is_empty());
}

/// Collects output until it contains `text`.
async fn follow_until(attached: &Attached, seen: &mut String, text: &str) {
    while !seen.contains(text) {
        let more = tokio::time::timeout(PATIENCE, attached.output()).await.expect("output in time");
        seen.push_str(&String::from_utf8(more.expect("it runs")).unwrap());
    }
}

#[tokio::test]
async fn others_can_follow_a_process_answer_it_and_end_it() {
    let (here, table) = (Here::new(), a_table());
    let script = "while read -r line; do echo \"got $line\"; stty size; done; :";
    let on_terminal = ProcessFacts { terminal: true, ..facts(script) };
    let (_, process) = start_in(&table.table, &here, on_terminal).await;
    let records = Record::all(table.folder.path());
    let attached = Attached::connect(&records[0]).unwrap();
    let watcher = Attached::connect(&records[0]).unwrap();
    attached.follow().unwrap();
    watcher.follow().unwrap();
    attached.write(b"one\n").await.unwrap();
    let (mut seen, mut seen_too) = (String::new(), String::new());
    follow_until(&attached, &mut seen, "30 120\r\n").await;
    attached.resize(TerminalSize { rows: 40, columns: 99 });
    attached.write(b"two\n").await.unwrap();
    follow_until(&attached, &mut seen, "40 99\r\n").await;
    assert_eq!(seen.replace('\r', ""), "one\ngot one\n30 120\ntwo\ngot two\n40 99\n");
    follow_until(&watcher, &mut seen_too, "40 99\r\n").await;
    // It may have come a moment later, but nothing is missing from then on.
    assert!(seen.ends_with(&seen_too) && seen_too.contains("got two"), "{seen_too:?}");
    assert_eq!(seen.as_bytes(), process.output(0..10_000).await.unwrap());
    // Whoever leaves changes nothing.
    drop(watcher);
    assert_eq!(process.state(), ProcessState::Running);
    assert_eq!(attached.kill(Duration::from_secs(1)).await.unwrap(), 0);
    process.ended().await;
    assert!(matches!(process.state(), ProcessState::Ended(_)));
    until("its supervisor goes", || Attached::connect(&records[0]).is_err()).await;
}

#[tokio::test]
async fn whoever_comes_after_the_end_does_not_wait_for_output() {
    let (here, table, mark) = (Here::new(), a_table(), mark());
    let (_, process) = start_in(&table.table, &here, facts(&format!("sleep {mark} & exit 3"))).await;
    process.ended().await;
    // What it left running keeps its supervisor there.
    until("the child begins", || !processes_with(&mark).is_empty()).await;
    let attached = Attached::connect(&Record::all(table.folder.path())[0]).unwrap();
    attached.follow().unwrap();
    let output = tokio::time::timeout(PATIENCE, attached.output()).await.expect("an answer in time");
    assert_eq!(output, None);
    assert_eq!(process.kill(Duration::from_secs(1)).await, 0);
    assert!(processes_with(&mark).is_empty());
}

#[tokio::test]
async fn positions_in_a_long_log_stay_true_and_its_beginning_is_given_back() {
    use std::os::unix::fs::MetadataExt as _;
    const KEPT: u64 = 64 * 1024 * 1024;
    let (here, table) = (Here::new(), a_table());
    let script = "head -c 100000000 /dev/zero | tr '\\0' x; echo end";
    let (_, process) = start_in(&table.table, &here, facts(script)).await;
    process.ended().await;
    assert_eq!(process.output_len(), 100_000_004);
    let begin = process.output_start();
    assert!((100_000_004 - KEPT..=100_000_004 - KEPT / 2).contains(&begin), "{begin}");
    assert_eq!(process.output(100_000_000..u64::MAX).await.unwrap(), b"end\n");
    assert_eq!(process.output(0..1_000).await.unwrap(), b"");
    assert_eq!(process.output(begin - 5..begin + 5).await.unwrap(), b"xxxxx");
    let log = &Record::all(table.folder.path())[0].log;
    let on_disk = fs::metadata(log).unwrap().blocks() * 512;
    assert!(on_disk <= KEPT + 1024 * 1024, "{on_disk} bytes");
}

#[tokio::test]
async fn a_follower_that_does_not_keep_up_gets_its_answers_all_the_same() {
    let (here, table) = (Here::new(), a_table());
    // More than any socket holds.
    let script = "head -c 5000000 /dev/zero | tr '\\0' x; sleep 300; :";
    let (_, process) = start_in(&table.table, &here, facts(&format!("sleep 0.2; {script}"))).await;
    let attached = Attached::connect(&Record::all(table.folder.path())[0]).unwrap();
    attached.follow().unwrap();
    until("all is printed", || process.output_len() == 5_000_000).await;
    let answer = tokio::time::timeout(PATIENCE, attached.write(b"x")).await.expect("an answer in time");
    assert_eq!(answer, Err(InputError::None));
    let output = attached.output().await.unwrap();
    assert!(!output.is_empty() && output.iter().all(|byte| *byte == b'x'));
    let left = tokio::time::timeout(PATIENCE, attached.kill(Duration::from_secs(1))).await.expect("an answer in time");
    assert_eq!(left.unwrap(), 0);
}
