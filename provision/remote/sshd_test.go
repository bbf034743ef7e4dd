// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

const sshdPath = "/usr/sbin/sshd"

func addrOf(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }

func fingerprint(s ssh.Signer) string { return ssh.FingerprintSHA256(s.PublicKey()) }

// behaviours hold for every SSH server: the node in this process and OpenSSH's sshd.
var behaviours = map[string]func(*testing.T, Config){
	"run": runs, "cancel": runIsCancelled, "many sessions": manySessions, "upload": uploads, "long output": longOutput,
}

func TestNode(t *testing.T) {
	t.Parallel()
	for name, f := range behaviours {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, startNode(t).config())
		})
	}
}

func TestPeerOpenSSH(t *testing.T) {
	t.Parallel()
	for name, f := range behaviours {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := startSSHD(t, "")
			f(t, cfg)
		})
	}
}

// startSSHD runs an sshd with a configuration of its own on a loopback port. The
// second result stops and starts it again.
func startSSHD(t testing.TB, extra string) (Config, func()) {
	t.Helper()
	peertest.Need(t, sshdPath)
	if os.Geteuid() == 0 {
		if _, err := os.Stat("/run/sshd"); err != nil {
			if err := os.Mkdir("/run/sshd", 0o755); err != nil && !os.IsExist(err) { // sshd wants it to separate privileges
				t.Skipf("/run/sshd: %v", err)
			}
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	host, hostFile, err := GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	if block, _ := pem.Decode(hostFile); block == nil {
		t.Fatal("key is no PEM")
	}
	client := newSigner(t)
	addr := freePort(t)
	config := fmt.Sprintf("Port %d\nListenAddress %s\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\nPidFile none\n"+
		"StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"+
		"SetEnv HOME=%s\n%s", // no profile of this user: it costs time and may print
		addr.Port(), addr.Addr(), dir, dir, dir, extra)
	for name, content := range map[string]string{"host": string(hostFile), "authorized": AuthorizedKey(client, "test"), "config": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{Node: "n1", Addr: addr, User: me.Username, HostKey: host.PublicKey(), Signer: client, Timeout: 10 * time.Second}
	restart := runSSHD(t, dir)
	return cfg, restart
}

// loopbacks counts the addresses that were given out.
var loopbacks atomic.Uint32

// loopback returns an address of this computer that no other test uses, so that
// a port which is closed and opened again is not taken meanwhile.
func loopback() string {
	n := loopbacks.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 64+os.Getpid()%64, n>>7, 1+n&127)
}

// freePort returns a port on an address that nobody else uses.
func freePort(t testing.TB) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", loopback()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return addrOf(l)
}

// runSSHD starts the daemon; the result restarts it. Connections of the old one
// are ended too. That it listens is read from its log.
func runSSHD(t testing.TB, dir string) func() {
	t.Helper()
	var cmd *exec.Cmd
	start := func() {
		for try := 0; ; try++ { // the old one's port may be free a little later
			cmd = exec.Command(sshdPath, "-D", "-e", "-f", filepath.Join(dir, "config"))
			log, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(log)
			line, err := in.ReadString('\n')
			if strings.HasPrefix(line, "Server listening") {
				go func() { _, _ = io.Copy(io.Discard, in) }() // ends with the daemon
				return
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if try == 50 {
				t.Fatalf("sshd does not listen: %q, %v", line, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	stop := func() {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, pid := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(pid); err == nil {
				if p, err := os.FindProcess(n); err == nil {
					_ = p.Kill()
				}
			}
		}
	}
	start()
	t.Cleanup(func() { stop() })
	return func() { stop(); start() }
}

func TestPeerSSHDRestart(t *testing.T) {
	t.Parallel()
	cfg, restart := startSSHD(t, "")
	c := dial(t, cfg)
	for range 2 {
		if r, err := c.Run(t.Context(), sh("echo up")); err != nil || string(r.Stdout) != "up\n" {
			t.Fatalf("%+v, %v", r, err)
		}
		restart()
	}
}

func TestPeerSSHDRefusals(t *testing.T) {
	t.Parallel()
	cfg, _ := startSSHD(t, "MaxSessions 0\n")
	other := cfg
	other.Signer = newSigner(t)
	if _, err := Dial(t.Context(), other); errkind.Of(err) != errkind.Auth {
		t.Errorf("another client key: %v", err)
	}
	other = cfg
	other.HostKey = newSigner(t).PublicKey()
	if _, err := Dial(t.Context(), other); errkind.Of(err) != errkind.Mismatch {
		t.Errorf("another host key: %v", err)
	}
	c := dial(t, cfg)
	if _, err := c.Run(t.Context(), sh("true")); errkind.Of(err) != errkind.Refused {
		t.Errorf("no sessions allowed: %v", err)
	}
}

// The pinned key is of a type that the node does not have.
func TestPeerSSHDHostKeyType(t *testing.T) {
	t.Parallel()
	cfg, _ := startSSHD(t, "")
	line := "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBGsX9n1nJTGjVSkUHEk8K8MGEH0sb3LQIJm1xR4YJy+Ck9y3g8gm2r0ZkM3rYQMpsP2Ql+0vY9iCq1dV7xYt0Lg="
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		t.Skipf("test key: %v", err)
	}
	cfg.HostKey = key
	if _, err := Dial(t.Context(), cfg); errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), "pinned type") {
		t.Errorf("got %v", err)
	}
}

// What the user's profile prints is not the command's output.
func TestPeerProfileNoise(t *testing.T) {
	t.Parallel()
	cfg, _ := startSSHD(t, "")
	c := dial(t, cfg)
	home, err := c.Run(t.Context(), sh(`printf %s "$HOME"`))
	if err != nil {
		t.Fatal(err)
	}
	noise := "echo noise; echo more noise >&2\n"
	if err := os.WriteFile(filepath.Join(string(home.Stdout), ".bashrc"), []byte(noise), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(t.Context(), sh("echo out; echo err >&2"))
	if err != nil || string(r.Stdout) != "out\n" || string(r.Stderr) != "err\n" {
		t.Errorf("%+v, %v", r, err)
	}
}

// One command on a kept connection, beside a new connection for each.
func BenchmarkRun(b *testing.B) {
	cfg, _ := startSSHD(b, "")
	b.Run("kept", func(b *testing.B) {
		c := dial(b, cfg)
		for b.Loop() {
			if _, err := c.Run(b.Context(), Command{Argv: []string{"true"}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			c, err := Dial(b.Context(), cfg)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := c.Run(b.Context(), Command{Argv: []string{"true"}}); err != nil {
				b.Fatal(err)
			}
			_ = c.Close()
		}
	})
}
