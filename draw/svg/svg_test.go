// SPDX-License-Identifier: Apache-2.0

package svg

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    float64
		want string
	}{{0, "0"}, {1, "1"}, {1.25, "1.3"}, {-0.04, "0"}, {-1.55, "-1.6"}, {1e6, "1000000"}, {0.1 + 0.2, "0.3"}} {
		if got := string(appendNumber(nil, c.v)); got != c.want {
			t.Errorf("number(%v) = %q, want %q", c.v, got, c.want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	f := Font{Size: 10}
	for _, c := range []struct {
		s    string
		w    float64
		want string
	}{{"abc", 100, "abc"}, {"", 0, ""}, {"wide enough", 40, "wide…"}, {"WWWW", 5, ""}} {
		if got := ClipText(c.s, f, c.w); got != c.want {
			t.Errorf("Clip(%q, %v) = %q, want %q", c.s, c.w, got, c.want)
		}
	}
}

func TestID(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, name := range []string{"r1", "r_1", "r_5f1", "r/1", "r 1", "é", "", "R1", "r.1"} {
		id := ElementID("rack", name)
		if was, ok := seen[id]; ok {
			t.Errorf("%q and %q have one id, %q", was, name, id)
		}
		seen[id] = name
		if strings.ContainsAny(id, " \"/#&<>") {
			t.Errorf("ID(%q) = %q", name, id)
		}
	}
}

func TestHatchStaysInside(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]float64{{100, 10}, {10, 100}, {3, 3}, {0.5, 40}} {
		canvas := NewCanvas(NewDefs())
		canvas.Rect(0, 0, c[0], c[1], Paint{Fill: Hatch})
		_, path, found := strings.Cut(string(canvas.Bytes()), `<path d="`)
		if !found {
			if c[0] >= 1 {
				t.Errorf("%v: nothing is hatched", c)
			}
			continue
		}
		path, _, _ = strings.Cut(path, `"`)
		for i, field := range strings.FieldsFunc(path, func(r rune) bool { return r == 'M' || r == 'L' || r == ' ' }) {
			var v float64
			for _, b := range strings.Split(field, ".")[0] {
				v = v*10 + float64(b-'0')
			}
			if strings.HasPrefix(field, "-") || v > c[i%2] {
				t.Errorf("%v: coordinate %s is outside", c, field)
			}
		}
	}
}

// FuzzText writes any text and reads it back: the drawing stays XML, the text is
// within its room, and nothing in it hides or reorders.
func FuzzText(f *testing.F) {
	for _, s := range []string{"r01-u05", "<&\"'>", "]]>", "\x00\x1b", "\u202eabc\u202c", "机架", "a\tb\nc", "\xff\xfe", strings.Repeat("W", 300)} {
		f.Add(s, 80.0)
	}
	f.Fuzz(func(t *testing.T, s string, w float64) {
		font := Font{Bold: true}
		if short := ClipText(s, font, w); short != s && TextWidth(short, font) > max(w, 0)+1e-6 {
			t.Errorf("Clip(%q, %v) = %q is %v wide", s, w, short, TextWidth(short, font))
		}
		c := NewCanvas(NewDefs())
		c.Open("", 0, 0)
		c.Title(s)
		c.Fit(0, 0, w, font, s)
		c.Rect(0, 0, 1, 1, Paint{Fill: s})
		c.Close()
		d := xml.NewDecoder(bytes.NewReader(c.Bytes()))
		d.Strict = true
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v in %q", s, err, c.Bytes())
			}
			if data, ok := tok.(xml.CharData); ok && bytes.ContainsFunc(data, func(r rune) bool { return r < ' ' || isHidden(r) }) {
				t.Errorf("%q: %q is written as it is", s, data)
			}
		}
		if !utf8.Valid(c.Bytes()) {
			t.Errorf("%q: no UTF-8", s)
		}
	})
}
