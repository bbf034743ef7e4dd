// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"log"
	"math/big"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/metal/metaltest"
)

var (
	controllerAddr = netip.MustParseAddr("10.77.0.2")
	nodeAddr       = netip.MustParseAddr("10.77.0.11")
)

// controller hands out tasks and images, over real TLS on a network in memory.
type controller struct {
	t       testing.TB
	net     *network.Memory
	pin     string
	digest  string
	public  string
	file    []byte // of the manifest
	blob    []byte
	servers []*http.Server

	mu    sync.Mutex
	peers map[string]*peer // guarded by mu; by token
}

// peer is one node of the controller.
type peer struct {
	*controller
	token   string
	tasks   chan wire.Task
	results chan wire.Result
	given   int // tasks
	hellos  chan wire.Hello
}

// peer returns the node with a token.
func (c *controller) peer(token string) *peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peers[token] == nil {
		c.peers[token] = &peer{controller: c, token: token, tasks: make(chan wire.Task, 8), results: make(chan wire.Result, 64), hellos: make(chan wire.Hello, 64)}
	}
	return c.peers[token]
}

// serve starts a controller and returns its first node; it ends with the test.
func serve(t testing.TB, image []byte) *peer {
	t.Helper()
	c := &controller{t: t, net: network.NewMemory(), peers: map[string]*peer{}}
	c.pack(image)
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	c.pin = base64.StdEncoding.EncodeToString(sum[:])
	at := c.net.At(controllerAddr)
	for port, config := range map[string]*tls.Config{":443": {Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, ":80": nil} {
		l, err := at.Listen(t.Context(), "tcp", controllerAddr.String()+port)
		if err != nil {
			t.Fatal(err)
		}
		if config != nil {
			l = tls.NewListener(l, config)
		}
		server := &http.Server{Handler: http.HandlerFunc(c.answer), ErrorLog: log.New(&bytes.Buffer{}, "", 0)}
		go server.Serve(l)
		c.servers = append(c.servers, server)
		t.Cleanup(func() { server.Close() })
	}
	return c.peer("n1")
}

// pack makes the image's manifest and blob.
func (c *controller) pack(image []byte) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		c.t.Fatal(err)
	}
	sum := sha256.Sum256(image)
	m := manifest.Manifest{Format: manifest.Format, Name: "debian.os", Size: int64(len(image)), SHA256: hex.EncodeToString(sum[:])}
	for off := 0; off < len(image); off += manifest.ChunkSize {
		b := image[off:min(off+manifest.ChunkSize, len(image))]
		chunk := manifest.Chunk{Offset: int64(len(c.blob)), Plain: int64(len(b))}
		if !disk.AllZero(b) {
			packed := encoder.EncodeAll(b, nil)
			chunk.Length, chunk.BLAKE3 = int64(len(packed)), manifest.Sum(b)
			c.blob = append(c.blob, packed...)
		}
		m.Chunks = append(m.Chunks, chunk)
	}
	m.Blob = int64(len(c.blob))
	if err := m.Sign(key); err != nil {
		c.t.Fatal(err)
	}
	if c.file, c.digest, err = m.Marshal(); err != nil {
		c.t.Fatal(err)
	}
	c.public = base64.StdEncoding.EncodeToString(public)
}

