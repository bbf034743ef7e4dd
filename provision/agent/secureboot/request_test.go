// SPDX-License-Identifier: Apache-2.0

package secureboot

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/modsign/mok"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// recorded are variables that remember in which order they were written.
type recorded struct {
	Dir
	order []string
	lose  string // a variable that is not kept
}

func (r *recorded) Set(name string, value []byte) error {
	r.order = append(r.order, name)
	if name == r.lose {
		value = nil
	}
	return r.Dir.Set(name, value)
}

// TestRequest: the three variables are written as efivarfs takes them, over what is there, and the
// one that shim looks for first is the last.
func TestRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	der := certificate(t, "site")
	for range 2 {
		r, vars := mok.NewRequest(der), &recorded{Dir: Dir(dir)}
		if err := Request(vars, wire.EnrolParams{List: r.New, Auth: r.Auth, Countdown: 300}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(vars.order, []string{"MokTimeout", "MokAuth", "MokNew"}) {
			t.Errorf("written in the order %v", vars.order)
		}
		for name, want := range map[string][]byte{"MokTimeout": {0x2c, 1, 0, 0}, "MokAuth": r.Auth, "MokNew": r.New} {
			got, err := os.ReadFile(filepath.Join(dir, name+"-605dab50-e046-4300-abb6-3dd810dd8b23"))
			if err != nil || !bytes.Equal(got, append([]byte{7, 0, 0, 0}, want...)) {
				t.Errorf("%s: %s, %v", name, hex.EncodeToString(got), err)
			}
		}
	}
}

// TestRequestRefused: a request that is damaged is not written, and firmware that does not keep a
// variable is named.
func TestRequestRefused(t *testing.T) {
	t.Parallel()
	r := mok.NewRequest(certificate(t, "site"))
	good := wire.EnrolParams{List: r.New, Auth: r.Auth, Countdown: 60}
	for name, c := range map[string]struct {
		edit func(*wire.EnrolParams)
		lose string
		kind errkind.Kind
		want string
	}{
		"no list":        {func(p *wire.EnrolParams) { p.List = nil }, "", errkind.Internal, "0 certificates"},
		"cut list":       {func(p *wire.EnrolParams) { p.List = p.List[:len(p.List)-1] }, "", errkind.Internal, "damaged"},
		"short password": {func(p *wire.EnrolParams) { p.Auth = p.Auth[:31] }, "", errkind.Internal, "31 bytes"},
		"waits forever":  {func(p *wire.EnrolParams) { p.Countdown = -1 }, "", errkind.Internal, "countdown of -1 s"},
		"lost":           {func(*wire.EnrolParams) {}, "MokNew", errkind.Refused, "does not keep variable MokNew"},
	} {
		p, dir := good, t.TempDir()
		c.edit(&p)
		err := Request(&recorded{Dir: Dir(dir), lose: c.lose}, p)
		if errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if there, _ := os.ReadDir(dir); c.kind == errkind.Internal && len(there) > 0 {
			t.Errorf("%s: %d variables are written", name, len(there))
		}
	}
	if err := Request(Dir(filepath.Join(t.TempDir(), "none")), good); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "MokTimeout") {
		t.Errorf("without variables: %v", err)
	}
}
