// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/peertest"
)

// cluster is two nodes on this machine: network, mount and UTS namespaces with
// a real sshd in each, joined by a boot link and a rail.
type cluster struct {
	pids map[string]int
}

// Run implements onnode.Nodes.
func (c *cluster) Run(ctx context.Context, node string, cmd onnode.Command) (onnode.Output, error) {
	argv := append([]string{"-t", fmt.Sprint(c.pids[node]), "--mount", "--uts", "--net", "--"}, cmd.Argv...)
	p := exec.CommandContext(ctx, "nsenter", argv...)
	p.Dir, p.Env, p.WaitDelay = "/", []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}, 5*time.Second
	p.Stdin = bytes.NewReader(cmd.Stdin)
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr = &stdout, &stderr
	if cmd.Stdout != nil {
		p.Stdout = io.MultiWriter(&stdout, cmd.Stdout)
	}
	if cmd.Stderr != nil {
		p.Stderr = io.MultiWriter(&stderr, cmd.Stderr)
	}
	err := p.Run()
	out := onnode.Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	if ee, ok := errors.AsType[*exec.ExitError](err); ok && ee.Exited() {
		out.Exit = ee.ExitCode()
		return out, nil
	}
	return out, err
}

func sh(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", argv, err, out)
	}
}

const sshdConfig = `Port 22
ListenAddress %s
HostKey %s
UsePAM yes
PidFile none
PermitRootLogin prohibit-password
PasswordAuthentication no
`

func newCluster(t *testing.T) (*cluster, Job) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for namespaces")
	}
	peertest.Need(t, "ip", "nsenter", "unshare", "sshd", "ssh", "ssh-keygen", "mpirun")
	peertest.Python(t, "mpi4py")
	c := &cluster{pids: map[string]int{}}
	j := job(2)
	ns := func(i int) string { return fmt.Sprintf("irmpi%d-%d", os.Getpid(), i) }
	for i := range 2 {
		sh(t, "ip", "netns", "add", ns(i))
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns(i)).Run() })
	}
	for _, link := range []string{"boot", "rail"} {
		sh(t, "ip", "-n", ns(0), "link", "add", link, "type", "veth", "peer", "name", link, "netns", ns(1))
	}
	for i := range 2 {
		sh(t, "ip", "-n", ns(i), "link", "set", "lo", "up")
		for link, a := range map[string]netip.Addr{"boot": j.Members[i].Address, "rail": j.Members[i].Rails[0]} {
			sh(t, "ip", "-n", ns(i), "addr", "add", a.String()+"/24", "dev", link)
			sh(t, "ip", "-n", ns(i), "link", "set", link, "up")
		}
		j.Members[i].HostKey = c.startNode(t, j.Members[i], ns(i))
	}
	return c, j
}

// startNode starts sshd in namespaces of its own and returns its host key.
func (c *cluster) startNode(t *testing.T, m Member, ns string) string {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	sh(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key)
	conf := filepath.Join(dir, "sshd_config")
	if err := os.WriteFile(conf, fmt.Appendf(nil, sshdConfig, m.Address, key), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `set -e
hostname "$1"
mount --make-rprivate /
mount -t tmpfs -o mode=0700 tmpfs /root
mkdir -m 0700 /root/.ssh
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -m 0755 /run/sshd
exec /usr/sbin/sshd -D -e -f "$2"`
	p := exec.Command("ip", "netns", "exec", ns, "unshare", "--mount", "--uts", "sh", "-c", script, "sh", m.Node, conf)
	var log bytes.Buffer
	p.Stderr = &log
	p.WaitDelay = time.Second
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		if t.Failed() {
			t.Logf("sshd of %s: %s", m.Node, log.String())
		}
	})
	c.pids[m.Node] = p.Process.Pid
	for range 100 {
		out, err := c.Run(t.Context(), m.Node, onnode.Command{Argv: []string{"sh", "-c", "ss -ltnH 'sport = :22'; hostname"}})
		if err == nil && strings.Contains(string(out.Stdout), ":22") && strings.Contains(string(out.Stdout), m.Node) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(public))
}