func (c *controller) answer(w http.ResponseWriter, r *http.Request) {
	p := c.peer(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	switch r.URL.Path {
	case "/manifest.json":
		w.Write(c.file)
	case "/blob":
		http.ServeContent(w, r, "blob", time.Time{}, bytes.NewReader(c.blob))
	case wire.PathHello:
		var h wire.Hello
		json.NewDecoder(r.Body).Decode(&h)
		p.hellos <- h
		json.NewEncoder(w).Encode(wire.HelloReply{Node: "n1", Clock: time.Now()})
	case wire.PathTask:
		select {
		case task := <-p.tasks:
			json.NewEncoder(w).Encode(task)
		case <-r.Context().Done():
		case <-time.After(30 * time.Second):
			w.WriteHeader(http.StatusNoContent)
		}
	case wire.PathResult:
		var result wire.Result
		json.NewDecoder(r.Body).Decode(&result)
		p.results <- result
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// ramdisk is what the firmware of a node has loaded.
func (c *peer) ramdisk(n *Node, address netip.Addr) Ramdisk {
	c.t.Helper()
	segment, err := ramdisk.NodeSegment(wire.Boot{
		Version: wire.Version, Node: n.Name(), Attempt: "a1", Token: c.token, Controller: "https://" + controllerAddr.String() + ":443", Pin: c.pin,
		BootMAC: n.Identity().BootMAC, Address: address.String() + "/24",
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return Ramdisk{Initrd: [][]byte{[]byte("\x28\xb5\x2f\xfd base"), segment}, Net: func(a netip.Addr) network.Network { return c.net.At(a) }}
}

// do hands out a task and returns its result.
func (c *peer) do(kind wire.TaskKind, params any) wire.Result {
	c.t.Helper()
	b, err := json.Marshal(params)
	if err != nil {
		c.t.Fatal(err)
	}
	c.given++
	c.tasks <- wire.Task{Key: string(kind) + strconv.Itoa(c.given), Kind: kind, Params: b}
	select {
	case r := <-c.results:
		return r
	case <-time.After(time.Hour):
		c.t.Fatalf("no result of %s", kind)
		return wire.Result{}
	}
}

// inspect returns the disk that an image goes to.
func (c *peer) inspect() wire.Disk {
	c.t.Helper()
	r := c.do(wire.Inspect, nil)
	var hw wire.Hardware
	if err := json.Unmarshal(r.Output, &hw); err != nil || len(hw.Disks) == 0 {
		c.t.Fatalf("%+v, %v", r.Error, err)
	}
	return hw.Disks[0]
}

func (c *peer) write(d wire.Disk, marker string) (result wire.WriteResult, failed *wire.TaskError) {
	c.t.Helper()
	base := "http://" + controllerAddr.String() + ":80"
	r := c.do(wire.Write, wire.WriteParams{
		Disk: d, ManifestURL: base + "/manifest.json", BlobURL: base + "/blob", Digest: c.digest, PublicKey: c.public, RootSize: wire.RestOfDisk, Marker: marker,
	})
	if r.Error == nil {
		if err := json.Unmarshal(r.Output, &result); err != nil {
			c.t.Fatal(err)
		}
	}
	return result, r.Error
}

func (c *peer) configure(d wire.Disk, n *Node) (key string, failed *wire.TaskError) {
	c.t.Helper()
	r := c.do(wire.Configure, wire.ConfigureParams{
		Disk: d, Hostname: n.Name(), Timezone: "Europe/Berlin", BootNIC: n.Identity().BootMAC, Address: nodeAddr.String() + "/24", TimeServers: []string{"10.77.0.2"},
		AuthorizedKeys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKtAByEBe6HmoKRoUKWtRYqyUjvMO0QGXRMLGVDSBaVh"}, Agent: true,
	})
	var out wire.ConfigureResult
	if r.Error == nil {
		if err := json.Unmarshal(r.Output, &out); err != nil {
			c.t.Fatal(err)
		}
	}
	return out.HostKey, r.Error
}

// boot runs a ramdisk until it leaves by itself; what must be done by then is do.
func boot(t testing.TB, r Ramdisk, n *Node, do func()) chassis.Exit {
	t.Helper()
	exit := make(chan chassis.Exit, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { exit <- r.Boot(ctx, n) }()
	do()
	select {
	case e := <-exit:
		return e
	case <-time.After(time.Hour):
		t.Fatal("the ramdisk did not leave")
		return 0
	}
}

// The real agent inspects, writes, configures and reboots, and the node then has a
// system of its own, with the key that the controller was told.
func TestInstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		image := metaltest.MakeImage(10<<20, 1)
		c := serve(t, image)
		n := BuildNode(hgxNode(), Options{Scale: 1000})
		began := time.Now()
		exit := boot(t, c.ramdisk(n, nodeAddr), n, func() {
			if h := <-c.hellos; h.Identity != n.Identity() || h.BootID == "" || time.Since(began) < 25*time.Second {
				t.Errorf("got hello %+v after %v", h, time.Since(began))
			}
			d := c.inspect()
			if d.Content != "" || n.Installed() || n.Root() != nil {
				t.Errorf("a new disk is not blank: %+v", d)
			}
			r, failed := c.write(d, "n1 w1")
			// 10 GB for a disk that writes 3 and reads 6 a second
			if failed != nil || r.Size != 10<<20 || r.Already || r.Seconds+r.Verified < 3 || r.Seconds+r.Verified > 10 {
				t.Errorf("got %+v, %+v", r, failed)
			}
			if n.Installed() {
				t.Error("installed before it was configured")
			}
			if again, failed := c.write(d, "n1 w1"); failed != nil || !again.Already {
				t.Errorf("again: %+v, %+v", again, failed)
			}
			key, failed := c.configure(d, n)
			if failed != nil {
				t.Fatalf("configure: %+v", failed)
			}
			checkRoot(t, n, key)
			c.do(wire.Reboot, wire.RebootParams{})
		})
		if exit != chassis.Reset || !n.Installed() {
			t.Errorf("left by %v, installed %v", exit, n.Installed())
		}
		if got := n.Disks()[0].Counters(); got.Erases != 1 || got.BytesWritten < 10<<20 || got.BytesWritten > 11<<20 {
			t.Errorf("got %+v", got)
		}
	})
}

// checkRoot looks at what configure wrote.
func checkRoot(t *testing.T, n *Node, key string) {
	t.Helper()
	root := n.Root().FS()
	read := func(name string) string {
		b, err := fs.ReadFile(root, name)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	signer, err := ssh.ParsePrivateKey([]byte(read("etc/ssh/ssh_host_ed25519_key")))
	if err != nil || strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))) != key {
		t.Errorf("host key: %v; the controller has %s", err, key)
	}
	for name, want := range map[string]string{
		"etc/hostname": "n1\n", "root/.ssh/authorized_keys": "ssh-ed25519 ", "etc/systemd/network/10-ironrail-boot.network": bootMAC.String(),
		"usr/local/sbin/ironrail-agent": agentFile, "etc/chrony/sources.d/ironrail.sources": "10.77.0.2", "etc/machine-id": "", "etc/timezone": "Europe/Berlin",
	} {
		if got := read(name); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q in it", name, got, want)
		}
	}
	if info, err := fs.Stat(root, "root/.ssh"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("root/.ssh: %v, %v", info, err)
	}
}

