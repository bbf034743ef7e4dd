// SPDX-License-Identifier: Apache-2.0

// Package ipmisim runs OpenIPMI's ipmi_sim as the BMC of a node in tests: an independent
// implementation of IPMI that keeps the power and the boot device in files, and a log of what was
// asked of it.
package ipmisim

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
)

// User and Password are those of every simulator, with the privilege of an administrator.
const (
	User     = "admin"
	Password = "canary-3f9a7c51"
)

// Sim is one simulator.
type Sim struct {
	Addr netip.AddrPort
	t    testing.TB
	dir  string
}

const lanConf = `name "n1"
set_working_mc 0x20
  startlan 1
    addr %s %d
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid 33221100554477668899aabbccddeeff
  endlan
  chassis_control "%s/chassis.sh"
  user 2 true "%s" "%s" admin 10 none md2 md5 straight
%s`

const emuConf = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
mc_add_fru_data 0x20 0 256 file 0 "%s/fru.bin"
sel_enable 0x20 1000 0x0a
mc_enable 0x20
`

// chassisProgram keeps the state in files. A file "deaf" is a system that does not shut down.
const chassisProgram = `#!/bin/sh
cd %s || exit 1
op=$1; shift
if [ "$op" = get ]; then
  for f in "$@"; do printf '%%s:%%s\n' "$f" "$(cat "$f")"; done
  exit 0
fi
echo "$*" >>log
while [ $# -ge 2 ]; do
  case "$1" in
  shutdown) [ -e deaf ] || echo 0 >power ;;
  power|boot|identify) echo "$2" >"$1" ;;
  esac
  shift 2
done
`

// count numbers the simulators of this process.
var count atomic.Uint32

// Start starts a simulator whose node is off and has a serial number. lan is more of its lan.conf;
// it may be empty.
func Start(t testing.TB, serial, lan string) *Sim {
	t.Helper()
	peertest.Need(t, "ipmi_sim")
	n := count.Add(1)
	s := &Sim{t: t, dir: t.TempDir(), Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(1 + os.Getpid()%250), byte(100 + n>>8), byte(n)}), 16230)}
	s.Put("lan.conf", fmt.Sprintf(lanConf, s.Addr.Addr(), s.Addr.Port(), s.dir, User, Password, lan))
	s.Put("sim.emu", fmt.Sprintf(emuConf, s.dir))
	s.Put("fru.bin", string(productFRU(serial)))
	for name, text := range map[string]string{"power": "0\n", "boot": "default\n", "identify": "0 0\n", "log": "", "chassis.sh": fmt.Sprintf(chassisProgram, s.dir)} {
		s.Put(name, text)
	}
	if err := os.Chmod(filepath.Join(s.dir, "chassis.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "ipmi_sim", "-n", "-c", "lan.conf", "-f", "sim.emu", "-s", "state")
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its chassis programs end with it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	s.waitPong()
	return s
}

// waitPong waits until the simulator answers a presence ping (IPMI 2.0, 13.2.3).
func (s *Sim) waitPong() {
	s.t.Helper()
	c, err := net.Dial("udp", s.Addr.String()) //nolint:noctx // a socket of loopback
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	answer := make([]byte, 64)
	for range 600 {
		_, _ = c.Write([]byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, 0, 0, 0})
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if n, err := c.Read(answer); err == nil && n > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatal("ipmi_sim does not answer")
}

// Put writes a file of the simulator: power ("0" or "1"), boot, deaf, identify (seconds, and 1 for
// until it is switched off).
func (s *Sim) Put(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Get reads a file of the simulator.
func (s *Sim) Get(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// Did returns what was changed, in order: "power 0, power 1".
func (s *Sim) Did() string {
	s.t.Helper()
	return strings.Join(strings.Split(s.Get("log"), "\n"), ", ")
}

// productFRU makes the content of a FRU device with a product area (FRU Information Storage
// Definition 1.3, 12).
func productFRU(serial string) []byte {
	area := []byte{1, 0, 0}
	for _, f := range []string{"ironrail", "lab-node", "lab-1", "1.0", serial, "", ""} {
		area = append(append(area, 0xc0|byte(len(f))), f...)
	}
	area = append(area, 0xc1)
	for len(area)%8 != 7 {
		area = append(area, 0)
	}
	area[1] = byte((len(area) + 1) / 8)
	area = append(area, checksum(area))
	head := []byte{1, 0, 0, 0, 1, 0, 0}
	return append(append(head, checksum(head)), area...)
}

// checksum makes the bytes sum up to zero.
func checksum(b []byte) (sum byte) {
	for _, v := range b {
		sum -= v
	}
	return sum
}