// ends waits until the nodes hold what a run may leave there, and nothing else: daemons
// of an mpirun that was ended leave by themselves, some time after it.
func (c *cluster) ends(t *testing.T, with string) {
	t.Helper()
	for hang := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		left := c.traces(t)
		if left == with {
			return
		}
		if time.Now().After(hang) {
			t.Fatalf("left behind: %q, want %q", left, with)
		}
	}
}

// traces lists what a run left on the nodes.
func (c *cluster) traces(t *testing.T) string {
	t.Helper()
	var left string
	for node := range c.pids {
		out, err := onnode.Do(t.Context(), c, node, "sh", "-c", "ls /root/.ssh /run/ironrail; pgrep -r R,S,D -a orted || true")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range strings.Fields(string(out)) {
			if !strings.HasSuffix(f, ":") {
				left += node + ":" + f + " "
			}
		}
	}
	return left
}

// TestPeerRunBetweenNodes runs the whole job over a real mpirun and real sshds.
func TestPeerRunBetweenNodes(t *testing.T) {
	c, j := newCluster(t)
	out, printed, err := j.Run(t.Context(), c, time.Now())
	if err != nil {
		t.Fatalf("%v\n%s", err, printed.Text)
	}
	r, _ := out.Largest()
	t.Logf("%v: busbw %.1f MB/s at %d bytes, wrong %d", out.Hosts, r.BusBW/1e6, r.Size, out.Wrong())
	if strings.Join(out.Hosts, " ") != "n1 n2" || out.Wrong() != 0 || len(out.Rows) != 2 {
		t.Errorf("got %+v", out)
	}
	c.ends(t, "")
	t.Run("wrong host key", func(t *testing.T) {
		bad := j
		bad.Members = append([]Member(nil), j.Members...)
		bad.Members[1].HostKey = j.Members[0].HostKey
		if _, printed, err := bad.Run(t.Context(), c, time.Now()); err == nil || !bytes.Contains(printed.Text, []byte("Host key verification failed")) {
			t.Errorf("%v: %s", err, printed.Text)
		}
	})
	t.Run("expired key", func(t *testing.T) {
		_, printed, err := j.Run(t.Context(), c, time.Now().Add(-24*time.Hour))
		if err == nil || printed.Named != "n2" {
			t.Errorf("%v: named %q: %s", err, printed.Named, printed.Text)
		}
	})
	t.Run("somebody's own keys", func(t *testing.T) {
		mine := onnode.Command{Argv: []string{"sh", "-c", "cat >/root/.ssh/authorized_keys2"}, Stdin: []byte("ssh-ed25519 AAAA mine\n")}
		if _, err := c.Run(t.Context(), "n2", mine); err != nil {
			t.Fatal(err)
		}
		if _, _, err := j.Run(t.Context(), c, time.Now()); err == nil || !strings.Contains(err.Error(), "not ironrail's") {
			t.Errorf("got %v", err)
		}
		c.ends(t, "n2:authorized_keys2 ")
		if _, err := onnode.Do(t.Context(), c, "n2", "rm", "/root/.ssh/authorized_keys2"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("rail is cut", func(t *testing.T) {
		sh(t, "nsenter", "-t", fmt.Sprint(c.pids["n2"]), "--net", "ip", "link", "set", "rail", "down")
		cut := j
		cut.Limit = 20 * time.Second
		_, printed, err := cut.Run(t.Context(), c, time.Now())
		if err == nil || printed.Named != "n2" {
			t.Errorf("named %q: %v", printed.Named, err)
		}
		sh(t, "nsenter", "-t", fmt.Sprint(c.pids["n1"]), "--net", "ip", "link", "set", "rail", "down")
		if _, _, err := cut.Run(t.Context(), c, time.Now()); err == nil {
			t.Error("an all-reduce over the boot network passes for one over the rail")
		}
		c.ends(t, "")
	})
}