// A disk that is written again loses the system that was on it, and only then.
func TestRewriteLosesTheSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, metaltest.MakeImage(8<<20, 1))
		n := BuildNode(hgxNode(), Options{})
		install := func(marker string) (key string) {
			boot(t, c.ramdisk(n, nodeAddr), n, func() {
				<-c.hellos
				d := c.inspect()
				if d.Marker != "" && d.Marker != marker {
					_, failed := c.write(d, marker)
					if failed == nil || failed.Kind != "refused" || n.Root() == nil {
						t.Errorf("a disk with a system was given away: %+v", failed)
					}
					n.Disks()[0].Wipe()
					d = c.inspect()
				}
				if _, failed := c.write(d, marker); failed != nil {
					t.Errorf("%+v", failed)
				}
				var failed *wire.TaskError
				if key, failed = c.configure(d, n); failed != nil {
					t.Errorf("%+v", failed)
				}
				c.do(wire.Reboot, wire.RebootParams{PowerOff: true})
			})
			return key
		}
		first := install("w1")
		if same := install("w1"); same != first || first == "" {
			t.Errorf("the same install has key %q, then %q", first, same)
		}
		if second := install("w2"); second == first || second == "" {
			t.Errorf("a new install has the old key %q", second)
		}
	})
}

// Defects of the disk, and what the agent says of them.
func TestDiskDefects(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(d *Disk)
		want  string
	}{
		{"sector that takes no data", func(d *Disk) { d.FailWrites(5<<20, 512) }, "input/output error"},
		// Between two places that a look at the disk comes to, and at one.
		{"sector that cannot be read", func(d *Disk) { d.FailReads(5<<20+512<<10, 512) }, "input/output error"},
		{"sector that keeps nothing", func(d *Disk) { d.Flip(5<<20+512<<10, 1) }, "returns other bytes"},
		{"sector that cannot be looked at", func(d *Disk) { d.FailReads(5<<20, 512) }, "not blank: unreadable at byte 5242880"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, metaltest.MakeImage(8<<20, 1))
				n := BuildNode(hgxNode(), Options{})
				c.spoil(n.Disks()[0])
				boot(t, s.ramdisk(n, nodeAddr), n, func() {
					if _, failed := s.write(s.inspect(), "w1"); failed == nil || !strings.Contains(failed.Text, c.want) {
						t.Errorf("got %+v, want %q", failed, c.want)
					}
					s.do(wire.Reboot, wire.RebootParams{})
				})
				if n.Installed() {
					t.Error("installed")
				}
			})
		})
	}
}

