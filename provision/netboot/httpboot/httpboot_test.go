// SPDX-License-Identifier: Apache-2.0

package httpboot

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

var n1mac = addr.MAC{2, 0, 0, 0, 0, 1}

// loopback knows 127.0.0.1 as n1 and 127.0.0.2 as its BMC.
type loopback struct{ attempt *boot.Attempt }

func (loopback) ByMAC(addr.MAC) (boot.Client, bool) { return boot.Client{}, false }
func (loopback) ByAddress(a netip.Addr) (boot.Client, bool) {
	switch a.String() {
	case "127.0.0.1":
		return boot.Client{Node: "n1", MACs: []addr.MAC{n1mac}}, true
	case "127.0.0.2":
		return boot.Client{Node: "n1", Kind: boot.BMC}, true
	}
	return boot.Client{}, false
}
func (l loopback) Attempt(node string) (boot.Attempt, bool) {
	if l.attempt == nil || node != "n1" {
		return boot.Attempt{}, false
	}
	return *l.attempt, true
}

type notes chan boot.Evidence

func (n notes) Record(e boot.Evidence) { n <- e }

func (n notes) await(t *testing.T, what string) boot.Evidence {
	t.Helper()
	limit := time.After(5 * time.Minute) // of a test that hangs
	for {
		select {
		case e := <-n:
			if e.What == what {
				return e
			}
		case <-limit:
			t.Fatalf("no evidence %q", what)
		}
	}
}

const kernelSize = 300_000

