// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// preload replaces libibumad's access to devices by ibsim (package libumad2sim0).
const preload = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so"

// programs are what these tests run: the real opensm and diagnostic programs, on
// the simulated fabric of ibsim.
var programs = []string{"/usr/sbin/opensm", "/usr/bin/ibsim", "/usr/sbin/ibnetdiscover", "/usr/sbin/smpquery", "/usr/sbin/sminfo"}

// wiring is the fabric as it is plugged, which is as planned unless a test says
// otherwise.
type wiring struct {
	inv     *inventory.Inventory
	members []Member
	ids     map[string]string // by name: of nodes' ports, switches and managers
	text    string            // ibsim's topology file
}

// plugIn makes the file of ibsim. Port GUIDs are node GUIDs plus the port number,
// which is all that ibsim knows. describe names devices.
func plugIn(inv *inventory.Inventory, describe func(name string) string) *wiring {
	w := &wiring{inv: inv, ids: map[string]string{}}
	type device struct {
		id, name string
		guid     addr.GUID
		ports    int
		links    []string
	}
	var order []string
	devices := map[string]*device{}
	at := func(name string, guid addr.GUID, prefix string, ports int) *device {
		if devices[name] == nil {
			d := &device{id: fmt.Sprintf("%s-%016x", prefix, uint64(guid)), name: describe(name), guid: guid, ports: ports}
			devices[name], w.ids[name] = d, d.id
			order = append(order, name)
		}
		return devices[name]
	}
	next := addr.GUID(0x946dae0300000000)
	end := func(e *inventory.CableEnd) (*device, int) {
		next += 16
		switch {
		case e.Switch != nil:
			return at(e.Switch.Name, next|1<<48, "S", 64), e.Port
		case e.Node == nil:
			return at(e.Text, next, "H", 1), 1
		}
		name := fmt.Sprintf("%s/%s/%d", e.Node.Name, e.NIC.Name, e.Port)
		if devices[name] == nil {
			w.members = append(w.members, Member{Node: e.Node, NIC: e.NIC, Port: e.Port, Device: fmt.Sprintf("mlx5_%d", e.Port), HCA: next, GUID: next + 1})
		}
		return at(name, next, "H", 1), 1
	}
	for _, c := range inv.Cables {
		a, p := end(&c.From)
		b, q := end(&c.To)
		a.links = append(a.links, fmt.Sprintf("[%d] %q[%d] s=7 e=7", p, b.id, q))
		b.links = append(b.links, fmt.Sprintf("[%d] %q[%d] s=7 e=7", q, a.id, p))
	}
	var text strings.Builder
	for _, name := range order {
		d := devices[name]
		kind, key := "Ca", "caguid"
		if d.ports > 1 {
			kind, key = "Switch", "switchguid"
		}
		fmt.Fprintf(&text, "%s=%#x\n%s %d %q # %q\n%s\n\n", key, uint64(d.guid), kind, d.ports, d.id, d.name, strings.Join(d.links, "\n"))
	}
	w.text = text.String()
	return w
}

// sim is a running ibsim.
type sim struct {
	t       *testing.T
	name    string
	dir     string
	console io.Writer
	output  *bufio.Reader
	mu      sync.Mutex // guards the console
}

var simulators atomic.Int64

// simulate starts ibsim, or skips the test where a program is not installed.
func simulate(t *testing.T, w *wiring) *sim {
	t.Helper()
	peertest.Need(t, append(programs, preload)...)
	s := &sim{t: t, name: fmt.Sprintf("ironrail-%d-%d", os.Getpid(), simulators.Add(1)), dir: t.TempDir()}
	file := filepath.Join(s.dir, "net.topo")
	if err := os.WriteFile(file, []byte(w.text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "ibsim", "-s", "-N", "4096", "-S", "512", "-P", "40000", file)
	cmd.Env = append(os.Environ(), "IBSIM_SOCKNAME="+s.name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it ends no other way
	s.console, s.output = in, bufio.NewReader(out)
	s.prompt()
	return s
}

// prompt reads to the next prompt of the console.
func (s *sim) prompt() string {
	var b strings.Builder
	for !strings.HasSuffix(b.String(), "sim> ") {
		c, err := s.output.ReadByte()
		if err != nil {
			s.t.Fatalf("ibsim ended: %v after %q", err, b.String())
		}
		b.WriteByte(c)
	}
	return b.String()
}

// do gives ibsim's console a command.
func (s *sim) do(format string, args ...any) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := fmt.Fprintf(s.console, format+"\n", args...); err != nil {
		s.t.Fatal(err)
	}
	if said := s.prompt(); strings.Contains(said, "# ") {
		s.t.Fatalf("ibsim: "+format+": %s", append(args, said)...)
	}
}

// host is a controller on the simulated fabric, whose opensm is a child of the test.
func (s *sim) host(id string) *simHost {
	dir := filepath.Join(s.dir, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	h := &simHost{sim: s, dir: dir}
	h.Local = Local{
		Folder:   dir, // libumad2sim makes a folder where it runs
		LogFiles: filepath.Join(dir, "opensm.log"),
		Environ:  []string{"LD_PRELOAD=" + preload, "IBSIM_SOCKNAME=" + s.name, "SIM_HOST=" + id, "OSM_TMP_DIR=" + dir, "OSM_CACHE_DIR=" + dir},
	}
	h.Restarted, h.Signalled = h.restart, h.signal
	return h
}

// simHost is a Local whose opensm is started as Debian's unit starts it.
type simHost struct {
	Local
	sim    *sim
	dir    string
	opensm *exec.Cmd
	output strings.Builder
}

func (h *simHost) restart(context.Context) error {
	h.stop()
	h.opensm = exec.CommandContext(h.sim.t.Context(), "opensm", "-F", filepath.Join(h.dir, confFile), "--log_file", filepath.Join(h.dir, "opensm.log"))
	h.opensm.Env, h.opensm.Dir = append(os.Environ(), h.Environ...), h.dir
	h.opensm.Stdout, h.opensm.WaitDelay = &h.output, time.Second
	if err := h.opensm.Start(); err != nil {
		return err
	}
	h.sim.t.Cleanup(h.stop)
	return nil
}

// stop ends opensm without a farewell, as a machine that loses power does.
func (h *simHost) stop() {
	if h.opensm != nil {
		_ = h.opensm.Process.Kill()
		_ = h.opensm.Wait() // killed
		h.opensm = nil
	}
}

func (h *simHost) signal(context.Context) error { return h.opensm.Process.Signal(syscall.SIGHUP) }

// subnet is the fabric with its manager on a host.
func (h *simHost) subnet(inv *inventory.Inventory) *Subnet {
	return &Subnet{Inv: inv, Fabric: inv.Fabrics[0], Host: h, Folder: h.dir}
}