// Power that goes during a write leaves a disk that is not booted, and the next
// ramdisk goes on.
func TestPowerLossDuringWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, metaltest.MakeImage(8<<20, 1))
		n := BuildNode(hgxNode(), Options{Scale: 100_000}) // minutes
		ctx, cut := context.WithTimeout(t.Context(), time.Minute)
		defer cut()
		exit := make(chan chassis.Exit)
		r := c.ramdisk(n, nodeAddr)
		go func() { exit <- r.Boot(ctx, n) }()
		<-c.hellos
		d := c.inspect()
		base := "http://" + controllerAddr.String() + ":80"
		b, _ := json.Marshal(wire.WriteParams{Disk: d, ManifestURL: base + "/manifest.json", BlobURL: base + "/blob", Digest: c.digest, PublicKey: c.public, RootSize: wire.RestOfDisk, Marker: "w1"})
		c.tasks <- wire.Task{Key: "w", Kind: wire.Write, Params: b}
		if e := <-exit; e != chassis.Halt || n.Installed() {
			t.Errorf("left by %v, installed %v", e, n.Installed())
		}
		if _, ok := n.System(); ok {
			t.Error("a half-written disk boots")
		}
		boot(t, r, n, func() {
			<-c.hellos
			d := c.inspect()
			if d.State != string(disk.Writing) {
				t.Errorf("the marker says %q", d.State)
			}
			if got, failed := c.write(d, "w1"); failed != nil || got.Already {
				t.Errorf("got %+v, %+v", got, failed)
			}
			c.do(wire.Reboot, wire.RebootParams{})
		})
	})
}

// Nodes that never say hello: a kernel that hangs, and one without a boot file,
// which reboots after a while.
func TestNoHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, metaltest.MakeImage(5<<20, 1))
		n := BuildNode(hgxNode(), Options{})
		n.Hang(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if e := c.ramdisk(n, nodeAddr).Boot(ctx, n); e != chassis.Halt || time.Since(began) != time.Hour {
			t.Errorf("left by %v after %v", e, time.Since(began))
		}
		n.Hang(-1)
		began = time.Now()
		r := c.ramdisk(n, nodeAddr)
		r.Initrd = r.Initrd[:1]
		var console bytes.Buffer
		r.Console = &console
		if e := r.Boot(t.Context(), n); e != chassis.Reset || time.Since(began) < hopeless || !strings.Contains(console.String(), "no boot file") {
			t.Errorf("left by %v after %v: %s", e, time.Since(began), console.String())
		}
		n.RemovePCI("0000:29:00.0")
		if e := c.ramdisk(n, nodeAddr).Boot(t.Context(), n); e != chassis.Reset || len(c.hellos) != 0 {
			t.Errorf("without its NIC: left by %v, %d hellos", e, len(c.hellos))
		}
	})
}
