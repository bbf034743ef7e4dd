// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"encoding"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// parsers are the quantities with how each is read and written.
var parsers = map[string]func(string) (string, float64, error){
	"power":   func(s string) (string, float64, error) { v, err := ParseWatts(s); return v.String(), float64(v), err },
	"voltage": func(s string) (string, float64, error) { v, err := ParseVolts(s); return v.String(), float64(v), err },
	"current": func(s string) (string, float64, error) { v, err := ParseAmps(s); return v.String(), float64(v), err },
	"length":  func(s string) (string, float64, error) { v, err := ParseLength(s); return v.String(), float64(v), err },
	"mass":    func(s string) (string, float64, error) { v, err := ParseMass(s); return v.String(), float64(v), err },
	"percent": func(s string) (string, float64, error) { v, err := ParsePercent(s); return v.String(), float64(v), err },
	"bytes":   func(s string) (string, float64, error) { v, err := ParseBytes(s); return v.String(), float64(v), err },
	"bitrate": func(s string) (string, float64, error) { v, err := ParseBitRate(s); return v.String(), float64(v), err },
	"byterate": func(s string) (string, float64, error) {
		v, err := ParseByteRate(s)
		return v.String(), float64(v), err
	},
	"duration": func(s string) (string, float64, error) {
		v, err := ParseDuration(s)
		return v.String(), float64(v), err
	},
	"any": func(s string) (string, float64, error) { v, err := ParseAny(s); return v.String(), v.Value, err },
	"size limit": func(s string) (string, float64, error) {
		v, err := ParseLimit(s, ParseBytes)
		return v.String(), float64(v.Value), err
	},
}

func TestParse(t *testing.T) {
	t.Parallel()
	cases := []struct {
		kind, in string
		value    float64
		text     string
	}{
		{"power", "10.2kW", 10200, "10.2kW"},
		{"power", "700W", 700, "700W"},
		{"power", "1 MW", 1e6, "1MW"},
		{"power", "0W", 0, "0W"},
		{"voltage", "415V", 415, "415V"},
		{"current", "63A", 63, "63A"},
		{"current", "500mA", 0.5, "500mA"},
		{"length", "600mm", 0.6, "60cm"},
		{"length", "3m", 3, "3m"},
		{"mass", "90kg", 90, "90kg"},
		{"percent", "92%", 92, "92%"},
		{"bytes", "800GB", 800e9, "800GB"},
		{"bytes", "2TiB", 2 << 40, "2TiB"},
		{"bytes", "64KiB", 65536, "64KiB"},
		{"bytes", "1.5GiB", 1.5 * (1 << 30), "1.5GiB"},
		{"bitrate", "400Gbps", 400e9, "400Gbps"},
		{"byterate", "2850GB/s", 2850e9, "2.85TB/s"},
		{"duration", "30min", float64(30 * time.Minute), "30m0s"},
		{"duration", "1.5h", float64(90 * time.Minute), "1h30m0s"},
		{"any", "3MB/s", 3e6, "3MB/s"},
		{"any", "90", 90, "90"},
		{"size limit", ">= 900GB", 900e9, ">= 900GB"},
		{"size limit", "<=2TB", 2e12, "<= 2TB"},
		{"size limit", "= 4GB", 4e9, "4GB"},
		{"size limit", "4GB", 4e9, "4GB"},
	}
	for _, c := range cases {
		text, value, err := parsers[c.kind](c.in)
		if err != nil || value != c.value || text != c.text {
			t.Errorf("%s %q: got %v (%q), %v; want %v (%q)", c.kind, c.in, value, text, err, c.value, c.text)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct{ kind, in, why string }{
		{"power", "700", "has no unit"},
		{"power", "700kw", `Did you mean "700kW"?`},
		{"power", "700V", "is no power"},
		{"power", "-5W", "does not start with a number"},
		{"power", "1e3W", "is no power"},
		{"power", "1/2W", "is no power"},
		{"power", ".5W", "does not start with a number"},
		{"power", "5.W", "does not start with a number"},
		{"power", "1.2.3W", "does not start with a number"},
		{"power", "", "does not start with a number"},
		{"power", strings.Repeat("9", 1000) + "W", "does not start with a number"},
		{"bitrate", "400GB/s", "is no line rate in bits"},
		{"byterate", "400Gbps", "is no throughput in bytes"},
		{"bytes", "99999PiB", "more than this"},
		{"duration", "5m", "is no duration"},
		{"any", "5parsec", "no unit that is known"},
		{"size limit", "> 5GB", "written with >=, <= or ="},
		{"size limit", ">=", "does not start with a number"},
	}
	for _, c := range cases {
		_, _, err := parsers[c.kind](c.in)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s %q: got %v, want %q", c.kind, c.in, err, c.why)
		}
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	cases := []struct {
		limit string
		value Bytes
		want  bool
	}{
		{">= 900GB", 900e9, true}, {">= 900GB", 900e9 - 1, false},
		{"<= 900GB", 900e9, true}, {"<= 900GB", 900e9 + 1, false},
		{"900GB", 900e9, true}, {"900GB", 901e9, false},
	}
	for _, c := range cases {
		l, err := ParseLimit(c.limit, ParseBytes)
		if err != nil || l.Allows(c.value) != c.want {
			t.Errorf("%q allows %d: got %t, want %t (%v)", c.limit, c.value, !c.want, c.want, err)
		}
	}
	if !(Limit[Bytes]{}).Allows(5) || !(VersionLimit{}).Allows("1") {
		t.Error("no limit refuses something")
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	cases := []struct {
		limit, version string
		want           bool
	}{
		{">= 1.03.18", "1.3.18", true}, {">= 1.03.18", "1.3.9", false}, {">= 1.03.18", "1.10", true}, {">= 1.03.18", "1.3", false},
		{"28.39.3560", "28.39.3560", true}, {"28.39.3560", "28.39.3561", false}, {"<= 9", "9.0.1", false}, {"<= 9", "8.9", true},
		{">= 2.1a", "2.1b", true},
	}
	for _, c := range cases {
		l, err := ParseVersionLimit(c.limit)
		if err != nil || l.Allows(c.version) != c.want {
			t.Errorf("%q allows %q: got %t, want %t (%v)", c.limit, c.version, !c.want, c.want, err)
		}
	}
	for _, bad := range []string{"", ">= ", "1 2", ">> 1"} {
		if l, err := ParseVersionLimit(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, l)
		}
	}
}

// FuzzParse writes what it reads and reads it again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"10.2kW", "2TiB", "92%", ">= 900GB", "1.03.18", "63A", "0.001mm"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for kind, parse := range parsers {
			text, _, err := parse(s)
			if err != nil || kind == "duration" || kind == "any" {
				continue
			}
			if _, _, err := parse(text); err != nil {
				t.Errorf("%s %q was written %q, which is not read: %v", kind, s, text, err)
			}
		}
	})
}

