// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/images/modsign/mok"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/ipmisim"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/secureboot"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// requestInit is /init of a ramdisk that asks shim for a certificate, by the agent's own code, and
// restarts. A node that has it shows the lists of shim.
const requestInit = `package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"github.com/ironrail/ironrail/provision/agent/secureboot"
)

// request writes what the controller asked for; its type is the agent's own.
func request[P any](write func(secureboot.Vars, P) error) error {
	var p P
	b, err := os.ReadFile("/request.json")
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return err
	}
	return write(secureboot.Dir("/sys/firmware/efi/efivars"), p)
}

func main() {
	mount := func(kind, at string) {
		os.MkdirAll(at, 0o755)
		fmt.Println(kind, syscall.Mount(kind, at, kind, 0, ""))
	}
	mount("sysfs", "/sys")
	mount("securityfs", "/sys/kernel/security")
	module, err := os.ReadFile("/efivarfs.ko")
	if err != nil {
		fmt.Println(err)
	} else {
		none := []byte{0}
		_, _, e := syscall.Syscall(syscall.SYS_INIT_MODULE, uintptr(unsafe.Pointer(&module[0])), uintptr(len(module)), uintptr(unsafe.Pointer(&none[0])))
		fmt.Println("efivarfs.ko", e)
	}
	mount("efivarfs", "/sys/firmware/efi/efivars")
	list, _ := os.ReadFile("/sys/firmware/efi/mok-variables/MokListRT")
	wanted, err := os.ReadFile("/certificate.der")
	if err != nil || !bytes.Contains(list, wanted) {
		for range 2 { // the second time over what is there
			fmt.Println("\nREQUESTED", request(secureboot.Request))
		}
		syscall.Sync()
		syscall.Reboot(syscall.LINUX_REBOOT_CMD_RESTART)
	}
	for _, name := range []string{"firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "firmware/efi/efivars/SetupMode-8be4df61-93ca-11d2-aa0d-00e098032b8c", "firmware/efi/efivars/db-d719b2cb-3d3a-4596-a3bc-dad00e67656f", "firmware/efi/efivars/MokNew-605dab50-e046-4300-abb6-3dd810dd8b23", "firmware/efi/efivars/MokAuth-605dab50-e046-4300-abb6-3dd810dd8b23", "firmware/efi/mok-variables/MokListRT", "kernel/security/lockdown"} {
		b, err := os.ReadFile("/sys/" + name)
		fmt.Printf("\nSHOWN sys/%s %x %v\n", name, b, err)
	}
	fmt.Println("\nSHOWN-ALL")
	select {}
}
`

// TestPeerMOK enrols a certificate in shim's list: the agent's code writes the request in a
// locked-down kernel that was booted by PXE, or by UEFI HTTP boot; shim fetches MokManager from our
// services, at a node that takes it; MokManager is answered at its serial console, by PXE over the LAN of
// an ipmi_sim; and the agent
// reads the certificate in shim's list at the boot behind it, with nothing left of the request.
func TestPeerMOK(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		overBMC bool
	}{"pxe": {nil, true}, "http": {[]string{"-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n"}, false}} {
		t.Run(name, func(t *testing.T) {
			if inNamespace(t, "qemu-system-x86_64", secureCode) {
				enrolByConsole(t, c.args, c.overBMC)
			}
		})
	}
}

func enrolByConsole(t *testing.T, args []string, overBMC bool) {
	t.Helper()
	dir := os.Getenv(signedFiles)
	if dir == "" {
		t.Skip("needs " + signedFiles + ": a folder with shimx64.efi, grubx64.efi (grubnetx64.efi.signed), mmx64.efi, vmlinuz and efivarfs.ko of Debian 13")
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	at := filepath.Join(t.TempDir(), "key")
	if err := modsign.Create(at, "peer", time.Now()); err != nil {
		t.Fatal(err)
	}
	key, err := modsign.Load(at)
	if err != nil {
		t.Fatal(err)
	}
	request := mok.NewRequest(key.DER())
	params, err := json.Marshal(wire.EnrolParams{List: request.New, Auth: request.Auth, Countdown: mok.Countdown})
	if err != nil {
		t.Fatal(err)
	}
	node := slices.Concat(cpio("efivarfs.ko", 0o100644, read("efivarfs.ko")), cpio("certificate.der", 0o100644, key.DER()), cpio("request.json", 0o100644, params))
	files := map[string][]byte{"/boot/a1/vmlinuz": read("vmlinuz"), "/boot/a1/initrd": cpio("init", 0o100755, buildProgram(t, requestInit)), "/boot/a1/node": node}
	mount := netboot.Mount{Prefix: "/boot/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(files[r.URL.Path]))
	})}
	bridge(t)
	src, d := newOne(t), newDiary()
	src.client.SecureBoot, src.client.MOK = true, true
	src.attempt = &netboot.Attempt{ID: "a1", Node: "n1", Kernel: "/boot/a1/vmlinuz", Initrds: []string{"/boot/a1/initrd", "/boot/a1/node"},
		Args: []string{"console=ttyS0", "panic=-1", "quiet"}}
	c := config(mount)
	c.Loaders = loader.Set{loader.ShimX64: read("shimx64.efi"), loader.GRUBX64: read("grubx64.efi"), loader.MOKX64: read("mmx64.efi")}
	serve(t, c, src, d)
	serial := typeAtConsole(t, args, overBMC)
	var screen mok.Screen
	serial.to(&screen)
	defer func() {
		if t.Failed() {
			t.Logf("\n%s\n%q\n%s", d, screen.Lines(), serial.text())
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 7*time.Minute)
	defer cancel()
	rebooted := 0
	talk := mok.Dialogue{Screen: &screen, Clock: clock.Wall{}, Password: request.Password, Press: serial.press,
		Reboot: func(context.Context) error { rebooted++; return nil }}
	if err := talk.Run(ctx); err != nil || rebooted != 1 {
		t.Fatalf("the dialogue: %v; %d restarts", err, rebooted)
	}
	t.Logf("MokManager is answered after %.1f s", time.Since(d.start).Seconds())
	until(t, 4*time.Minute, serial.text, "\nSHOWN-ALL")
	shows := secureboot.Read(sysfs.Of(shown(t, serial.text())))
	if shows == nil || shows.State != wire.SecureBootOn || !slices.Contains(shows.Keys, key.Fingerprint()) {
		t.Errorf("the agent reads %+v", shows)
	}
	for _, want := range []string{"REQUESTED <nil>", "MokNew-605dab50-e046-4300-abb6-3dd810dd8b23  open ", "MokAuth-605dab50-e046-4300-abb6-3dd810dd8b23  open "} {
		if !strings.Contains(serial.text(), want) {
			t.Errorf("the node does not say %q", want)
		}
	}
	if strings.Contains(serial.text(), request.Password[:6]) {
		t.Error("the password is on the console")
	}
	t.Logf("done after %.1f s\n%s", time.Since(d.start).Seconds(), d)
}

