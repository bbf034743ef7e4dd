// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/inventory"
)

func TestReadNodes(t *testing.T) {
	t.Parallel()
	inv, diags, _ := inventory.Load("../../examples/demo", inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	all := ListNodes(inv)
	r01, r02 := all[:4], all[4:]
	for _, c := range []struct {
		name  string
		words []string
		want  []string
		err   string // part of it
	}{
		{"no word", nil, nil, ""},
		{"a node", []string{"r01-u09"}, []string{"r01-u09"}, ""},
		{"two with a comma", []string{"r02-u01, r01-u09"}, []string{"r01-u09", "r02-u01"}, ""},
		{"two words, one node", []string{"r01-u09", "r01-u0?"}, r01[:2], ""},
		{"a pattern", []string{"r02-*"}, r02, ""},
		{"a rack", []string{"rack.r01"}, r01, ""},
		{"racks by pattern", []string{"rack.r0[12]"}, all, ""},
		{"a role", []string{"role.worker"}, all, ""},
		{"a fabric", []string{"fabric.comp*"}, all, ""},
		{"a rack without a node", []string{"rack.r01", "!r01-u09"}, slices.DeleteFunc(slices.Clone(r01), func(n string) bool { return n == "r01-u09" }), ""},
		{"all but", []string{"!rack.r01"}, r02, ""},
		{"the order of exclusion does not matter", []string{"!rack.r01", "role.worker"}, r02, ""},
		{"nothing left", []string{"rack.r01", "!r01-*"}, nil, `"rack.r01,!r01-*" leaves no node`},
		{"a typing error", []string{"r01-u90"}, nil, `"r01-u90" is not a node of this site. Did you mean "r01-u0`},
		{"a typing error in what is taken out", []string{"!r01-u99x"}, nil, `is not a node of this site`},
		{"a rack that there is not", []string{"rack.r1"}, nil, `no rack of this site is called "r1". Did you mean "r01"?`},
		{"a role that there is not", []string{"role.login"}, nil, `There is "worker".`},
		{"a rack of switches", []string{"rack.net"}, nil, `"rack.net": no node is of that rack`},
		{"a pattern of nothing", []string{"r07-*"}, nil, `no node of this site is called like "r07-*"`},
		{"a broken pattern", []string{"r0[1"}, nil, `"r0[1" is not a pattern`},
		{"empty", []string{"r01-u09,,r02-u01"}, nil, "a word of it is empty"},
		{"empty word", []string{""}, nil, "names no node"},
		{"mark alone", []string{"!"}, nil, "names no node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ReadNodes(inv, c.words)
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
			case err != nil:
				t.Error(err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v\nwant %v", got, c.want)
			}
		})
	}
}

// TestListWords: every word that is offered names something, or says that it
// has no nodes.
func TestListWords(t *testing.T) {
	t.Parallel()
	inv, _, _ := inventory.Load("../../examples/demo", inventory.Options{Now: time.Now()})
	words := ListWords(inv)
	for _, want := range []string{"r01-u09", "rack.r02", "role.worker", "fabric.compute"} {
		if !slices.Contains(words, want) {
			t.Errorf("%s is not offered", want)
		}
	}
	for _, w := range words {
		if _, err := ReadNodes(inv, []string{w}); err != nil && !strings.Contains(err.Error(), "no node is of that") {
			t.Error(err)
		}
	}
}