func TestJSON(t *testing.T) {
	t.Parallel()
	type all struct {
		W Watts
		B Bytes
		R BitRate
		S ByteRate
		Q Quantity
	}
	in := all{10200, 2 << 40, 400e9, 3e6, Quantity{92, Share}}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"W":"10.2kW","B":"2TiB","R":"400Gbps","S":"3MB/s","Q":"92%"}`
	if string(raw) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
	var out all
	if err := json.Unmarshal(raw, &out); err != nil || out != in {
		t.Errorf("got %+v, %v; want %+v", out, err, in)
	}
	for _, m := range []encoding.TextMarshaler{Volts(1), Amps(1), Length(1), Mass(1), Percent(1), Limit[Bytes]{}, VersionLimit{}} {
		if _, err := m.MarshalText(); err != nil {
			t.Errorf("%T: %v", m, err)
		}
	}
}

func TestRange(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		">= 900GB, <= 2TB": ">= 900GB, <= 2TB", "<= 2TB,>= 900GB": ">= 900GB, <= 2TB", ">= 900GB": ">= 900GB", "<= 2TB": "<= 2TB", "1TB": "1TB",
		">= 2TB, <= 1TB": "", ">= 1TB, >= 2TB": "", "1TB, <= 2TB": "", ">= 1TB,": "",
	} {
		l, err := ParseRange(text, ParseBytes)
		if l.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, l, err, want)
		}
	}
	between, _ := ParseRange(">= 900GB, <= 2TB", ParseBytes)
	for size, want := range map[Bytes]bool{899e9: false, 900e9: true, 960e9: true, 2e12: true, 3e12: false} {
		if between.Allows(size) != want {
			t.Errorf("%s within %s: %v", size, between, !want)
		}
	}
	for _, c := range []struct {
		narrow, wide string
		want         bool
	}{
		{">= 1TB, <= 2TB", ">= 900GB", true}, {">= 1TB, <= 2TB", "<= 2TB", true}, {">= 1TB", ">= 1TB, <= 2TB", false}, {"1TB", ">= 900GB, <= 2TB", true},
		{"3TB", ">= 900GB, <= 2TB", false}, {">= 900GB, <= 2TB", ">= 1TB, <= 2TB", false}, {">= 1TB", "<= 2TB", false}, {">= 1TB, <= 1TB", "1TB", true}, {">= 1TB", "", true}, {"", ">= 1TB", false},
	} {
		parse := func(s string) (l Limit[Bytes]) {
			if s != "" {
				l, _ = ParseRange(s, ParseBytes)
			}
			return l
		}
		if got := parse(c.narrow).Within(parse(c.wide)); got != c.want {
			t.Errorf("%q within %q: %v", c.narrow, c.wide, got)
		}
	}
}
