// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"slices"
	"testing"
)

func TestDifferences(t *testing.T) {
	t.Parallel()
	repo := map[string]string{"a": "1", "b": "2", "alt": "3"}
	for _, c := range []struct {
		name        string
		asked, want []string
		have        map[string]string
	}{
		{"all there", []string{"a"}, nil, map[string]string{"a": "1", "b": "2", "alt": "3"}},
		{"an alternative stands in", []string{"a"}, nil, map[string]string{"a": "1", "b": "2"}},
		{"other version", []string{"a"}, []string{"b is 9, not 2"}, map[string]string{"a": "1", "b": "9"}},
		{"missing", []string{"a"}, []string{"a is not installed"}, nil},
		{"never there", []string{"x"}, []string{"x is not in the repository"}, map[string]string{"x": "1"}},
	} {
		if got := listDifferences(c.asked, repo, c.have); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPackageName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"rdma-core": true, "libstdc++6": true, "a": false, "": false, "-y": false, "x y": false, "Upper": false, "a=1": false, "a;b": false, "7zip": true} {
		if got := packageName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
