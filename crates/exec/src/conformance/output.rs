//! What a command reads, prints and answers.

use std::path::Path;

use hermes_core::{Command, FinishedHow};

use super::subject::{CAP, PATIENCE, Subject, Wrong, ensure, same, shown};

/// Prints each of the 256 bytes once.
pub(super) const EVERY_BYTE: &str = r#"printf '%b' "$(printf '\\x%02x' {0..255})""#;

pub(super) fn every_byte() -> Vec<u8> {
    (0..=u8::MAX).collect()
}

pub(super) async fn comes_back(subject: &Subject<'_>) -> Result<(), Wrong> {
    subject.prints("echo hello", "hello\n").await?;
    let finished = subject.run("echo hello").await?;
    same("the number of bytes printed", finished.total_bytes, 6)?;
    same("the number of bytes left out", finished.omitted_bytes, 0)?;
    same("the file for the rest", finished.spill, None)
}

pub(super) async fn both_in_order(subject: &Subject<'_>) -> Result<(), Wrong> {
    subject.prints("echo one; echo two >&2; echo three; echo four >&2", "one\ntwo\nthree\nfour\n").await
}

pub(super) async fn exit_codes(subject: &Subject<'_>) -> Result<(), Wrong> {
    for (script, code) in [("true", 0), ("false", 1), ("exit 3", 3), ("no-such-program-anywhere", 127)] {
        let finished = subject.run(script).await?;
        same(&format!("the end of `{script}`"), finished.how, FinishedHow::Exited(code))?;
    }
    Ok(())
}

pub(super) async fn ended_by_a_signal(subject: &Subject<'_>) -> Result<(), Wrong> {
    for (signal, number) in [("TERM", 15), ("KILL", 9)] {
        let finished = subject.run(&format!("kill -{signal} $$; sleep 60")).await?;
        same(&format!("the code of an end by SIG{signal}"), finished.how.exit_code(), 128 + number)?;
    }
    Ok(())
}

pub(super) async fn empty_input(subject: &Subject<'_>) -> Result<(), Wrong> {
    subject.prints("cat; read -r line || echo nothing", "nothing\n").await
}

pub(super) async fn given_input(subject: &Subject<'_>) -> Result<(), Wrong> {
    let mut command = Command::new(format!("cat >{}", subject.word("input")), PATIENCE, CAP);
    let bytes = every_byte().repeat(4096);
    command.input = Some(bytes.clone());
    let finished = subject.run_command(command).await?;
    same("the end", finished.how, FinishedHow::Exited(0))?;
    let arrived = subject.content(&subject.path("input")).await?;
    ensure(arrived == bytes, || format!("{} bytes arrived, and not those that were given", arrived.len()))
}

pub(super) async fn endless(subject: &Subject<'_>) -> Result<(), Wrong> {
    const TOTAL: u64 = 6 + 100_000_000 + 5;
    let script = "echo begin; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end";
    let finished = subject.run_command(Command::new(script, PATIENCE * 2, CAP)).await?;
    same("the end", finished.how, FinishedHow::Exited(0))?;
    same("the number of bytes printed", finished.total_bytes, TOTAL)?;
    same("the number of bytes left out", finished.omitted_bytes, TOTAL - CAP as u64)?;
    let text = &finished.output;
    ensure(text.starts_with("begin\nxxx") && text.ends_with("xxx\nend\n"), || {
        format!("the text begins and ends otherwise: {}", shown(text))
    })?;
    ensure(text.len() < CAP + 1_000, || format!("the text has {} bytes", text.len()))?;
    let spill = finished.spill.ok_or_else(|| Wrong("there is no file for the rest".into()))?;
    same("the length of the file", subject.environment.stat(&spill).await?.len, TOTAL)?;
    let begin = subject.environment.read(&spill, 0..9).await?;
    same("the begin of the file", begin.as_slice(), b"begin\nxxx")?;
    let end = subject.environment.read(&spill, TOTAL - 8..u64::MAX).await?;
    same("the end of the file", end.as_slice(), b"xxx\nend\n")
}

pub(super) async fn any_bytes(subject: &Subject<'_>) -> Result<(), Wrong> {
    let finished = subject.run(&format!("{EVERY_BYTE}; echo; echo after")).await?;
    same("the number of bytes printed", finished.total_bytes, 256 + 7)?;
    ensure(finished.output.ends_with("\nafter\n"), || format!("the text is {}", shown(&finished.output)))?;
    let finished = subject.run_command(Command::new(EVERY_BYTE, PATIENCE, 100)).await?;
    let spill = finished.spill.ok_or_else(|| Wrong("there is no file for the rest".into()))?;
    same("the file for the rest", subject.content(Path::new(&spill)).await?, every_byte())
}

pub(super) async fn character_in_pieces(subject: &Subject<'_>) -> Result<(), Wrong> {
    let script = r"printf '\303'; sleep 0.2; printf '\251 \360\237'; sleep 0.2; printf '\231\202\n'";
    subject.prints(script, "é 🙂\n").await
}

pub(super) async fn no_final_newline(subject: &Subject<'_>) -> Result<(), Wrong> {
    subject.prints("printf 'one\\ntwo'", "one\ntwo").await?;
    subject.prints("true", "").await
}

pub(super) async fn escapes(subject: &Subject<'_>) -> Result<(), Wrong> {
    let script = r"printf '\033[1;31mred\033[0m \033]0;title\007plain\033[K\n'";
    subject.prints(script, "red plain\n").await
}

pub(super) async fn long_command(subject: &Subject<'_>) -> Result<(), Wrong> {
    let script = format!("text='{}'; echo ${{#text}}", "x".repeat(300_000));
    subject.prints(&script, "300000\n").await
}

pub(super) async fn awkward_command(subject: &Subject<'_>) -> Result<(), Wrong> {
    let text = "it's \"quoted\" `ticks` $HOME ${x} $(y) \\ \\n \\\\ !! # ~ * ? [a] {b,c} ; & | < > ( ) % ^ =\n\
                \ttab, trailing blanks  \n\r\n é 你好 🙂 \u{7f}\n\nEO\n EOF\n";
    let path = subject.path("awkward");
    let script =
        format!("cat >{} <<'EOF'\n{text}EOF\necho 'a'\"'\"'b' \"c\\\"d\" $'e\\tf' \"$#\"", subject.word("awkward"));
    subject.prints(&script, "a'b c\"d e\tf 0\n").await?;
    let arrived = subject.content(&path).await?;
    same("what arrived", String::from_utf8_lossy(&arrived).as_ref(), text)
}
