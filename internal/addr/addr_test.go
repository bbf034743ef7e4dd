// SPDX-License-Identifier: Apache-2.0

package addr

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"02:00:5e:10:00:01": "02:00:5e:10:00:01", "02-00-5E-10-00-01": "02:00:5e:10:00:01", "0200.5e10.0001": "02:00:5e:10:00:01", "02005e100001": "02:00:5e:10:00:01",
		"": "", "02:00:5e:10:00": "", "02:00:5e:10:00:01:02:03": "", "zz005e100001": "",
	} {
		got, err := ParseMAC(in)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("MAC %q: %s, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"0x506b4b03005c2740": "0x506b4b03005c2740", "506B4B03005C2740": "0x506b4b03005c2740", "506b:4b03:005c:2740": "0x506b4b03005c2740", "0x1": "", "": "",
	} {
		got, err := ParseGUID(in)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("GUID %q: %s, %v", in, got, err)
		}
	}
}

// FuzzParseMAC: an address that was read is read again as itself.
func FuzzParseMAC(f *testing.F) {
	for _, s := range []string{"02:00:5e:10:00:01", "0200.5e10.0001", "02005e100001", "", "::", "02:00:5e:10:00:01:00:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMAC(s)
		if err != nil {
			return
		}
		if again, err := ParseMAC(m.String()); err != nil || again != m {
			t.Errorf("%q: %s, then %s, %v", s, m, again, err)
		}
	})
}

// FuzzParseGUID: a GUID that was read is read again as itself, and has 16 digits.
func FuzzParseGUID(f *testing.F) {
	for _, s := range []string{"0x506b4b03005c2740", "506b:4b03:005c:2740", "0x", "", "0X506B4B03005C2740", "5:0:6b4b03005c2740"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := ParseGUID(s)
		if err != nil {
			return
		}
		if again, err := ParseGUID(g.String()); err != nil || again != g || len(strings.ReplaceAll(s, ":", "")) < 16 {
			t.Errorf("%q: %s, then %s, %v", s, g, again, err)
		}
	})
}