// serialLine is the serial line of a machine, both ways.
type serialLine struct {
	press func(ctx context.Context, keys string) error
	text  func() string     // all that was printed
	to    func(*mok.Screen) // is written to from now on
}

// printed keeps what a machine prints.
type printed struct {
	screen atomic.Pointer[mok.Screen]
	mu     sync.Mutex
	all    bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	p.all.Write(b)
	p.mu.Unlock()
	if s := p.screen.Load(); s != nil {
		_, _ = s.Write(b) // memory takes it
	}
	return len(b), nil
}

func (p *printed) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

// typeAtConsole starts a machine whose firmware enforces Secure Boot, with its serial line: directly,
// or through a BMC.
func typeAtConsole(t *testing.T, args []string, overBMC bool) serialLine {
	t.Helper()
	peertest.Need(t, secureCode)
	dir := t.TempDir()
	vars, err := os.ReadFile(secureVars)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "vars.fd"), vars, 0o600); err != nil {
		t.Fatal(err)
	}
	const line = "127.0.0.1:7001" // in a network namespace of its own
	process(t, "qemu-system-x86_64", append([]string{"-accel", "tcg,tb-size=128", "-machine", "q35,smm=on,graphics=off", "-m", "1024", "-nodefaults", "-display", "none",
		"-chardev", "socket,id=s,host=127.0.0.1,port=7001,server=on,wait=off", "-serial", "chardev:s", "-uuid", nodeUUID, "-netdev", "tap,id=n0,ifname=tap0,script=no,downscript=no",
		"-global", "driver=cfi.pflash01,property=secure,value=on",
		"-drive", "if=pflash,format=raw,unit=0,readonly=on,file=" + secureCode, "-drive", "if=pflash,format=raw,unit=1,file=" + filepath.Join(dir, "vars.fd"),
		"-device", "virtio-net-pci,netdev=n0,romfile=,mac=" + nodeMAC + ",bootindex=0",
		"-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n"}, args...)...)
	var conn net.Conn
	for by := time.Now().Add(patience); conn == nil; time.Sleep(20 * time.Millisecond) {
		if conn, err = net.Dial("tcp", line); err != nil && time.Now().After(by) {
			t.Fatal(err)
		}
	}
	out := &printed{}
	if overBMC {
		conn.Close() // it was there
		return serialLine{overLAN(t, line, out), out.text, out.screen.Store}
	}
	t.Cleanup(func() { conn.Close() })
	go func() { _, _ = io.Copy(out, conn) }() // until it is closed
	return serialLine{func(_ context.Context, keys string) error { _, err := io.WriteString(conn, keys); return err }, out.text, out.screen.Store}
}

// process runs a program until the test ends.
func process(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
}

// overLAN puts OpenIPMI's ipmi_sim before a serial line, and opens its console as a run does. What
// is typed goes there.
func overLAN(t *testing.T, line string, out io.Writer) func(context.Context, string) error {
	t.Helper()
	sim := ipmisim.Start(t, "n1", "  sol \"tcp:"+line+"\" 115200\n")
	ctx, cancel := context.WithCancel(t.Context())
	keys, up, done := make(chan string), make(chan struct{}, 10), make(chan error, 1)
	target := bmc.Target{Node: "n1", Protocol: bmc.IPMI, Addr: sim.Addr, Username: ipmisim.User, Password: secret.NewValue(ipmisim.Password), CipherSuite: 3}
	go func() {
		err := errors.New("not tried")
		for by := time.Now().Add(patience); err != nil && ctx.Err() == nil && time.Now().Before(by); time.Sleep(100 * time.Millisecond) { // it starts
			err = bmc.Terminal(ctx, target, bmc.Options{}, out, keys, func() { up <- struct{}{} })
		}
		done <- err
	}()
	select {
	case <-up:
	case err := <-done:
		t.Fatalf("ipmi_sim gives no console: %v", err)
	}
	t.Cleanup(func() { cancel(); <-done })
	return func(ctx context.Context, text string) error {
		select {
		case keys <- text:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
