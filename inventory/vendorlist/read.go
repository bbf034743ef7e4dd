// SPDX-License-Identifier: Apache-2.0

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
	if err := refuseWorkbook(raw); err != nil {
		return nil, err
	}
	text, err := decodeText(raw)
	if err != nil {
		return nil, err
	}
	text, given := cutSeparator(text)
	var best *List
	var failed error
	score := -1
	for _, comma := range []rune{',', ';', '\t'} {
		if given != 0 && comma != given {
			continue
		}
		l, known, err := parseRows(text, comma)
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

// refuseWorkbook recognises the files of spreadsheet programs, which are no text.
func refuseWorkbook(raw []byte) error {
	zip, ole := []byte("PK\x03\x04"), []byte("\xd0\xcf\x11\xe0")
	if bytes.HasPrefix(raw, zip) || bytes.HasPrefix(raw, ole) {
		return errors.New("this is a spreadsheet, not CSV. Format the columns with serials and MACs as text, then save it as \"CSV UTF-8\" " +
			"(Excel: File, Save As; LibreOffice: File, Save a Copy, Text CSV; or soffice --headless --convert-to csv FILE)")
	}
	return nil
}

// decodeText returns the text of a file.
func decodeText(raw []byte) (string, error) {
	switch {
	case bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")):
		raw = raw[3:]
	case bytes.HasPrefix(raw, []byte("\xff\xfe")), bytes.HasPrefix(raw, []byte("\xfe\xff")):
		raw = decodeUTF16(raw)
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

// decodeUTF16 reads UTF-16 with a byte order mark.
func decodeUTF16(raw []byte) []byte {
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

// cutSeparator takes Excel's line "sep=;" off.
func cutSeparator(text string) (string, rune) {
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

// parseRows reads rows with one separator, and counts the headers that it knows.
func parseRows(text string, comma rune) (*List, int, error) {
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
		if slices.ContainsFunc(row, func(cell string) bool { return hasFurtherLines(cell, comma) }) {
			return nil, 0, fmt.Errorf("line %d: a quotation mark has no end, so that the lines after it are one cell", line)
		}
		if len(rows) == maxRows || len(row) > maxColumns {
			return nil, 0, fmt.Errorf("a list has at most %d rows and %d columns", maxRows, maxColumns)
		}
		rows, lines = append(rows, row), append(lines, line)
	}
	at, known := findHeader(rows)
	l := &List{}
	if len(rows) == 0 {
		return l, 0, nil
	}
	l.Header, l.Left = trimRow(rows[at]), at
	for i := at + 1; i < len(rows); i++ {
		if isBlank(rows[i]) {
			l.Left++
			continue
		}
		row := make([]string, len(l.Header))
		copy(row, rows[i])
		l.Rows, l.Lines = append(l.Rows, row), append(l.Lines, lines[i])
	}
	return l, known, nil
}

// hasFurtherLines reports whether a cell holds further lines of the table.
func hasFurtherLines(cell string, comma rune) bool {
	_, rest, more := strings.Cut(cell, "\n")
	return more && strings.ContainsRune(rest, comma)
}

// findHeader returns the row of the first ones that has most headers that are known.
func findHeader(rows [][]string) (at, known int) {
	for i, row := range rows[:min(len(rows), titles)] {
		n := 0
		for _, cell := range row {
			if _, sure := matchHeader(cell); sure > 0 {
				n++
			}
		}
		if n > known {
			at, known = i, n
		}
	}
	return at, known
}

// trimRow returns a row without blanks around its cells and without empty cells at
// its end.
func trimRow(row []string) []string {
	out := make([]string, len(row))
	last := 0
	for i, c := range row {
		if out[i] = trimCell(c); out[i] != "" {
			last = i + 1
		}
	}
	return out[:last]
}

func isBlank(row []string) bool { return len(trimRow(row)) == 0 }

// trimCell returns a cell without what spreadsheets put around text: blanks, a leading
// apostrophe, ="...".
func trimCell(cell string) string {
	cell = strings.TrimSpace(strings.ReplaceAll(cell, "\u00a0", " "))
	if len(cell) >= 3 && strings.HasPrefix(cell, `="`) && strings.HasSuffix(cell, `"`) {
		cell = strings.ReplaceAll(cell[2:len(cell)-1], `""`, `"`)
	}
	return strings.TrimSpace(strings.TrimPrefix(cell, "'"))
}
