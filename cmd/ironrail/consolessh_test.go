// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/ipmisim"
	"github.com/ironrail/ironrail/provision/remote"
)

// consoleOverSSH gives n1 of the site of simulated a console at an sshd, which prints what is typed. It returns the
// fingerprint of its host key, as the site has it.
func consoleOverSSH(t *testing.T, dir string) (fingerprint string) {
	t.Helper()
	peertest.Need(t, "/usr/sbin/sshd")
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Skipf("/run/sshd: %v", err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	host, hostFile, err := remote.GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	client, clientFile, err := remote.GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a socket of loopback
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	at := t.TempDir()
	for name, text := range map[string]string{"host": string(hostFile), "client": string(clientFile), "authorized": remote.AuthorizedKey(client, "test"),
		"config": fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\nPidFile none\nStrictModes no\nUsePAM no\n"+
			"PermitRootLogin prohibit-password\nSetEnv HOME=%s\nForceCommand stty raw -echo; echo login:; exec cat\n", port, at, at, at)} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(at, "config"))
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(log).ReadString('\n'); !strings.HasPrefix(line, "Server listening") {
		t.Fatalf("%q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, log) }() // ends with the daemon
	fingerprint = ssh.FingerprintSHA256(host.PublicKey())
	f, err := os.OpenFile(filepath.Join(dir, "site.hcl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "login \"ports\" {\n  username = %q\n  key = secret(\"file:%s/client\")\n}\noverride \"n1\" {\n  reason = \"its console\"\n  console {\n"+
		"    address = \"127.0.0.1\"\n    port = %d\n    login = login.ports\n    host_key = %q\n  }\n}\n", me.Username, at, port, fingerprint); err != nil {
		t.Fatal(err)
	}
	return fingerprint
}

// TestPeerConsoleOverSSH types at a console that a real sshd gives, while the BMC says who the node is; another host
// key is refused.
func TestPeerConsoleOverSSH(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ipmi_sim")
	dir, _, _ := simulated(t, "SYS-2", "")
	fingerprint := consoleOverSSH(t, dir)
	x := typistOf(t, dir)
	await(t, "what is printed", func() bool { return x.out.String() == "login:\n" }) // the terminal is raw by then
	_, _ = io.WriteString(x, "root\x03\r")
	await(t, "what was typed", func() bool { return x.out.String() == "login:\nroot\x03\r" })
	_ = x.Close()
	if c := <-x.code; c != 0 {
		t.Errorf("exit code %d: %s", c, x.talk)
	}
	if d := typedBy(t, dir); d.By != operatorName() || d.State != state.EffectIsDone {
		t.Errorf("%+v", d)
	}
	site := filepath.Join(dir, "site.hcl")
	b, err := os.ReadFile(site)
	if err != nil {
		t.Fatal(err)
	}
	other := "SHA256:" + strings.Repeat("A", 43)
	if err := os.WriteFile(site, bytes.ReplaceAll(b, []byte(fingerprint), []byte(other)), 0o600); err != nil {
		t.Fatal(err)
	}
	var talk bytes.Buffer
	a := newApp(io.Discard, &talk)
	a.environ = func(name string) (string, bool) { return ipmisim.Password, name == "PW" }
	if code := a.run(t.Context(), []string{"-C", dir, "console", "n1"}); code != 1 || !strings.Contains(talk.String(), "and the site says "+other) {
		t.Errorf("%d: %s", code, &talk)
	}
}
