//! Files of the compound format ([MS-CFB]): old Excel workbooks, other old Office files, and Office files with a password.

use memchr::memmem;

use super::{Extracted, sheets};

pub(super) fn read(bytes: &[u8]) -> Result<Extracted, String> {
    // Streams are known by their names, which stand in the directory as UTF-16.
    let has = |name: &str| {
        let name: Vec<u8> = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        memmem::find(bytes, &name).is_some()
    };
    let old = |what: &str, convert: &str| {
        Err(format!(
            "it is {what} in the binary format of before 2007, which is not read here; convert it first, for example with \
             `soffice --headless --convert-to {convert}` in the terminal"
        ))
    };
    if has("EncryptedPackage") {
        Err("it is an Office file that is protected with a password".into())
    } else if has("Workbook") || has("Book") {
        sheets::xls(bytes)
    } else if has("WordDocument") {
        old("a Word document", "docx")
    } else if has("PowerPoint Document") {
        old("a PowerPoint presentation", "pptx")
    } else {
        Err("it is a compound file of another program than Word, Excel or PowerPoint".into())
    }
}
