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
	"sync"
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

// Sim is one simulator. Configuration that works with 2.0.33 (Debian 12 and 13), for others who
// need a BMC:
//
//   - lan.conf, between startlan and endlan: "guid" and 32 hexadecimal digits
//     without dashes, the 16 bytes of Get System GUID in wire order. For QEMU's
//     -uuid 00112233-4455-6677-8899-aabbccddeeff write
//     33221100554477668899aabbccddeeff (SMBIOS order);
//   - sim.emu, after mc_add and before mc_enable:
//     mc_add_fru_data 0x20 0 256 file 0 "/absolute/path/fru.bin"
//     with FRU device 0 and a size not below the file's length; 0x9f in mc_add
//     already says that there is FRU data. fru.bin is made by FRU;
//   - chassis_control's program must answer "get boot" with "boot:default",
//     "boot:pxe" ... An empty answer makes every boot option fail with code FFh.
//     It must be quick: ipmi_sim runs it synchronously, and a client that asks
//     again after a second has its command carried out twice.
type Sim struct {
	Addr netip.AddrPort
	t    testing.TB
	dir  string

	mu    sync.Mutex // guards what follows
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has
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

// chassisProgram keeps the state in files. A file "deaf" is a system that does not shut down, "stuck"
// one whose power stays, "keepboot" one whose boot device does; "slow" holds the seconds that a
// change takes.
const chassisProgram = `#!/bin/sh
cd %s || exit 1
op=$1; shift
if [ "$op" = get ]; then
  for f in "$@"; do printf '%%s:%%s\n' "$f" "$(cat "$f")"; done
  exit 0
fi
echo "$*" >>log
[ ! -e slow ] || sleep "$(cat slow)"
while [ $# -ge 2 ]; do
  case "$1" in
  shutdown) [ -e deaf ] || echo 0 >power ;;
  power) [ -e stuck ] || echo "$2" >power ;;
  boot) [ -e keepboot ] || echo "$2" >boot ;;
  identify) echo "$2" >identify ;;
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
	s.Put("fru.bin", string(FRU(serial, "BRD-"+serial)))
	for name, text := range map[string]string{"power": "0\n", "boot": "default\n", "identify": "0 0\n", "log": "", "chassis.sh": fmt.Sprintf(chassisProgram, s.dir)} {
		s.Put(name, text)
	}
	if err := os.Chmod(filepath.Join(s.dir, "chassis.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	s.Run()
	return s
}

// Run runs the program, and waits until it answers. Start has done so; after Kill it is another
// start of the BMC, with the files as they are.
func (s *Sim) Run() {
	s.t.Helper()
	cmd := exec.Command("ipmi_sim", "-n", "-c", "lan.conf", "-f", "sim.emu", "-s", "state") //nolint:noctx // Kill ends it
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its chassis programs end with it
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	s.mu.Lock()
	s.cmd, s.ended = cmd, ended
	s.mu.Unlock()
	s.waitPong(ended)
}

// Kill ends the program; nobody is logged out.
func (s *Sim) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-s.ended
		s.cmd = nil
	}
}

// hangs is when a simulator that runs and does not answer counts as hung: it judges nothing.
const hangs = 5 * time.Minute

// waitPong waits until the simulator answers a presence ping (IPMI 2.0, 13.2.3).
func (s *Sim) waitPong(ended <-chan struct{}) {
	s.t.Helper()
	c, err := net.Dial("udp", s.Addr.String()) //nolint:noctx // a socket of loopback
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	answer := make([]byte, 64)
	for by := time.Now().Add(hangs); time.Now().Before(by); {
		select {
		case <-ended:
			s.t.Fatal("ipmi_sim has ended")
		default:
		}
		_, _ = c.Write([]byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, 0, 0, 0})
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if n, err := c.Read(answer); err == nil && n > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatal("ipmi_sim does not answer")
}

// Put writes a file of the simulator: power ("0" or "1"), boot, identify (seconds, and 1 for until it
// is switched off), and those of the chassis program and its configuration.
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

// FRU makes the content of a FRU device with a board and a product area (FRU Information Storage
// Definition 1.3).
func FRU(system, board string) []byte {
	b := FRUArea([]byte{1, 0, 0, 0, 0, 0}, "ironrail", "lab-board", board, "PN-1", "")
	p := FRUArea([]byte{1, 0, 0}, "ironrail", "lab-node", "lab-1", "1.0", system, "", "")
	header := []byte{1, 0, 0, 1, byte(1 + len(b)/8), 0, 0}
	return append(append(append(header, Checksum(header)), b...), p...)
}

// FRUArea appends fields to an area's head and closes it.
func FRUArea(area []byte, fields ...string) []byte {
	for _, f := range fields {
		area = append(append(area, 0xc0|byte(len(f))), f...)
	}
	area = append(area, 0xc1)
	for len(area)%8 != 7 {
		area = append(area, 0)
	}
	area[1] = byte((len(area) + 1) / 8)
	return append(area, Checksum(area))
}

// Checksum is the byte with which others sum up to zero.
func Checksum(b []byte) (sum byte) {
	for _, v := range b {
		sum -= v
	}
	return sum
}
