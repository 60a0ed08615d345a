"""Makes the documents of this folder with the programs that people make such documents with. See README.md."""

import datetime
import pathlib
import sys

import docx
import ebooklib.epub
import nbformat.v4
import odf.opendocument
import odf.table
import odf.text
import odf.draw
import odf.style
import openpyxl
import pikepdf
import pptx
import xlwt
from PIL import Image
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas

HERE = pathlib.Path(__file__).parent
FONT = "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf"
CHINESE = "工具可以读取文件。"
DAY = datetime.date(2026, 11, 30)


def word():
    document = docx.Document()
    document.add_heading("Report", 1)
    document.add_paragraph(CHINESE)
    paragraph = document.add_paragraph("A line")
    paragraph.add_run().add_break()
    paragraph.add_run("and another\tafter a tab")
    table = document.add_table(rows=2, cols=2)
    for row, cells in zip(table.rows, [("名称", "Price"), ("苹果 & pear", "1.20")]):
        for cell, text in zip(row.cells, cells):
            cell.text = text
    document.add_paragraph("The end", style="List Bullet")
    document.add_comment(document.paragraphs[0].runs, text="Is it?", author="Anna", initials="A")
    document.save(HERE / "report.docx")


def sheets():
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sales"
    sheet.append(["Name", "Qty", "Day", "Sold"])
    sheet.append(["苹果", 3, DAY, True])
    sheet.append(["two\nlines", 1.5, datetime.datetime(2026, 1, 2, 3, 4, 5), False])
    sheet["C5"] = "=SUM(B2:B3)"
    sheet["A40"] = "far"
    book.create_sheet("Empty")
    book.create_sheet("Secret").sheet_state = "hidden"
    book.save(HERE / "sales.xlsx")

    old = xlwt.Workbook(encoding="utf-8")
    sheet = old.add_sheet("Sales")
    for column, value in enumerate(["苹果", 3, True]):
        sheet.write(0, column, value)
    sheet.write(2, 1, DAY, xlwt.easyxf(num_format_str="YYYY-MM-DD"))
    old.save(str(HERE / "sales.xls"))

    book = odf.opendocument.OpenDocumentSpreadsheet()
    table = odf.table.Table(name="Sales")
    for values in [["苹果", "3"], ["pear", "4"]]:
        row = odf.table.TableRow()
        for value in values:
            number = {"valuetype": "float", "value": value} if value.isdigit() else {"valuetype": "string"}
            cell = odf.table.TableCell(**number)
            cell.addElement(odf.text.P(text=value))
            row.addElement(cell)
        table.addElement(row)
    book.spreadsheet.addElement(table)
    book.save(str(HERE / "sales.ods"))


def open_documents():
    document = odf.opendocument.OpenDocumentText()
    document.text.addElement(odf.text.H(outlinelevel=1, text="Report"))
    paragraph = odf.text.P(text=CHINESE)
    paragraph.addElement(odf.text.Tab())
    paragraph.addText("after a tab &")
    paragraph.addElement(odf.text.S(c=2))
    paragraph.addText("blanks")
    document.text.addElement(paragraph)
    table = odf.table.Table()
    row = odf.table.TableRow()
    for text in ["名称", "Price"]:
        cell = odf.table.TableCell()
        cell.addElement(odf.text.P(text=text))
        row.addElement(cell)
    table.addElement(row)
    document.text.addElement(table)
    document.save(str(HERE / "report.odt"))

    slides = odf.opendocument.OpenDocumentPresentation()
    layout = odf.style.PageLayout(name="P")
    slides.automaticstyles.addElement(layout)
    master = odf.style.MasterPage(name="M", pagelayoutname=layout)
    slides.masterstyles.addElement(master)
    for text in ["First", "第二"]:
        page = odf.draw.Page(masterpagename=master)
        frame = odf.draw.Frame(width="10cm", height="5cm", x="1cm", y="1cm")
        box = odf.draw.TextBox()
        box.addElement(odf.text.P(text=text))
        frame.addElement(box)
        page.addElement(frame)
        slides.presentation.addElement(page)
    slides.save(str(HERE / "talk.odp"))


def talk():
    talk = pptx.Presentation()
    slide = talk.slides.add_slide(talk.slide_layouts[1])
    slide.shapes.title.text = "Welcome"
    slide.placeholders[1].text = CHINESE
    slide.notes_slide.notes_text_frame.text = "say hello"
    slide = talk.slides.add_slide(talk.slide_layouts[5])
    slide.shapes.title.text = "Numbers"
    table = slide.shapes.add_table(1, 2, 0, 0, 100, 100).table
    table.cell(0, 0).text, table.cell(0, 1).text = "a", "b"
    talk.save(HERE / "talk.pptx")


def book():
    book = ebooklib.epub.EpubBook()
    book.set_identifier("book")
    book.set_title("A book")
    chapters = []
    for name, title, text in [("one.xhtml", "One", CHINESE), ("two.xhtml", "Two", "It &amp; they <b>ended</b>.")]:
        chapter = ebooklib.epub.EpubHtml(title=title, file_name=name)
        chapter.content = f"<h1>{title}</h1><p>{text}</p><ul><li>item</li></ul>"
        book.add_item(chapter)
        chapters.append(chapter)
    book.spine = chapters
    book.add_item(ebooklib.epub.EpubNcx())
    ebooklib.epub.write_epub(str(HERE / "book.epub"), book)


def notebook():
    notebook = nbformat.v4.new_notebook()
    code = nbformat.v4.new_code_cell("x = 1\nprint(x)")
    code.outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="1\n"),
        nbformat.v4.new_output("display_data", data={"image/png": "AAAA", "text/plain": "<Figure>"}),
        nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[]),
    ]
    notebook.cells = [nbformat.v4.new_markdown_cell("# " + CHINESE), code, nbformat.v4.new_raw_cell("raw")]
    for number, cell in enumerate(notebook.cells):
        cell.id = str(number)
    nbformat.write(notebook, HERE / "work.ipynb")


def pdfs():
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    pdfmetrics.registerFont(TTFont("Droid", FONT))
    paper = canvas.Canvas(str(HERE / "report.pdf"), invariant=True)
    paper.setFont("STSong-Light", 14)
    paper.drawString(50, 800, "Report 11/30/26: 1,234.56")
    paper.drawString(50, 780, CHINESE)
    paper.showPage()
    # A font that is embedded in pieces, as most programs do.
    paper.setFont("Droid", 14)
    paper.drawString(50, 800, "第二页：" + CHINESE)
    paper.setFont("Helvetica", 14)
    paper.drawString(50, 780, "Café")
    paper.showPage()
    paper.save()
    with pikepdf.open(HERE / "report.pdf") as paper:
        paper.save(HERE / "locked.pdf", encryption=pikepdf.Encryption(owner="o", user="u"), static_id=False)
        paper.save(HERE / "streams.pdf", object_stream_mode=pikepdf.ObjectStreamMode.generate)
    Image.new("RGB", (8, 8), "red").save(HERE / "picture.pdf")


for make in [word, sheets, open_documents, talk, book, notebook, pdfs]:
    make()
    print(make.__name__, file=sys.stderr)
