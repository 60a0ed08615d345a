//! Spreadsheets (`.xlsx`, `.xlsb`, `.xls`, `.ods`): visible sheets with their rows, cells between tabs. What a formula gave
//! the last time is shown; the formula itself, where nobody has calculated it yet. Dates are dates.

use std::fmt::Display;
use std::io::Cursor;

use calamine::{Data, DataRef, ExcelDateTime, Ods, Range, Reader, Sheet, SheetVisible, Xls, Xlsb, Xlsx};
use hermes_core::grouped;

use super::Extracted;
use super::lines::Lines;

/// Columns that are shown (spec tools §3.4).
const MOST_COLUMNS: u32 = 256;
/// More empty rows than this are counted and not shown.
const MOST_EMPTY_ROWS: u32 = 20;

type Bytes<'a> = Cursor<&'a [u8]>;

pub(super) fn xlsx(bytes: &[u8]) -> Result<Extracted, String> {
    let mut book: Xlsx<Bytes<'_>> = open(bytes)?;
    let sheets = book.sheets_metadata().to_vec();
    let extracted = each_visible(&sheets, |name, grid| {
        // As they come: a cell in the last row of an empty sheet must not cost a million rows.
        let mut cells = book.worksheet_cells_reader(name).map_err(damaged)?;
        while let Some(cell) = cells.next_cell_with_formula().map_err(damaged)? {
            let value = match (&cell.value, cell.formula) {
                (DataRef::Empty, Some(formula)) => format!("={formula}"),
                (value, _) => shown(&Data::from(value.clone())),
            };
            if !grid.put(cell.pos, value) {
                break;
            }
        }
        Ok(())
    });
    Ok(extracted)
}

pub(super) fn xlsb(bytes: &[u8]) -> Result<Extracted, String> {
    let mut book: Xlsb<Bytes<'_>> = open(bytes)?;
    let sheets = book.sheets_metadata().to_vec();
    let extracted = each_visible(&sheets, |name, grid| {
        let mut cells = book.worksheet_cells_reader(name).map_err(damaged)?;
        while let Some(cell) = cells.next_cell().map_err(damaged)? {
            if !grid.put(cell.get_position(), shown(&Data::from(cell.get_value().clone()))) {
                break;
            }
        }
        Ok(())
    });
    Ok(extracted)
}

pub(super) fn xls(bytes: &[u8]) -> Result<Extracted, String> {
    let mut book: Xls<Bytes<'_>> = open(bytes)?;
    let sheets = book.sheets_metadata().to_vec();
    Ok(each_visible(&sheets, |name, grid| whole(book.worksheet_range(name), grid)))
}

pub(super) fn ods(bytes: &[u8]) -> Result<Extracted, String> {
    let mut book: Ods<Bytes<'_>> = open(bytes)?;
    let sheets = book.sheets_metadata().to_vec();
    Ok(each_visible(&sheets, |name, grid| whole(book.worksheet_range(name), grid)))
}

