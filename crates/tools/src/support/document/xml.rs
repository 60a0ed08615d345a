//! XML as it is read from documents: elements and text, one after the other, by their names without prefixes.
//!
//! Nothing is built from it, so that a million nested elements cost a million bytes and no stack; entities that a document
//! defines itself are not expanded, so that they cannot multiply.

use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

/// Reads along.
pub(super) trait Along {
    /// Elements that are not seen, with all that is in them.
    const SKIPPED: &[&str] = &[];
    fn open(&mut self, name: &str, attributes: &Attributes<'_>);
    fn close(&mut self, name: &str);
    fn text(&mut self, text: &str);
    /// Nothing more is wanted.
    fn has_enough(&self) -> bool {
        false
    }
}

/// The attributes of an element.
pub(super) struct Attributes<'a>(&'a BytesStart<'a>);

impl Attributes<'_> {
    /// The value of the one with this name, prefix apart.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let mut all = self.0.attributes().flatten();
        let found = all.find(|attribute| attribute.key.local_name().into_inner() == name)?;
        found.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
    }

    /// The number of a relation, which has a prefix, whatever other `id` there is.
    pub(super) fn relation(&self) -> Option<String> {
        let mut all = self.0.attributes().flatten();
        let found =
            all.find(|attribute| attribute.key.prefix().is_some() && attribute.key.local_name().into_inner() == "id")?;
        found.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
    }

    /// The number that is the value of the one with this name.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.trim().parse().ok()
    }
}

/// Walks through `xml`, the part `name` of a document.
pub(super) fn walk<A: Along>(name: &str, xml: &[u8], along: &mut A) -> Result<(), String> {
    let mut reader = Reader::from_reader(xml);
    let mut buffer = Vec::new();
    // How many elements we are in that are not seen.
    let mut skipped = 0_usize;
    loop {
        buffer.clear();
        let event = reader
            .read_event_into(&mut buffer)
            .map_err(|error| format!("its part {name} is damaged at byte {} ({error})", reader.error_position()))?;
        match event {
            Event::Start(element) if skipped > 0 || A::SKIPPED.contains(&element.local_name().into_inner()) => {
                skipped += 1;
            }
            Event::End(_) if skipped > 0 => skipped -= 1,
            Event::Empty(element) if A::SKIPPED.contains(&element.local_name().into_inner()) => {}
            Event::Eof => return Ok(()),
            _ if skipped > 0 => {}
            Event::Start(element) => along.open(element.local_name().into_inner(), &Attributes(&element)),
            Event::Empty(element) => {
                along.open(element.local_name().into_inner(), &Attributes(&element));
                along.close(element.local_name().into_inner());
            }
            Event::End(element) => along.close(element.local_name().into_inner()),
            Event::Text(text) => along.text(&text.xml10_content()),
            Event::CData(text) => along.text(&text.xml10_content()),
            Event::GeneralRef(entity) => match (entity.resolve_char_ref(), &*entity) {
                (Ok(Some(letter)), _) => along.text(letter.encode_utf8(&mut [0; 4])),
                (_, "amp") => along.text("&"),
                (_, "lt") => along.text("<"),
                (_, "gt") => along.text(">"),
                (_, "quot") => along.text("\""),
                (_, "apos") => along.text("'"),
                (_, other) => along.text(&format!("&{other};")),
            },
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
        if along.has_enough() {
            return Ok(());
        }
    }
}

/// Keeps of each element what `pick` makes of it.
pub(super) fn pick<T>(
    name: &str,
    xml: &[u8],
    pick: impl FnMut(&str, &Attributes<'_>) -> Option<T>,
) -> Result<Vec<T>, String> {
    struct Picking<T, F>(Vec<T>, F);
    impl<T, F: FnMut(&str, &Attributes<'_>) -> Option<T>> Along for Picking<T, F> {
        fn open(&mut self, name: &str, attributes: &Attributes<'_>) {
            self.0.extend((self.1)(name, attributes));
        }
        fn close(&mut self, _: &str) {}
        fn text(&mut self, _: &str) {}
    }
    let mut picking = Picking(Vec::new(), pick);
    walk(name, xml, &mut picking)?;
    Ok(picking.0)
}
