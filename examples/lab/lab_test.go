// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"regexp"
	"testing"
)

func TestPackages(t *testing.T) {
	t.Parallel()
	ps, err := Packages()
	if err != nil {
		t.Fatal(err)
	}
	debian := regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]+$`) // Debian Policy 5.6.1
	seen := map[string]bool{}
	for _, p := range ps {
		if !debian.MatchString(p.Name) || seen[p.Name] {
			t.Errorf("%q is no package name, or stands there twice", p.Name)
		}
		seen[p.Name] = true
	}
	if !seen["qemu-system-x86"] || !seen["openipmi"] {
		t.Error("the list lacks what the lab is made of")
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"qemu", "qemu lab", "qemu prod why"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
