// SPDX-License-Identifier: Apache-2.0

// Package recognise says which program printed a text, by its content alone, and
// reads it. It holds the one explicit list of formats. It is pure.
package recognise

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/tool"
)

// MaxSize is the largest output that is read whole, in bytes. Logs have no largest size:
// see ReadFrom.
const MaxSize = 64 << 20

// Reading is what was understood of one output.
type Reading struct {
	File     string        `json:"file"`     // as the caller named it
	Kind     string        `json:"kind"`     // the name of a format
	Problems tool.Problems `json:"problems"` // never nil
	Content  any           `json:"content"`
	// Others are the outputs that stand in the same file beside this one, in their
	// order; problems tell of each.
	Others []Other `json:"others,omitempty"`
}

// Kinds returns the names of the formats that are known, sorted.
func Kinds() []string {
	var names []string
	for _, f := range knownFormats() {
		names = append(names, f.Name)
	}
	return slices.Sorted(slices.Values(names))
}

// Read recognises an output and reads it. name is what the reading calls the
// file. What other programs put around an output is taken off first: see
// variants. Of several outputs in one file, the one that is the surest is read,
// and the others beside it: none is lost. An output that no format, or more than
// one, claims is an error that says so; so is one that is too large, compressed,
// or lines of several nodes mixed where each node's are an output of its own.
func Read(name string, data []byte) (Reading, error) {
	return readAs(knownFormats(), name, data, origin{})
}

// readAs is Read of a text that stands somewhere in its file.
func readAs(known []tool.Format, name string, data []byte, o origin) (Reading, error) {
	if err := checkReadable(data); err != nil {
		return Reading{}, err
	}
	all := listVariants(utf8Of(data))
	for {
		c, err := chooseClaim(known, all)
		if err != nil {
			return Reading{}, err
		}
		others, text := divideClaim(known, c)
		content, problems, err := c.Parse(text)
		if err != nil && len(others) > 0 { // its heads do not report which lines are its own
			content, problems, err = c.Parse(c.text.data)
		}
		if err != nil {
			known = slices.DeleteFunc(slices.Clone(known), func(f tool.Format) bool { return f.Name == c.Name })
			continue
		}
		if err := checkSeparate(c); err != nil {
			return Reading{}, err
		}
		o.place(c.Name, problems, 1)
		r := Reading{File: name, Kind: c.Name, Problems: problems, Content: content}
		r.readOthers(c.text.data, others, o)
		if r.Problems == nil {
			r.Problems = tool.Problems{}
		}
		return r, nil
	}
}

// chooseClaim returns the format that is the surest. Of several that are as sure, and where
// none is sure of the whole, it is that of the first part.
func chooseClaim(known []tool.Format, all []variant) (claim, error) {
	best := mostLike(known, all)
	if len(best) == 0 || best[0].sure <= weak {
		best = claimsWithin(known, all[0], best)
	}
	if len(best) == 1 {
		return best[0], nil
	}
	last := all[len(all)-1]
	for _, g := range groupParts(known, last.data) {
		if len(best) == 0 || slices.ContainsFunc(best, func(c claim) bool { return c.Name == g.Name }) {
			return claim{Format: g.Format, text: last}, nil
		}
	}
	if len(best) == 0 {
		return claim{}, errkind.New(errkind.Unsupported, "this is the output of no program that is known").
			Do("Known are: " + strings.Join(namesOf(known), ", ") + ". Give the whole output as it was printed, with its headers.")
	}
	return claim{}, errkind.New(errkind.Unsupported, "this can be the output of %s as well as of %s", best[0].Name, best[1].Name).
		Do("Give the output of one program a file.")
}

// claim is a format that may be that of a text.
type claim struct {
	tool.Format
	text variant
	sure int
}

// looked is how much of the beginning and of the end of a text is looked at to
// recognise it.
const looked = 1 << 20

// sampleText returns a text, or of a large one its beginning and its end, cut at lines:
// what a program prints has its marks there, also below a long log.
func sampleText(data []byte) []byte {
	if len(data) <= 4*looked {
		return data
	}
	head, tail := data[:looked], data[len(data)-looked:]
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		head = head[:i+1]
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 {
		tail = tail[i+1:]
	}
	return slices.Concat(head, tail)
}

// mostLike returns the formats that are most sure, each with the variant that
// makes it so; of variants that are equal for it, the last.
func mostLike(known []tool.Format, all []variant) (best []claim) {
	most := 1
	for _, f := range known {
		c, sure := claim{Format: f}, 0
		for _, v := range all {
			if n := f.Is(sampleText(v.data)); n >= sure {
				c.text, c.sure, sure = v, n, n
			}
		}
		switch {
		case sure > most, sure == most && len(best) == 0:
			best, most = []claim{c}, sure
		case sure == most:
			best = append(best, c)
		}
	}
	return best
}

// checkSeparate refuses lines of several nodes where each node's lines are an output.
func checkSeparate(c claim) error {
	if c.Merged || len(c.text.labels) < 2 {
		return nil
	}
	first := c.text.labels[0]
	return errkind.New(errkind.Unsupported, "lines of %d nodes are mixed, such as %q and %q: each has an output of %s of its own", len(c.text.labels), first, c.text.labels[1], c.Name).
		Do(fmt.Sprintf("Read them one by one: grep '^%s' FILE | ironrail read -", first))
}

// compressed are the first bytes of files that must be unpacked first.
var compressed = []struct{ magic, name, with string }{
	{"\x1f\x8b", "gzip", "gunzip -c"}, {"BZh", "bzip2", "bunzip2 -c"}, {"\xfd7zXZ\x00", "xz", "xz -dc"},
	{"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"}, {"PK\x03\x04", "zip", "unzip -p"},
}

// checkReadable refuses what is no text.
func checkReadable(data []byte) error {
	if len(data) > MaxSize {
		return errkind.New(errkind.Unsupported, "it is larger than %d MiB", MaxSize>>20).Do("Cut it to the part that the program printed.")
	}
	for _, c := range compressed {
		if bytes.HasPrefix(data, []byte(c.magic)) {
			return errkind.New(errkind.Unsupported, "it is compressed with %s", c.name).Do("Unpack it first: " + c.with + " FILE | ironrail read -")
		}
	}
	if begin := data[:min(len(data), 8192)]; bytes.IndexByte(begin, 0) >= 0 && !utf16Marked(data) {
		return errkind.New(errkind.Unsupported, "it is no text: it has bytes of value 0").Do("Give what the program printed, as text.")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return errkind.New(errkind.Unsupported, "it is empty").Do("Look whether the program ran: what it printed may have gone to standard error.")
	}
	return nil
}

func utf16Marked(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff"))
}

// utf8Of makes UTF-8 of a text that begins with the byte order mark of UTF-16, as
// the shell of Windows writes files; any other text is returned as it is.
func utf8Of(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return data
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	return []byte(string(utf16.Decode(units)))
}

func namesOf(known []tool.Format) []string {
	var names []string
	for _, f := range known {
		names = append(names, f.Name)
	}
	return slices.Sorted(slices.Values(names))
}
