// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"
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
	"github.com/ironrail/ironrail/internal/secret"
)

// The credential of simulated BMCs. The password is a canary: no error, log or
// evidence may contain it.
const (
	simUser     = "admin"
	simPassword = "canary-3f9a7c51d2"
)

// sim is one OpenIPMI ipmi_sim. Configuration that works with 2.0.33 (Debian 12
// and 13), for others who need a BMC:
//
//   - lan.conf, between startlan and endlan: "guid" and 32 hexadecimal digits
//     without dashes, the 16 bytes of Get System GUID in wire order. For QEMU's
//     -uuid 00112233-4455-6677-8899-aabbccddeeff write
//     33221100554477668899aabbccddeeff (SMBIOS order);
//   - sim.emu, after mc_add and before mc_enable:
//     mc_add_fru_data 0x20 0 256 file 0 "/absolute/path/fru.bin"
//     with FRU device 0 and a size not below the file's length; 0x9f in mc_add
//     already says that there is FRU data. fru.bin is made by fruImage below;
//   - chassis_control's program must answer "get boot" with "boot:default",
//     "boot:pxe" ... An empty answer makes every boot option fail with code FFh.
//     It must be quick: ipmi_sim runs it synchronously, and a client that asks
//     again after a second has its command carried out twice.
type sim struct {
	t    testing.TB
	dir  string
	addr netip.AddrPort

	mu    sync.Mutex // guards what follows
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has
}

// hangs is when a peer that makes no progress counts as hung: it judges nothing.
const hangs = 5 * time.Minute

const simLAN = `name "n1"
set_working_mc 0x20
  startlan 1
    addr %s %d
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid 33221100554477668899aabbccddeeff
  endlan
  chassis_control "%s/chassis.sh"
  user 2 true "%s" "%s" admin 10 none md2 md5 straight
  user 3 true "operator" "%s" operator 10 none md2 md5 straight
`

const simEmu = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
mc_add_fru_data 0x20 0 256 file 0 "%s/fru.bin"
sel_enable 0x20 1000 0x0a
mc_enable 0x20
`

// simChassis keeps the state in files and logs each call: "get power",
// "set power 1", "set boot pxe", "set reset 1". Several pairs may come at once.
const simChassis = `#!/bin/sh
cd %s || exit 1
echo "$*" >>log
op=$1; shift
if [ -e slow ] && [ "$op" = set ]; then sleep "$(cat slow)"; fi
if [ "$op" = get ]; then
  for f in "$@"; do printf '%%s:%%s\n' "$f" "$(cat "$f")"; done
  exit 0
fi
while [ $# -ge 2 ]; do
  case "$1" in
  reset) ;;
  shutdown) [ -e deaf ] || echo 0 >power ;;
  power) [ -e stuck ] || echo "$2" >power ;;
  boot) [ -e keepboot ] || echo "$2" >boot ;;
  esac
  shift 2
done
`

// startSim starts an ipmi_sim for the test, powered off.
func startSim(t testing.TB) *sim {
	t.Helper()
	peertest.Need(t, "ipmi_sim")
	s := &sim{t: t, dir: t.TempDir(), addr: freeUDP(t)}
	s.put("lan.conf", fmt.Sprintf(simLAN, s.addr.Addr(), s.addr.Port(), s.dir, simUser, simPassword, simPassword))
	s.put("sim.emu", fmt.Sprintf(simEmu, s.dir))
	s.put("fru.bin", string(fruImage("SYS-n1-0001", "BRD-n1-0001")))
	s.put("power", "0\n")
	s.put("boot", "default\n")
	s.put("log", "")
	s.put("chassis.sh", fmt.Sprintf(simChassis, s.dir))
	if err := os.Chmod(filepath.Join(s.dir, "chassis.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	s.start()
	return s
}

// start runs the process and waits until it answers, for as long as it runs.
func (s *sim) start() {
	s.t.Helper()
	cmd := exec.Command("ipmi_sim", "-n", "-c", "lan.conf", "-f", "sim.emu", "-s", "state")
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
	ctx, cancel := context.WithTimeout(s.t.Context(), hangs)
	defer cancel()
	for {
		session, err := Open(ctx, s.target(), Options{})
		if err == nil {
			_ = session.Close(ctx)
			return
		}
		select {
		case <-ended:
			s.t.Fatalf("ipmi_sim has ended: %v", err)
		case <-ctx.Done():
			s.t.Fatalf("ipmi_sim does not answer: %v", err)
		default:
		}
	}
}

// kill ends the process; nothing is logged out.
func (s *sim) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-s.ended
		s.cmd = nil
	}
}

// target returns the BMC's target with a good credential.
func (s *sim) target() Target {
	return Target{
		Node: "n1", Addr: s.addr, Username: simUser, Password: secret.NewValue(simPassword),
		CipherSuite: 3, Timeout: 3 * time.Second,
	}
}

// put writes a file of the simulator's folder.
func (s *sim) put(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// writes returns the calls that changed something, in order.
func (s *sim) writes() string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "set ") {
			out = append(out, strings.TrimPrefix(line, "set "))
		}
	}
	return strings.Join(out, ", ")
}

// ipmitool asks the independent judge.
func (s *sim) ipmitool(args ...string) string {
	s.t.Helper()
	peertest.Need(s.t, "ipmitool")
	base := []string{"-I", "lanplus", "-C", "3", "-H", s.addr.Addr().String(), "-p", fmt.Sprint(s.addr.Port()), "-U", simUser, "-E"}
	cmd := exec.CommandContext(s.t.Context(), "ipmitool", append(base, args...)...)
	cmd.Env = append(os.Environ(), "IPMI_PASSWORD="+simPassword)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("ipmitool %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// simCount numbers the simulators of this process.
var simCount atomic.Uint32

// freeUDP returns a loopback address that nobody listens on: an address of its
// own, so that no client's ephemeral port can be in the way.
func freeUDP(testing.TB) netip.AddrPort {
	n := simCount.Add(1)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(1 + os.Getpid()%250), byte(n >> 8), byte(n)}), 16230)
}

// fruImage makes the content of a FRU device with a board and a product area
// (FRU Information Storage Definition 1.3).
func fruImage(system, board string) []byte {
	b := fruArea([]byte{1, 0, 0, 0, 0, 0}, "ironrail", "lab-board", board, "PN-1", "")
	p := fruArea([]byte{1, 0, 0}, "ironrail", "lab-node", "lab-1", "1.0", system, "", "")
	header := []byte{1, 0, 0, 1, byte(1 + len(b)/8), 0, 0, 0}
	header[7] = checksum(header)
	return append(append(header, b...), p...)
}

// fruArea appends fields to an area's head and closes it.
func fruArea(area []byte, fields ...string) []byte {
	for _, f := range fields {
		area = append(append(area, 0xc0|byte(len(f))), f...)
	}
	area = append(area, 0xc1)
	for len(area)%8 != 7 {
		area = append(area, 0)
	}
	area[1] = byte((len(area) + 1) / 8)
	return append(area, checksum(area))
}

// checksum makes the bytes sum up to zero.
func checksum(b []byte) (sum byte) {
	for _, v := range b {
		sum -= v
	}
	return sum
}