fn open<'a, R: Reader<Bytes<'a>>>(bytes: &'a [u8]) -> Result<R, String>
where
    R::Error: Display,
{
    R::new(Cursor::new(bytes)).map_err(damaged)
}

fn damaged(error: impl Display) -> String {
    format!("it is a damaged or protected spreadsheet ({error})")
}

/// Every cell of a sheet that is in memory already.
fn whole(range: Result<Range<Data>, impl Display>, grid: &mut Grid) -> Result<(), String> {
    let range = range.map_err(damaged)?;
    let (first_row, first_column) = range.start().unwrap_or_default();
    for (row, column, value) in range.used_cells() {
        let at = |first: u32, offset: usize| first.saturating_add(u32::try_from(offset).unwrap_or(u32::MAX));
        if !grid.put((at(first_row, row), at(first_column, column)), shown(value)) {
            break;
        }
    }
    Ok(())
}

fn each_visible(sheets: &[Sheet], mut read: impl FnMut(&str, &mut Grid) -> Result<(), String>) -> Extracted {
    let mut grid = Grid::default();
    let (visible, hidden): (Vec<&Sheet>, Vec<&Sheet>) =
        sheets.iter().partition(|sheet| sheet.visible == SheetVisible::Visible);
    for sheet in &visible {
        grid.begin(&sheet.name);
        if let Err(why) = read(&sheet.name, &mut grid) {
            // A chart has a sheet without cells; one sheet that is damaged does not spoil the others.
            grid.end_row();
            grid.lines.push(&format!("({why})"));
        }
        grid.end();
        if grid.lines.is_full() {
            break;
        }
    }
    let has_more_columns = grid.has_more_columns;
    let mut extracted = Extracted::new("spreadsheet", grid.lines).counting("sheets", visible.len());
    if has_more_columns {
        extracted.notes.push(format!("only the first {MOST_COLUMNS} columns are shown"));
    }
    if !hidden.is_empty() {
        let names: Vec<&str> = hidden.iter().map(|sheet| sheet.name.as_str()).collect();
        extracted.notes.push(format!("hidden and not shown: {}", names.join(", ")));
    }
    extracted
}

/// The rows of a sheet, as its cells come.
#[derive(Default)]
struct Grid {
    lines: Lines,
    /// The row that is open, counted from 0, and its cells.
    row: Option<u32>,
    cells: Vec<String>,
    /// The first row that was not written yet.
    next: u32,
    has_more_columns: bool,
}

impl Grid {
    fn begin(&mut self, name: &str) {
        self.lines.title(&format!("Sheet: {name}"));
        (self.row, self.next) = (None, 0);
    }

    /// Puts a cell where it is. Answers whether there is room for more.
    fn put(&mut self, (row, column): (u32, u32), value: String) -> bool {
        if value.is_empty() {
            return true;
        }
        if column >= MOST_COLUMNS {
            self.has_more_columns = true;
            return true;
        }
        if self.row != Some(row) {
            self.end_row();
            self.row = Some(row);
        }
        let column = column as usize;
        if self.cells.len() <= column {
            self.cells.resize(column + 1, String::new());
        }
        self.cells[column] = value;
        !self.lines.is_full()
    }

    fn end_row(&mut self) {
        let Some(row) = self.row.take() else { return };
        match row.saturating_sub(self.next) {
            many @ MOST_EMPTY_ROWS.. => self.lines.push(&format!("({} empty rows)", grouped(u64::from(many)))),
            few => (0..few).for_each(|_| self.lines.push("")),
        }
        self.lines.push(&std::mem::take(&mut self.cells).join("\t"));
        self.next = row.saturating_add(1);
    }

    fn end(&mut self) {
        self.end_row();
        if self.next == 0 {
            self.lines.push("(empty)");
        }
    }
}

/// A value in its cell: what would end the cell or the line is escaped.
fn shown(value: &Data) -> String {
    match value {
        Data::Bool(true) => "TRUE".into(),
        Data::Bool(false) => "FALSE".into(),
        Data::DateTime(time) => moment(time),
        Data::String(text) => text.replace('\t', "\\t").replace("\r\n", "\\n").replace(['\n', '\r'], "\\n"),
        other => other.to_string(),
    }
}

fn moment(time: &ExcelDateTime) -> String {
    let days = time.as_f64();
    if !time.is_datetime() {
        #[expect(clippy::cast_possible_truncation, reason = "a number of seconds that a sheet can hold")]
        let seconds = (days * 86_400.0).round() as i64;
        let (sign, seconds) = (if seconds < 0 { "-" } else { "" }, seconds.unsigned_abs());
        return format!("{sign}{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    let clock = format!("{hour:02}:{minute:02}:{second:02}");
    match (days < 1.0, hour + minute + second == 0) {
        (true, _) => clock,
        (false, true) => format!("{year:04}-{month:02}-{day:02}"),
        (false, false) => format!("{year:04}-{month:02}-{day:02} {clock}"),
    }
}
