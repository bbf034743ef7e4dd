// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"strings"
	"testing"
)

func TestPreferences(t *testing.T) {
	t.Parallel()
	got := string(Preferences([]Pin{{Packages: []string{"*nvidia*", "libcuda1"}, Version: "535.261.03-*"}, {Packages: []string{"libnccl2"}, Version: "*+cuda13.0"}}))
	want := "Package: *nvidia* libcuda1\nPin: version 535.261.03-*\nPin-Priority: 1001\n\nPackage: libnccl2\nPin: version *+cuda13.0\nPin-Priority: 1001\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestPinsAndSourcesAreChecked(t *testing.T) {
	t.Parallel()
	for _, p := range []Pin{{}, {Packages: []string{"a b"}, Version: "1"}, {Packages: []string{"ab"}, Version: "1\nPin"}, {Packages: []string{"ab"}, Version: "1*2*"}, {Packages: []string{""}, Version: "1"}} {
		if p.check(false) == nil {
			t.Errorf("%+v passes", p)
		}
	}
	for _, p := range []Pin{{[]string{"*nvidia*", "libcuda1"}, "535.261.03-*"}, {[]string{"libnccl2"}, "*+cuda13.0"}, {[]string{"rocm"}, "*.70002-*"}} {
		if err := p.check(false); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, s := range []Source{{}, {URL: "http://x/", Suite: "./ [trusted=yes]"}, {URL: "http://x y/", Suite: "./"}, {URL: "http://x/", Suite: "a", Components: []string{"b\nc"}}} {
		if s.check() == nil {
			t.Errorf("%+v passes", s)
		}
	}
}

// TestWithComponents: sources of distributions get the components that they lack;
// flat ones stay.
func TestWithComponents(t *testing.T) {
	t.Parallel()
	in := "# comment\ndeb http://a/debian bookworm main\ndeb [arch=amd64] http://a/debian-security bookworm-security main contrib\ndeb [trusted=yes] http://b/flat ./\n"
	want := "# comment\ndeb http://a/debian bookworm main contrib non-free\ndeb [arch=amd64] http://a/debian-security bookworm-security main contrib non-free\ndeb [trusted=yes] http://b/flat ./\n"
	if got := string(withComponents([]byte(in), []string{"contrib", "non-free"})); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestPinnedSimulated: simulated packages have the versions of their pins.
func TestPinnedSimulated(t *testing.T) {
	t.Parallel()
	o := Options{Pins: []Pin{{[]string{"*nvidia*"}, "580.126.16-*"}, {[]string{"rocm"}, "*.70002-*"}}}
	for name, want := range map[string]string{"nvidia-open": "580.126.16-1", "rocm": "1.70002", "other": simulatedVersion} {
		if got := o.simulatedVersion(name); got != want || !versionText(got) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if o.check() == nil || !strings.Contains(string(Preferences(o.Pins)), "580") {
		t.Error("options without a name pass")
	}
}
