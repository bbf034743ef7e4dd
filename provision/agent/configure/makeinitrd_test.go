// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// TestMakeInitrds: each kernel of the root gets one, and none passes that is not one.
func TestMakeInitrds(t *testing.T) {
	t.Parallel()
	writes := func(text string) MakeInitrd {
		return func(_ context.Context, root rootfs.Root, release string, line func(string)) error {
			line("Adding module " + release)
			return rootfs.WriteText(root, initrd+release, text, 0o644)
		}
	}
	broken := errkind.New(errkind.Invalid, "exit status 1")
	for name, c := range map[string]struct {
		kernels []string
		make    MakeInitrd
		kind    errkind.Kind
		want    string // what the error says
	}{
		"one":          {[]string{"6.12.1"}, writes("070701"), 0, ""},
		"two":          {[]string{"6.12.1", "6.12.2"}, writes("\x28\xb5\x2f\xfd and more"), 0, ""},
		"no kernel":    {nil, writes("070701"), errkind.Invalid, "no kernel in /boot"},
		"no program":   {[]string{"6.12.1"}, nil, errkind.Unsupported, "makes no initrd"},
		"it fails":     {[]string{"6.12.1"}, func(context.Context, rootfs.Root, string, func(string)) error { return broken }, errkind.Invalid, "initrd of kernel 6.12.1: exit status 1"},
		"none is made": {[]string{"6.12.1"}, func(context.Context, rootfs.Root, string, func(string)) error { return nil }, errkind.Invalid, "made none"},
		"no archive":   {[]string{"6.12.1"}, writes("#!/bin/sh"), errkind.Invalid, `it begins with "#!/bin"`},
		"empty":        {[]string{"6.12.1"}, writes(""), errkind.Invalid, `it begins with ""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, k := range c.kernels {
				if err := errors.Join(os.MkdirAll(filepath.Join(dir, "boot"), 0o755), os.WriteFile(filepath.Join(dir, kernels+k), nil, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			root, err := rootfs.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			lines := int64(0)
			maker := &Configurator{MakeInitrd: c.make, Progress: func(p wire.Progress) { lines = max(lines, p.Done) }}
			for range 2 { // again, after it was cut off
				err := maker.makeInitrds(t.Context(), root)
				if c.want == "" && (err != nil || lines == 0) {
					t.Errorf("%v, %d lines", err, lines)
				}
				if c.want != "" && (errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("got %v, want %s that says %q", err, c.kind, c.want)
				}
			}
		})
	}
}
