// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/errkind"
)

// putFile writes a file below a folder.
func putFile(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSignModules: modules are signed uncompressed, whatever dkms compressed them with, and what
// lies beside them is left there.
func TestSignModules(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := modsign.Create(path, "s", time.Now()); err != nil {
		t.Fatal(err)
	}
	key, err := modsign.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	module := append([]byte("\x7fELF"), bytes.Repeat([]byte("module "), 1000)...)
	want, err := key.Sign(module)
	if err != nil {
		t.Fatal(err)
	}
	packed := func(pack func(io.Writer) (io.WriteCloser, error)) []byte {
		var b bytes.Buffer
		w, err := pack(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(module); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	const from = "build/dkms/gpu/1.0/6.1"
	dir, to := t.TempDir(), t.TempDir()
	putFile(t, dir, from+"/x86_64/module/a.ko", module)
	putFile(t, dir, from+"/x86_64/module/b.ko.gz", packed(func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }))
	putFile(t, dir, from+"/x86_64/module/c.ko.xz", packed(func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) }))
	putFile(t, dir, from+"/x86_64/module/d.ko.zst", packed(func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }))
	putFile(t, dir, from+"/x86_64/module/Module.symvers", []byte("0x1 x\n"))
	putFile(t, dir, from+"/x86_64/log/make.log", nil)
	putFile(t, dir, "none/x86_64/module/Module.symvers", nil)
	putFile(t, dir, "bad/x86_64/module/a.ko", []byte("#!/bin/sh\n"))
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := signModules(root, from, key, to); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		got, err := os.ReadFile(filepath.Join(to, f.Name()))
		if err != nil || f.Name() != string(rune('a'+i))+".ko" || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d: %v", f.Name(), len(got), len(want), err)
		}
	}
	if len(files) != 4 {
		t.Errorf("%d modules are signed", len(files))
	}
	if err := signModules(root, "none", key, t.TempDir()); errkind.Of(err) != errkind.Refused {
		t.Errorf("no module: %v", err)
	}
	if err := signModules(root, "bad", key, t.TempDir()); errkind.Of(err) != errkind.Invalid {
		t.Errorf("no ELF file: %v", err)
	}
}

// TestSourcesIn: what dkms builds is found by its own configuration, in the folder that it wants.
func TestSourcesIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ folder, conf, want string }{
		"Debian":        {"nvidia-current-535.261.03", "PACKAGE_NAME=\"nvidia-current\"\nPACKAGE_VERSION=\"535.261.03\"\n", "nvidia-current 535.261.03"},
		"with epochs":   {"amdgpu-6.12.12-2194681.24.04", "PACKAGE_NAME='amdgpu'\nPACKAGE_VERSION=\"6.12.12-2194681.24.04\"\n", "amdgpu 6.12.12-2194681.24.04"},
		"no name":       {"x-1", "MAKE=make\n", ""},
		"other folder":  {"x-1", "PACKAGE_NAME=y\n", ""},
		"odd name":      {"x-$(id)", "PACKAGE_NAME=x\n", ""},
		"computed name": {"x-1", "PACKAGE_NAME=$(cat name)\n", ""},
	} {
		dir := t.TempDir()
		putFile(t, dir, "usr/src/"+c.folder+"/dkms.conf", []byte(c.conf))
		putFile(t, dir, "usr/src/headers/Makefile", nil)
		got, err := sourcesIn(dir, "p")
		text := ""
		for _, s := range got {
			text += s.name + " " + s.version
		}
		if text != c.want || (err == nil) != (c.want != "") || err != nil && errkind.Of(err) != errkind.Unsupported {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for needs, want := range map[string]bool{"dkms": true, "dkms (>= 3), gcc": true, "gcc, dkms": true, "gcc, dkms | x": true, "dkms-helper": false, "nvidia-dkms": false, "": false} {
		if needsDKMS.MatchString(needs) != want {
			t.Errorf("%q needs dkms: %v", needs, !want)
		}
	}
	if got := FirstError([]byte("make: x\na.c:1:2: error: too few\n")); got != "too few" || FirstError([]byte("fine\n")) != "" || !strings.HasPrefix(FirstError([]byte("make: *** [x] Error 2\n")), "[x]") {
		t.Errorf("first error %q", got)
	}
}
