// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision/netboot"
)

// initProgram is /init of the test's ramdisk: it shows that the second initrd
// arrived as well.
const initProgram = `package main

import (
	"fmt"
	"os"
)

func main() {
	b, err := os.ReadFile("/node.json")
	fmt.Printf("\nUSERLAND %s %v\n", b, err)
	select {}
}
`

// linux finds a Linux kernel: of this controller, or named by the environment.
func linux(t *testing.T) []byte {
	t.Helper()
	paths, _ := filepath.Glob("/boot/vmlinuz-*")
	if p := os.Getenv("IRONRAIL_TEST_KERNEL"); p != "" {
		paths = []string{p}
	}
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil {
			return b
		}
	}
	t.Skip("needs a Linux kernel: /boot/vmlinuz-* or IRONRAIL_TEST_KERNEL")
	return nil
}

// cpio writes a newc archive of one file.
func cpio(name string, mode int, data []byte) []byte {
	var b bytes.Buffer
	entry := func(name string, mode int, data []byte) {
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
		b.WriteString(name + "\x00")
		b.Write(make([]byte, -b.Len()&3))
		b.Write(data)
		b.Write(make([]byte, -b.Len()&3))
	}
	entry(name, mode, data)
	entry("TRAILER!!!", 0, nil)
	b.Write(make([]byte, -b.Len()&511))
	return b.Bytes()
}

func buildInit(t *testing.T) []byte { return buildProgram(t, initProgram) }

// buildProgram builds a static program of one file.
func buildProgram(t *testing.T, text string) []byte {
	t.Helper()
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "main.go"), filepath.Join(dir, "init")
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", bin, src)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("needs the Go toolchain: %v\n%s", err, out)
	}
	b, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPeerLinuxBIOS and TestPeerLinuxUEFI boot a real Linux with two initrds to
// userland: by the BIOS loader of iPXE, and by the kernel's EFI stub.
func TestPeerLinuxBIOS(t *testing.T) {
	t.Parallel()
	if inNamespace(t, "qemu-system-x86_64") {
		bootLinux(t, biosArgs())
	}
}

func TestPeerLinuxUEFI(t *testing.T) {
	t.Parallel()
	if inNamespace(t, "qemu-system-x86_64") {
		bootLinux(t, uefiArgs(t))
	}
}

func bootLinux(t *testing.T, firmware []string) {
	t.Helper()
	kernel := linux(t)
	files := map[string][]byte{"/boot/a1/vmlinuz": kernel, "/boot/a1/initrd": cpio("init", 0o100755, buildInit(t)),
		"/boot/a1/node": cpio("node.json", 0o100644, []byte(`{"node":"n1"}`))}
	mount := netboot.Mount{Prefix: "/boot/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(files[r.URL.Path]))
	})}
	bridge(t)
	src, d := newOne(t), newDiary()
	src.attempt = &netboot.Attempt{ID: "a1", Node: "n1", Kernel: "/boot/a1/vmlinuz", Initrds: []string{"/boot/a1/initrd", "/boot/a1/node"},
		Args: []string{"console=ttyS0", "quiet", "panic=-1"}}
	serve(t, config(mount), src, d)
	serial := machine(t, firmware...)
	until(t, 240*time.Second, serial, `USERLAND {"node":"n1"} <nil>`)
	t.Logf("userland after %.1f s\n%s", time.Since(d.start).Seconds(), d)
}
