//! The corpus of judged commands: how often the guard agrees.

use std::collections::BTreeMap;
use std::path::Path;

use hermes_guard::{Verdict, World, judge};

fn verdict(name: &str) -> Verdict {
    match name {
        "safe" => Verdict::Safe,
        "dangerous" => Verdict::Dangerous,
        _ => Verdict::Hardline,
    }
}

#[test]
#[ignore = "a report"]
fn report() {
    let world = World::new("/home/u", "/home/u/project");
    let file = std::env::var("CORPUS").unwrap();
    let only = std::env::var("FAMILY").unwrap_or_default();
    let mut families: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let (mut total, mut right) = (0, 0);
    for line in std::fs::read_to_string(Path::new(&file)).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let family = row["family"].as_str().unwrap();
        if !only.is_empty() && !only.split(',').any(|f| f == family) {
            continue;
        }
        let expected = verdict(row["verdict"].as_str().unwrap());
        let cmd = row["cmd"].as_str().unwrap();
        let got = judge(cmd, &world);
        total += 1;
        let entry = families.entry(family.to_owned()).or_default();
        entry.1 += 1;
        if got.verdict == expected {
            right += 1;
            entry.0 += 1;
        } else {
            println!(
                "want {expected:?} got {:?} [{family}] {cmd:?} ({}) {:?}",
                got.verdict,
                row["why"].as_str().unwrap_or(""),
                got.findings
                    .iter()
                    .map(|f| format!("{}:{} {} {}", f.program, f.family(), f.target, f.why))
                    .collect::<Vec<_>>()
            );
        }
    }
    println!("{right} of {total}");
    for (family, (right, total)) in families {
        if right < total {
            println!("  {family}: {right}/{total}");
        }
    }
}
