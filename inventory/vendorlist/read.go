package vendorlist

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// What is read of a list, at most. A file of a site has 16 MiB as well.
const (
	maxBytes   = 16 << 20
	maxRows    = 200_000
	maxColumns = 1_000
)

// List is a vendor's list as it was read.
type List struct {
	Header []string
	Rows   [][]string // each as long as Header
	Lines  []int      // of the file, of each row
	Left   int        // rows that are no part of the table: titles, blank lines
}

// Read reads a list: comma, semicolon or tab between cells; UTF-8, with a byte
// order mark or without, UTF-16 with one, or Windows-1252; a line "sep=;" and
// titles above the header are left out. The error says what to do.
func Read(raw []byte) (*List, error) {
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("the file has %d bytes; a list has at most %d", len(raw), maxBytes)
	}
	if err := workbook(raw); err != nil {
		return nil, err
	}
	text, err := decode(raw)
	if err != nil {
		return nil, err
	}
	text, given := separator(text)
	var best *List
	var failed error
	score := -1
	for _, comma := range []rune{',', ';', '\t'} {
		if given != 0 && comma != given {
			continue
		}
		l, known, err := parse(text, comma)
		if err != nil {
			failed = cmpErr(failed, err)
			continue
		}
		if s := known*maxColumns + len(l.Header); s > score {
			best, score = l, s
		}
	}
	switch {
	case best == nil:
		return nil, failed
	case len(best.Header) == 0:
		return nil, errors.New("the file has no rows")
	case len(best.Header) < 2:
		return nil, errors.New("the file has one column; cells are separated by commas, semicolons or tabs")
	}
	return best, nil
}

// cmpErr keeps the first error.
func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// workbook recognises the files of spreadsheet programs, which are no text.
func workbook(raw []byte) error {
	zip, ole := []byte("PK\x03\x04"), []byte("\xd0\xcf\x11\xe0")
	if bytes.HasPrefix(raw, zip) || bytes.HasPrefix(raw, ole) {
		return errors.New("this is a spreadsheet, not CSV. Format the columns with serials and MACs as text, then save it as \"CSV UTF-8\" " +
			"(Excel: File, Save As; LibreOffice: File, Save a Copy, Text CSV; or soffice --headless --convert-to csv FILE)")
	}
	return nil
}

// decode returns the text of a file.
func decode(raw []byte) (string, error) {
	switch {
	case bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")):
		raw = raw[3:]
	case bytes.HasPrefix(raw, []byte("\xff\xfe")), bytes.HasPrefix(raw, []byte("\xfe\xff")):
		raw = wide(raw)
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return "", errors.New("the file is no text: it has zero bytes")
	}
	if utf8.Valid(raw) {
		return string(raw), nil
	}
	runes := make([]rune, len(raw)) // Windows-1252; what it has between 0x80 and 0x9f is in no serial
	for i, b := range raw {
		runes[i] = rune(b)
	}
	return string(runes), nil
}

// wide reads UTF-16 with a byte order mark.
func wide(raw []byte) []byte {
	big := raw[0] == 0xfe
	raw = raw[2:]
	units := make([]uint16, len(raw)/2)
	for i := range units {
		hi, lo := raw[2*i+1], raw[2*i]
		if big {
			hi, lo = lo, hi
		}
		units[i] = uint16(hi)<<8 | uint16(lo)
	}
	return []byte(string(utf16.Decode(units)))
}

// separator takes Excel's line "sep=;" off.
func separator(text string) (string, rune) {
	line, rest, _ := strings.Cut(text, "\n")
	line = strings.TrimRight(strings.ToLower(line), "\r")
	switch line {
	case "sep=,", "sep=;", "sep=\t":
		return rest, rune(line[4])
	}
	return text, 0
}

// titles is how many rows are looked at for the header.
const titles = 20

// parse reads rows with one separator, and counts the headers that it knows.
func parse(text string, comma rune) (*List, int, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes = comma, -1, true // lists have ="0123" and 19" without further quotation marks
	var rows [][]string
	var lines []int
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		line, _ := r.FieldPos(0)
		if slices.ContainsFunc(row, func(cell string) bool { return swallows(cell, comma) }) {
			return nil, 0, fmt.Errorf("line %d: a quotation mark has no end, so that the lines after it are one cell", line)
		}
		if len(rows) == maxRows || len(row) > maxColumns {
			return nil, 0, fmt.Errorf("a list has at most %d rows and %d columns", maxRows, maxColumns)
		}
		rows, lines = append(rows, row), append(lines, line)
	}
	at, known := header(rows)
	l := &List{}
	if len(rows) == 0 {
		return l, 0, nil
	}
	l.Header, l.Left = trimmed(rows[at]), at
	for i := at + 1; i < len(rows); i++ {
		if blank(rows[i]) {
			l.Left++
			continue
		}
		row := make([]string, len(l.Header))
		copy(row, rows[i])
		l.Rows, l.Lines = append(l.Rows, row), append(l.Lines, lines[i])
	}
	return l, known, nil
}

// swallows reports whether a cell holds further lines of the table.
func swallows(cell string, comma rune) bool {
	_, rest, more := strings.Cut(cell, "\n")
	return more && strings.ContainsRune(rest, comma)
}

// header is the row of the first ones that has most headers that are known.
func header(rows [][]string) (at, known int) {
	for i, row := range rows[:min(len(rows), titles)] {
		n := 0
		for _, cell := range row {
			if _, sure := match(cell); sure > 0 {
				n++
			}
		}
		if n > known {
			at, known = i, n
		}
	}
	return at, known
}

// trimmed is a row without blanks around its cells and without empty cells at
// its end.
func trimmed(row []string) []string {
	out := make([]string, len(row))
	last := 0
	for i, c := range row {
		if out[i] = plain(c); out[i] != "" {
			last = i + 1
		}
	}
	return out[:last]
}

func blank(row []string) bool { return len(trimmed(row)) == 0 }

// plain is a cell without what spreadsheets put around text: blanks, a leading
// apostrophe, ="...".
func plain(cell string) string {
	cell = strings.TrimSpace(strings.ReplaceAll(cell, "\u00a0", " "))
	if len(cell) >= 3 && strings.HasPrefix(cell, `="`) && strings.HasSuffix(cell, `"`) {
		cell = strings.ReplaceAll(cell[2:len(cell)-1], `""`, `"`)
	}
	return strings.TrimSpace(strings.TrimPrefix(cell, "'"))
}
