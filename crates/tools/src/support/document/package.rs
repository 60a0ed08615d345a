//! Documents that are ZIP archives of parts: what kind of document one is, is said by its parts and not by its name.

use std::io::{Cursor, Read as _};

use zip::ZipArchive;

use super::{Extracted, epub, open_document, sheets, slides, word, xml};

/// What all parts together may unpack to, in bytes.
const MOST_UNPACKED: u64 = 256 * 1024 * 1024;
/// Names that are told of an archive that is no document.
const NAMES_TOLD: usize = 5;

/// The parts of a document.
pub(super) struct Package<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// Bytes that may still be unpacked.
    left: u64,
}

/// What a part says about another one (ECMA-376 part 2, §9.3).
pub(super) struct Relation {
    pub(super) id: String,
    /// The last word of its type.
    pub(super) kind: String,
    /// The path of the part.
    pub(super) target: String,
}

impl<'a> Package<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, String> {
        let zip = ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| format!("it begins like a ZIP archive and is damaged or cut off ({error})"))?;
        Ok(Self { zip, left: MOST_UNPACKED })
    }

    fn names(&self) -> impl Iterator<Item = String> {
        self.zip.file_names_raw().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.zip.file_names_raw().any(|is| is == name.as_bytes())
    }

    /// The bytes of a part; `None` if there is no such part.
    pub(super) fn part(&mut self, name: &str) -> Result<Option<Vec<u8>>, String> {
        if !self.has(name) {
            return Ok(None);
        }
        let damaged = |error: &dyn std::fmt::Display| format!("its part {name} cannot be unpacked ({error})");
        let part = self.zip.by_name(name).map_err(|error| damaged(&error))?;
        let mut bytes = Vec::new();
        part.take(self.left + 1).read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
        self.left = self
            .left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| format!("its parts unpack to more than {} MiB", MOST_UNPACKED / 1024 / 1024))?;
        Ok(Some(bytes))
    }

    /// The bytes of a part that must be there.
    pub(super) fn need(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.part(name)?.ok_or_else(|| format!("its part {name} is missing"))
    }

    /// What the part `name` refers to (`""` is the package itself).
    pub(super) fn relations(&mut self, name: &str) -> Result<Vec<Relation>, String> {
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
        let path = join(folder, &format!("_rels/{file}.rels"));
        let Some(xml) = self.part(&path)? else { return Ok(Vec::new()) };
        xml::pick(&path, &xml, |element, attributes| {
            let is_inside = element == "Relationship" && attributes.get("TargetMode").as_deref() != Some("External");
            is_inside.then(|| {
                let kind = attributes.get("Type").unwrap_or_default();
                Relation {
                    id: attributes.get("Id").unwrap_or_default(),
                    kind: kind.rsplit('/').next().unwrap_or_default().to_owned(),
                    target: join(folder, &attributes.get("Target").unwrap_or_default()),
                }
            })
        })
    }

    /// The part that is the document in an Office file.
    fn main_part(&mut self) -> Result<Option<String>, String> {
        let named = self.relations("")?.into_iter().find(|relation| relation.kind == "officeDocument");
        let usual = ["word/document.xml", "xl/workbook.xml", "xl/workbook.bin", "ppt/presentation.xml"];
        let found = named.map(|relation| relation.target).filter(|target| self.has(target));
        Ok(found.or_else(|| usual.into_iter().find(|name| self.has(name)).map(str::to_owned)))
    }
}

/// The text of a document that is a package.
pub(super) fn read(bytes: &[u8]) -> Result<Extracted, String> {
    let mut package = Package::open(bytes)?;
    if let Some(main) = package.main_part()? {
        match main.split('/').next() {
            Some("word") => return word::read(&mut package, &main),
            Some("xl") => {
                let is_binary = main.rsplit_once('.').is_some_and(|(_, suffix)| suffix.eq_ignore_ascii_case("bin"));
                return if is_binary { sheets::xlsb(bytes) } else { sheets::xlsx(bytes) };
            }
            Some("ppt") => return slides::read(&mut package, &main),
            _ => {}
        }
    }
    let media_type = package.part("mimetype")?.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    match media_type.as_deref() {
        Some("application/epub+zip") => return epub::read(&mut package),
        Some(kind) if kind.contains("opendocument.spreadsheet") => return sheets::ods(bytes),
        Some(kind) if kind.contains("opendocument") => return open_document::read(&mut package, kind),
        _ => {}
    }
    if package.has("META-INF/container.xml") {
        return epub::read(&mut package);
    }
    let names: Vec<String> = package.names().collect();
    let told: Vec<&str> = names.iter().take(NAMES_TOLD).map(String::as_str).collect();
    let held = match names.len() {
        0 => "nothing".to_owned(),
        few if few <= NAMES_TOLD => told.join(", "),
        many => format!("{} and {} more", told.join(", "), many - NAMES_TOLD),
    };
    Err(format!("it is a ZIP archive without the parts of an Office, OpenDocument or EPUB file; it holds {held}"))
}

/// The path that `target` means in a part of `folder`.
pub(super) fn join(folder: &str, target: &str) -> String {
    let (base, target) = match target.strip_prefix('/') {
        Some(from_root) => ("", from_root),
        None => (folder, target),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn a_target_is_found_from_the_folder_of_its_part() {
        assert_eq!(join("ppt/slides", "../notesSlides/n1.xml"), "ppt/notesSlides/n1.xml");
        assert_eq!(join("ppt", "/word/document.xml"), "word/document.xml");
        assert_eq!(join("", "../../etc/passwd"), "etc/passwd");
    }
}
