//! Files: there and back.

use std::path::Path;

use hermes_core::{FileErrorKind, FileKind};

use super::subject::{Subject, Wrong, ensure, same, word};

const NAMES: &[&str] = &[
    "plain",
    "two words",
    "it's \"quoted\"",
    "line\nbreak",
    "-n leading dash",
    "ünïcödé 你好 🙂",
    "back\\slash",
    "$HOME `id` *?[x]",
    ".hidden",
    " blanks ",
];

pub(super) async fn round_trip(subject: &Subject<'_>) -> Result<(), Wrong> {
    let folder = subject.path("names");
    let environment = subject.environment;
    let every_byte: Vec<u8> = (0..=u8::MAX).cycle().take(1024 * 1024).collect();
    for (at, name) in NAMES.iter().enumerate() {
        let path = folder.join(name);
        for length in [1024 * 1024, 1, 0] {
            let bytes = &every_byte[at..][..length.min(every_byte.len() - at)];
            let folder_was_made = environment.write(&path, bytes).await?;
            same("whether a folder was made", folder_was_made, at == 0 && length > 1)?;
            let about = environment.stat(&path).await?;
            same(&format!("the kind of {name:?}"), about.kind, FileKind::File)?;
            same(&format!("the length of {name:?}"), about.len, bytes.len() as u64)?;
            let read = environment.read(&path, 0..u64::MAX).await?;
            ensure(read == bytes, || format!("{name:?} came back with other bytes"))?;
            // Commands see the same file under the same name.
            subject.prints(&format!("wc -c <{} | tr -d ' '", word(&path)), &format!("{}\n", bytes.len())).await?;
        }
    }
    let range = environment.write(&folder.join("plain"), b"0123456789").await.map(|_| folder.join("plain"))?;
    same("a piece of a file", environment.read(&range, 3..5).await?.as_slice(), b"34")?;
    same("a piece that reaches past the end", environment.read(&range, 8..99).await?.as_slice(), b"89")?;
    let mut wanted: Vec<&str> = NAMES.to_vec();
    wanted.sort_unstable();
    let listed = environment.list(&folder).await?;
    same("the list of names", listed.iter().map(String::as_str).collect(), wanted)
}

pub(super) async fn mode(subject: &Subject<'_>) -> Result<(), Wrong> {
    let path = subject.path("mode");
    subject.environment.write(&path, b"old").await?;
    let look = format!("ls -l {} | cut -c1-10", word(&path));
    subject.run(&format!("chmod 751 {}", word(&path))).await?;
    subject.environment.write(&path, b"new").await?;
    subject.prints(&look, "-rwxr-x--x\n").await?;
    same("the content", subject.content(&path).await?.as_slice(), b"new")
}

pub(super) async fn no_files(subject: &Subject<'_>) -> Result<(), Wrong> {
    subject.run(&format!("mkfifo {}; mkdir {}", subject.word("pipe"), subject.word("folder"))).await?;
    let pipe = FileErrorKind::NotRegular(FileKind::Pipe);
    let folder = FileErrorKind::NotRegular(FileKind::Directory);
    for (name, kind) in [("pipe", pipe), ("folder", folder), ("nothing", FileErrorKind::NotFound)] {
        let read = subject.environment.read(&subject.path(name), 0..10).await;
        same(&format!("the error of reading a {name}"), read.err().map(|error| error.kind), Some(kind))?;
    }
    let zero = subject.environment.read(Path::new("/dev/zero"), 0..10).await;
    let device = FileErrorKind::NotRegular(FileKind::Device);
    same("the error of reading a device", zero.err().map(|error| error.kind), Some(device))
}

pub(super) async fn never_over_another(subject: &Subject<'_>) -> Result<(), Wrong> {
    let environment = subject.environment;
    let (file, other) = (subject.path("taken"), subject.path("other"));
    environment.write(&file, b"taken").await?;
    environment.write(&other, b"other").await?;
    subject.run(&format!("ln -s nowhere {}; mkdir {}", subject.word("dangling"), subject.word("full"))).await?;
    let exists = Some(FileErrorKind::Exists);
    for name in ["taken", "dangling", "full"] {
        let path = subject.path(name);
        let created = environment.create(&path, b"new").await.err().map(|error| error.kind);
        same(&format!("the error of creating {name:?}"), created, exists)?;
        let moved = environment.rename(&other, &path).await.err().map(|error| error.kind);
        same(&format!("the error of moving to {name:?}"), moved, exists)?;
    }
    same("the content of what was there", subject.content(&file).await?.as_slice(), b"taken")?;
    same("the content of what was to be moved", subject.content(&other).await?.as_slice(), b"other")?;
    let below = environment.create(&subject.path("taken/below"), b"x").await;
    ensure(below.is_err(), || "a file was made below a file".into())?;
    let missing = environment.rename(&subject.path("missing"), &subject.path("a/b")).await;
    same("the error of moving nothing", missing.err().map(|error| error.kind), Some(FileErrorKind::NotFound))?;
    subject
        .prints(
            &format!("ls -d {} 2>&1 | wc -l | tr -d ' '; readlink {}", subject.word("a/b"), subject.word("dangling")),
            "1\nnowhere\n",
        )
        .await
}

pub(super) async fn moved_and_removed(subject: &Subject<'_>) -> Result<(), Wrong> {
    let environment = subject.environment;
    let (deep, first) = (subject.path("new/deep/file"), subject.path("new"));
    let made = environment.create(&deep, b"text").await?;
    same("the folders that were made for a file", made, vec![subject.path("new/deep"), first.clone()])?;
    subject.run(&format!("chmod 751 {}; ln -s deep/file {}", word(&deep), subject.word("new/link"))).await?;
    let made = environment.rename(&deep, &subject.path("moved/file")).await?;
    same("the folders that were made for a moved file", made, vec![subject.path("moved")])?;
    let look = format!("ls -l {} | cut -c1-10; cat {}", subject.word("moved/file"), subject.word("moved/file"));
    subject.prints(&look, "-rwxr-x--x\ntext").await?;
    environment.rename(&subject.path("new/link"), &subject.path("moved/link")).await?;
    subject.prints(&format!("readlink {}", subject.word("moved/link")), "deep/file\n").await?;
    environment.remove(&subject.path("moved/link")).await?;
    let full = environment.remove(&subject.path("moved")).await;
    ensure(full.is_err(), || "a folder with a file in it was removed".into())?;
    for path in [subject.path("moved/file"), subject.path("moved"), subject.path("new/deep"), first] {
        environment.remove(&path).await?;
        same(
            "what is left of it",
            environment.stat(&path).await.err().map(|error| error.kind),
            Some(FileErrorKind::NotFound),
        )?;
    }
    Ok(())
}
