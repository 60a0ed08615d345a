//! Books (`.epub`, EPUB 3.3): the chapters in their order, each as Markdown.

use super::Extracted;
use super::lines::Lines;
use super::package::{Package, join};
use super::page::Markdown;
use super::xml::pick;

const CONTAINER: &str = "META-INF/container.xml";

pub(super) fn read(package: &mut Package<'_>) -> Result<Extracted, String> {
    if package.has("META-INF/rights.xml") {
        return Err("it is a book with copy protection".into());
    }
    let container = package.need(CONTAINER)?;
    let roots = pick(CONTAINER, &container, |element, attributes| {
        (element == "rootfile").then(|| attributes.get("full-path")).flatten()
    })?;
    let root = roots.into_iter().next().ok_or("its list of contents is not named")?;
    let contents = package.need(&root)?;
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let parts = pick(&root, &contents, |element, attributes| {
        (element == "item").then(|| Some((attributes.get("id")?, attributes.get("href")?))).flatten()
    })?;
    let order = pick(&root, &contents, |element, attributes| {
        (element == "itemref").then(|| attributes.get("idref")).flatten()
    })?;
    let (mut lines, mut has_gaps) = (Lines::default(), false);
    for (index, id) in order.iter().enumerate() {
        let Some((_, address)) = parts.iter().find(|(is, _)| is == id) else { continue };
        let path = join(folder, &without_percents(address));
        lines.title(&format!("Chapter {}: {path}", index + 1));
        match package.part(&path)? {
            Some(chapter) => {
                let markdown = Markdown::of(&chapter)?;
                has_gaps |= markdown.has_gaps;
                lines.block(&markdown.text);
            }
            None => lines.push("(missing)"),
        }
        if lines.is_full() {
            break;
        }
    }
    let mut extracted = Extracted::new("EPUB book", lines).counting("chapters", order.len());
    extracted.notes.extend(has_gaps.then(|| Markdown::GAPS.to_owned()));
    Ok(extracted)
}

/// An address as the path that it stands for (RFC 3986 §2.1).
fn without_percents(address: &str) -> String {
    let address = address.split('#').next().unwrap_or_default();
    let mut bytes = Vec::new();
    let mut rest = address.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::without_percents;

    #[test]
    fn an_address_becomes_a_path() {
        assert_eq!(without_percents("a%20b.xhtml#part"), "a b.xhtml");
        assert_eq!(without_percents("%E5%AD%97.html"), "字.html");
        assert_eq!(without_percents("100%"), "100%");
    }
}
