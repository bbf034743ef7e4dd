// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// starts is how often each foreign server is started, and must be found.
const starts = 10

// patience ends a test whose server is never found; it judges nothing.
const patience = 2 * time.Minute

// foreign is a DHCP server that is not ours, on wire0 in the namespace in. start
// returns when it holds its port, with what ends it.
type foreign struct {
	tool  string
	start func(t *testing.T, in []string) (stop func())
}

// foreigners are the servers with their defaults: no option but where to listen and
// what to lease.
var foreigners = map[string]foreign{
	"dnsmasq": {"dnsmasq", func(t *testing.T, in []string) func() {
		return program(t, "DHCP, sockets bound", append(in, "dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0", "--user=root", "--bind-interfaces",
			"--interface=wire0", "--dhcp-range=10.99.100.1,10.99.100.9,1h", "--dhcp-leasefile="+t.TempDir()+"/leases", "--pid-file="))
	}},
	"kea": {"kea-dhcp4", func(t *testing.T, in []string) func() {
		dir := t.TempDir()
		conf := write(t, dir, "kea.json", `{"Dhcp4": {"interfaces-config": {"interfaces": ["wire0"]}, "lease-database": {"type": "memfile", "persist": false},
			"subnet4": [{"subnet": "10.99.0.0/16", "pools": [{"pool": "10.99.100.1 - 10.99.100.9"}]}]}}`)
		return program(t, "DHCP4_STARTED", append(in, "env", "KEA_PIDFILE_DIR="+dir, "KEA_LOCKFILE_DIR="+dir, "kea-dhcp4", "-c", conf))
	}},
	"udhcpd": {"busybox", func(t *testing.T, in []string) func() {
		dir := t.TempDir()
		conf := write(t, dir, "udhcpd.conf", "start 10.99.100.1\nend 10.99.100.9\ninterface wire0\npidfile "+dir+"/pid\nlease_file "+dir+"/leases\noption subnet 255.255.0.0\n")
		return program(t, "started", append(in, "busybox", "udhcpd", "-f", conf))
	}},
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// program starts a program and waits until it says that it is ready.
func program(t *testing.T, ready string, args []string) (stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	up := make(chan string, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(up)
		var said []string
		for sc := bufio.NewScanner(out); sc.Scan(); {
			if said = append(said, sc.Text()); strings.Contains(sc.Text(), ready) && len(up) == 0 {
				up <- ""
			}
		}
		select {
		case up <- strings.Join(said, "\n"):
		default:
		}
	})
	stop = sync.OnceFunc(func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait(); out.Close(); wg.Wait() })
	t.Cleanup(stop)
	if said := <-up; said != "" {
		t.Fatalf("%s did not get ready:\n%s", args, said)
	}
	return stop
}

// watch runs a search until the test or ctx ends.
func watch(t *testing.T, ctx context.Context, every time.Duration) *dhcp.Watch {
	t.Helper()
	w, err := dhcp.OpenWatch(ctx, dhcp.WatchConfig{Interface: "boot0", Address: netip.MustParseAddr("10.99.0.2"), Every: every})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

// isFound waits until a watch has found the server at an address, and checks what it
// says of it.
func isFound(t *testing.T, in []string, w *dhcp.Watch, at string) dhcp.Other {
	t.Helper()
	select {
	case o := <-w.Found():
		if o.Address.String() != at || o.MAC.String() != macOf(t, in) || !strings.HasPrefix(o.Offered.String(), "10.99.100.") {
			t.Errorf("found %s, %s (%s); want %s at MAC %s", o, o.Gives(), o.Seen, at, macOf(t, in))
		}
		return o
	case <-time.After(patience):
		t.Fatal("the server was not found")
		return dhcp.Other{}
	}
}

// macOf is the MAC of the other end of our wire.
func macOf(t *testing.T, in []string) string {
	t.Helper()
	_, after, _ := strings.Cut(linkOf(t, in, "wire0"), "link/ether ")
	mac, _, _ := strings.Cut(after, " ")
	return mac
}

// linkOf is what ip says of an interface in a namespace.
func linkOf(t *testing.T, in []string, ifname string) string {
	t.Helper()
	args := append(append([]string{}, in...), "ip", "-o", "link", "show", ifname)
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestPeerOthersAtStart starts each foreign server ten times before the search, which
// must find it.
func TestPeerOthersAtStart(t *testing.T) {
	t.Parallel()
	for name, f := range foreigners {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !inNamespace(t, "unshare", "nsenter", f.tool) {
				return
			}
			in := neighbour(t)
			for i := range starts {
				stop := f.start(t, in)
				ctx, end := context.WithCancel(t.Context())
				w := watch(t, ctx, 0)
				o := isFound(t, in, w, "10.99.255.1")
				_, searching := w.Searching()
				t.Logf("start %d: %s; %s (before the first search ended: %v)", i+1, o, o.Gives(), searching)
				end()
				stop()
			}
		})
	}
}

// TestPeerOthersInTheMiddle starts each foreign server ten times, each time with another
// address, while one search has been running for longer than its first part.
func TestPeerOthersInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, f := range foreigners {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !inNamespace(t, "unshare", "nsenter", f.tool) {
				return
			}
			in := neighbour(t)
			w := watch(t, t.Context(), time.Second)
			ends, _ := w.Searching()
			time.Sleep(time.Until(ends)) // what is tested begins then
			if others := w.Others(); len(others) != 0 {
				t.Fatalf("found %v where nobody is", others)
			}
			was := "10.99.255.1"
			for i := range starts {
				at := fmt.Sprintf("10.99.255.%d", 2+i)
				for _, c := range []string{"del " + was, "add " + at} {
					sh(t, strings.Join(in, " ")+" ip addr "+c+"/16 dev wire0")
				}
				was = at
				stop := f.start(t, in)
				o := isFound(t, in, w, at)
				t.Logf("start %d: %s; %s", i+1, o, o.Gives())
				stop()
			}
		})
	}
}
