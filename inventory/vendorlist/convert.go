// SPDX-License-Identifier: Apache-2.0

package vendorlist

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Options are the inputs of Convert beside the list. The zero value is useful.
type Options struct {
	AllowMissing bool              // cells, and columns but the serial, may be empty
	Racks        map[string]string // other names of racks: as in the list, as in the site
	Keep         []string          // further columns, by header or "#N", that the manifest has under their header in small letters
}

// The forms of values, those of the site's files among them.
var (
	rackForm   = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	serialForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._/-]{2,63}$`)
	nameForm   = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	uuidForm   = lazyregexp.New(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	unitForm   = lazyregexp.New(`^(?i)(?:r?u)?\s*0*([0-9]{1,2})(?:\.0+)?\s*(?:r?u)?(?:\s*(?:-|–|to|/)\s*(?:r?u)?\s*0*([0-9]{1,2})\s*(?:r?u)?)?$`)
	footer     = lazyregexp.New(`(?i)^(sub)?(total|sum|note|notes|end|remark|remarks)\b`)
	exponent   = lazyregexp.New(`^[0-9]+([.,][0-9]+)?[eE]\+[0-9]+$`)
)

// maxUnit is the highest unit of a rack that the language knows.
const maxUnit = 63

// maxPassword is the longest factory password, in bytes: IPMI has 20, Redfish
// services have more.
const maxPassword = 128

// Convert reads the rows of a list by a mapping. With problems there is no
// manifest. Rows in which every cell of the mapping is empty are left out, and
// those of a sum or a note below the table.
func (l *List) Convert(m Mapping, o Options) (*Manifest, []Problem) {
	c := converter{list: l, mapping: m, options: o, seen: map[string]int{}}
	out := &Manifest{}
	for _, f := range Fields() {
		if _, ok := m[f]; ok || f.Required() {
			out.Columns = append(out.Columns, string(f))
		}
	}
	kept := c.keepColumns(out)
	for i, row := range l.Rows {
		node, ok := c.row(l.Lines[i], row)
		if !ok {
			continue
		}
		for j, name := range kept {
			node[Field(name)] = trimCell(row[j])
		}
		out.nodes = append(out.nodes, node)
	}
	if _, ok := m[Serial]; !ok {
		c.problems = append(c.problems, Problem{Text: "No column holds the serial, by which nodes are distinguished."})
	}
	if len(out.nodes) == 0 && len(c.problems) == 0 {
		c.problems = append(c.problems, Problem{Text: "The list has no rows with a node."})
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	slices.SortStableFunc(out.nodes, func(a, b node) int {
		return cmp.Or(strings.Compare(a[Rack], b[Rack]), cmp.Compare(toNumber(a[Unit]), toNumber(b[Unit])), strings.Compare(a[Serial], b[Serial]))
	})
	return out, nil
}

func toNumber(s string) int {
	n, _ := strconv.Atoi(s) // empty: 0
	return n
}

// converter collects problems. It belongs to one goroutine.
type converter struct {
	list     *List
	mapping  Mapping
	options  Options
	problems []Problem
	seen     map[string]int // the line of what may be there once
}

func (c *converter) problem(line int, f Field, format string, args ...any) {
	p := Problem{Line: line, Text: fmt.Sprintf(format, args...)}
	if i, ok := c.mapping[f]; ok {
		p.Column = c.list.Header[i]
	}
	c.problems = append(c.problems, p)
}

// keepColumns adds the further columns to a manifest and returns their names there.
func (c *converter) keepColumns(m *Manifest) map[int]string {
	out := map[int]string{}
	for _, header := range c.options.Keep {
		i, wrong := c.list.find(header)
		if wrong != "" {
			c.problems = append(c.problems, Problem{Text: fmt.Sprintf("--keep %q: %s", header, wrong)})
			continue
		}
		name := strings.Join(splitWords(c.list.Header[i]), "_")
		if name == "" || slices.Contains(m.Columns, name) || slices.Contains(Fields(), Field(name)) {
			c.problems = append(c.problems, Problem{Text: fmt.Sprintf("--keep %q: it would be the column %q, which is taken or no name.", header, name)})
			continue
		}
		out[i] = name
		m.Columns = append(m.Columns, name)
	}
	return out
}

// row reads one row; false when it has no node.
func (c *converter) row(line int, row []string) (node, bool) {
	n := node{}
	filled := false
	for f, i := range c.mapping {
		v := trimCell(row[i])
		filled = filled || v != ""
		n[f] = v
	}
	if !filled || n[Serial]+n[BMCMAC]+n[BootMAC] == "" && footer.MatchString(firstCell(row)) {
		c.list.Left++
		return nil, false
	}
	for _, f := range Fields() {
		if _, ok := c.mapping[f]; ok {
			n[f] = c.cell(line, f, n[f])
		}
	}
	c.twice(line, n)
	return n, true
}

// firstCell returns the first cell of a row that is not empty.
func firstCell(row []string) string {
	for _, c := range row {
		if v := trimCell(c); v != "" {
			return v
		}
	}
	return ""
}

// cell brings one value into the form of the manifest, or adds a problem.
func (c *converter) cell(line int, f Field, v string) string {
	switch {
	case v == "" && (!f.Required() || c.options.AllowMissing && f != Serial):
		return ""
	case v == "" && c.options.AllowMissing:
		c.problem(line, f, "No serial; a node without one cannot be told from others.")
		return ""
	case v == "":
		c.problem(line, f, "No %s. Fill it in, or leave empty cells as they are with --allow-missing.", f)
		return ""
	case f != FactoryPassword && exponent.MatchString(v):
		c.problem(line, f, "%q was made a number by a spreadsheet, and digits of it are lost. Export the list again with this column as text.", v)
		return ""
	case f == FactoryPassword && exponent.MatchString(v):
		c.problem(line, f, "This password was made a number by a spreadsheet. Export the list again with this column as text.")
		return ""
	}
	read := map[Field]func(string) (value, wrong string){
		Rack: c.rack, Unit: unitText, Serial: checkSerial, BMCMAC: checkMAC, BootMAC: checkMAC, FactoryPassword: checkPassword, UUID: checkUUID, Name: checkName,
	}
	out, wrong := read[f](v)
	if wrong != "" {
		c.problem(line, f, "%s", wrong)
	}
	return out
}

func (c *converter) rack(v string) (value, wrong string) {
	if to, ok := c.options.Racks[v]; ok {
		v = to
	}
	if !rackForm.MatchString(v) {
		return "", fmt.Sprintf("%q cannot be the name of a rack: letters, digits, dots, dashes and underscores are allowed. Say what the site calls it: --rack %q.", v, v+"=NAME")
	}
	return v, ""
}

// unitOf reads "12", "U12", "12U", "RU 12", "12.0", and of "12-19" the lowest.
func unitOf(v string) (n int, wrong string) {
	m := unitForm.FindStringSubmatch(strings.TrimSpace(v))
	if m == nil {
		return 0, fmt.Sprintf("%q is no unit of a rack, such as 12, U12 or 12U.", v)
	}
	n, _ = strconv.Atoi(m[1]) // one or two digits
	if m[2] != "" {
		if k, _ := strconv.Atoi(m[2]); k < n {
			n = k
		}
	}
	if n < 1 || n > maxUnit {
		return 0, fmt.Sprintf("%q is no unit of a rack: they are 1 to %d.", v, maxUnit)
	}
	return n, ""
}

func unitText(v string) (value, wrong string) {
	n, wrong := unitOf(v)
	if wrong != "" {
		return "", wrong
	}
	return strconv.Itoa(n), ""
}

func checkSerial(v string) (value, wrong string) {
	if !serialForm.MatchString(v) {
		return "", fmt.Sprintf("%q is no serial: it has 3 to 64 letters, digits, dots, dashes, slashes and underscores.", v)
	}
	return v, ""
}

// checkMAC reads the forms of package addr, and those with blanks or in pairs of
// another separator.
func checkMAC(v string) (value, wrong string) {
	m, err := addr.ParseMAC(strings.ReplaceAll(v, " ", ""))
	if err != nil {
		return "", fmt.Sprintf("%q is no MAC address, such as 02:00:5e:10:00:01.", v)
	}
	switch {
	case m.IsZero(), m == addr.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}:
		return "", fmt.Sprintf("%s is a placeholder, no address of a node.", m)
	case m[0]&1 == 1:
		return "", fmt.Sprintf("%s is a group address (IEEE 802, the lowest bit of the first byte); no port has it.", m)
	}
	return m.String(), ""
}

// checkPassword keeps the text; errors never repeat it.
func checkPassword(v string) (value, wrong string) {
	if len(v) > maxPassword || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Sprintf("A factory password has at most %d bytes and no control characters.", maxPassword)
	}
	return v, ""
}

func checkUUID(v string) (value, wrong string) {
	u := strings.ToLower(strings.Trim(v, "{}"))
	if len(u) == 32 {
		u = u[:8] + "-" + u[8:12] + "-" + u[12:16] + "-" + u[16:20] + "-" + u[20:]
	}
	if !uuidForm.MatchString(u) {
		return "", fmt.Sprintf("%q is no UUID.", v)
	}
	return u, ""
}

func checkName(v string) (value, wrong string) {
	v = strings.ToLower(v)
	if !nameForm.MatchString(v) {
		return "", fmt.Sprintf("%q cannot be the name of a node: letters, digits and dashes are allowed, no dots.", v)
	}
	return v, ""
}

// twice reports what only one node can have.
func (c *converter) twice(line int, n node) {
	claim := func(f Field, what, value string) {
		if value == "" {
			return
		}
		key := what + " " + value
		if first, again := c.seen[key]; again {
			c.problem(line, f, "%s %s is in line %d already.", what, value, first)
			return
		}
		c.seen[key] = line
	}
	claim(Serial, "serial", n[Serial])
	claim(BMCMAC, "MAC", n[BMCMAC])
	claim(BootMAC, "MAC", n[BootMAC])
	claim(UUID, "UUID", n[UUID])
	claim(Name, "name", n[Name])
	if n[Rack] != "" && n[Unit] != "" {
		claim(Unit, "unit", n[Unit]+" of rack "+n[Rack])
	}
}
