//! However deep a text is nested, and on however small a stack it is read: there is an answer, and it is not "safe".
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

use hermes_guard::{Verdict, World, judge};

/// The verdict, reached on a stack of 512 kB.
fn on_a_small_stack(command: String) -> Verdict {
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    let judged = thread.spawn(move || judge(&command, &World::new("/home/u", "/home/u/project")).verdict);
    judged.unwrap().join().unwrap()
}

/// A text as one word in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
fn a_text_that_never_ends_cannot_be_read() {
    for unit in [
        "$(",
        "{ ",
        "((",
        "[[ ",
        "${x:-",
        "if true; then ",
        "case x in x) ",
        "f() { ",
        "`",
        "\"$(",
        "<(",
        "$((",
        "a=(",
        "while x; do ",
    ] {
        for count in [51, 501, 20_001] {
            assert_ne!(on_a_small_stack(unit.repeat(count)), Verdict::Safe, "{unit} {count}");
        }
    }
}

#[test]
fn what_is_nested_and_closed_is_read_or_refused() {
    for depth in [10, 50, 70, 1_000] {
        let command = format!("{}rm -rf /{}", "echo $(".repeat(depth), ")".repeat(depth));
        let verdict = on_a_small_stack(command);
        assert_eq!(verdict, if depth < 60 { Verdict::Hardline } else { Verdict::Dangerous }, "{depth}");
        let command = format!("{}rm -rf build{}", "( ".repeat(depth), " )".repeat(depth));
        assert_eq!(on_a_small_stack(command), Verdict::Dangerous, "{depth}");
    }
}

#[test]
fn texts_in_texts_are_followed_to_a_point_and_then_ask() {
    let mut command = "rm -rf /".to_owned();
    for _ in 0..5 {
        command = format!("bash -c {}", quoted(&command));
    }
    assert_eq!(on_a_small_stack(command.clone()), Verdict::Hardline);
    // Each level adds a nest of its own, so that both limits are met together.
    let mut command = "rm -rf /".to_owned();
    for _ in 0..10 {
        command = format!("eval {}", quoted(&format!("{}{command}{}", "( ".repeat(50), " )".repeat(50))));
        if command.len() > 1_000_000 {
            break;
        }
    }
    assert_ne!(on_a_small_stack(command), Verdict::Safe);
}

#[test]
fn functions_that_call_one_another_come_to_an_end() {
    for command in [
        "a() { b; }; b() { a; }; a",
        "a() { $(a); }; a",
        "a() { eval a; }; a",
        "alias a='a a'; a",
        "x='eval \"$x\"'; eval \"$x\"",
        "a() { a \"$@\" x; }; a",
        "trap 'trap \"x\" EXIT' EXIT",
    ] {
        let _ = on_a_small_stack(command.to_owned());
    }
}

#[test]
fn a_null_character_hides_nothing() {
    let world = World::new("/home/u", "/home/u/project");
    for (command, verdict) in
        [("\0rm -rf /", Verdict::Hardline), ("r\0m -rf /", Verdict::Hardline), ("ls\0", Verdict::Dangerous)]
    {
        assert_eq!(judge(command, &world).verdict, verdict, "{command:?}");
    }
}