// start serves a tree of files on loopback.
func start(t *testing.T, src boot.Source, wrap func(net.Listener) net.Listener) (root string, n notes) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "vmlinuz"), bytes.Repeat([]byte("k"), kernelSize), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(filepath.Join(dir, "sub"), 0o755)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n = make(notes, 1000)
	files := http.FileServer(http.Dir(dir))
	s, err := New(Config{Root: ln.Addr().(*net.TCPAddr).AddrPort(), Source: src, Recorder: n,
		Loaders: loader.Set{"snponly.efi": []byte("MZ-the-loader"), "undionly.kpxe": []byte("x"), loader.MOKX64: []byte("MZ-MokManager")},
		Mounts: []Mount{
			{Prefix: "/boot/", Handler: http.StripPrefix("/boot/a1", files)},
			{Prefix: "/boot/special/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "special "+r.URL.Path) })},
			{Prefix: "/boot/told/", Handler: http.NotFoundHandler(), UnknownClient: func(r *http.Request) {
				n.Record(boot.Evidence{What: "unknown-client", Detail: r.RemoteAddr + " " + r.URL.Path})
			}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	root = "http://" + ln.Addr().String()
	if wrap != nil {
		ln = wrap(ln)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return root, n
}

// ask sends one request from an address of loopback.
func ask(t *testing.T, from, method, url, byteRange string) (*http.Response, string) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c := http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: 5 * time.Minute}
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if byteRange != "" {
		r.Header.Set("Range", byteRange)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func attempt() *boot.Attempt {
	return &boot.Attempt{ID: "a1", Node: "n1", Kernel: "/boot/a1/vmlinuz", Initrds: []string{"/boot/a1/sub/initrd"}, Expires: time.Now().Add(time.Hour)}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	root, _ := start(t, loopback{attempt()}, nil)
	const script = "/boot/02-00-00-00-00-01/script.ipxe"
	port := root[strings.LastIndexByte(root, ':')+1:]
	tests := []struct {
		name, from, method, path, byteRange string
		status                              int
		body                                string // contained; of HEAD: none
	}{
		{"loader", "127.0.0.1", "GET", "/loader/snponly.efi", "", 200, "MZ-the-loader"},
		{"loader with a double slash", "127.0.0.1", "GET", "//loader//snponly.efi", "", 200, "MZ-the-loader"},
		{"loader, HEAD", "127.0.0.1", "HEAD", "/loader/snponly.efi", "", 200, ""},
		{"loader, range", "127.0.0.1", "GET", "/loader/snponly.efi", "bytes=3-5", 206, "the"},
		{"MokManager of others", "127.0.0.1", "GET", "/loader/mmx64.efi", "", 403, "no certificate is enrolled on this node"},
		{"not a loader", "127.0.0.1", "GET", "/loader/ipxe.iso", "", 404, "undionly.kpxe"},
		{"loader folder", "127.0.0.1", "GET", "/loader/", "", 404, ""},
		{"script", "127.0.0.1", "GET", script, "", 200, "kernel --name kernel " + root + "/boot/a1/vmlinuz"},
		{"script with colons", "127.0.0.1", "GET", "/boot/02:00:00:00:00:01/script.ipxe", "", 200, "boot attempt a1"},
		{"script of another MAC", "127.0.0.1", "GET", "/boot/02-00-00-00-00-02/script.ipxe", "", 200, "is not one of node n1"},
		{"script of an unknown client says why", "127.0.0.9", "GET", script, "", 200, "no node of the inventory has address 127.0.0.9"},
		{"script of a BMC", "127.0.0.2", "GET", script, "", 200, "is the BMC of n1"},
		{"GRUB's configuration", "127.0.0.1", "GET", "/grub/grub.cfg", "", 200, "if linux (http,127.0.0.1:" + port + ")/boot/a1/vmlinuz"},
		{"GRUB's configuration of the architecture", "127.0.0.1", "GET", "//grub/arm64-efi/grub.cfg", "", 200, "boot attempt a1"},
		{"GRUB's configuration of an unknown client says why", "127.0.0.9", "GET", "/grub/grub.cfg", "", 200, "echo 'ironrail: no node of the inventory has address 127.0.0.9'"},
		{"GRUB's configuration of a BMC", "127.0.0.2", "GET", "/grub/grub.cfg", "", 200, "is the BMC of n1"},
		{"a module of GRUB", "127.0.0.1", "GET", "/grub/arm64-efi/net.mod", "", 404, "nothing at"},
		{"kernel", "127.0.0.1", "GET", "/boot/a1/vmlinuz", "", 200, "kkk"},
		{"kernel, range", "127.0.0.1", "GET", "/boot/a1/vmlinuz", "bytes=299999-", 206, "k"},
		{"the longest prefix", "127.0.0.1", "GET", "/boot/special/x", "", 200, "special /boot/special/x"},
		{"dots are cleaned", "127.0.0.1", "GET", "/boot/./special//x", "", 200, "special /boot/special/x"},
		{"no redirect of a mounted handler", "127.0.0.1", "GET", "/boot/a1/sub", "", 404, ""},
		{"climbing", "127.0.0.1", "GET", "/boot/%2e%2e/x", "", 400, "not one of ours"},
		{"nothing there", "127.0.0.1", "GET", "/etc/passwd", "", 404, "nothing at"},
		{"an unknown client is told why", "127.0.0.9", "GET", "/boot/a1/vmlinuz", "", 403, "no node of the inventory has address 127.0.0.9"},
		{"an unknown client gets no loader", "127.0.0.9", "GET", "/loader/snponly.efi", "", 403, "no node"},
		{"POST", "127.0.0.1", "POST", "/loader/snponly.efi", "", 405, "only GET and HEAD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, body := ask(t, tt.from, tt.method, root+tt.path, tt.byteRange)
			if res.StatusCode != tt.status || !strings.Contains(body, tt.body) || tt.method == "HEAD" && body != "" {
				t.Errorf("got %d %.200q, want %d with %q", res.StatusCode, body, tt.status, tt.body)
			}
			if res.ProtoMajor != 1 || res.Header.Get("Location") != "" {
				t.Errorf("HTTP/%d, Location %q", res.ProtoMajor, res.Header.Get("Location"))
			}
			if tt.path == "/loader/snponly.efi" && tt.status == 200 && (res.Header.Get("Content-Type") != "application/efi" || res.ContentLength != 13) {
				t.Errorf("loader: type %q, length %d", res.Header.Get("Content-Type"), res.ContentLength)
			}
		})
	}
}

func TestScriptOfNode(t *testing.T) {
	t.Parallel()
	expired, hostile := attempt(), attempt()
	expired.Expires = time.Now().Add(-time.Second)
	hostile.Args = []string{"a\nshell"}
	tests := []struct {
		name    string
		attempt *boot.Attempt
		want    string
		grub    string
		refused bool
	}{
		{"open", attempt(), "boot kernel", "      boot\n", false},
		{"none", nil, "going to its disk", "chainloader ($disk)/EFI/BOOT/BOOTAA64.EFI", false},
		{"expired", expired, "going to its disk", "going to its disk", false},
		{"not writable", hostile, "this node is not booted", "this node is not booted", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root, n := start(t, loopback{tt.attempt}, nil)
			_, body := ask(t, "127.0.0.1", "GET", root+"/boot/02-00-00-00-00-01/script.ipxe", "")
			if !strings.HasPrefix(body, "#!ipxe\n") || !strings.Contains(body, tt.want) {
				t.Errorf("got:\n%s", body)
			}
			if e := n.await(t, eventScript); e.Refused != tt.refused || e.Node != "n1" || e.MAC != n1mac || e.Detail == "" || e.Bytes != int64(len(body)) {
				t.Errorf("evidence %+v", e)
			}
			_, body = ask(t, "127.0.0.1", "GET", root+"/grub/grub.cfg", "")
			if !strings.Contains(body, tt.grub) || strings.Contains(body, "\nshell") {
				t.Errorf("GRUB got:\n%s", body)
			}
			if e := n.await(t, eventScript); e.Refused != tt.refused || e.Node != "n1" || e.MAC != n1mac || !strings.HasPrefix(e.Detail, "GRUB: ") {
				t.Errorf("evidence of GRUB %+v", e)
			}
		})
	}
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	root, n := start(t, loopback{attempt()}, nil)
	ask(t, "127.0.0.1", "GET", root+"/boot/a1/vmlinuz", "")
	n.await(t, EventKernelStart)
	if e := n.await(t, EventKernelEnd); e.Bytes != kernelSize || e.Node != "n1" || e.Refused || !strings.Contains(e.Detail, "status 200") {
		t.Errorf("kernel: %+v", e)
	}
	ask(t, "127.0.0.1", "GET", root+"/boot/a1/sub/initrd", "")
	if e := n.await(t, EventInitrdEnd); !e.Refused || !strings.Contains(e.Detail, "status 404") {
		t.Errorf("missing initrd: %+v", e)
	}
	ask(t, "127.0.0.9", "GET", root+"/x%1b%5b2J", "")
	if e := n.await(t, eventRefused); !e.Refused || e.Node != "" || e.Address.String() != "127.0.0.9" || strings.Contains(e.Detail, "\x1b") {
		t.Errorf("unknown client: %+v", e)
	}
	if res, _ := ask(t, "127.0.0.9", "GET", root+"/boot//told/x", ""); res.StatusCode != http.StatusForbidden {
		t.Errorf("unknown client: %s", res.Status)
	}
	if e := n.await(t, "unknown-client"); !strings.HasPrefix(e.Detail, "127.0.0.9:") || !strings.HasSuffix(e.Detail, " /boot/told/x") {
		t.Errorf("the mount is told %+v", e)
	}
}

// sendfileConn counts what reaches the connection's ReadFrom, which is where
// *net.TCPConn calls sendfile(2).
type sendfileConn struct {
	*net.TCPConn
	n *atomic.Int64
}

func (c sendfileConn) ReadFrom(r io.Reader) (int64, error) {
	n, err := c.TCPConn.ReadFrom(r)
	c.n.Add(n)
	return n, err
}

type sendfileListener struct {
	net.Listener
	n *atomic.Int64
}

func (l sendfileListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return sendfileConn{c.(*net.TCPConn), l.n}, nil
}

// TestSendfile: counting bytes must not put a copy between file and socket.
func TestSendfile(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	root, saw := start(t, loopback{attempt()}, func(l net.Listener) net.Listener { return sendfileListener{l, &n} })
	ask(t, "127.0.0.1", "GET", root+"/boot/a1/vmlinuz", "")
	saw.await(t, EventKernelEnd) // the client may have all before the server has counted it
	// net/http itself writes the first 512 bytes, or the first buffer, with the header.
	if got := n.Load(); got < kernelSize-8192 {
		t.Errorf("%d of %d bytes went through ReadFrom of the connection", got, kernelSize)
	}
}

// TestStop: a download in progress does not hold the service up forever.
func TestStop(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inside := make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done()
	})
	s, err := New(Config{Source: loopback{}, Recorder: make(notes, 100), Mounts: []Mount{{Prefix: "/images/", Handler: slow}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	c, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /images/x HTTP/1.1\r\nHost: x\r\n\r\n")
	<-inside
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("Serve did not return")
	}
}

func TestNewRefusesPrefixes(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "boot/", "/boot"} {
		if _, err := New(Config{Mounts: []Mount{{Prefix: p, Handler: http.NotFoundHandler()}}}); err == nil {
			t.Errorf("prefix %q was accepted", p)
		}
	}
	if _, err := New(Config{Mounts: []Mount{{Prefix: "/x/"}}}); err == nil {
		t.Error("a mount without a handler was accepted")
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, s := range []string{"/", "//a//b/", "/a/../b", "/./a/.", "a\\b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		got, ok := cleanPath(p)
		if !ok {
			return
		}
		if !strings.HasPrefix(got, "/") || strings.Contains(got, "//") || strings.Contains(got+"/", "/../") || strings.Contains(got+"/", "/./") {
			t.Errorf("%q became %q", p, got)
		}
		if again, ok := cleanPath(got); !ok || again != got {
			t.Errorf("%q, cleaned twice, became %q", got, again)
		}
	})
}
